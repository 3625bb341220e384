//! Builds the kernels twice with the host's C++ compiler: for any x86-64, and for those with FMA.
//! Both give the same bits; the second does not call a library for each fused multiply-add.

use dnn_assay_kernel_build::{INCLUDE, Source};

fn main() {
    println!("cargo:rerun-if-changed=../kernels");
    println!("cargo:rerun-if-changed={INCLUDE}");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/kernels.cpp");
    let source = Source { file: file.into() };
    let print = source
        .fingerprint()
        .expect("the kernels are in the repository");
    println!("cargo:rustc-env=DNN_ASSAY_FINGERPRINT={print}");
    println!("cargo:rustc-check-cfg=cfg(no_kernels)");
    let x86 = std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64");
    let fast: &[&str] = if x86 {
        &["-mavx2", "-mfma", "-mf16c"]
    } else {
        &[]
    };
    let built = compile("base", &[]) && compile("fast", fast);
    if !built {
        println!("cargo:warning=no C++20 compiler: the mock HIP runtime will have no kernels");
        println!("cargo:rustc-cfg=no_kernels");
    }
}

fn compile(name: &str, flags: &[&str]) -> bool {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .cpp_link_stdlib(None)
        .std("c++20")
        .opt_level(3)
        .file("../kernels/kernels.cpp")
        .include(INCLUDE)
        .define("DNN_HOST_TABLE", format!("dnn_host_table_{name}").as_str())
        .define(
            "DNN_HOST_FUNCTION",
            format!("dnn_host_function_{name}").as_str(),
        )
        .flag("-ffp-contract=off")
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        // The targets with and without vectors pass them differently; nothing here passes any.
        .flag_if_supported("-Wno-psabi");
    for flag in flags {
        build.flag(flag);
    }
    build.try_compile(&format!("dnn_kernels_{name}")).is_ok()
}
