//! A stand-in for libamdhip64: HIP's functions on host memory, without a GPU.
//!
//! Memory lies between inaccessible pages. Streams are threads: work that nobody waits for is
//! really late, and work on the wrong stream really races. Modules are gfx942 code objects, of
//! which only symbols are read; kernels run from host builds of the same source: the library
//! `libdnn_assay_gfx942_host_kernels.so` beside this one (or `DNN_ASSAY_MOCK_HIP_KERNELS`), and the
//! harness's own inside this one. Which source an object is of, a symbol says.
//! Device code inside a plugin (`<<<>>>`) cannot run: its launch fails with a clear text.
//!
//! Faults are asked for by variables, all counted from 1: see [`knobs`].

pub mod knobs;

mod api;
mod memory;
mod module;
mod rtc;
mod status;
mod stream;
mod visible;
