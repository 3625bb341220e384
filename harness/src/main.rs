//! The `dnn-assay` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A worker is this program again: it must not get as far as the command line.
    dnn_assay::worker::worker_entry();
    dnn_assay::cli::main(std::env::args_os()).into()
}
