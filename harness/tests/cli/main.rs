//! The program as its users meet it: command lines in, exit codes and text out.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod binary;
mod cases;
mod discover;
mod dump;
mod environment;
mod examples;
mod executions;
mod files;
mod interrupt;
mod knobs;
mod loading;
mod pipe;
mod reports;
mod sample;
mod shrink;
mod sparse;
mod support;
mod usage;
