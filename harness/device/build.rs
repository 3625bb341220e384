//! Compiles the kernels that look after guards, where a clang that can is found. Without one guards
//! are checked on copies in host memory.

use dnn_assay_kernel_build::{Source, build_script};

fn main() {
    build_script(&Source::of_package("kernels/guards.cpp"), "guards");
}
