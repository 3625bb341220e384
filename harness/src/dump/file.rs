//! The form of a dump: three files in a folder.

use dnn_assay_graph::{DataType, Tensor};
use dnn_assay_reference::Criterion;
use safetensors::Dtype;
use serde::{Deserialize, Serialize};

use super::sampled::Draws;
use crate::journal::{CaseEnd, PluginRecord, RunStart};

/// The version of the form.
pub const SCHEMA: u32 = 1;
/// What the dump is: a [`Manifest`] in JSON.
pub const DUMP_FILE: &str = "dump.json";
/// The graph, in the JSON of bundles.
pub const GRAPH_FILE: &str = "graph.json";
/// The tensors, packed in logical order.
pub const TENSORS_FILE: &str = "tensors.safetensors";

/// The content of [`DUMP_FILE`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The fill of the case: with `int`, outputs are judged bit for bit where that applies.
    pub fill: String,
    /// The run.
    pub run: RunStart,
    /// The plugin.
    pub plugin: PluginRecord,
    /// How the case ended.
    pub end: CaseEnd,
    /// What [`TENSORS_FILE`] holds.
    pub tensors: Vec<TensorEntry>,
    /// Outputs that an override given with `--expect` judged, instead of the run's criterion.
    #[serde(default)]
    pub overridden: Vec<Overridden>,
    /// Of a case that was judged by samples: what draws its inputs again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Draws>,
}

/// An output that an override judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overridden {
    /// Name of the output.
    pub tensor: String,
    /// The criterion with its numbers.
    pub rule: OverriddenRule,
    /// The entries that ask for it.
    pub because: String,
}

/// A criterion that an override may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "criterion", rename_all = "kebab-case")]
pub enum OverriddenRule {
    /// `|got - y| <= atol + rtol·|y|`.
    Table {
        /// Absolute tolerance.
        atol: f64,
        /// Relative tolerance.
        rtol: f64,
    },
    /// Relative root mean square.
    Rms {
        /// The largest figure that passes.
        threshold: f64,
    },
}

impl OverriddenRule {
    /// Of a criterion; `None` for one that no override asks for.
    pub fn of(criterion: Criterion) -> Option<Self> {
        match criterion {
            Criterion::Table { atol, rtol } => Some(Self::Table { atol, rtol }),
            Criterion::Rms { threshold } => Some(Self::Rms { threshold }),
            _ => None,
        }
    }

    /// The criterion.
    pub fn criterion(self) -> Criterion {
        match self {
            Self::Table { atol, rtol } => Criterion::Table { atol, rtol },
            Self::Rms { threshold } => Criterion::Rms { threshold },
        }
    }
}

/// A tensor of [`TENSORS_FILE`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorEntry {
    /// Its key there, as in `got.y`.
    pub key: String,
    /// What it holds.
    pub part: Part,
    /// The tensor of the graph.
    pub uid: i64,
}

/// What a tensor of a dump holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// An input, in its own type.
    Input,
    /// The f64 reference of an output.
    Expected,
    /// The greatest error that the rule allows for each element of an output, f64.
    Bound,
    /// What the engine wrote, in the output's own type, bit for bit.
    Got,
    /// Of samples: where each element lies in the output, i64, a row for each.
    Coordinates,
    /// Of samples: the sum over channels of what the engine wrote, and of its magnitudes, f64, a row
    /// for each sum.
    Sums,
}

impl Part {
    /// The name in keys.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Expected => "expected",
            Self::Bound => "bound",
            Self::Got => "got",
            Self::Coordinates => "coordinates",
            Self::Sums => "sums",
        }
    }
}

/// The key of a part of a tensor: by its name where it has one, else by its uid.
pub fn key(part: Part, tensor: &Tensor) -> String {
    match tensor.name.as_str() {
        "" => format!("{}.uid{}", part.name(), tensor.uid),
        name => format!("{}.{name}", part.name()),
    }
}

/// The type in safetensors; `None` for those that the reference does not compute with.
pub const fn safetensors_type(data_type: DataType) -> Option<Dtype> {
    Some(match data_type {
        DataType::Float => Dtype::F32,
        DataType::Half => Dtype::F16,
        DataType::Bfloat16 => Dtype::BF16,
        DataType::Double => Dtype::F64,
        DataType::Uint8 => Dtype::U8,
        DataType::Int8 => Dtype::I8,
        DataType::Int32 => Dtype::I32,
        DataType::Int64 => Dtype::I64,
        _ => return None,
    })
}
