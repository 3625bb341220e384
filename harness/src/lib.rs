//! DNN Assay: loads GPU deep-learning plugins in worker processes, judges their results against
//! an f64 reference, and reports.
//!
//! The judge never shares an address space with the accused: plugins live in [`worker`]s; this
//! process owns the cases, the reference, the comparison, the verdicts and the reports.

pub mod bundle;
pub mod cli;
pub mod config;
pub mod conform;
pub mod discover;
pub mod dump;
pub mod exit;
pub mod fuzz;
pub mod gate;
pub mod inspect;
pub mod journal;
pub mod judge;
pub mod measure;
pub mod pattern;
pub mod plan;
pub mod power;
pub mod report;
pub mod run;
pub mod shrink;
pub mod suite;
pub mod verdict;
pub mod worker;
pub mod yaml;
