//! The command line as data: help, man page and completions come from these definitions.

mod after;
mod choices;
mod dev;
mod golden;
mod loading;
mod run;
mod selection;
mod time;

pub use after::{ReplayArgs, ReportArgs, ShrinkArgs};
pub use choices::{CriterionName, DeviceChoice, FailOn, LoadModeChoice, Until, WireChoice};
pub use dev::{DevCommand, PowerArgs, PowerFormat};
pub use golden::{ImportArgs, ImportCommand, ReferenceArgs, ReferenceCommand};
pub use loading::{DeviceArgs, InitArgs, LoadingArgs};
pub use run::{ClaimsArgs, GateArgs, LimitArgs, MatrixArgs, MatrixFormat, OutputArgs, RunArgs};
pub use selection::{ExplainArgs, ListArgs, ListFormat, Selection};
pub use time::Timeouts;

use clap::{Parser, Subcommand};

/// Says whether a hipDNN engine plugin computes the right results, and what is wrong if not.
#[derive(Debug, Parser)]
#[command(
    name = "dnn-assay",
    version,
    arg_required_else_help = true,
    subcommand_required = true,
    after_long_help = EXIT_CODES,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    as expected
  1    a case failed, crashed, timed out, was flaky, or passed unexpectedly
  2    wrong usage or configuration
  3    a plugin could not be loaded or breaks the required ABI
  4    nothing was verified, or less than --min-verified
  5    device or infrastructure failure, or a required device absent
  6    the baseline is out of date
  7    cases are missing or were not run
  77   no device, and DNN_ASSAY_SKIP_IF_NO_DEVICE=1
  130  interrupted; reports were written

Environment:
  HIPDNN_PLUGIN_DIR              plugins to test when none is named
  DNN_ASSAY_REQUIRE_DEVICE=1     no device is an error (exit 5)
  DNN_ASSAY_SKIP_IF_NO_DEVICE=1  no device is a skip (exit 77)
  NO_COLOR, CLICOLOR_FORCE       colour off, colour on";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Hold plugins to what a project expects of them: the gate of a pipeline
    Check(Box<RunArgs>),
    /// Test plugins: load them, run cases, judge the results, write reports
    Run(Box<RunArgs>),
    /// Show the cases of a suite; needs no plugin and no device
    List(ListArgs),
    /// Show one case: its graph, its tensors, and where each number of its bound comes from
    Explain(ExplainArgs),
    /// Write the reports of a run again from its journal
    Report(ReportArgs),
    /// Look at a plugin once and write a commented dnn-assay.yaml for it
    Init(InitArgs),
    /// Record what plugins were verified to compute, for gates that must not lose it
    Claims(Box<ClaimsArgs>),
    /// Show operation, type and layout by engine, at the depth that each reached
    Matrix(Box<MatrixArgs>),
    /// Print the JSON Schema of dnn-assay.yaml
    Schema,
    /// Show what hipDNN would load from where, in which order, and what it drops
    Discover(crate::discover::args::DiscoverArgs),
    /// Read plugin files without loading them: exports, dependencies, loading, pairs
    Inspect(Box<crate::inspect::args::InspectArgs>),
    /// Check the contracts of the plugin ABI, and plugins beside each other
    Conform(Box<crate::conform::args::ConformArgs>),
    /// Find the smallest case that fails as this one does
    Shrink(Box<ShrinkArgs>),
    /// Judge dumps of failing cases again, without a plugin or a device
    Replay(ReplayArgs),
    /// Measure what a plugin's arithmetic does, and print the traits to declare
    Traits(crate::cli::traits::TraitsArgs),
    /// Make cases of data of others
    #[command(subcommand)]
    Import(ImportCommand),
    /// Hold our reference against golden data of others
    #[command(subcommand)]
    Reference(ReferenceCommand),
    /// Show the GPUs that the drivers here offer, or why they offer none
    Device(DeviceArgs),
    /// Tools for those who work on this program
    #[command(subcommand)]
    Dev(DevCommand),
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page in roff
    Man,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_exit_codes_of_the_help_are_those_of_the_module() {
        for exit in crate::exit::Exit::ALL {
            let line = format!("  {:<4} {}", exit.code(), exit.meaning());
            assert!(EXIT_CODES.contains(&line), "{line}");
        }
    }
}
