//! For build scripts: where the sources lie, and the objects for GPUs.
//!
//! Checkouts may share a target folder, and a script that one of them compiled may then run for the
//! other. So the place of the sources comes from the script's environment when it runs, never from
//! when it was compiled.

use std::path::{Path, PathBuf};

use super::{CHECKOUT, Compiler, Source, Target};

impl Source {
    /// The file at `path` from the package whose build script runs. Cargo runs the script again where
    /// a file beside it changes, and for another checkout.
    ///
    /// # Panics
    /// Outside of a build script.
    pub fn of_package(path: &str) -> Self {
        let path = Path::new(path);
        println!(
            "cargo:rerun-if-changed={}",
            path.parent().unwrap_or(path).display()
        );
        println!("cargo:rerun-if-env-changed={CHECKOUT}");
        Self {
            file: folder("CARGO_MANIFEST_DIR").join(path),
        }
    }
}

/// The body of a build script: compiles `source` for both targets to `NAME.hsaco` and `NAME.ptx` in
/// `OUT_DIR`, empty files where there is no compiler or it fails. Says by `DNN_ASSAY_KERNELS_BY` and
/// `DNN_ASSAY_KERNELS_CLANG` what made them.
///
/// # Panics
/// Outside of a build script.
pub fn build_script(source: &Source, name: &str) {
    println!("cargo:rerun-if-env-changed=DNN_ASSAY_CLANG");
    println!("cargo:rerun-if-env-changed=ROCM_PATH");
    let out = folder("OUT_DIR");
    let compiler = Compiler::find();
    for (target, extension) in [(Target::Gfx942, "hsaco"), (Target::Sm90, "ptx")] {
        let file = out.join(name).with_extension(extension);
        let made = compiler.as_ref().is_some_and(|compiler| {
            match source.compile(compiler, target, &file) {
                Ok(()) => true,
                Err(text) => {
                    println!("cargo:warning={}", text.replace('\n', " "));
                    false
                }
            }
        });
        if !made {
            std::fs::write(&file, "").expect("OUT_DIR can be written");
        }
    }
    let (by, clang) = compiler.map_or_else(Default::default, |c| (c.version, c.path));
    println!("cargo:rustc-env=DNN_ASSAY_KERNELS_BY={by}");
    println!(
        "cargo:rustc-env=DNN_ASSAY_KERNELS_CLANG={}",
        clang.display()
    );
}

/// A folder that cargo names to a build script.
fn folder(variable: &str) -> PathBuf {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    folder.unwrap_or_else(|| panic!("cargo sets {variable} for build scripts"))
}
