//! Tools for those who work on this program.

use clap::{Args, Subcommand, ValueEnum};

use crate::cli::{calibrate, tiers, versions};

/// Tools for those who work on this program.
#[derive(Debug, Subcommand)]
pub enum DevCommand {
    /// Run plugins with known faults, and show which check notices each: the kill table
    Power(PowerArgs),
    /// Measure how far correct f32 sums stray: the evidence behind the constant of the bound
    Calibrate(calibrate::CalibrateArgs),
    /// Show the symbol versions that files ask for, and hold them to a ceiling
    Versions(versions::VersionsArgs),
    /// Hold what `list` says of time and memory against what runs took
    Tiers(tiers::TiersArgs),
}

/// Arguments of `dev power`.
#[derive(Args, Debug)]
pub struct PowerArgs {
    /// Only mutants whose name matches this glob; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub mutant: Vec<String>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = PowerFormat::Text)]
    pub format: PowerFormat,
    /// Mutants at the same time [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
    /// Say on standard error which mutant has ended
    #[arg(long)]
    pub progress: bool,
}

/// Forms of the kill table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PowerFormat {
    /// One line per mutant
    Text,
    /// One JSON document
    Json,
    /// A page of the documentation
    Markdown,
}
