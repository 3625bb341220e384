//! `EngineConfig`: which engine is to run, and how its knobs stand.

use super::error::{Element, Place, WireError};
use super::generation::Generation;
use super::knob::{self, KnobValue};
use super::layout::*;
use super::raw::RawTable;
use super::record::ReadError;
use super::verify::{ConfigTable, verify};
use flatbuffers::{FlatBufferBuilder, TableFinishedWIPOffset, WIPOffset};

/// An engine and the settings of its knobs. The 2025-11 wire has the engine only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineConfig {
    /// The engine.
    pub engine_id: i64,
    /// Settings of knobs; an absent knob is at its default.
    pub knobs: Vec<KnobSetting>,
}

/// A knob's setting.
#[derive(Clone, Debug, PartialEq)]
pub struct KnobSetting {
    /// The knob's identifier, such as `global.benchmarking`.
    pub knob_id: String,
    /// Its value.
    pub value: KnobValue,
}

/// Reads a serialized `EngineConfig` of either generation.
///
/// # Errors
/// [`WireError::Malformed`], [`WireError::UnknownTag`], or [`WireError::Missing`] for a setting
/// without a value.
pub fn read_engine_config(bytes: &[u8]) -> Result<EngineConfig, WireError> {
    verify::<ConfigTable>(bytes, "EngineConfig")?;
    config(bytes).map_err(|error| error.of("EngineConfig", bytes))
}

fn config(bytes: &[u8]) -> Result<EngineConfig, ReadError> {
    let table = RawTable::root(bytes)?;
    let knobs = table
        .tables(ENGINE_KNOBS)?
        .enumerate()
        .map(|(index, setting)| read_setting(setting?, index))
        .collect::<Result<_, _>>()?;
    Ok(EngineConfig {
        engine_id: table.i64(ENGINE_ID)?.unwrap_or(0),
        knobs,
    })
}

fn read_setting(table: RawTable, index: usize) -> Result<KnobSetting, ReadError> {
    let at = Place {
        element: Element::Knob(index),
        table: "KnobSetting",
        field: "value",
    };
    Ok(KnobSetting {
        knob_id: table.text(SETTING_KNOB_ID)?,
        value: knob::read(table, SETTING_VALUE_TYPE, SETTING_VALUE, at)?,
    })
}

/// Serializes an engine configuration. Without knobs the bytes are the same in both generations.
///
/// # Errors
/// [`WireError::Inexpressible`] for knobs in the 2025-11 wire.
pub fn write_engine_config(
    config: &EngineConfig,
    generation: Generation,
) -> Result<Vec<u8>, WireError> {
    if generation == Generation::Nov2025 && !config.knobs.is_empty() {
        return Err(WireError::Inexpressible {
            at: Place {
                element: Element::Root,
                table: "EngineConfig",
                field: "knobs",
            },
            what: "settings of knobs".to_owned(),
            generation,
        });
    }
    let mut builder = FlatBufferBuilder::new();
    let settings: Vec<_> = config
        .knobs
        .iter()
        .map(|setting| write_setting(&mut builder, setting))
        .collect();
    let knobs = (!settings.is_empty()).then(|| builder.create_vector(&settings));
    let table = builder.start_table();
    builder.push_slot(slot(ENGINE_ID), config.engine_id, 0);
    if let Some(knobs) = knobs {
        builder.push_slot_always(slot(ENGINE_KNOBS), knobs);
    }
    let root = builder.end_table(table);
    builder.finish_minimal(root);
    Ok(builder.finished_data().to_vec())
}

fn write_setting(
    builder: &mut FlatBufferBuilder,
    setting: &KnobSetting,
) -> WIPOffset<TableFinishedWIPOffset> {
    let id = builder.create_string(&setting.knob_id);
    let value = knob::write(builder, &setting.value);
    let table = builder.start_table();
    builder.push_slot_always(slot(SETTING_KNOB_ID), id);
    builder.push_slot_always(slot(SETTING_VALUE), value);
    builder.push_slot_always(slot(SETTING_VALUE_TYPE), setting.value.tag());
    builder.end_table(table)
}
