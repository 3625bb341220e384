// How the kernels are compiled: for the build script and for the test that does it again.

/// What every target gets.
pub const COMMON: &[&str] = &["-O3", "-std=c++20", "-ffp-contract=off"];
/// The gfx942 code object.
pub const GFX942: &[&str] = &[
    "-x",
    "hip",
    "--cuda-device-only",
    "--offload-arch=gfx942",
    "-nogpuinc",
    "-nogpulib",
    // Without this a random symbol differs from build to build.
    "-fuse-cuid=none",
    "--no-gpu-bundle-output",
];
/// PTX.
pub const SM_90: &[&str] = &[
    "-x",
    "cuda",
    "--cuda-device-only",
    "--cuda-gpu-arch=sm_90",
    "-nocudainc",
    "-nocudalib",
    "-S",
];
