//! How device kernels are compiled. For build scripts and for tests that build again.
//!
//! Kernels are C++ over `include/portable.hpp`, one source for gfx942, sm_90 and the host. A clang
//! that can is looked for in this order: `$DNN_ASSAY_CLANG`, `clang++-19`,
//! `$ROCM_PATH/llvm/bin/clang++`, `/opt/rocm/llvm/bin/clang++`. Without one there are no objects.
//!
//! Every object carries the fingerprint of its source as the name of a symbol, so that a runtime
//! that stands in for a GPU's can tell whether its host build is of the same source.

#[cfg(feature = "host")]
mod host;
mod script;

use std::path::{Path, PathBuf};
use std::process::Command;

pub use script::build_script;

/// The variable that says where the checkout lies (`.cargo/config.toml`).
const CHECKOUT: &str = "DNN_ASSAY_CHECKOUT";
/// Read where this crate is compiled, so that cargo compiles it anew for another checkout, whose
/// headers may be other ones.
const _: Option<&str> = option_env!("DNN_ASSAY_CHECKOUT");

/// The folder of [`HEADERS`].
pub const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
/// What all kernels may include, by name: the layer that they are written over, and the host's table.
pub const HEADERS: &[(&str, &str)] = &[
    ("host_table.hpp", include_str!("../include/host_table.hpp")),
    ("portable.hpp", include_str!("../include/portable.hpp")),
];
/// The macro that holds a source's fingerprint symbol while it is compiled.
pub const FINGERPRINT_MACRO: &str = "DNN_FINGERPRINT";
/// What the name of a fingerprint symbol starts with; 16 hexadecimal digits follow.
pub const FINGERPRINT_PREFIX: &str = "dnn_fingerprint_";

/// What every target gets.
const COMMON: &[&str] = &["-O3", "-std=c++20", "-ffp-contract=off"];

/// What is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A code object for the MI300's ISA.
    Gfx942,
    /// PTX text.
    Sm90,
}

impl Target {
    /// The compiler's flags.
    pub fn flags(self) -> Vec<&'static str> {
        let own: &[&str] = match self {
            Self::Gfx942 => &[
                "-x",
                "hip",
                "--cuda-device-only",
                "--offload-arch=gfx942",
                "-nogpuinc",
                "-nogpulib",
                // Without this a random symbol differs from build to build.
                "-fuse-cuid=none",
                "--no-gpu-bundle-output",
            ],
            Self::Sm90 => &[
                "-x",
                "cuda",
                "--cuda-device-only",
                "--cuda-gpu-arch=sm_90",
                "-nocudainc",
                "-nocudalib",
                "-S",
            ],
        };
        own.iter().chain(COMMON).copied().collect()
    }
}

/// A kernel source: a file, and the headers beside it.
#[derive(Clone, Debug)]
pub struct Source {
    /// The C++ file.
    pub file: PathBuf,
}

impl Source {
    /// The symbol that names this source: FNV-1a over the names and texts of the file, the headers
    /// beside it and [`HEADERS`], in the order of their names.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn fingerprint(&self) -> std::io::Result<String> {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        let shared = HEADERS
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let mut texts: Vec<(String, String)> = shared.collect();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path == self.file || name.ends_with(".hpp") {
                texts.push((name.into_owned(), std::fs::read_to_string(&path)?));
            }
        }
        let texts = texts
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()));
        Ok(fingerprint(texts))
    }

    /// Compiles for `target` into `out`.
    ///
    /// # Errors
    /// The compiler's words.
    pub fn compile(&self, compiler: &Compiler, target: Target, out: &Path) -> Result<(), String> {
        let print = self.fingerprint().map_err(|error| error.to_string())?;
        let output = Command::new(&compiler.path)
            // The object must not depend on where the source lies.
            .current_dir(self.file.parent().unwrap_or(Path::new(".")))
            .args(target.flags())
            .arg(format!("-I{INCLUDE}"))
            .arg(format!("-D{FINGERPRINT_MACRO}={print}"))
            .arg(self.file.file_name().unwrap_or_default())
            .arg("-o")
            .arg(out)
            .output()
            .map_err(|error| format!("{}: {error}", compiler.path.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(format!("{}: {text}", compiler.path.display()))
    }
}

/// The symbol that names a set of sources, each with its name.
pub fn fingerprint<'a>(sources: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut sources: Vec<_> = sources.collect();
    sources.sort_unstable();
    let mut hash = 0xCBF2_9CE4_8422_2325u64;
    for byte in sources
        .iter()
        .flat_map(|(name, text)| [*name, "\0", *text, "\0"])
        .flat_map(str::bytes)
    {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    }
    format!("{FINGERPRINT_PREFIX}{hash:016x}")
}

/// A clang that compiles for GPUs.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// The program.
    pub path: PathBuf,
    /// The first line of `--version`.
    pub version: String,
}

impl Compiler {
    /// The first candidate that answers.
    pub fn find() -> Option<Self> {
        let rocm = |root: PathBuf| root.join("llvm/bin/clang++");
        let candidates = [
            std::env::var_os("DNN_ASSAY_CLANG").map(PathBuf::from),
            Some(PathBuf::from("clang++-19")),
            std::env::var_os("ROCM_PATH").map(|root| rocm(root.into())),
            Some(rocm("/opt/rocm".into())),
        ];
        candidates.into_iter().flatten().find_map(|path| {
            let run = Command::new(&path).arg("--version").output().ok()?;
            let text = String::from_utf8_lossy(&run.stdout).into_owned();
            let version = text.lines().next().unwrap_or_default().to_owned();
            run.status.success().then_some(Self { path, version })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_of_names_and_texts_in_any_order() {
        let of = |sources: &[(&str, &str)]| fingerprint(sources.iter().copied());
        let print = of(&[("a.hpp", "1"), ("b.hpp", "2")]);
        assert_eq!(print, of(&[("b.hpp", "2"), ("a.hpp", "1")]));
        assert_ne!(print, of(&[("a.hpp", "1"), ("b.hpp", "3")]));
        assert_ne!(print, of(&[("a.hpp", "2"), ("b.hpp", "1")]));
        assert_eq!(print.len(), FINGERPRINT_PREFIX.len() + 16);
    }

    #[test]
    fn cargo_says_which_checkout_this_is() {
        let said = std::env::var_os(CHECKOUT).expect("cargo runs tests with it");
        assert_eq!(
            option_env!("DNN_ASSAY_CHECKOUT").map(Path::new),
            Some(Path::new(&said))
        );
        let folder = Path::new(&said).join("harness/kernel-build");
        assert_eq!(folder, Path::new(env!("CARGO_MANIFEST_DIR")));
    }

    #[test]
    fn a_source_is_its_file_the_headers_beside_it_and_the_shared_ones() {
        let folder = std::env::temp_dir().join(format!("dnn-kernel-build-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        let source = Source {
            file: folder.join("k.cpp"),
        };
        write("k.cpp", "one");
        write("h.hpp", "two");
        write("notes.txt", "no part");
        let texts = [("k.cpp", "one"), ("h.hpp", "two")].iter().chain(HEADERS);
        let before = source.fingerprint().unwrap();
        assert_eq!(before, fingerprint(texts.copied()));
        write("h.hpp", "three");
        assert_ne!(source.fingerprint().unwrap(), before);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
