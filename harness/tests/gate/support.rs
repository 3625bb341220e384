//! Runs the program in a folder of the test's own, and builds the C++ example.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_dnn-assay");

/// A quick part of the smoke suite that the example verifies.
pub const QUICK: &str = "op=pointwise.add,pointwise.mul dtype=f32";

/// What a command printed and how it ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub text: String,
}

impl Ran {
    #[track_caller]
    pub fn expect(&self, code: i32, parts: &[&str]) -> &Self {
        assert_eq!(self.code, Some(code), "{}", self.text);
        // CMake wraps its messages.
        let words: Vec<&str> = self.text.split_whitespace().collect();
        let unwrapped = words.join(" ");
        for part in parts {
            assert!(
                self.text.contains(part) || unwrapped.contains(part),
                "`{part}` is missing in\n{}",
                self.text
            );
        }
        self
    }
}

/// A command without variables that steer.
pub fn clean(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env("NO_COLOR", "1");
    for name in [
        "HIPDNN_PLUGIN_DIR",
        "DNN_ASSAY_REQUIRE_DEVICE",
        "DNN_ASSAY_SKIP_IF_NO_DEVICE",
        "GITHUB_STEP_SUMMARY",
    ] {
        command.env_remove(name);
    }
    command
}

/// Runs a command to its end.
pub fn finish(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Ran {
        code: output.status.code(),
        text,
    }
}

/// Runs the program.
pub fn run(folder: &Path, arguments: &[&str]) -> Ran {
    finish(clean(PROGRAM, folder).args(arguments))
}

/// A file of this repository.
pub fn repository(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().unwrap().join(path)
}

/// The text of a file of this repository.
pub fn text_of(path: &str) -> String {
    std::fs::read_to_string(repository(path)).unwrap()
}

/// The C++ example, and the same with an addition that is wrong.
pub fn plugin(faulty: bool) -> &'static Path {
    static GOOD: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    static BAD: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let cell = if faulty { &BAD } else { &GOOD };
    &cell.get_or_init(|| build(&source(faulty), true)).1
}

/// The C++ example with everything exported.
pub fn open_plugin() -> &'static Path {
    static OPEN: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    &OPEN.get_or_init(|| build(&source(false), false)).1
}

/// The example's source, with or without its fault.
pub fn source(faulty: bool) -> String {
    let source = text_of("plugins-under-test/cpp-example/cpp_plugin.cpp");
    if !faulty {
        return source;
    }
    let broken = source.replace("a[i] + b[i]", "a[i] - b[i]");
    assert_ne!(source, broken, "the example adds in another way now");
    broken
}

/// Builds a plugin; `hidden` says that it exports its entry points only.
pub fn build(source: &str, hidden: bool) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plugin.cpp");
    std::fs::write(&file, source).unwrap();
    let library = folder.path().join("libmy_plugin.so");
    let map = repository("plugins-under-test/cpp-example/exports.map");
    let mut compiler = clean("g++", folder.path());
    compiler
        .args(["-std=c++17", "-O1", "-fPIC", "-shared", "-o"])
        .arg(&library)
        .arg(&file);
    if hidden {
        let map = format!("-Wl,--version-script={}", map.display());
        compiler.args(["-fvisibility=hidden", &map]);
    }
    finish(&mut compiler).expect(0, &[]);
    (folder, library)
}

/// Whether a program is on PATH.
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
