//! Where a plugin expects its tensors.

use std::fmt;
use std::str::FromStr;

/// The memory that a plugin's tensor pointers point into. The ABI knows only pointers; the
/// parent decides this without loading the plugin.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum MemoryKind {
    /// Plain host memory.
    #[default]
    Host,
    /// Memory of a HIP device (a mock included: it is HIP with another library).
    Hip,
    /// Memory of a CUDA device.
    Cuda,
}

impl MemoryKind {
    /// Lower-case name, as on the command line and in the journal.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Hip => "hip",
            Self::Cuda => "cuda",
        }
    }
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that names no memory kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown memory kind {0:?}, expected host, hip or cuda")]
pub struct UnknownMemoryKind(pub String);

impl FromStr for MemoryKind {
    type Err = UnknownMemoryKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Host, Self::Hip, Self::Cuda]
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| UnknownMemoryKind(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for kind in [MemoryKind::Host, MemoryKind::Hip, MemoryKind::Cuda] {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert!("HIP".parse::<MemoryKind>().is_err());
    }
}
