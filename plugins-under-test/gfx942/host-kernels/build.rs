//! Builds the kernels twice with the host's C++ compiler: for any x86-64, and for those with FMA.
//! Both give the same bits; the second does not call a library for each fused multiply-add.

use dnn_assay_kernel_build::Source;

fn main() {
    let source = Source::of_package("../kernels/kernels.cpp");
    let x86 = std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64");
    let fast: &[&str] = if x86 {
        &["-mavx2", "-mfma", "-mf16c"]
    } else {
        &[]
    };
    source.host_script(
        |source| compile(source, "base", &[]) && compile(source, "fast", fast),
        "the mock HIP runtime will have no kernels",
    );
}

fn compile(source: &Source, name: &str, flags: &[&str]) -> bool {
    let mut build = source.host();
    build
        .define("DNN_HOST_TABLE", format!("dnn_host_table_{name}").as_str())
        .define(
            "DNN_HOST_FUNCTION",
            format!("dnn_host_function_{name}").as_str(),
        )
        // The targets with and without vectors pass them differently; nothing here passes any.
        .flag_if_supported("-Wno-psabi")
        .flags(flags);
    build.try_compile(&format!("dnn_kernels_{name}")).is_ok()
}
