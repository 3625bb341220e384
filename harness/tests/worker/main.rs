//! Workers against a plugin that misbehaves in every way we could think of.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod cases;
mod endings;
mod loading;
mod memory;
mod mock;

use libtest_mimic::{Arguments, Trial};

fn main() {
    dnn_assay::worker::worker_entry();
    let arguments = Arguments::from_args();
    let trials: Vec<Trial> = [
        loading::trials(),
        cases::trials(),
        endings::trials(),
        memory::trials(),
    ]
    .into_iter()
    .flatten()
    .collect();
    libtest_mimic::run(&arguments, trials).exit();
}
