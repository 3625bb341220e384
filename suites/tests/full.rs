//! The full suite as test trials.

mod support;

fn main() -> std::process::ExitCode {
    dnn_assay::worker::worker_entry();
    support::main("full")
}
