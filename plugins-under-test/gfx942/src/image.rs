//! The kernels as the build made them.

use dnn_assay_abi::gpu::Flavor;

static GFX942: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernels.hsaco"));
/// Ends with NUL, as the CUDA driver wants text.
static SM_90: &str = concat!(include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx")), "\0");

/// `rtc`: leave the built-in kernels alone and compile at run time.
const KERNELS: &str = "DNN_ASSAY_GFX942_KERNELS";

/// Why there are no built-in kernels.
pub(crate) const MISSING: &str = "this plugin was built without kernels, because the build found \
    no clang for AMDGPU: install clang-19 and lld-19, or ROCm, and build it again";

/// The compiler that made them; empty where there was none.
pub(crate) const COMPILER: &str = env!("DNN_ASSAY_KERNELS_BY");

/// Whether the build found a compiler, and its kernels shall be used.
pub(crate) fn is_built_in() -> bool {
    !GFX942.is_empty() && std::env::var_os(KERNELS).is_none_or(|value| value != "rtc")
}

/// What the flavor's driver loads on `arch`; `None` where the build has nothing for it. PTX goes to
/// every architecture from its own on.
pub(crate) fn image(flavor: Flavor, arch: &str) -> Option<&'static [u8]> {
    let image = match flavor {
        Flavor::Hip if arch.starts_with("gfx942") => GFX942,
        Flavor::Cuda if capability(arch) >= 90 => SM_90.as_bytes(),
        _ => return None,
    };
    is_built_in().then_some(image)
}

/// 90 of `sm_90`.
fn capability(arch: &str) -> u32 {
    let number = arch.strip_prefix("sm_").and_then(|n| n.parse().ok());
    number.unwrap_or(0)
}

#[cfg(test)]
mod tests;
