//! How inputs are filled.

use std::fmt;

/// What the inputs of a case hold. The seed is not part of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fill {
    /// `uni`: signed uniform values, rounded to the tensor's type.
    #[default]
    Uniform,
    /// `int`: dense non-zero integers, small enough that sums are exact.
    Integer,
}

impl Fill {
    /// Both fills.
    pub const ALL: &'static [Self] = &[Self::Uniform, Self::Integer];

    /// The name in case ids.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uni",
            Self::Integer => "int",
        }
    }

    /// The fill with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fill| fill.name() == name)
    }
}

impl fmt::Display for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
