//! The libraries that mutants live in: the CPU engine's, found beside this program, and the mock
//! of the ABI, built when it is needed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::table::{Build, Compiler, Mutant};
use crate::plan::PluginSource;

/// The file name of the CPU engine's mutants.
pub const MUTANTS: &str = "libdnn_assay_mutants.so";

/// The mock's source.
const SOURCE: &str = include_str!("../../../mocks/abi/plugin.c");

/// Why a library cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The mutants were not built.
    #[error(
        "{MUTANTS} was not found beside this program; build it with `cargo build -p dnn-assay-mutants` (add --release for a release build of this program)"
    )]
    NotBuilt,
    /// There is no compiler.
    #[error(
        "the mutants of the ABI and of the file are built with `{compiler}`, which cannot be run: {error}"
    )]
    NoCompiler {
        /// The compiler.
        compiler: &'static str,
        /// What the system says.
        error: std::io::Error,
    },
    /// The compiler refuses.
    #[error("{compiler} {arguments}: {text}")]
    Refused {
        /// The compiler.
        compiler: &'static str,
        /// Its arguments.
        arguments: String,
        /// What it says.
        text: String,
    },
    /// Scratch space.
    #[error("scratch space: {0}")]
    Scratch(#[from] std::io::Error),
}

/// The libraries of some mutants.
#[derive(Debug)]
pub struct Libraries {
    folder: TempDir,
    mutants: Option<PathBuf>,
    mocks: BTreeMap<Build, PathBuf>,
}

impl Libraries {
    /// Finds and builds what `mutants` need, and the mock without any fault in both languages.
    ///
    /// # Errors
    /// [`LibraryError`].
    pub fn of(mutants: &[&Mutant]) -> Result<Self, LibraryError> {
        let mut libraries = Self {
            folder: tempfile::tempdir()?,
            mutants: None,
            mocks: BTreeMap::new(),
        };
        for mutant in mutants {
            if mutant.is_in_library() {
                if libraries.mutants.is_none() {
                    libraries.mutants = Some(find().ok_or(LibraryError::NotBuilt)?);
                }
                continue;
            }
            let build = mutant.build.clone().unwrap_or_default();
            let clean = Build {
                compiler: build.compiler,
                ..Build::default()
            };
            libraries.build(clean)?;
            libraries.build(build)?;
        }
        Ok(libraries)
    }

    fn build(&mut self, build: Build) -> Result<(), LibraryError> {
        if !self.mocks.contains_key(&build) {
            let path = self
                .folder
                .path()
                .join(format!("mock-{}.so", self.mocks.len()));
            compile(&build, &path)?;
            self.mocks.insert(build, path);
        }
        Ok(())
    }

    /// The library of a mutant.
    pub fn path(&self, mutant: &Mutant) -> Option<&Path> {
        if mutant.is_in_library() {
            return self.mutants.as_deref();
        }
        let build = mutant.build.clone().unwrap_or_default();
        self.mocks.get(&build).map(PathBuf::as_path)
    }

    /// The libraries without a fault: the CPU engine's, the mocks'.
    pub fn clean(&self) -> (Option<&Path>, Vec<&Path>) {
        let mocks = self.mocks.iter();
        let clean = mocks.filter(|(build, _)| build.flags.is_empty() && build.code.is_empty());
        let paths = clean.map(|(_, path)| path.as_path());
        (self.mutants.as_deref(), paths.collect())
    }
}

/// A library as a run takes it.
pub fn source(path: &Path) -> PluginSource {
    PluginSource {
        path: path.to_owned(),
        why: "a mutant".to_owned(),
    }
}

fn find() -> Option<PathBuf> {
    let folder = std::env::current_exe().ok()?;
    let folder = folder.parent()?;
    ["", "deps", "..", "../deps"]
        .iter()
        .map(|relative| folder.join(relative).join(MUTANTS))
        .find(|path| path.is_file())
}

fn compile(build: &Build, target: &Path) -> Result<(), LibraryError> {
    let (compiler, extension) = match build.compiler {
        Compiler::C => ("cc", "c"),
        Compiler::Cxx => ("c++", "cc"),
    };
    let source = target.with_extension(extension);
    std::fs::write(&source, format!("{}\n{SOURCE}", build.code))?;
    let soname = target.file_name().unwrap_or_default().to_string_lossy();
    let mut command = Command::new(compiler);
    command
        .args(["-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-w"])
        .arg(format!("-Wl,-soname,{soname}"))
        .args(["-Wl,--build-id=sha1", "-Wl,-z,relro,-z,now", "-o"])
        .arg(target)
        .args(&build.flags)
        .arg(&source);
    let output = command
        .output()
        .map_err(|error| LibraryError::NoCompiler { compiler, error })?;
    if output.status.success() {
        return Ok(());
    }
    Err(LibraryError::Refused {
        compiler,
        arguments: build.flags.join(" "),
        text: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
