//! The kernels as the build made them.

use dnn_assay_abi::gpu::Flavor;

static GFX942: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernels.hsaco"));
/// Ends with NUL, as the CUDA driver wants text.
static SM_90: &str = concat!(include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx")), "\0");

/// Why an engine without kernels declines every graph.
pub(crate) const MISSING: &str = "this plugin was built without kernels, because the build found \
    no clang for AMDGPU: install clang-19 and lld-19, or ROCm, and build it again";

/// The compiler that made them; empty where there was none.
pub(crate) const COMPILER: &str = env!("DNN_ASSAY_KERNELS_BY");

/// Whether the build found a compiler.
pub(crate) fn is_built_in() -> bool {
    !GFX942.is_empty()
}

/// What the flavor's driver loads.
pub(crate) fn image(flavor: Flavor) -> &'static [u8] {
    match flavor {
        Flavor::Hip => GFX942,
        Flavor::Cuda => SM_90.as_bytes(),
    }
}

#[cfg(test)]
mod tests;
