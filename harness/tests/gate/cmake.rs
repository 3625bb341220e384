//! The CMake package on a small C++ project: configured, built, run by CTest.

use std::fs;
use std::path::Path;

use crate::support::{PROGRAM, Ran, clean, finish, has, repository, source, text_of};

fn skipped() -> bool {
    let absent = !has("cmake") || !has("ctest");
    if absent {
        println!("skipped: cmake is not here");
    }
    absent
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

#[test]
fn a_plugin_that_is_right_is_green_and_a_broken_kernel_is_red_until_it_is_waived() {
    if skipped() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    project(folder.path(), false, None);
    tested(folder.path(), &["-L", "plugin"])
        .expect(0, &["100% tests passed", "dnn-assay.my_plugin.smoke"]);
    project(folder.path(), true, None);
    tested(folder.path(), &[]).expect(8, &["first failure", "fail(numeric)", "pointwise.add"]);
    let waiver = |expires: &str| {
        format!(
            "schema: 1\nwaive: [{{filter: op=pointwise.add dtype=f32, expect: fail, reason: r, owner: o, link: l, expires: {expires}}}]\n"
        )
    };
    project(folder.path(), true, Some(&waiver("2999-12-31")));
    tested(folder.path(), &[]).expect(0, &["100% tests passed"]);
}

#[test]
fn add_subdirectory_works_too_and_a_static_library_is_no_plugin() {
    if skipped() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    project(folder.path(), false, None);
    let lists = fs::read_to_string(folder.path().join("CMakeLists.txt")).unwrap();
    let package = repository("ci/cmake");
    let lists = lists.replace(
        "find_package(DnnAssay REQUIRED)",
        &format!("add_subdirectory({} dnn-assay)", package.display()),
    );
    fs::write(folder.path().join("CMakeLists.txt"), &lists).unwrap();
    configure(folder.path()).expect(0, &[]);
    fs::write(
        folder.path().join("CMakeLists.txt"),
        lists.replace("SHARED", "STATIC"),
    )
    .unwrap();
    configure(folder.path()).expect(
        1,
        &[
            "'my_plugin' is no shared library but STATIC_LIBRARY",
            "CMakeLists.txt:",
        ],
    );
}
