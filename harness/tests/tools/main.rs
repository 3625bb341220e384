//! The gate together with programs that a machine may lack: CMake, a browser, valgrind. A trial
//! whose program is not here is ignored and says so in its name.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod browser;
mod cmake;
mod documentation;
mod rehearsal;
mod release;
#[path = "../gate/support.rs"]
#[allow(dead_code, reason = "the other test binary uses the rest")]
mod support;
#[path = "../gate/synthetic.rs"]
#[allow(dead_code, reason = "the other test binary uses the rest")]
mod synthetic;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let trials = [
        browser::trials(),
        cmake::trials(),
        documentation::trials(),
        rehearsal::trials(),
        release::trials(),
    ];
    libtest_mimic::run(&arguments, trials.into_iter().flatten().collect()).exit();
}

/// A trial that needs programs.
fn trial(name: &str, programs: &[&str], test: fn()) -> Trial {
    let run = move || {
        test();
        Ok(())
    };
    match programs.iter().find(|program| !support::has(program)) {
        None => Trial::test(name, run),
        Some(absent) => {
            Trial::test(format!("{name} ({absent} is not here)"), run).with_ignored_flag(true)
        }
    }
}
