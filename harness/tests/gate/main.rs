//! The gate as a plugin author meets it: configuration, claims, waivers, reports, CMake, and every
//! command of the documentation.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bad_input;
mod cmake;
mod documentation;
mod everyday;
mod page;
mod recipes;
mod support;
