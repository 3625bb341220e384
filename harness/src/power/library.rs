//! The libraries that mutants live in: the CPU engine's, found beside this program, and the mock
//! of the ABI, built when it is needed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::table::{Build, Compiler, Mock, Mutant};
use crate::plan::{PluginSource, built_in_file};

/// The file name of the CPU engine's mutants.
pub const MUTANTS: &str = "libdnn_assay_mutants.so";

/// The C example, which one of the mocks includes.
const EXAMPLE: &str = include_str!("../../../plugins-under-test/c-example/c_plugin.c");
/// The name under which it does.
const EXAMPLE_FILE: &str = "c_plugin.c";

impl Mock {
    const fn source(self) -> &'static str {
        match self {
            Self::Plugin => include_str!("../../../mocks/abi/plugin.c"),
            Self::Faulty => include_str!("../../../mocks/abi/faulty.c"),
            Self::Example => EXAMPLE,
            Self::Stub => include_str!("../../../mocks/abi/stub.c"),
            Self::Heuristic => include_str!("../../../mocks/abi/heuristic.c"),
        }
    }
}

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
    /// The gfx942 plugin, where it has kernels and the mock HIP runtime is beside it.
    device: Option<PathBuf>,
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
            device: None,
        };
        std::fs::write(libraries.folder.path().join(EXAMPLE_FILE), EXAMPLE)?;
        for mutant in mutants {
            if mutant.launches.is_some() {
                libraries.device = device();
                continue;
            }
            if mutant.is_in_library() {
                if libraries.mutants.is_none() {
                    libraries.mutants = Some(find().ok_or(LibraryError::NotBuilt)?);
                }
                continue;
            }
            let build = mutant.build.clone().unwrap_or_default();
            let clean = Build {
                source: build.source,
                compiler: build.compiler,
                ..Build::default()
            };
            libraries.build(clean)?;
            libraries.build(build)?;
            if let Some(beside) = &mutant.beside {
                libraries.build(beside.clone())?;
                libraries.build(Build::default())?;
            }
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
        if mutant.launches.is_some() {
            return self.device.as_deref();
        }
        if mutant.is_in_library() {
            return self.mutants.as_deref();
        }
        let build = mutant.build.clone().unwrap_or_default();
        self.mocks.get(&build).map(PathBuf::as_path)
    }

    /// The library without a fault whose launches go astray.
    pub fn device(&self) -> Option<&Path> {
        self.device.as_deref()
    }

    /// The library that is loaded beside a mutant's, if there is one.
    pub fn beside(&self, mutant: &Mutant) -> Option<&Path> {
        self.mocks
            .get(mutant.beside.as_ref()?)
            .map(PathBuf::as_path)
    }

    /// The CPU engine's library without a fault.
    pub fn clean_engine(&self) -> Option<&Path> {
        self.mutants.as_deref()
    }

    /// The mocks without a fault.
    pub fn clean_mocks(&self) -> Vec<(&Build, &Path)> {
        let mocks = self.mocks.iter();
        let clean = mocks.filter(|(build, _)| build.flags.is_empty() && build.code.is_empty());
        clean.map(|(build, path)| (build, path.as_path())).collect()
    }
}

/// The gfx942 plugin and the mock HIP runtime, built beside this program; without a clang for AMDGPU
/// the plugin has no kernels to launch.
fn device() -> Option<PathBuf> {
    built_in_file("libdnn_assay_mock_hip.so").ok()?;
    let plugin = built_in_file("libdnn_assay_gfx942_plugin.so").ok()?;
    let symbol = b"dnn_pointwise.kd";
    let bytes = std::fs::read(&plugin).ok()?;
    bytes
        .windows(symbol.len())
        .any(|window| window == symbol)
        .then_some(plugin)
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
    let text = build.source.source();
    std::fs::write(&source, format!("{}\n{text}", build.code))?;
    let soname = target.file_name().unwrap_or_default().to_string_lossy();
    let mut command = Command::new(compiler);
    command
        .args(["-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-w"])
        .arg(format!("-DEXAMPLE=\"{EXAMPLE_FILE}\""))
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
