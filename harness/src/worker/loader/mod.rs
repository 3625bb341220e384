//! The only place where foreign code is opened and called. All `unsafe` of the worker is here.

pub(super) mod bare_thread;
mod calls;
pub(super) mod fault;
mod library;
pub(super) mod log;
mod symbols;
mod text;

pub(super) use calls::{Details, Failed, Handle, PlanContext, Plugin, Written};
pub(super) use library::{DeviceRuntime, Opened};
