//! The tarball as `ci/release` makes it, from the binaries under test: unpacked into a folder of
//! its own, and used with an empty environment, without the repository and without cargo.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Trial;

use crate::support::{PROGRAM, Ran, finish, repository, source, text_of};

pub fn trials() -> Vec<Trial> {
    let packs = ["bash", "objcopy", "strip", "tar"];
    let builds = [&packs[..], &["cmake", "ctest", "g++"]].concat();
    vec![
        crate::trial("release::is_whole", &packs, is_whole),
        crate::trial(
            "release::a_gate_without_cargo",
            &builds,
            a_gate_without_cargo,
        ),
        crate::trial("release::version_ceiling", &packs, version_ceiling),
    ]
}

/// `DNN_ASSAY_TARBALL` where it is set: a release as it is published.
fn published() -> Option<PathBuf> {
    std::env::var_os("DNN_ASSAY_TARBALL").map(PathBuf::from)
}

/// Unpacks the tarball below `folder`; gives the folder in it.
fn unpacked(folder: &Path) -> PathBuf {
    let tarball = published().unwrap_or_else(|| packed(&folder.join("pack")));
    let target = folder.join("opt");
    fs::create_dir(&target).unwrap();
    finish(
        Command::new("tar")
            .arg("-xzf")
            .arg(tarball)
            .arg("-C")
            .arg(&target),
    )
    .expect(0, &[]);
    target.join("dnn-assay-x86_64-linux")
}

fn packed(out: &Path) -> PathBuf {
    let binaries = Path::new(PROGRAM).parent().unwrap();
    let ran = finish(
        Command::new("bash")
            .arg(repository("ci/release"))
            .arg("--binaries")
            .arg(binaries)
            .arg(out),
    );
    ran.expect(0, &["dnn-assay-x86_64-linux.tar.gz"]);
    out.join("dnn-assay-x86_64-linux.tar.gz")
}

/// A program with an empty environment but for a PATH of the system's folders.
fn bare(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/bin:/bin");
    command
}

fn is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let install = unpacked(folder.path());
    for file in [
        "bin/dnn-assay",
        "lib/cmake/DnnAssay/DnnAssayConfig.cmake",
        "lib/cmake/DnnAssay/DnnAssayConfigVersion.cmake",
        "share/man/man1/dnn-assay.1",
        "share/bash-completion/completions/dnn-assay",
        "share/zsh/site-functions/_dnn-assay",
        "share/fish/vendor_completions.d/dnn-assay.fish",
        "share/dnn-assay/dnn-assay.schema.json",
        "share/doc/dnn-assay/for-plugin-authors.md",
        "Dockerfile",
        "LICENSE",
    ] {
        let size = fs::metadata(install.join(file)).map(|data| data.len());
        assert!(
            size.as_ref().is_ok_and(|size| *size > 40),
            "{file}: {size:?}"
        );
    }
    assert!(
        !install.join("lib/dnn-assay").exists(),
        "the libraries are inside the program"
    );
    // Everything it needs at run time is in the one file.
    let alone = folder.path().join("elsewhere");
    fs::create_dir(&alone).unwrap();
    let program = alone.join("dnn-assay");
    fs::copy(install.join("bin/dnn-assay"), &program).unwrap();
    let run = |arguments: &[&str]| finish(bare(&program, &alone).args(arguments));
    let quick = ["--filter", "op=conv.fprop dtype=f32 layout=nchw fill=int"];
    let ran = run(&[&["run", "--builtin", "--plain"], &quick[..]].concat());
    ran.expect(
        0,
        &[
            "dnn-assay-out/built-in/libdnn_assay_cpu_plugin.so",
            "as expected",
        ],
    );
    run(&["device", "--device", "mock-hip"]).expect(0, &["mock-hip: 1"]);
    run(&["list", "--suite", "full"]).expect(0, &["conv.fprop"]);
    run(&[
        "run",
        "--builtin",
        "--criterion",
        "table",
        quick[0],
        quick[1],
    ])
    .expect(0, &[]);
    run(&["conform", "--builtin", "--check", "handle/distinct"]).expect(0, &[]);
    let left: Vec<_> = fs::read_dir(&alone)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "the program and its output: {left:?}");
}

/// A plugin project of ten lines that knows nothing but the tarball.
struct Project {
    folder: PathBuf,
    install: PathBuf,
}

impl Project {
    fn new(folder: &Path) -> Self {
        let project = folder.join("project");
        fs::create_dir(&project).unwrap();
        let lists = text_of("ci/examples/cmake/CMakeLists.txt");
        let lines = lists.lines().filter(|line| !line.trim().is_empty()).count();
        assert!(lines <= 10, "the project has {lines} lines");
        fs::write(project.join("CMakeLists.txt"), lists).unwrap();
        let map = text_of("plugins-under-test/cpp-example/exports.map");
        fs::write(project.join("exports.map"), map).unwrap();
        Self {
            folder: project,
            install: unpacked(folder),
        }
    }

    fn cmake(&self, arguments: &[&str]) -> Ran {
        finish(bare(Path::new("/usr/bin/cmake"), &self.folder).args(arguments))
    }

    /// Builds with this source and waivers, and runs the tests.
    fn tested(&self, source: &str, config: Option<&str>, more: &str) -> Ran {
        fs::write(self.folder.join("my_plugin.cpp"), source).unwrap();
        let path = self.folder.join("dnn-assay.yaml");
        match config {
            Some(text) => fs::write(path, text).unwrap(),
            None => drop(fs::remove_file(path)),
        }
        let lists = text_of("ci/examples/cmake/CMakeLists.txt");
        let lists = lists.replace("LABELS plugin", &format!("{more} LABELS plugin"));
        fs::write(self.folder.join("CMakeLists.txt"), lists).unwrap();
        let prefix = format!("-DCMAKE_PREFIX_PATH={}", self.install.display());
        self.cmake(&[
            "-S",
            ".",
            "-B",
            "build",
            "-DCMAKE_BUILD_TYPE=Release",
            &prefix,
        ])
        .expect(0, &[]);
        self.cmake(&["--build", "build"]).expect(0, &[]);
        finish(
            bare(Path::new("/usr/bin/ctest"), &self.folder.join("build"))
                .args(["--output-on-failure"]),
        )
    }
}

/// Green; red by one broken kernel, with the cause on the first screen; green by a waiver; red by
/// its end.
fn a_gate_without_cargo() {
    for folder in ["/usr/bin", "/bin"] {
        assert!(
            !Path::new(folder).join("cargo").exists(),
            "cargo is in {folder}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let project = Project::new(folder.path());
    let right = source(false);
    // One kernel forgets the dilation.
    let wrong = right
        .replace("r * job.dilation[0]", "r")
        .replace("s * job.dilation[1]", "s");
    assert_ne!(right, wrong, "the example convolves in another way now");
    let waiver = |expires: &str| {
        format!(
            "schema: 1\nwaive:\n  - filter: op=conv.fprop dtype=f32 !~dil1x1\n    expect: fail\n    \
             reason: dilation is to come\n    owner: me\n    link: https://example.org/1\n    \
             expires: {expires}\n"
        )
    };
    let green = "100% tests passed";
    project.tested(&right, None, "").expect(0, &[green]);
    project.tested(&wrong, None, "").expect(
        8,
        &[
            "0% tests passed",
            "first failure",
            "fail(numeric)",
            "dilation is ignored (dilation-ignored)",
            "reproduce",
            "a waiver, to complete and paste",
        ],
    );
    let known = waiver("2999-12-31");
    project.tested(&wrong, Some(&known), "").expect(0, &[green]);
    let late = waiver("2020-01-01");
    project.tested(&wrong, Some(&late), "").expect(0, &[green]);
    project.tested(&wrong, Some(&late), "NIGHTLY").expect(
        8,
        &["0% tests passed", "dnn-assay.yaml:3 expired on 2020-01-01"],
    );
}

/// What is published asks for glibc 2.28 at most; the check is the program's own.
fn version_ceiling() {
    let folder = tempfile::tempdir().unwrap();
    let install = unpacked(folder.path());
    let program = install.join("bin/dnn-assay");
    let asked = |most: &str| {
        finish(
            bare(&program, folder.path())
                .args(["dev", "versions", "--most", most])
                .arg(&program),
        )
    };
    asked("GLIBC=2.3").expect(1, &["GLIBC", "beyond 2.3"]);
    asked("GLIBC=9.0").expect(0, &["GLIBC 2."]);
    asked("GLIBC").expect(2, &["GLIBC=2.28"]);
    if published().is_some() {
        asked("GLIBC=2.28").expect(0, &[]);
    }
}
