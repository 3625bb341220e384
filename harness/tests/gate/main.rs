//! The gate as a plugin author meets it: configuration, claims, waivers, reports, recipes. What
//! needs CMake, a browser or a debugger stands in `tests/tools`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bad_input;
mod everyday;
mod page;
mod recipes;
mod schemas;
mod support;
mod synthetic;
