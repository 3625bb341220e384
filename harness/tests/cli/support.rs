//! Runs the program and builds plugins.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use dnn_assay::exit::Exit;

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_dnn-assay");
/// A case that the mock plugin, which copies its first buffer to its second, gets right.
pub const IDENTITY: &str = "pointwise.identity/f32/nchw/n1-c1-i4x4/none/uni";

/// What a command printed and how it ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
    pub folder: tempfile::TempDir,
}

impl Ran {
    /// Asserts the exit code and that each text stands in the output or the messages.
    #[track_caller]
    pub fn expect(&self, exit: Exit, texts: &[&str]) -> &Self {
        assert_eq!(self.code, i32::from(exit.code()), "{self:#?}");
        for text in texts {
            assert!(
                self.out.contains(text) || self.err.contains(text),
                "`{text}` is missing in {self:#?}"
            );
        }
        self
    }

    /// A file that the command wrote into its folder.
    pub fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }
}

/// A command in an empty folder with an environment that steers nothing.
pub fn command(folder: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .current_dir(folder)
        .env_remove("HIPDNN_PLUGIN_DIR")
        .env_remove("DNN_ASSAY_REQUIRE_DEVICE")
        .env_remove("DNN_ASSAY_SKIP_IF_NO_DEVICE")
        .env("NO_COLOR", "1");
    command
}

/// Runs the program with these arguments and variables.
pub fn run_with(arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let output = command(folder.path())
        .args(arguments)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
        folder,
    }
}

/// Runs the program with these arguments.
pub fn run(arguments: &[&str]) -> Ran {
    run_with(arguments, &[])
}

/// Runs one case on a plugin.
pub fn run_case(plugin: &Path, case: &str, more: &[&str]) -> Ran {
    let mut arguments = vec!["run", plugin.to_str().unwrap(), "--case", case];
    arguments.extend(more);
    run(&arguments)
}

/// A file of this repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Builds a plugin with a C or C++ compiler; the folder lives as long as the tests.
pub fn build(compiler: &str, source: &str, name: &str, flags: &[&str]) -> PathBuf {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().unwrap());
    // Tests that want the same plugin may build it at the same time: each gets a file of its own.
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = folder.path().join(format!("{number}-{name}"));
    let output = Command::new(compiler)
        .args(["-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-o"])
        .arg(&path)
        .args(flags)
        .arg(repository(source))
        .output()
        .unwrap_or_else(|error| panic!("{compiler} is needed for this test: {error}"));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    path
}

/// The misbehaving plugin, well behaved until `--env DNN_MOCK_FAULT=…`.
pub fn mock() -> PathBuf {
    static MOCK: OnceLock<PathBuf> = OnceLock::new();
    MOCK.get_or_init(|| build("cc", "mocks/abi/plugin.c", "mock.so", &[]))
        .clone()
}

/// Runs the identity case on the mock plugin with a fault.
pub fn run_fault(fault: &str, more: &[&str]) -> Ran {
    let variable = format!("DNN_MOCK_FAULT={fault}");
    let mut arguments = vec!["--env", &variable, "--engine", "MOCK_ENGINE_A"];
    arguments.extend(more);
    run_case(&mock(), IDENTITY, &arguments)
}

/// The bytes of a small valid plugin.
pub fn plugin_bytes() -> Vec<u8> {
    std::fs::read(mock()).unwrap()
}

/// The CPU engine with one fault, named by `--env DNN_ASSAY_MUTANT=…`; without it, the CPU engine.
pub fn mutants() -> PathBuf {
    let program = Path::new(PROGRAM);
    let folder = program.parent().unwrap();
    let places = ["", "deps"].map(|place| folder.join(place).join("libdnn_assay_mutants.so"));
    let found = places.iter().find(|path| path.is_file());
    found
        .unwrap_or_else(|| panic!("none of {places:?} is there; cargo builds it for the tests"))
        .clone()
}

/// Runs the program on the mutant library with this fault.
pub fn run_mutant(fault: &str, command: &str, more: &[&str]) -> Ran {
    let library = mutants();
    let variable = format!("DNN_ASSAY_MUTANT={fault}");
    let mut arguments = vec![command];
    arguments.extend(match command {
        "run" => vec![library.to_str().unwrap()],
        _ => vec!["--plugin", library.to_str().unwrap()],
    });
    if !fault.is_empty() {
        arguments.extend(["--env", &variable]);
    }
    arguments.extend(more);
    run(&arguments)
}
