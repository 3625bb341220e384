//! Devices behind a driver library that is opened at run time: HIP, CUDA, and what stands in for
//! HIP.

mod backend;
mod driver;
mod gate;
mod guards;
mod health;
mod probe;

pub use backend::GpuBackend;
pub use driver::Driver;
pub use health::{Counters, Health};
pub use probe::{DeviceReport, ProbeReport, check_health, probe};

#[cfg(test)]
mod tests;
