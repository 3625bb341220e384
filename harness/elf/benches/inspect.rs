//! How long an inspection takes, beside the tools that show a part of it, and how much memory.

use dnn_assay_elf::closure::{DirectorySource, FileBytes, LoadEnvironment};
use dnn_assay_elf::{Inspection, Policy, ReadyPolicy, Setting, identify, inspect};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock};
use tempfile::TempDir;

#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

fn run(tool: &str, arguments: &[&str]) {
    let status = Command::new(tool)
        .args(arguments)
        .current_dir(FOLDER.path())
        .status();
    assert!(status.is_ok_and(|status| status.success()), "{tool}");
}

fn build(tool: &str, source: &str, text: &str, library: &str) -> PathBuf {
    std::fs::write(FOLDER.path().join(source), text).expect("the folder is writable");
    run(tool, &["-shared", "-fPIC", source, "-o", library]);
    FOLDER.path().join(library)
}

/// 100,000 exported C++ functions and 44 MB of data, 50 MB in all.
static LARGE: LazyLock<PathBuf> = LazyLock::new(|| {
    let mut text = String::from(".text\n");
    for index in 0..100_000 {
        let name = format!("_ZN2my6detail10function{index:06}ESt6vectorIfSaIfEEi");
        writeln!(
            text,
            ".globl {name}\n.type {name},@function\n{name}: ret\n.size {name},1"
        )
        .expect("writing to a String cannot fail");
    }
    text.push_str(".section .rodata\n.zero 36000000,1\n.section .note.GNU-stack,\"\",@progbits\n");
    build("cc", "large.s", &text, "large.so")
});

/// A C++ plugin as people write it: strings, maps, streams, exceptions.
static TYPICAL: LazyLock<PathBuf> = LazyLock::new(|| {
    let mut text = String::from(
        "#include <map>\n#include <string>\n#include <vector>\n#include <sstream>\n#include <stdexcept>\n",
    );
    for index in 0..40 {
        write!(
            text,
            "struct S{index} {{ std::map<std::string, std::vector<int>> m; int x[{index} + 1];
                virtual int run(const std::string &n) {{ std::ostringstream s; s << n << m.size();
                if (n.empty()) throw std::runtime_error(s.str());
                m[n].push_back({index}); return x[0] + (int)m[n].size(); }} virtual ~S{index}() {{}} }};
             int make{index}(const char *n) {{ static S{index} s; return s.run(n); }}\n"
        )
        .expect("writing to a String cannot fail");
    }
    build("c++", "typical.cc", &text, "typical.so")
});

fn policy() -> ReadyPolicy {
    Policy::default()
        .ready()
        .expect("the default policy is right")
}

/// Reads the file and inspects it, as the command does.
fn whole(path: &Path, policy: &ReadyPolicy) -> (Inspection, FileBytes) {
    let bytes = Arc::new(std::fs::read(path).expect("the file was built"));
    let setting = Setting {
        environment: &LoadEnvironment::of_this_machine(),
        source: &DirectorySource,
        policy,
        today: jiff::civil::date(2026, 12, 1),
    };
    (inspect(path, &bytes, &setting).expect("a library"), bytes)
}

#[divan::bench(sample_count = 10)]
fn inspect_large(bencher: divan::Bencher<'_, '_>) {
    let (path, policy) = (&*LARGE, policy());
    let size = std::fs::metadata(path).expect("the file was built").len();
    bencher
        .counter(divan::counter::BytesCount::new(size))
        .bench(|| whole(path, &policy));
}

#[divan::bench(sample_count = 10)]
fn inspect_large_with_readable_allow_list(bencher: divan::Bencher<'_, '_>) {
    let mut policy = Policy::default();
    policy.exports.allow = vec!["my::detail::*".into()];
    let (path, policy) = (&*LARGE, policy.ready().expect("the policy is right"));
    bencher.bench(|| whole(path, &policy));
}

#[divan::bench(sample_count = 50)]
fn inspect_typical(bencher: divan::Bencher<'_, '_>) {
    let (path, policy) = (&*TYPICAL, policy());
    bencher.bench(|| whole(path, &policy));
}

#[divan::bench(sample_count = 50)]
fn identify_typical(bencher: divan::Bencher<'_, '_>) {
    let path = &*TYPICAL;
    bencher.bench(|| identify(&std::fs::read(path).expect("the file was built")));
}

/// What the tools need for the exported names alone.
#[divan::bench(sample_count = 50)]
fn nm_and_cxxfilt_typical(bencher: divan::Bencher<'_, '_>) {
    let path = &*TYPICAL;
    bencher.bench(|| nm(path));
}

#[divan::bench(sample_count = 5)]
fn nm_and_cxxfilt_large(bencher: divan::Bencher<'_, '_>) {
    let path = &*LARGE;
    bencher.bench(|| nm(path));
}

fn nm(path: &Path) {
    let mut symbols = Command::new("nm")
        .arg("-D")
        .arg(path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("nm is installed");
    let output = symbols.stdout.take().expect("the output is a pipe");
    let status = Command::new("c++filt")
        .stdin(output)
        .stdout(Stdio::null())
        .status();
    assert!(status.is_ok_and(|status| status.success()));
    assert!(symbols.wait().is_ok_and(|status| status.success()));
}
