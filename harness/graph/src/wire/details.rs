//! `EngineDetails`: what an engine says of itself, its knobs first of all.

use super::error::{Element, Place, WireError};
use super::generation::Generation;
use super::knob::{self, KnobValue};
use super::layout::*;
use super::raw::RawTable;
use super::record::ReadError;
use super::verify::{DetailsTable, verify};
use flatbuffers::{FlatBufferBuilder, TableFinishedWIPOffset, UnionWIPOffset, WIPOffset};

/// What an engine says of itself. The 2025-11 wire has the engine id only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineDetails {
    /// The engine.
    pub engine_id: i64,
    /// Its knobs.
    pub knobs: Vec<Knob>,
    /// Values of `hipdnnBackendBehaviorNote_t`.
    pub behavior_notes: Vec<i32>,
    /// Its name; must agree with what `hipdnnEnginePluginGetEngineName` says.
    pub name: String,
}

/// A knob that an engine offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Knob {
    /// Identifier, such as `global.benchmarking`.
    pub knob_id: String,
    /// What it does, for people.
    pub description: String,
    /// The value without a setting; the schema requires one.
    pub default_value: KnobValue,
    /// Which values are allowed.
    pub constraint: Option<KnobConstraint>,
    /// Not to be used any more.
    pub deprecated: bool,
}

/// Which values a knob takes: the schema's union `KnobConstraint`.
#[derive(Clone, Debug, PartialEq)]
pub enum KnobConstraint {
    /// Tag 1: integers from `min` to `max` in steps, or a list of them.
    Int {
        /// Least value.
        min: i64,
        /// Greatest value.
        max: i64,
        /// Distance between values; 1 unless said otherwise.
        step: i64,
        /// The only values allowed, if not empty.
        valid_values: Vec<i64>,
    },
    /// Tag 2: numbers from `min` to `max`.
    Float {
        /// Least value.
        min: f64,
        /// Greatest value.
        max: f64,
    },
    /// Tag 3: strings.
    Text {
        /// Greatest length in bytes.
        max_length: i32,
        /// The only values allowed, if not empty.
        valid_values: Vec<String>,
    },
}

impl KnobConstraint {
    /// The union tag.
    pub const fn tag(&self) -> u8 {
        match self {
            Self::Int { .. } => 1,
            Self::Float { .. } => 2,
            Self::Text { .. } => 3,
        }
    }
}

/// Reads a serialized `EngineDetails` of either generation.
///
/// # Errors
/// [`WireError::Malformed`], [`WireError::UnknownTag`], or [`WireError::Missing`] for a knob
/// without a default value.
pub fn read_engine_details(bytes: &[u8]) -> Result<EngineDetails, WireError> {
    verify::<DetailsTable>(bytes, "EngineDetails")?;
    details(bytes).map_err(|error| error.of("EngineDetails", bytes))
}

fn details(bytes: &[u8]) -> Result<EngineDetails, ReadError> {
    let table = RawTable::root(bytes)?;
    let knobs = table
        .tables(ENGINE_KNOBS)?
        .enumerate()
        .map(|(index, knob)| read_knob(knob?, index))
        .collect::<Result<_, _>>()?;
    Ok(EngineDetails {
        engine_id: table.i64(ENGINE_ID)?.unwrap_or(0),
        knobs,
        behavior_notes: table.i32s(DETAILS_BEHAVIOR_NOTES)?,
        name: table.text(DETAILS_NAME)?,
    })
}

fn read_knob(table: RawTable, index: usize) -> Result<Knob, ReadError> {
    let place = |field| Place {
        element: Element::Knob(index),
        table: "Knob",
        field,
    };
    Ok(Knob {
        knob_id: table.text(KNOB_ID)?,
        description: table.text(KNOB_DESCRIPTION)?,
        default_value: knob::read(
            table,
            KNOB_DEFAULT_TYPE,
            KNOB_DEFAULT,
            place("default_value"),
        )?,
        constraint: read_constraint(table, place("constraint"))?,
        deprecated: table.bool(KNOB_DEPRECATED)?.unwrap_or(false),
    })
}

fn read_constraint(knob: RawTable, at: Place) -> Result<Option<KnobConstraint>, ReadError> {
    let tag = knob.u8(KNOB_CONSTRAINT_TYPE)?.unwrap_or(0);
    if tag == 0 {
        return Ok(None);
    }
    let table = knob
        .table(KNOB_CONSTRAINT)?
        .ok_or(WireError::Missing { at })?;
    Ok(Some(match tag {
        1 => KnobConstraint::Int {
            min: table.i64(0)?.unwrap_or(0),
            max: table.i64(1)?.unwrap_or(0),
            step: table.i64(2)?.unwrap_or(1),
            valid_values: table.i64s(3)?,
        },
        2 => KnobConstraint::Float {
            min: table.f64(0)?.unwrap_or(0.0),
            max: table.f64(1)?.unwrap_or(0.0),
        },
        3 => KnobConstraint::Text {
            max_length: table.i32(0)?.unwrap_or(0),
            valid_values: table.texts(1)?,
        },
        _ => return Err(knob::unknown_tag(at, "KnobConstraint", tag).into()),
    }))
}

/// Serializes engine details.
///
/// # Errors
/// [`WireError::Inexpressible`] for anything but the engine id in the 2025-11 wire.
pub fn write_engine_details(
    details: &EngineDetails,
    generation: Generation,
) -> Result<Vec<u8>, WireError> {
    if generation == Generation::Nov2025 {
        check_expressible(details)?;
    }
    let mut builder = FlatBufferBuilder::new();
    let knobs: Vec<_> = details
        .knobs
        .iter()
        .map(|knob| write_knob(&mut builder, knob))
        .collect();
    let knobs = (!knobs.is_empty()).then(|| builder.create_vector(&knobs));
    let notes = (!details.behavior_notes.is_empty())
        .then(|| builder.create_vector(&details.behavior_notes));
    let name = (!details.name.is_empty()).then(|| builder.create_string(&details.name));
    let table = builder.start_table();
    builder.push_slot(slot(ENGINE_ID), details.engine_id, 0);
    if let Some(knobs) = knobs {
        builder.push_slot_always(slot(ENGINE_KNOBS), knobs);
    }
    if let Some(notes) = notes {
        builder.push_slot_always(slot(DETAILS_BEHAVIOR_NOTES), notes);
    }
    if let Some(name) = name {
        builder.push_slot_always(slot(DETAILS_NAME), name);
    }
    let root = builder.end_table(table);
    builder.finish_minimal(root);
    Ok(builder.finished_data().to_vec())
}

fn check_expressible(details: &EngineDetails) -> Result<(), WireError> {
    let refusals = [
        ("knobs", !details.knobs.is_empty(), "knobs"),
        (
            "behavior_notes",
            !details.behavior_notes.is_empty(),
            "behaviour notes",
        ),
        ("name", !details.name.is_empty(), "an engine's name"),
    ];
    for (field, present, what) in refusals {
        if present {
            return Err(WireError::Inexpressible {
                at: Place {
                    element: Element::Root,
                    table: "EngineDetails",
                    field,
                },
                what: what.to_owned(),
                generation: Generation::Nov2025,
            });
        }
    }
    Ok(())
}

fn write_knob(builder: &mut FlatBufferBuilder, knob: &Knob) -> WIPOffset<TableFinishedWIPOffset> {
    let id = builder.create_string(&knob.knob_id);
    let description = builder.create_string(&knob.description);
    let default = knob::write(builder, &knob.default_value);
    let constraint = knob
        .constraint
        .as_ref()
        .map(|constraint| (constraint.tag(), write_constraint(builder, constraint)));
    let table = builder.start_table();
    builder.push_slot_always(slot(KNOB_ID), id);
    builder.push_slot_always(slot(KNOB_DESCRIPTION), description);
    builder.push_slot_always(slot(KNOB_DEFAULT), default);
    builder.push_slot_always(slot(KNOB_DEFAULT_TYPE), knob.default_value.tag());
    if let Some((tag, constraint)) = constraint {
        builder.push_slot_always(slot(KNOB_CONSTRAINT), constraint);
        builder.push_slot_always(slot(KNOB_CONSTRAINT_TYPE), tag);
    }
    builder.push_slot(slot(KNOB_DEPRECATED), knob.deprecated, false);
    builder.end_table(table)
}

fn write_constraint(
    builder: &mut FlatBufferBuilder,
    constraint: &KnobConstraint,
) -> WIPOffset<UnionWIPOffset> {
    let table = match constraint {
        KnobConstraint::Int {
            min,
            max,
            step,
            valid_values,
        } => {
            let values = (!valid_values.is_empty()).then(|| builder.create_vector(valid_values));
            let table = builder.start_table();
            builder.push_slot(slot(0), *min, 0);
            builder.push_slot(slot(1), *max, 0);
            builder.push_slot(slot(2), *step, 1);
            if let Some(values) = values {
                builder.push_slot_always(slot(3), values);
            }
            table
        }
        KnobConstraint::Float { min, max } => {
            let table = builder.start_table();
            builder.push_slot_always(slot(0), *min);
            builder.push_slot_always(slot(1), *max);
            table
        }
        KnobConstraint::Text {
            max_length,
            valid_values,
        } => {
            let texts: Vec<_> = valid_values
                .iter()
                .map(|text| builder.create_string(text))
                .collect();
            let values = (!texts.is_empty()).then(|| builder.create_vector(&texts));
            let table = builder.start_table();
            builder.push_slot(slot(0), *max_length, 0);
            if let Some(values) = values {
                builder.push_slot_always(slot(1), values);
            }
            table
        }
    };
    builder.end_table(table).as_union_value()
}
