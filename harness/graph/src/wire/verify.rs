//! Verification of untrusted buffers, as `flatc` would generate it, for each root and generation.

use super::generation::Generation;
use super::layout::*;
use super::{WireError, record, tensor_value};
use crate::schema::Attributes;
use flatbuffers::{
    ForwardsUOffset, InvalidFlatbuffer, TableVerifier, Vector, Verifiable, Verifier,
    VerifierOptions,
};
use std::marker::PhantomData;

pub(super) type Verified<T = ()> = Result<T, InvalidFlatbuffer>;
pub(super) type Text = ForwardsUOffset<&'static str>;
pub(super) type Int64s = ForwardsUOffset<Vector<'static, i64>>;
pub(super) type Int32s = ForwardsUOffset<Vector<'static, i32>>;
pub(super) type Bytes = ForwardsUOffset<Vector<'static, u8>>;
type Texts = ForwardsUOffset<Vector<'static, Text>>;
type Tables<T> = ForwardsUOffset<Vector<'static, ForwardsUOffset<T>>>;

/// Checks that `bytes` hold a valid `T` as root.
pub(super) fn verify<T: Verifiable>(bytes: &[u8], root: &'static str) -> Result<(), WireError> {
    check::<T>(bytes).map_err(|reason| WireError::Malformed {
        root,
        size: bytes.len(),
        reason,
    })
}

fn check<T: Verifiable>(bytes: &[u8]) -> Verified {
    if bytes.len() > MAX_BUFFER {
        return Err(InvalidFlatbuffer::ApparentSizeTooLarge);
    }
    let options = VerifierOptions {
        max_depth: MAX_DEPTH,
        max_tables: MAX_TABLES,
        max_apparent_size: 2 * MAX_BUFFER,
        ignore_missing_null_terminator: false,
    };
    <ForwardsUOffset<T>>::run_verifier(&mut Verifier::new(&options, bytes), 0)
}

/// A generation as a type, for the verifier's recursion.
pub(super) trait Wire: 'static {
    const GENERATION: Generation;
}

pub(super) struct Nov2025;
pub(super) struct Current;

impl Wire for Nov2025 {
    const GENERATION: Generation = Generation::Nov2025;
}

impl Wire for Current {
    const GENERATION: Generation = Generation::Current;
}

pub(super) struct GraphTable<W>(PhantomData<W>);
pub(super) struct TensorTable<W>(PhantomData<W>);
struct NodeTable<W>(PhantomData<W>);

impl<W: Wire> Verifiable for GraphTable<W> {
    fn run_verifier(v: &mut Verifier, position: usize) -> Verified {
        let mut table = v
            .visit_table(position)?
            .visit_field::<Text>("name", slot(GRAPH_NAME), false)?
            .visit_field::<i8>("compute_data_type", slot(GRAPH_COMPUTE_TYPE), false)?
            .visit_field::<i8>(
                "intermediate_data_type",
                slot(GRAPH_INTERMEDIATE_TYPE),
                false,
            )?
            .visit_field::<i8>("io_data_type", slot(GRAPH_IO_TYPE), false)?
            .visit_field::<Tables<TensorTable<W>>>("tensors", slot(GRAPH_TENSORS), false)?
            .visit_field::<Tables<NodeTable<W>>>("nodes", slot(GRAPH_NODES), false)?;
        if W::GENERATION == Generation::Current {
            table = table
                .visit_field::<i64>("preferred_engine_id", slot(GRAPH_PREFERRED_ENGINE), false)?
                .visit_field::<bool>(
                    "is_override_shape_enabled",
                    slot(GRAPH_OVERRIDE_SHAPES),
                    false,
                )?
                .visit_field::<Struct<u32, 12>>(
                    "min_required_engine_api_version",
                    slot(GRAPH_MIN_ENGINE_API),
                    false,
                )?
                .visit_field::<Struct<u8, 16>>("id", slot(GRAPH_ID), false)?;
        }
        table.finish();
        Ok(())
    }
}

impl<W: Wire> Verifiable for TensorTable<W> {
    fn run_verifier(v: &mut Verifier, position: usize) -> Verified {
        let mut table = v
            .visit_table(position)?
            .visit_field::<i64>("uid", slot(TENSOR_UID), false)?
            .visit_field::<Text>("name", slot(TENSOR_NAME), false)?
            .visit_field::<i8>("data_type", slot(TENSOR_DATA_TYPE), false)?
            .visit_field::<Int64s>("strides", slot(TENSOR_STRIDES), false)?
            .visit_field::<Int64s>("dims", slot(TENSOR_DIMS), false)?
            .visit_field::<bool>("virtual", slot(TENSOR_VIRTUAL), false)?;
        union(
            &mut table,
            TENSOR_VALUE_TYPE,
            TENSOR_VALUE,
            tensor_value::verify,
        )?;
        if W::GENERATION == Generation::Current {
            table = table
                .visit_field::<bool>(
                    "is_runtime_pass_by_value",
                    slot(TENSOR_RUNTIME_PASS_BY_VALUE),
                    false,
                )?
                .visit_field::<i64>(
                    "ragged_offset_tensor_uid",
                    slot(TENSOR_RAGGED_OFFSET),
                    false,
                )?
                .visit_field::<i64>("alignment", slot(TENSOR_ALIGNMENT), false)?
                .visit_field::<i64>(
                    "ragged_offset_multiplier",
                    slot(TENSOR_RAGGED_MULTIPLIER),
                    false,
                )?;
        }
        table.finish();
        Ok(())
    }
}

impl<W: Wire> Verifiable for NodeTable<W> {
    fn run_verifier(v: &mut Verifier, position: usize) -> Verified {
        let (compute_type, tag, attributes) = W::GENERATION.node_ids();
        let mut table =
            v.visit_table(position)?
                .visit_field::<Text>("name", slot(NODE_NAME), false)?;
        if let Some(id) = compute_type {
            table = table.visit_field::<i8>("compute_data_type", slot(id), false)?;
        }
        union(
            &mut table,
            tag,
            attributes,
            |v, tag, position| match Attributes::from_tag(tag) {
                Some(kind) if tag <= W::GENERATION.highest_node_tag() => {
                    record::verify(v, position, kind.record())
                }
                _ => Ok(()),
            },
        )?;
        table.finish();
        Ok(())
    }
}

/// A struct stored inline: `SIZE` bytes, aligned as `T`.
struct Struct<T, const SIZE: usize>(PhantomData<T>);

impl<T, const SIZE: usize> Verifiable for Struct<T, SIZE> {
    fn run_verifier(v: &mut Verifier, position: usize) -> Verified {
        v.is_aligned::<T>(position)?;
        v.range_in_buffer(position, SIZE)
    }
}

/// Verifies a union: `member` gets the tag and the position of what the value points at. A
/// missing half is left to the reader, which can name the place; an unknown tag to `member`.
pub(super) fn union(
    table: &mut TableVerifier,
    tag_id: u16,
    value_id: u16,
    member: impl FnOnce(&mut Verifier, u8, usize) -> Verified,
) -> Verified {
    let tag = match table.deref(slot(tag_id))? {
        Some(position) => table.verifier().get_u8(position)?,
        None => 0,
    };
    match table.deref(slot(value_id))? {
        Some(position) if tag != 0 => {
            let offset = table.verifier().get_uoffset(position)? as usize;
            member(table.verifier(), tag, position.saturating_add(offset))
        }
        _ => Ok(()),
    }
}

pub(super) struct ConfigTable;
pub(super) struct DetailsTable;
struct SettingTable;
struct KnobTable;

impl Verifiable for ConfigTable {
    fn run_verifier(v: &mut Verifier, position: usize) -> Verified {
        v.visit_table(position)?
            .visit_field::<i64>("engine_id", slot(ENGINE_ID), false)?
            .visit_field::<Tables<SettingTable>>("knobs", slot(ENGINE_KNOBS), false)?
            .finish();
        Ok(())
    }
}

impl Verifiable for SettingTable {
    fn run_verifier(v: &mut Verifier, position: usize) -> Verified {
        let mut table = v.visit_table(position)?.visit_field::<Text>(
            "knob_id",
            slot(SETTING_KNOB_ID),
            false,
        )?;
        union(&mut table, SETTING_VALUE_TYPE, SETTING_VALUE, knob_value)?;
        table.finish();
        Ok(())
    }
}

impl Verifiable for DetailsTable {
    fn run_verifier(v: &mut Verifier, position: usize) -> Verified {
        v.visit_table(position)?
            .visit_field::<i64>("engine_id", slot(ENGINE_ID), false)?
            .visit_field::<Tables<KnobTable>>("knobs", slot(ENGINE_KNOBS), false)?
            .visit_field::<Int32s>("behavior_notes", slot(DETAILS_BEHAVIOR_NOTES), false)?
            .visit_field::<Text>("name", slot(DETAILS_NAME), false)?
            .finish();
        Ok(())
    }
}

impl Verifiable for KnobTable {
    fn run_verifier(v: &mut Verifier, position: usize) -> Verified {
        let mut table = v
            .visit_table(position)?
            .visit_field::<Text>("knob_id", slot(KNOB_ID), false)?
            .visit_field::<Text>("description", slot(KNOB_DESCRIPTION), false)?
            .visit_field::<bool>("deprecated", slot(KNOB_DEPRECATED), false)?;
        union(&mut table, KNOB_DEFAULT_TYPE, KNOB_DEFAULT, knob_value)?;
        union(
            &mut table,
            KNOB_CONSTRAINT_TYPE,
            KNOB_CONSTRAINT,
            knob_constraint,
        )?;
        table.finish();
        Ok(())
    }
}

fn knob_value(v: &mut Verifier, tag: u8, position: usize) -> Verified {
    let table = v.visit_table(position)?;
    match tag {
        1 => table.visit_field::<i64>("value", slot(0), false)?,
        2 => table.visit_field::<f64>("value", slot(0), false)?,
        3 => table.visit_field::<Text>("value", slot(0), false)?,
        _ => table,
    }
    .finish();
    Ok(())
}

fn knob_constraint(v: &mut Verifier, tag: u8, position: usize) -> Verified {
    let table = v.visit_table(position)?;
    match tag {
        1 => table
            .visit_field::<i64>("min_value", slot(0), false)?
            .visit_field::<i64>("max_value", slot(1), false)?
            .visit_field::<i64>("step", slot(2), false)?
            .visit_field::<Int64s>("valid_values", slot(3), false)?,
        2 => table
            .visit_field::<f64>("min_value", slot(0), false)?
            .visit_field::<f64>("max_value", slot(1), false)?,
        3 => table
            .visit_field::<i32>("max_length", slot(0), false)?
            .visit_field::<Texts>("valid_values", slot(1), false)?,
        _ => table,
    }
    .finish();
    Ok(())
}
