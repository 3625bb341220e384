//! Values that flags of several commands choose from.

use clap::ValueEnum;

use crate::verdict::Depth;

/// Rules of judgement by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CriterionName {
    /// Per-element bound from the data (the default)
    Bound,
    /// Bit equality with the correctly rounded reference
    Exact,
    /// hipDNN's fixed table of absolute and relative tolerances
    Table,
    /// MIOpenDriver's root mean square of the whole tensor
    Rms,
    /// Units in the last place, where nothing is summed
    Ulp,
}

/// Depth at which a case stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Until {
    /// The plugin is loaded
    Loaded,
    /// The engine was asked whether it takes the graph
    Applicable,
    /// An execution context exists
    Planned,
    /// The graph was executed
    Executed,
}

impl From<Until> for Depth {
    fn from(until: Until) -> Self {
        match until {
            Until::Loaded => Self::Loaded,
            Until::Applicable => Self::Applicable,
            Until::Planned => Self::Planned,
            Until::Executed => Self::Executed,
        }
    }
}

/// Generation of the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WireChoice {
    /// Found out from the plugin
    Auto,
    /// Today's schema
    Current,
    /// The schema of November 2025
    #[value(name = "2025-11")]
    Nov2025,
}

/// Memory kinds that `--device` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceChoice {
    /// Host memory
    Host,
    /// AMD GPU
    Hip,
    /// NVIDIA GPU
    Cuda,
    /// The mock HIP runtime
    MockHip,
}

/// dlopen flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoadModeChoice {
    /// RTLD_NOW | RTLD_LOCAL
    Local,
    /// RTLD_NOW | RTLD_DEEPBIND
    Deepbind,
}

/// Verdicts that `--fail-on` makes red.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A case that would accept a decoy
    Weak,
    /// A case that the engine declined
    Unsupported,
}
