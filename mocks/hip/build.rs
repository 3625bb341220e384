//! The SONAME by which a plugin's NEEDED entry finds this library once it is open.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libamdhip64.so.7");
    println!("cargo:rerun-if-changed=build.rs");
}
