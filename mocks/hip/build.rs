//! The SONAME by which a plugin's NEEDED entry finds this library once it is open, and the harness's
//! own kernels built for the host.

use dnn_assay_kernel_build::{INCLUDE, Source};

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libamdhip64.so.7");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../../harness/device/kernels");
    println!("cargo:rerun-if-changed={INCLUDE}");
    println!("cargo:rustc-check-cfg=cfg(no_kernels)");
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../harness/device/kernels/guards.cpp"
    );
    let source = Source { file: file.into() };
    let print = source
        .fingerprint()
        .expect("the kernels are in the repository");
    println!("cargo:rustc-env=DNN_ASSAY_FINGERPRINT={print}");
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .cpp_link_stdlib(None)
        .std("c++20")
        .opt_level(3)
        .file(&source.file)
        .include(INCLUDE)
        .flag("-fno-exceptions")
        .flag("-fno-rtti");
    if build.try_compile("dnn_guards").is_err() {
        println!("cargo:warning=no C++20 compiler: guards are checked on the host");
        println!("cargo:rustc-cfg=no_kernels");
    }
}
