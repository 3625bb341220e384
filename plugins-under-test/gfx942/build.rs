//! Compiles the kernels for gfx942 and sm_90 where a clang that can is found.
//!
//! Looked for, in this order: `$DNN_ASSAY_CLANG`, `clang++-19`, `$ROCM_PATH/llvm/bin/clang++`,
//! `/opt/rocm/llvm/bin/clang++`. Without one the plugin is built without kernels, and compiles them
//! at run time where hipRTC or NVRTC is there.

use std::path::{Path, PathBuf};
use std::process::Command;

mod flags {
    #![allow(missing_docs, reason = "shared with a test")]
    include!("flags.rs");
}

use flags::{COMMON, GFX942, SM_90};

fn main() {
    println!("cargo:rerun-if-changed=kernels");
    println!("cargo:rerun-if-env-changed=DNN_ASSAY_CLANG");
    println!("cargo:rerun-if-env-changed=ROCM_PATH");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let compiler = compiler();
    let by = compiler.as_deref().map_or(String::new(), version);
    for (flags, name) in [(GFX942, "kernels.hsaco"), (SM_90, "kernels.ptx")] {
        let target = out.join(name);
        let made = compiler
            .as_deref()
            .is_some_and(|clang| compile(clang, flags, &target));
        if !made {
            std::fs::write(&target, "").expect("OUT_DIR can be written");
        }
    }
    println!("cargo:rustc-env=DNN_ASSAY_KERNELS_BY={by}");
    let path = compiler.unwrap_or_default();
    println!("cargo:rustc-env=DNN_ASSAY_KERNELS_CLANG={}", path.display());
    println!("cargo:rerun-if-changed=flags.rs");
}

fn compiler() -> Option<PathBuf> {
    let rocm = |root: PathBuf| root.join("llvm/bin/clang++");
    let candidates = [
        std::env::var_os("DNN_ASSAY_CLANG").map(PathBuf::from),
        Some(PathBuf::from("clang++-19")),
        std::env::var_os("ROCM_PATH").map(|root| rocm(root.into())),
        Some(rocm("/opt/rocm".into())),
    ];
    candidates.into_iter().flatten().find(|clang| {
        let run = Command::new(clang).arg("--version").output();
        run.is_ok_and(|output| output.status.success())
    })
}

/// The first line of `--version`.
fn version(clang: &Path) -> String {
    let output = Command::new(clang).arg("--version").output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    text.ok()
        .and_then(|text| text.lines().next().map(str::to_owned))
        .unwrap_or_default()
}

fn compile(clang: &Path, flags: &[&str], target: &Path) -> bool {
    let status = Command::new(clang)
        .args(flags)
        .args(COMMON)
        .arg("kernels/kernels.cpp")
        .arg("-o")
        .arg(target)
        .status();
    let made = status.is_ok_and(|status| status.success());
    if !made {
        println!(
            "cargo:warning={} could not make {}",
            clang.display(),
            target.display()
        );
    }
    made
}
