//! Sample files built with the system's compiler into a folder that goes away with the sample.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test file uses its own part of the samples, and a test may unwrap"
)]

use dnn_assay_abi::symbols::{ENGINE_PLUGIN, Group, mandatory_symbols};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A folder of built files.
pub struct Workshop {
    folder: TempDir,
}

impl Workshop {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Runs a tool in the folder. The arguments are split at white space.
    pub fn run(&self, tool: &str, arguments: &str) {
        let output = Command::new(tool)
            .args(arguments.split_whitespace())
            .current_dir(self.folder())
            .output()
            .unwrap_or_else(|error| panic!("{tool}: {error}"));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{tool} {arguments}: {stderr}");
    }

    /// Builds one C source into a shared object and gives its bytes.
    pub fn c(&self, source: &str, flags: &str) -> Vec<u8> {
        self.write("source.c", source);
        self.run("cc", &format!("-shared -fPIC source.c -o out.so {flags}"));
        self.read("out.so")
    }

    /// Builds one C++ source into a shared object and gives its bytes.
    pub fn cxx(&self, source: &str, flags: &str) -> Vec<u8> {
        self.write("source.cc", source);
        self.run("c++", &format!("-shared -fPIC source.cc -o out.so {flags}"));
        self.read("out.so")
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }
}

/// C source that defines the given functions.
pub fn functions<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names
        .into_iter()
        .map(|name| format!("int {name}(void) {{ return 0; }}\n"))
        .collect()
}

/// C source of a file with every mandatory symbol.
pub fn engine_source() -> String {
    functions(mandatory_symbols().map(|symbol| symbol.name))
}

/// C source of a file with every symbol that a current plugin may export.
pub fn complete_engine_source() -> String {
    let mut source = engine_source();
    let optional = ENGINE_PLUGIN.iter().filter(|symbol| {
        symbol.group == Group::Serialization || symbol.name == "hipdnnEnginePluginGetEngineName"
    });
    source.push_str(&functions(optional.map(|symbol| symbol.name)));
    source
}
