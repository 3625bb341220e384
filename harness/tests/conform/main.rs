//! Conformance against plugins that break one contract each, and against plugins that break none.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod clean;
mod device;
mod faults;
mod pairs;
mod plugins;
mod reports;

use libtest_mimic::{Arguments, Trial};

fn main() {
    dnn_assay::worker::worker_entry();
    let arguments = Arguments::from_args();
    let trials: Vec<Trial> = [
        clean::trials(),
        device::trials(),
        faults::trials(),
        pairs::trials(),
        reports::trials(),
    ]
    .into_iter()
    .flatten()
    .collect();
    libtest_mimic::run(&arguments, trials).exit();
}
