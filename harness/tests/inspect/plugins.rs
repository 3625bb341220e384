//! Plugins as people build them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::support::repository;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

/// Runs a compiler in the folder of all samples; `{}` in the arguments stands for the
/// repository.
pub fn compile(compiler: &str, name: &str, arguments: &str) -> PathBuf {
    compile_to(compiler, &path(name), arguments);
    path(name)
}

fn compile_to(compiler: &str, target: &Path, arguments: &str) {
    let root = repository("").display().to_string();
    let output = Command::new(compiler)
        .args(arguments.split_whitespace().map(|a| a.replace("{}", &root)))
        .arg("-o")
        .arg(target)
        .current_dir(FOLDER.path())
        .output()
        .unwrap_or_else(|error| panic!("{compiler} is needed for this test: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} {arguments}: {text}");
}

/// The C++ example built with these flags; kept for the tests that follow, each of which may be a
/// process of its own.
fn example(name: &str, flags: &str) -> PathBuf {
    let source = repository("plugins-under-test/cpp-example/cpp_plugin.cpp");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("inspect");
    let target = folder.join(name);
    let time = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    if time(&target) <= time(&source) {
        std::fs::create_dir_all(&folder).unwrap();
        let own = folder.join(format!("{}-{name}", std::process::id()));
        compile_to("g++", &own, &format!("{} {flags}", source.display()));
        std::fs::rename(own, &target).unwrap();
    }
    target
}

/// A file among the samples.
pub fn path(name: &str) -> PathBuf {
    FOLDER.path().join(name)
}

/// Writes a file among the samples.
pub fn write(name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    std::fs::write(path(name), content).unwrap();
    path(name)
}

/// The C++ example with plain `g++ -shared -fPIC`.
pub fn plain() -> PathBuf {
    example("plain.so", "-shared -fPIC")
}

/// The same with a version script.
pub fn scripted() -> PathBuf {
    let map = "{}/plugins-under-test/cpp-example/exports.map";
    let flags = format!("-O1 -shared -fPIC -Wl,--version-script={map}");
    example("scripted.so", &flags)
}

/// The same as the report of the plain one says: with this version script.
pub fn as_told(script: &str) -> PathBuf {
    let map = write("exports.map", script);
    let flags = format!("-shared -fPIC -Wl,--version-script={}", map.display());
    example("as-told.so", &flags)
}

/// The C example that exports a helper of the given name and value besides its interface.
pub fn with_helper(name: &str, helper: &str, value: u32) -> PathBuf {
    let source = write(
        &format!("{name}.c"),
        format!(
            "__attribute__((visibility(\"default\"))) int {helper}(void) {{ return {value}; }}\n\
             #include \"{}\"\n",
            repository("plugins-under-test/c-example/c_plugin.c").display()
        ),
    );
    let arguments = format!("-O1 -shared -fPIC -fvisibility=hidden {}", source.display());
    compile("cc", &format!("{name}.so"), &arguments)
}
