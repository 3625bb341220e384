//! Compiles the kernels for gfx942 and sm_90 where a clang that can is found. Without one the plugin
//! is built without kernels, and compiles them at run time where hipRTC or NVRTC is there.

use dnn_assay_kernel_build::{Source, build_script};

fn main() {
    build_script(&Source::of_package("kernels/kernels.cpp"), "kernels");
}
