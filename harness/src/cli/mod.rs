//! The command line: what was typed ([`args`]) and what it leads to.

pub mod args;
