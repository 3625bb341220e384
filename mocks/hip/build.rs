//! The SONAME by which a plugin's NEEDED entry finds this library once it is open, and the harness's
//! own kernels built for the host.

use dnn_assay_kernel_build::Source;

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libamdhip64.so.7");
    let source = Source::of_package("../../harness/device/kernels/guards.cpp");
    source.host_script(
        |source| source.host().try_compile("dnn_guards").is_ok(),
        "guards are checked on the host",
    );
}
