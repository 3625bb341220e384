//! The CMake package on a small C++ project: configured, built, run by CTest.

use std::fs;
use std::path::Path;

use libtest_mimic::Trial;

use crate::support::{PROGRAM, Ran, clean, finish, repository, source, text_of};

pub fn trials() -> Vec<Trial> {
    let all: [(&str, fn()); 4] = [
        ("cmake::a_gate_in_ctest", a_gate_in_ctest),
        ("cmake::from_add_subdirectory", from_add_subdirectory),
        ("cmake::wrong_use", wrong_use),
        ("cmake::labels_and_skips", labels_and_skips),
    ];
    let trial = |(name, test)| crate::trial(name, &["cmake", "ctest"], test);
    all.into_iter().map(trial).collect()
}

/// The project of the documentation with the example plugin, and some waivers.
fn project(folder: &Path, faulty: bool, waivers: Option<&str>) {
    let lists = text_of("ci/examples/cmake/CMakeLists.txt");
    let expect = if waivers.is_some() {
        " EXPECT waivers.yaml"
    } else {
        ""
    };
    let lists = lists.replace(
        "LABELS plugin",
        &format!("LABELS plugin{expect} ARGS --filter op=pointwise.add,pointwise.mul"),
    );
    fs::write(folder.join("CMakeLists.txt"), lists).unwrap();
    fs::write(folder.join("my_plugin.cpp"), source(faulty)).unwrap();
    let map = text_of("plugins-under-test/cpp-example/exports.map");
    fs::write(folder.join("exports.map"), map).unwrap();
    fs::write(folder.join("waivers.yaml"), waivers.unwrap_or_default()).unwrap();
}

fn configure(folder: &Path) -> Ran {
    let package = repository("ci/cmake");
    finish(
        clean("cmake", folder)
            .args(["-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Release"])
            .arg(format!("-DDnnAssay_DIR={}", package.display()))
            .arg(format!("-DDnnAssay_EXECUTABLE={PROGRAM}")),
    )
}

fn tested(folder: &Path, more: &[&str]) -> Ran {
    configure(folder).expect(0, &[]);
    finish(clean("cmake", folder).args(["--build", "build"])).expect(0, &[]);
    let mut command = clean("ctest", &folder.join("build"));
    finish(
        command
            .args(["--output-on-failure", "-L", "quick"])
            .args(more),
    )
}

/// A plugin that is right is green; a broken kernel is red until it is waived.
fn a_gate_in_ctest() {
    let folder = tempfile::tempdir().unwrap();
    project(folder.path(), false, None);
    tested(folder.path(), &["-L", "plugin"])
        .expect(0, &["100% tests passed", "dnn-assay.my_plugin.smoke"]);
    project(folder.path(), true, None);
    tested(folder.path(), &[]).expect(8, &["first failure", "fail(numeric)", "pointwise.add"]);
    let waiver = "schema: 1\nwaive: [{filter: op=pointwise.add dtype=f32, expect: fail, reason: r, \
                  owner: o, link: l, expires: 2999-12-31}]\n";
    project(folder.path(), true, Some(waiver));
    tested(folder.path(), &[]).expect(0, &["100% tests passed"]);
}

/// The project's text of CMake with another way to the package.
fn with_subdirectory(folder: &Path) -> String {
    project(folder, false, None);
    let lists = fs::read_to_string(folder.join("CMakeLists.txt")).unwrap();
    let package = repository("ci/cmake");
    lists.replace(
        "find_package(DnnAssay REQUIRED)",
        &format!("add_subdirectory({} dnn-assay)", package.display()),
    )
}

fn configure_text(folder: &Path, lists: &str) -> Ran {
    fs::write(folder.join("CMakeLists.txt"), lists).unwrap();
    configure(folder)
}

fn from_add_subdirectory() {
    let folder = tempfile::tempdir().unwrap();
    let lists = with_subdirectory(folder.path());
    fs::write(folder.path().join("CMakeLists.txt"), lists).unwrap();
    tested(folder.path(), &[]).expect(0, &["100% tests passed"]);
}

/// Each mistake is an error of the configuration, with the line of the project.
fn wrong_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let lists = with_subdirectory(path);
    for (from, to, part) in [
        (
            "SHARED",
            "STATIC",
            "'my_plugin' is no shared library but STATIC_LIBRARY",
        ),
        (
            "SHARED",
            "OBJECT",
            "'my_plugin' is no shared library but OBJECT_LIBRARY",
        ),
        (
            "TARGET my_plugin SUITE",
            "TARGET my_pluging SUITE",
            "there is no target 'my_pluging'",
        ),
        ("TARGET my_plugin SUITE", "SUITE", "TARGET is missing"),
        ("SUITE smoke", "SUIT smoke", "unknown argument: SUIT"),
        ("SUITE smoke", "SUITE smoke CONFIG none.yaml", "none.yaml"),
        (
            "SUITE smoke",
            "SUITE smoke DEVICE gpu",
            "'gpu' is no device",
        ),
    ] {
        let ran = configure_text(path, &lists.replacen(from, to, 1));
        ran.expect(1, &[part, "CMakeLists.txt:"]);
    }
    let missing = finish(
        clean("cmake", path)
            .args(["-S", ".", "-B", "other", "-DCMAKE_PREFIX_PATH=/nowhere"])
            .args(["-DDnnAssay_EXECUTABLE=/nowhere/dnn-assay"]),
    );
    missing.expect(1, &["/nowhere/dnn-assay"]);
}

/// Labels choose tests, several suites give the strongest, and a plugin without its device is
/// skipped and not green.
fn labels_and_skips() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let lists = with_subdirectory(path).replace("LABELS plugin", "LABELS plugin DEVICE cuda");
    let lists = lists
        + "dnn_assay_add_plugin_test(TARGET my_plugin SUITE smoke full LABELS late)\n\
        dnn_assay_add_plugin_test(TARGET my_plugin NAME strict DEVICE cuda REQUIRE_DEVICE LABELS must)\n";
    fs::write(path.join("CMakeLists.txt"), lists).unwrap();
    if Path::new("/dev/nvidiactl").exists() {
        return;
    }
    tested(path, &["-L", "plugin"]).expect(0, &["Skipped", "dnn-assay.my_plugin.smoke"]);
    let build = path.join("build");
    let ctest = |arguments: &[&str]| finish(clean("ctest", &build).args(arguments));
    let all = ctest(&["-N", "-L", "full"]);
    all.expect(0, &["dnn-assay.my_plugin.smoke+full", "Total Tests: 1"]);
    ctest(&["-N", "-L", "quick"]).expect(0, &["Total Tests: 2"]);
    ctest(&["-R", "strict", "--output-on-failure"]).expect(8, &["no cuda device", "exit 5"]);
}
