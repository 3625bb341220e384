//! The form of a suite file.

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
    /// Last fields: `uni`, `int`.
    #[serde(default)]
    pub fills: Vec<FillName>,
    /// Fourth fields, and the attributes after a slash: `n2-c64-k64-i56x56-f3x3/pre1x1-post1x1`.
    #[serde(default)]
    pub shapes: Vec<String>,
    /// Whole ids.
    #[serde(default)]
    pub ids: Vec<String>,
}

/// How inputs are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FillName {
    /// Signed uniform.
    Uni,
    /// Dense non-zero integers.
    Int,
}

impl FillName {
    /// The name in an id.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uni => "uni",
            Self::Int => "int",
        }
    }
}
