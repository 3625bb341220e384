//! `dnn-assay inspect` as its users meet it: files and policies in, first lines and exit codes out.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod files;
mod page;
mod plugins;
mod policies;
mod reports;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../cli/support.rs"]
mod support;
