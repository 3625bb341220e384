//! Sample files built with the system's compiler into a folder that goes away with the sample.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test file uses its own part of the samples, and a test may unwrap"
)]

use dnn_assay_abi::symbols::{ENGINE_PLUGIN, Group, mandatory_symbols};
use dnn_assay_elf::closure::{DirectorySource, LoadEnvironment};
use dnn_assay_elf::{Inspection, Policy, Setting, inspect};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
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

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Runs a tool in the folder. The arguments are split at white space.
    pub fn run(&self, tool: &str, arguments: &str) -> String {
        let output = Command::new(tool)
            .args(arguments.split_whitespace())
            .current_dir(self.folder())
            .output()
            .unwrap_or_else(|error| panic!("{tool}: {error}"));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{tool} {arguments}: {stderr}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Builds a shared object of that name from C.
    pub fn c_file(&self, name: &str, source: &str, flags: &str) -> PathBuf {
        self.build("cc", &format!("{name}.c"), name, source, flags)
    }

    /// Builds a shared object of that name from C++.
    pub fn cxx_file(&self, name: &str, source: &str, flags: &str) -> PathBuf {
        self.build("c++", &format!("{name}.cc"), name, source, flags)
    }

    fn build(&self, tool: &str, input: &str, name: &str, source: &str, flags: &str) -> PathBuf {
        self.write(input, source);
        self.run(tool, &format!("-shared -fPIC {input} -o {name} {flags}"));
        self.path(name)
    }

    /// Builds one C source into a shared object and gives its bytes.
    pub fn c(&self, source: &str, flags: &str) -> Vec<u8> {
        self.c_file("out.so", source, flags);
        self.read("out.so")
    }

    /// The flag that exports the plugin interface and nothing else.
    pub fn version_script(&self) -> String {
        self.write("exports.map", "{ global: hipdnn*; local: *; };");
        "-Wl,--version-script=exports.map".into()
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

/// C++ source with every mandatory symbol and some code of its own before them.
pub fn cxx_engine_source(own: &str) -> String {
    format!("{own}\nextern \"C\" {{\n{}}}\n", engine_source())
}

/// The loader of this machine, without variables.
pub fn machine() -> LoadEnvironment {
    LoadEnvironment::of_this_machine()
}

/// Inspects a file on this machine.
pub fn inspect_file(path: &Path, policy: &Policy) -> Inspection {
    let setting = Setting {
        environment: &machine(),
        source: &DirectorySource,
        policy: &policy.ready().unwrap(),
        today: "2026-12-01".parse().unwrap(),
    };
    let bytes = Arc::new(std::fs::read(path).unwrap());
    inspect(path, &bytes, &setting).unwrap()
}

/// Changes the first entry of the dynamic section with this tag.
pub fn patch_dynamic(bytes: &mut [u8], tag: u64, new_tag: u64, change: impl Fn(u64) -> u64) {
    let elf = goblin::elf::Elf::parse(bytes).unwrap();
    let segment = elf
        .program_headers
        .iter()
        .find(|s| s.p_type == goblin::elf::program_header::PT_DYNAMIC)
        .unwrap();
    let entries = elf.dynamic.as_ref().unwrap();
    let index = entries.dyns.iter().position(|d| d.d_tag == tag).unwrap();
    let value = change(entries.dyns[index].d_val);
    let at = segment.p_offset as usize + index * 16;
    bytes[at..at + 8].copy_from_slice(&new_tag.to_le_bytes());
    bytes[at + 8..at + 16].copy_from_slice(&value.to_le_bytes());
}
