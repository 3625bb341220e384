//! The prediction against the loader itself: what the walk says, a real `dlopen` does.

#![expect(clippy::unwrap_used, reason = "a test may unwrap")]

mod common;

use common::*;
use dnn_assay_elf::closure::{
    Bindings, DirectorySource, LoadEnvironment, LoaderCache, MemorySource, Place, walk,
};
use dnn_assay_elf::{NamedMemory, Policy, Setting, inspect, memory_kind_evidence};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

const HOST: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    if (dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL)) { puts("loaded"); return 0; }
    puts(dlerror());
    return 0;
}"#;

/// Opens a file in a host that needs what the harness's worker needs. `Err` has dlerror's text.
fn really_open(shop: &Workshop, plugin: &Path, library_path: &str) -> Result<(), String> {
    shop.write("host.c", HOST);
    shop.run("cc", "host.c -o host -Wl,--no-as-needed -lm -lgcc_s");
    let output = Command::new(shop.path("host"))
        .arg(plugin)
        .env("LD_LIBRARY_PATH", library_path)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    match text.trim_end() {
        "loaded" => Ok(()),
        other => Err(other.to_owned()),
    }
}

fn predict(plugin: &Path, library_path: &str) -> Result<(), String> {
    let setting = Setting {
        environment: &machine().with_library_path(library_path),
        source: &DirectorySource,
        policy: &Policy::default().ready().unwrap(),
        today: "2026-12-01".parse().unwrap(),
    };
    let bytes = Arc::new(std::fs::read(plugin).unwrap());
    let prediction = inspect(plugin, &bytes, &setting).unwrap().facts.prediction;
    assert_eq!(prediction.loads, prediction.loader_text.is_none());
    prediction.loader_text.map_or(Ok(()), Err)
}

/// Asserts that prediction and loader agree on the outcome, and on the text of a failure.
fn agree(shop: &Workshop, plugin: &Path, library_path: &str, loads: bool) {
    let real = really_open(shop, plugin, library_path);
    assert_eq!(real.is_ok(), loads, "the loader says {real:?}");
    assert_eq!(predict(plugin, library_path), real);
}

fn calling(names: &[&str]) -> String {
    let calls: String = names
        .iter()
        .map(|name| format!("int {name}(void); int use_{name}(void) {{ return {name}(); }}\n"))
        .collect();
    calls + &engine_source()
}

fn library(shop: &Workshop, path: &str, functions_in: &[&str], flags: &str) {
    let soname = Path::new(path).file_name().unwrap().to_str().unwrap();
    std::fs::create_dir_all(shop.path(path).parent().unwrap()).unwrap();
    shop.c_file(
        path,
        &functions(functions_in.iter().copied()),
        &format!("-Wl,-soname,{soname} {flags}"),
    );
}

#[test]
fn a_plain_plugin_loads() {
    let shop = Workshop::new();
    let plugin = shop.c_file("p.so", &engine_source(), "");
    agree(&shop, &plugin, "", true);
    let cxx = cxx_engine_source("#include <iostream>\nvoid say() { std::cout << 1; }");
    let plugin = shop.cxx_file("q.so", &cxx, "");
    agree(&shop, &plugin, "", true);
}

#[test]
fn a_missing_library_is_fatal_wherever_it_is_needed() {
    let shop = Workshop::new();
    library(&shop, "libdeep.so", &["deep"], "");
    library(
        &shop,
        "liba.so",
        &["a"],
        "-Wl,--no-as-needed -L. -l:libdeep.so -Wl,-rpath,$ORIGIN",
    );
    let flags = "-L. -l:liba.so -Wl,-rpath,$ORIGIN -Wl,-rpath-link,.";
    let plugin = shop.c_file("p.so", &calling(&["a"]), flags);
    agree(&shop, &plugin, "", true);
    std::fs::remove_file(shop.path("libdeep.so")).unwrap();
    agree(&shop, &plugin, "", false);
    std::fs::remove_file(shop.path("liba.so")).unwrap();
    agree(&shop, &plugin, "", false);
}

#[test]
fn an_undefined_symbol_is_fatal_unless_it_is_weak() {
    let shop = Workshop::new();
    let plugin = shop.c_file("p.so", &calling(&["nowhere"]), "");
    agree(&shop, &plugin, "", false);
    let weak = "__attribute__((weak)) void maybe(void); void *use(void) { return maybe; }";
    let plugin = shop.c_file("q.so", &format!("{weak}\n{}", engine_source()), "");
    agree(&shop, &plugin, "", true);
    // The same in a library below.
    shop.c_file("libu.so", &calling(&["missing"]), "-Wl,-soname,libu.so");
    let flags = "-Wl,--no-as-needed -L. -l:libu.so -Wl,-rpath,$ORIGIN";
    let plugin = shop.c_file("r.so", &engine_source(), flags);
    agree(&shop, &plugin, "", false);
}

#[test]
fn what_the_host_happens_to_have_satisfies_an_import() {
    let shop = Workshop::new();
    let source = "double cbrt(double); double use(double x) { return cbrt(x); }";
    let plugin = shop.c_file("p.so", source, "-fno-builtin");
    agree(&shop, &plugin, "", true);
    let closure = inspect_file(&plugin, &Policy::default());
    let finding = closure.of_rule("import/missing-needed").next().unwrap();
    assert!(finding.detail.contains("libm.so.6"), "{}", finding.detail);
}

fn plugin_with_chain(shop: &Workshop, plugin_tags: &str, a_flags: &str) -> PathBuf {
    library(shop, "in/libb.so", &["b"], "");
    library(
        shop,
        "in/liba.so",
        &["a"],
        &format!("-Wl,--no-as-needed -Lin -l:libb.so {a_flags}"),
    );
    let flags = format!("-Lin -l:liba.so -Wl,-rpath,$ORIGIN/in -Wl,-rpath-link,in {plugin_tags}");
    shop.c_file("p.so", &calling(&["a"]), &flags)
}

#[test]
fn rpath_is_inherited_and_runpath_is_not() {
    let shop = Workshop::new();
    let plugin = plugin_with_chain(&shop, "-Wl,--disable-new-dtags", "");
    agree(&shop, &plugin, "", true);
    let plugin = plugin_with_chain(&shop, "-Wl,--enable-new-dtags", "");
    agree(&shop, &plugin, "", false);
    // A library with a RUNPATH of its own does not look at the RPATH above it.
    let elsewhere = "-Wl,-rpath,/nowhere -Wl,--enable-new-dtags";
    let plugin = plugin_with_chain(&shop, "-Wl,--disable-new-dtags", elsewhere);
    agree(&shop, &plugin, "", false);
}

#[test]
fn the_library_path_comes_before_runpath_and_after_rpath() {
    let shop = Workshop::new();
    library(&shop, "new/libx.so", &["x", "fresh"], "");
    library(&shop, "old/libx.so", &["x"], "");
    let old = shop.path("old").display().to_string();
    let build = |tags: &str| {
        let flags = format!("-Lnew -l:libx.so -Wl,-rpath,$ORIGIN/new {tags}");
        shop.c_file("p.so", &calling(&["x", "fresh"]), &flags)
    };
    let plugin = build("-Wl,--enable-new-dtags");
    agree(&shop, &plugin, "", true);
    agree(&shop, &plugin, &old, false);
    let plugin = build("-Wl,--disable-new-dtags");
    agree(&shop, &plugin, &old, true);
    // Without any path of its own only the variable finds it.
    let plugin = shop.c_file("q.so", &calling(&["x"]), "-Lnew -l:libx.so");
    agree(&shop, &plugin, "", false);
    agree(&shop, &plugin, &old, true);
}

#[test]
fn a_library_for_another_machine_is_passed_over_and_a_broken_one_is_not() {
    let shop = Workshop::new();
    library(&shop, "two/libx.so", &["x"], "");
    let flags = "-Ltwo -l:libx.so -Wl,-rpath,$ORIGIN/one:$ORIGIN/two";
    let plugin = shop.c_file("p.so", &calling(&["x"]), flags);
    let mut foreign = shop.read("two/libx.so");
    foreign[18] = 21;
    shop.write("one/libx.so", foreign);
    agree(&shop, &plugin, "", true);
    shop.write("one/libx.so", "text");
    assert!(really_open(&shop, &plugin, "").is_err());
    assert!(predict(&plugin, "").unwrap_err().contains("one/libx.so"));
}

#[test]
fn a_name_that_is_already_loaded_is_not_searched_again() {
    let shop = Workshop::new();
    library(&shop, "hidden/libx.so", &["x"], "");
    library(
        &shop,
        "liby.so",
        &["y"],
        "-Wl,--no-as-needed -Lhidden -l:libx.so",
    );
    // The plugin finds libx by its RUNPATH; liby then gets it by SONAME though it has no path.
    let flags = "-L. -Lhidden -l:libx.so -l:liby.so -Wl,-rpath,$ORIGIN/hidden:$ORIGIN -Wl,--enable-new-dtags -Wl,-rpath-link,hidden";
    let plugin = shop.c_file("p.so", &calling(&["x", "y"]), flags);
    agree(&shop, &plugin, "", true);
    let flags = "-L. -l:liby.so -Wl,-rpath,$ORIGIN -Wl,--enable-new-dtags -Wl,-rpath-link,hidden";
    let plugin = shop.c_file("q.so", &calling(&["y"]), flags);
    agree(&shop, &plugin, "", false);
}

/// Builds libv.so with this version script; each function is in the first node that lists it.
fn versioned(shop: &Workshop, names: &[&str], script: &str) {
    shop.write("v.map", script);
    library(shop, "libv.so", names, "-Wl,--version-script=v.map");
}

#[test]
fn symbol_versions_bind_as_the_loader_binds_them() {
    let shop = Workshop::new();
    let flags = "-L. -l:libv.so -Wl,-rpath,$ORIGIN";
    versioned(
        &shop,
        &["f", "g"],
        "V1 { global: f; local: *; }; V2 { global: g; } V1;",
    );
    let with_versions = shop.c_file("p.so", &calling(&["f", "g"]), flags);
    agree(&shop, &with_versions, "", true);
    // An older library without V2.
    versioned(&shop, &["f", "g"], "V1 { global: f; g; local: *; };");
    agree(&shop, &with_versions, "", false);
    // The version is there, the symbol is in another one.
    versioned(
        &shop,
        &["f", "g", "h"],
        "V1 { global: f; g; local: *; }; V2 { global: h; } V1;",
    );
    agree(&shop, &with_versions, "", false);
    // A library that defines no versions and imports with them draws a warning and loads.
    let importing = format!(
        "{}\nint puts(const char *); int p(void) {{ return puts(\"\"); }}",
        functions(["f", "g"])
    );
    shop.c_file("libv.so", &importing, "-Wl,-soname,libv.so");
    agree(&shop, &with_versions, "", true);
    // One that knows no versions at all ends the process with an assertion of the loader.
    shop.c_file(
        "libv.so",
        &functions(["f", "g"]),
        "-Wl,-soname,libv.so -nostdlib",
    );
    assert!(really_open(&shop, &with_versions, "").is_err());
    assert!(predict(&with_versions, "").is_err());

    // And the other way round: a plugin without versions, a library with them.
    let without = shop.c_file("q.so", &calling(&["f", "g"]), flags);
    versioned(
        &shop,
        &["f", "g"],
        "V1 { global: f; local: *; }; V2 { global: g; } V1;",
    );
    agree(&shop, &without, "", true);
    agree(&shop, &with_versions, "", true);
}

#[test]
fn old_and_hidden_versions_bind_as_the_loader_binds_them() {
    let shop = Workshop::new();
    let flags = "-L. -l:libv.so -Wl,-rpath,$ORIGIN";
    library(&shop, "libv.so", &["f"], "");
    let plugin = shop.c_file("p.so", &calling(&["f"]), flags);
    let build = |directives: &str, nodes: &str| {
        shop.write("v.map", nodes);
        let source = format!(
            "{directives}\nint one(void) {{ return 1; }} int two(void) {{ return 2; }} int three(void) {{ return 3; }}"
        );
        shop.c_file(
            "libv.so",
            &source,
            "-Wl,-soname,libv.so -Wl,--version-script=v.map",
        );
    };
    let nodes = "V1 { global: f; local: *; }; V2 { global: f; } V1; V3 { global: f; } V2;";
    // Only an old version, hidden, but the first of the file: taken.
    build("__asm__(\".symver one,f@V1\");", nodes);
    agree(&shop, &plugin, "", true);
    // Only a hidden version that is not the first: not taken.
    build("__asm__(\".symver two,f@V2\");", nodes);
    agree(&shop, &plugin, "", false);
    // One that is not hidden among several: taken.
    build(
        "__asm__(\".symver two,f@V2\"); __asm__(\".symver three,f@@V3\");",
        nodes,
    );
    agree(&shop, &plugin, "", true);
}

#[test]
fn a_file_that_forbids_dlopen_is_refused() {
    let shop = Workshop::new();
    let plugin = shop.c_file("p.so", &engine_source(), "-Wl,-z,nodlopen");
    let real = really_open(&shop, &plugin, "").unwrap_err();
    let inspection = inspect_file(&plugin, &Policy::default());
    assert!(!inspection.facts.prediction.loads);
    assert!(real.contains("cannot be dlopen()ed"));
}

/// What the loader binds: `(symbol, object)` for one file, from its own debug output.
fn real_bindings(shop: &Workshop, plugin: &Path, of: &str) -> BTreeMap<String, String> {
    shop.write("host.c", HOST);
    shop.run("cc", "host.c -o host -Wl,--no-as-needed -lm -lgcc_s");
    let output = Command::new(shop.path("host"))
        .arg(plugin)
        .env("LD_DEBUG", "bindings")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines()
        .filter_map(|line| {
            let (_, rest) = line.split_once("binding file ")?;
            let (file, rest) = rest.split_once(" [0] to ")?;
            let (target, rest) = rest.split_once(" [0]: normal symbol `")?;
            let (symbol, _) = rest.split_once('\'')?;
            file.contains(of)
                .then(|| (symbol.to_owned(), target.to_owned()))
        })
        .collect()
}

/// A plugin that takes exceptions, strings, trees and mathematics from libraries, and leaves
/// instances of templates open to them.
fn cxx_plugin(shop: &Workshop) -> PathBuf {
    let source = "#include <map>\n#include <string>\n#include <stdexcept>\n#include <cmath>
        static std::map<std::string, double> table;
        double get(const char *name, double x) {
            if (!name) throw std::runtime_error(\"null\");
            return table[std::string(name) + name] = std::cbrt(x);
        }";
    shop.cxx_file(
        "p.so",
        &cxx_engine_source(source),
        "-fvisibility=hidden -O0",
    )
}

#[test]
fn every_import_binds_where_the_loader_binds_it() {
    let shop = Workshop::new();
    let plugin = cxx_plugin(&shop);
    let bytes = Arc::new(std::fs::read(&plugin).unwrap());
    let closure = walk(&plugin, &bytes, &machine(), &DirectorySource).unwrap();
    let real = real_bindings(&shop, &plugin, "p.so");
    let mut compared = 0;
    for import in Bindings::of(&closure).imports {
        let Some(target) = real.get(&import.symbol) else {
            assert!(import.weak, "{} is bound by nobody", import.symbol);
            continue;
        };
        let provider = import.provider.unwrap().object;
        let path = &closure.objects[provider].path;
        assert_eq!(
            path.canonicalize().unwrap(),
            Path::new(target).canonicalize().unwrap()
        );
        compared += 1;
    }
    assert!(compared > 10, "only {compared} imports were compared");
}

#[test]
fn what_a_library_takes_from_the_plugin_is_what_the_loader_gives_it() {
    let shop = Workshop::new();
    let plugin = cxx_plugin(&shop);
    let bytes = Arc::new(std::fs::read(&plugin).unwrap());
    let closure = walk(&plugin, &bytes, &machine(), &DirectorySource).unwrap();
    let captured = Bindings::of(&closure).captured;
    let mut predicted: Vec<_> = captured.into_iter().map(|c| c.symbol).collect();
    let mut real: Vec<_> = real_bindings(&shop, &plugin, "libstdc++")
        .into_iter()
        .filter(|(_, target)| target.ends_with("p.so"))
        .map(|(symbol, _)| symbol)
        .collect();
    predicted.sort();
    real.sort();
    assert!(!real.is_empty());
    assert_eq!(predicted, real);
}

#[test]
fn a_tree_in_memory_is_walked_like_a_real_one() {
    let shop = Workshop::new();
    library(&shop, "libamdhip64.so.6", &["hipMalloc"], "");
    library(
        &shop,
        "libmid.so.1",
        &["mid"],
        "-Wl,--no-as-needed -L. -l:libamdhip64.so.6",
    );
    let flags = "-L. -l:libmid.so.1 -Wl,-rpath-link,.";
    let plugin = shop.c_file("p.so", &calling(&["mid"]), flags);
    let source = MemorySource::new()
        .with(
            "/opt/rocm/lib/libamdhip64.so.6.2",
            shop.read("libamdhip64.so.6"),
        )
        .with_link(
            "/opt/rocm/lib/libamdhip64.so.6",
            "/opt/rocm/lib/libamdhip64.so.6.2",
        )
        .with("/usr/lib/libmid.so.1", shop.read("libmid.so.1"));
    let bytes = Arc::new(std::fs::read(plugin).unwrap());
    let path = Path::new("/plugins/p.so");
    let bare = LoadEnvironment::standard();
    let missing = walk(path, &bytes, &bare, &source).unwrap();
    assert_eq!(missing.missing[0].name, "libamdhip64.so.6");
    assert_eq!(
        missing.missing[0].needed_by,
        Path::new("/usr/lib/libmid.so.1")
    );

    let cache = LoaderCache::of([("libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so.6")]);
    let environment = bare.with_cache(cache);
    let closure = walk(path, &bytes, &environment, &source).unwrap();
    let places: Vec<_> = closure
        .dependencies()
        .map(|o| (o.display_name(), o.place))
        .collect();
    let expected = [
        ("libmid.so.1", Place::Default),
        ("libamdhip64.so.6", Place::Cache),
    ];
    assert_eq!(
        places,
        expected.map(|(name, place)| (name.to_owned(), place))
    );
    let last = closure.scope[2];
    assert_eq!(
        closure.chain_to(last),
        ["p.so", "libmid.so.1", "libamdhip64.so.6"]
    );

    let file = dnn_assay_elf::identify(&bytes).unwrap();
    let evidence = memory_kind_evidence(&file, |name| closure.needed_of(name));
    assert_eq!(evidence.kinds, [NamedMemory::Hip]);
    assert_eq!(evidence.reason, "it needs libmid.so.1 -> libamdhip64.so.6");
}
