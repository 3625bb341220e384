//! The form of a suite file.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use dnn_assay_graph::case::Fill;
use serde::{Deserialize, Serialize};

use super::Tier;

/// The version of the form that this code reads.
pub const SCHEMA: u32 = 1;

/// A suite file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteFile {
    /// Version of the form.
    pub schema: u32,
    /// What the file is for.
    #[serde(default, rename = "about")]
    pub _about: Option<String>,
    /// Tier of groups that name none.
    #[serde(default)]
    pub tier: Option<Tier>,
    /// Tags of every case in the file.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Files whose cases come first, relative to this one.
    #[serde(default)]
    pub include: Vec<String>,
    /// Groups of cases.
    #[serde(default)]
    pub groups: Vec<Group>,
}

/// Cases by expansion: every operation × data types × layout × fill × shape, and then `ids`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Name, for people.
    pub name: String,
    /// What these cases show, where the name does not say.
    #[serde(default, rename = "about")]
    pub _about: Option<String>,
    /// Tier.
    #[serde(default)]
    pub tier: Option<Tier>,
    /// Tags beside the file's.
    #[serde(default)]
    pub tags: Vec<String>,
    /// First fields of the ids: `conv.fprop`.
    #[serde(default)]
    pub ops: Vec<String>,
    /// Second fields: `f16`, `f16+f32`.
    #[serde(default)]
    pub dtypes: Vec<String>,
    /// Third fields: `nhwc`.
    #[serde(default)]
    pub layouts: Vec<String>,
    /// Last fields: `uni`, `int`, …; `aimed` for those that the rule table has.
    #[serde(default)]
    pub fills: Vec<FillName>,
    /// Fourth fields, and the attributes after a slash: `n2-c64-k64-i56x56-f3x3/pre1x1-post1x1`.
    #[serde(default)]
    pub shapes: Vec<String>,
    /// Whole ids.
    #[serde(default)]
    pub ids: Vec<String>,
    /// Inputs by name that are uniform between two numbers of their own, with the fill `uni`.
    #[serde(default)]
    pub ranges: BTreeMap<String, [f64; 2]>,
    /// Judge these cases by samples, this many elements of each output at random: for outputs that
    /// are too large to be compared as a whole.
    #[serde(default)]
    pub sample: Option<NonZeroU32>,
}

/// How inputs are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FillName {
    /// Signed uniform.
    Uni,
    /// Dense non-zero integers.
    Int,
    /// NaN, infinities, zeros, denormals, the largest number.
    Special,
    /// Channels with a mean of 0, 10 or 100 standard deviations.
    Means,
    /// Channels with a variance of 0, ε/100, ε or 100·ε.
    Spreads,
    /// Zero but for edges.
    Edges,
    /// Values that say where they are.
    Index,
    /// Digits that a narrower type drops.
    Probe,
    /// Whatever `tolerances/fills.yaml` has for the operation and type.
    Aimed,
}

impl FillName {
    /// The fill; `None` for [`FillName::Aimed`], which is several.
    pub const fn fill(self) -> Option<Fill> {
        Some(match self {
            Self::Uni => Fill::Uniform,
            Self::Int => Fill::Integer,
            Self::Special => Fill::Special,
            Self::Means => Fill::Means,
            Self::Spreads => Fill::Spreads,
            Self::Edges => Fill::Edges,
            Self::Index => Fill::Index,
            Self::Probe => Fill::Probe,
            Self::Aimed => return None,
        })
    }
}
