//! The only place where foreign code is opened and called. All `unsafe` of the worker is here.

pub(super) mod bare_thread;
mod calls;
pub(super) mod device_memory;
pub(super) mod fault;
pub(super) mod interpret;
mod library;
pub(super) mod log;
mod sandbox;
mod symbols;
mod text;

pub(super) use calls::{Details, Failed, Handle, PlanContext, Plugin, Written};
pub(super) use library::{DeviceRuntime, Opened};
