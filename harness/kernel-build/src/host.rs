//! For build scripts: the kernels built for the host, which a HIP runtime on host memory runs.

use super::{COMMON, INCLUDE, Source};

/// What kernels for the host get beside [`COMMON`]: nothing of a C++ runtime.
const HOST: &[&str] = &["-fno-exceptions", "-fno-rtti"];

impl Source {
    /// A build for the host, to which a script adds what is its own.
    pub fn host(&self) -> cc::Build {
        let mut build = cc::Build::new();
        build
            .cpp(true)
            .cpp_link_stdlib(None)
            .file(&self.file)
            .include(INCLUDE)
            .flags(COMMON)
            .flags(HOST);
        build
    }

    /// The body of a build script: tells the crate the source's fingerprint as
    /// `DNN_ASSAY_FINGERPRINT`, and by `cfg(no_kernels)` that `compile` says that there is no compiler,
    /// with a warning of what that means.
    ///
    /// # Panics
    /// Where the source is not there.
    pub fn host_script(&self, compile: impl FnOnce(&Self) -> bool, without: &str) {
        let print = self
            .fingerprint()
            .expect("the kernels are in the repository");
        println!("cargo:rustc-env=DNN_ASSAY_FINGERPRINT={print}");
        println!("cargo:rustc-check-cfg=cfg(no_kernels)");
        if !compile(self) {
            println!("cargo:warning=no C++20 compiler: {without}");
            println!("cargo:rustc-cfg=no_kernels");
        }
    }
}
