//! Every rule has a file that breaks it and one that does not.

#![expect(clippy::unwrap_used, reason = "a test may unwrap")]

mod common;

use common::*;
use dnn_assay_abi::symbols::{HEURISTIC_PLUGIN, mandatory_symbols};
use dnn_assay_elf::policy::{Exception, Level};
use dnn_assay_elf::{Inspection, Policy, RuleState, rules};
use std::path::PathBuf;

/// A rule with a builder of a file that breaks it and of one that does not.
struct Sample {
    rule: &'static str,
    policy: fn() -> Policy,
    bad: fn(&Workshop) -> PathBuf,
    good: fn(&Workshop) -> PathBuf,
}

fn hits(inspection: &Inspection, rule: &str) -> usize {
    inspection.outcome(rule).unwrap().counting()
}

fn verify(sample: &Sample) {
    let shop = Workshop::new();
    let policy = (sample.policy)();
    let bad = inspect_file(&(sample.bad)(&shop), &policy);
    assert!(hits(&bad, sample.rule) > 0, "{} is not found", sample.rule);
    let finding = bad.of_rule(sample.rule).next().unwrap();
    assert!(!finding.detail.is_empty());
    assert!(!finding.command.contains('{'), "{}", finding.command);
    let good = inspect_file(&(sample.good)(&shop), &policy);
    let found: Vec<_> = good.of_rule(sample.rule).collect();
    assert_eq!(hits(&good, sample.rule), 0, "{found:#?}");
}

macro_rules! samples {
    ($($name:ident: $rule:literal, $policy:expr, $bad:expr, $good:expr;)*) => {
        const SAMPLES: &[Sample] = &[
            $(Sample { rule: $rule, policy: $policy, bad: $bad, good: $good }),*
        ];
        mod each {
            use super::*;
            $(#[test] fn $name() {
                verify(SAMPLES.iter().find(|sample| sample.rule == $rule).unwrap());
            })*
        }
    };
}

fn plain(shop: &Workshop) -> PathBuf {
    shop.c_file(
        "good.so",
        &engine_source(),
        "-Wl,-soname,good.so -Wl,--build-id=sha1",
    )
}

fn engine_with(shop: &Workshop, own: &str, flags: &str) -> PathBuf {
    shop.c_file("bad.so", &format!("{own}\n{}", engine_source()), flags)
}

fn also(shop: &Workshop, own: &str, flags: &str) -> PathBuf {
    shop.c_file("good.so", &format!("{own}\n{}", engine_source()), flags)
}

fn without(name: &str) -> String {
    functions(mandatory_symbols().map(|s| s.name).filter(|n| *n != name))
}

const NAME: &str = "hipdnnPluginGetName";

const IFUNC: &str = "static int one(void) { return 1; }
static void *pick(void) { return (void *)one; }";

const SELF_CALL: &str = "int hipdnnPluginGetName(void);
int hipdnnPluginGetApiVersion(void) { return hipdnnPluginGetName(); }";

const STRINGS: &str = "#include <map>
#include <string>
static std::map<std::string, std::string> table;
__attribute__((noinline)) static void fill(const char *t) { table[t] = std::string(t) + t; }
struct Start { Start() { fill(\"a\"); } } start;";

const TEMPLATE: &str = "template <class T> struct Counter { static int value; };
template <class T> int Counter<T>::value = 1;
int *touch() { return &Counter<int>::value; }";

fn hip(visibility: &str) -> String {
    format!(
        "__attribute__((used, section(\".hip_fatbin\"))) static const char fat[] = \"x\";
         __attribute__((visibility(\"{visibility}\"))) char __hip_cuid_1234;
         static void stub(void) {{}}
         __attribute__((visibility(\"{visibility}\"))) void *const _Z6kernelPf = stub;"
    )
}

/// A library beside the plugin, under the file name and SONAME given.
fn library(shop: &Workshop, name: &str, source: &str, flags: &str) {
    shop.c_file(name, source, &format!("-Wl,-soname,{name} {flags}"));
}

/// Flags that need a library of the folder and find it there.
fn beside(names: &[&str]) -> String {
    let names: String = names.iter().map(|name| format!(" -l:{name}")).collect();
    format!("-L. -Wl,--no-as-needed{names} -Wl,-rpath,$ORIGIN -Wl,--enable-new-dtags")
}

fn two_versions(shop: &Workshop, both: bool) -> PathBuf {
    let script = |later: &str| format!("V_1.0 {{ global: old; local: *; }};\n{later}");
    let map = "-Wl,--version-script=lib.map";
    shop.write("lib.map", script("V_2.0 { global: fresh; } V_1.0;"));
    library(shop, "libv.so.1", &functions(["old", "fresh"]), map);
    let own = "int fresh(void); int use(void) { return fresh(); }";
    let plugin = shop.c_file(
        "v.so",
        &format!("{own}\n{}", engine_source()),
        &beside(&["libv.so.1"]),
    );
    if !both {
        shop.write("lib.map", script(""));
        library(shop, "libv.so.1", &functions(["old"]), map);
    }
    plugin
}

fn needing(shop: &Workshop, plugin: &str, names: &[&str]) -> PathBuf {
    for name in names {
        library(shop, name, "int helper_of_library;", "");
    }
    shop.c_file(plugin, &engine_source(), &beside(names))
}

fn patched(shop: &Workshop, flags: &str, own: &str, patch: impl Fn(&mut Vec<u8>)) -> PathBuf {
    let mut bytes = shop.c(&format!("{own}\n{}", engine_source()), flags);
    patch(&mut bytes);
    shop.write("bad.so", bytes)
}

fn bundle(targets: &[&str]) -> Vec<u8> {
    let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bytes.extend((targets.len() as u64).to_le_bytes());
    let ids: Vec<String> = targets
        .iter()
        .map(|target| format!("hipv4-amdgcn-amd-amdhsa--{target}"))
        .collect();
    let head: usize = 32 + ids.iter().map(|id| 24 + id.len()).sum::<usize>();
    for id in &ids {
        for word in [head as u64, 4, id.len() as u64] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(id.bytes());
    }
    bytes.extend(b"code");
    bytes
}

fn device(shop: &Workshop, name: &str, content: &[u8]) -> PathBuf {
    shop.write("fatbin", content);
    let own = "__asm__(\".pushsection .hip_fatbin,\\\"a\\\"\\n .balign 4096\\n .incbin \\\"fatbin\\\"\\n .popsection\");";
    shop.c_file(name, &format!("{own}\n{}", engine_source()), "")
}

fn gfx942() -> Policy {
    Policy {
        arch: Some("gfx942".into()),
        ..Policy::default()
    }
}

fn expecting_helper() -> Policy {
    let mut policy = Policy::default();
    policy.exports.expect = vec!["helper".into()];
    policy
}

fn excepting(rule: &str, expires: &str) -> Policy {
    Policy {
        exceptions: vec![Exception {
            rule: rule.into(),
            subject: None,
            reason: "known".into(),
            expires: Some(expires.into()),
        }],
        ..Policy::default()
    }
}

fn ceiling() -> Policy {
    Policy {
        max_versions: [("GLIBC".to_owned(), "2.17".to_owned())].into(),
        ..Policy::default()
    }
}

samples! {
    entry_missing: "abi/entry-missing", Policy::default,
        |s| s.c_file("bad.so", &without(NAME), ""), plain;
    entry_kind: "abi/entry-kind", Policy::default,
        |s| s.c_file("bad.so", &format!("int {NAME} = 1;\n{}", without(NAME)), ""), plain;
    entry_ifunc: "abi/entry-ifunc", Policy::default,
        |s| s.c_file("bad.so", &format!(
            "{IFUNC}\nint {NAME}(void) __attribute__((ifunc(\"pick\")));\n{}", without(NAME)), ""),
        plain;
    entry_weak: "abi/entry-weak", Policy::default,
        |s| s.c_file("bad.so", &format!(
            "__attribute__((weak)) int {NAME}(void) {{ return 0; }}\n{}", without(NAME)), ""),
        plain;
    optional_group: "abi/optional-group", Policy::default,
        |s| engine_with(s, &functions(["hipdnnEnginePluginDestroySerializedExecutionContext"]), ""),
        |s| s.c_file("good.so", &complete_engine_source(), "");
    heuristic: "abi/heuristic", Policy::default,
        |s| s.c_file("bad.so", &functions(HEURISTIC_PLUGIN.iter().copied()), ""), plain;
    soname_mismatch: "abi/soname-mismatch", Policy::default,
        |s| engine_with(s, "", "-Wl,-soname,libother.so"), plain;
    no_soname: "abi/no-soname", Policy::default, |s| engine_with(s, "", ""), plain;
    build_id: "abi/build-id", Policy::default,
        |s| engine_with(s, "", "-Wl,--build-id=none"), plain;

    unlisted: "export/unlisted", Policy::default,
        |s| engine_with(s, "int helper(void) { return 1; }", ""),
        |s| also(s, "__attribute__((visibility(\"hidden\"))) int helper(void) { return 1; }", "");
    expected: "export/expected", expecting_helper,
        plain, |s| also(s, "int helper(void) { return 1; }", "");
    std_leak: "export/std", Policy::default,
        |s| s.cxx_file("bad.so", &cxx_engine_source(STRINGS), "-fvisibility=hidden -fvisibility-inlines-hidden"),
        |s| s.cxx_file("good.so", &cxx_engine_source(STRINGS), &s.version_script());
    allocator: "export/allocator", Policy::default,
        |s| s.cxx_file("bad.so", &cxx_engine_source(
            "#include <cstdlib>\nvoid *operator new(std::size_t n) { return std::malloc(n); }"), ""),
        plain;
    unwinder: "export/unwinder", Policy::default,
        |s| engine_with(s, "void _Unwind_Resume(void *e) { (void)e; for (;;) {} }", ""), plain;
    third_party: "export/third-party", Policy::default,
        |s| s.cxx_file("bad.so", &cxx_engine_source("namespace fmt { int print() { return 1; } }"), ""),
        |s| s.cxx_file("good.so", &cxx_engine_source("namespace fmt { int print() { return 1; } }"), &s.version_script());
    unique: "export/unique", Policy::default,
        |s| s.cxx_file("bad.so", &cxx_engine_source(TEMPLATE), ""),
        |s| s.cxx_file("good.so", &cxx_engine_source(TEMPLATE), &s.version_script());
    hip_generated: "export/hip-generated", Policy::default,
        |s| engine_with(s, &hip("default"), ""), |s| also(s, &hip("hidden"), "");
    ifunc: "export/ifunc", Policy::default,
        |s| engine_with(s, &format!("{IFUNC}\nint helper(void) __attribute__((ifunc(\"pick\")));"), ""),
        |s| also(s, "int helper(void) { return 1; }", "");
    data_writable: "export/data-writable", Policy::default,
        |s| engine_with(s, "int counter = 3;", ""), |s| also(s, "const int table = 3;", "");
    common: "export/common", Policy::default,
        |s| patched(s, "", "int block = 3;", |bytes| patch_symbol(bytes, "block", 5)),
        |s| also(s, "int block = 3;", "");
    tls: "export/tls", Policy::default,
        |s| engine_with(s, "__thread int mine;", ""), |s| also(s, "int mine;", "");
    interposable: "export/interposable", Policy::default,
        |s| engine_with(s, SELF_CALL, "-O0"), |s| also(s, SELF_CALL, "-O0 -Wl,-Bsymbolic");
    host_collision: "export/host-collision", Policy::default,
        |s| engine_with(s, "double sin(double x) { return x; }", "-fno-builtin"),
        |s| also(s, "double sinus(double x) { return x; }", "");
    captured: "export/captured", Policy::default,
        |s| s.cxx_file("bad.so", &cxx_engine_source(STRINGS), "-fvisibility=hidden"),
        |s| s.cxx_file("good.so", &cxx_engine_source(STRINGS), &s.version_script());

    missing_library: "import/missing-library", Policy::default,
        |s| { let p = needing(s, "bad.so", &["libgone.so.1"]); std::fs::remove_file(s.path("libgone.so.1")).unwrap(); p },
        |s| needing(s, "good.so", &["libthere.so.1"]);
    missing_version: "import/missing-version", Policy::default,
        |s| two_versions(s, false), |s| two_versions(s, true);
    unresolved: "import/unresolved", Policy::default,
        |s| engine_with(s, "int nowhere(void); int use(void) { return nowhere(); }", ""), plain;
    missing_needed: "import/missing-needed", Policy::default,
        |s| engine_with(s, "double cbrt(double); double use(double x) { return cbrt(x); }", "-fno-builtin"),
        |s| also(s, "double cbrt(double); double use(double x) { return cbrt(x); }", "-fno-builtin -lm");
    weak_undefined: "import/weak-undefined", Policy::default,
        |s| engine_with(s, "__attribute__((weak)) void maybe(void); void use(void) { if (maybe) maybe(); }", ""),
        |s| also(s, "static void maybe(void) {} void use(void) { maybe(); }", "-nostartfiles");
    unused_needed: "import/unused-needed", Policy::default,
        |s| engine_with(s, "", "-Wl,--no-as-needed -lm"),
        |s| also(s, "double cbrt(double); double use(double x) { return cbrt(x); }", "-fno-builtin -Wl,--as-needed -lm");
    forbidden: "import/forbidden", Policy::default,
        |s| needing(s, "bad.so", &["libpython3.11.so.1.0"]), plain;
    max_version: "import/max-version", ceiling,
        |s| engine_with(s, "int pthread_create(void *, void *, void *, void *); int use(void) { return pthread_create(0, 0, 0, 0); }", ""),
        |s| also(s, "int puts(const char *); int use(void) { return puts(\"\"); }", "");
    dual_runtime: "import/dual-runtime", Policy::default,
        |s| needing(s, "bad.so", &["libamdhip64.so.5", "libamdhip64.so.6"]),
        |s| needing(s, "good.so", &["libamdhip64.so.6"]);

    refused: "load/refused", Policy::default, |s| engine_with(s, "", "-Wl,-z,nodlopen"), plain;
    textrel: "load/textrel", Policy::default,
        |s| engine_with(s, "__asm__(\".text\\n .quad hipdnnPluginGetName\\n\");", "-Wl,-z,notext"), plain;
    execstack: "load/execstack", Policy::default,
        |s| engine_with(s, "", "-Wl,-z,execstack"), plain;
    wx_segment: "load/wx-segment", Policy::default,
        |s| engine_with(s, "__asm__(\".pushsection .both,\\\"awx\\\",@progbits\\n .quad 1\\n .popsection\");", ""),
        plain;
    preinit: "load/preinit", Policy::default,
        |s| patched(s, "", "", |bytes| patch_dynamic(bytes, 25, 32, |value| value)), plain;
    static_tls: "load/static-tls", Policy::default,
        |s| engine_with(s, "static __thread int mine; int *use(void) { return &mine; }", "-ftls-model=initial-exec"),
        |s| also(s, "static __thread int mine; int *use(void) { return &mine; }", "");
    nodelete: "load/nodelete", Policy::default, |s| engine_with(s, "", "-Wl,-z,nodelete"), plain;
    relro: "load/relro", Policy::default, |s| engine_with(s, "", "-Wl,-z,norelro"), plain;
    no_gnu_hash: "load/no-gnu-hash", Policy::default,
        |s| engine_with(s, "", "-Wl,--hash-style=sysv"), |s| also(s, "", "-Wl,--hash-style=gnu");
    bindnow: "load/bindnow", Policy::default,
        |s| engine_with(s, "", "-Wl,-z,lazy"), |s| also(s, "", "-Wl,-z,now");
    symbolic: "load/symbolic", Policy::default, |s| engine_with(s, "", "-Wl,-Bsymbolic"), plain;
    constructors: "load/constructors", Policy::default,
        |s| engine_with(s, "static int ready; __attribute__((constructor)) static void early(void) { ready = 1; }", ""), plain;
    debug_sections: "load/debug-sections", Policy::default, |s| engine_with(s, "", "-g"), plain;
    rpath_absolute: "load/rpath-absolute", Policy::default,
        |s| engine_with(s, "", "-Wl,-rpath,/opt/lib"), |s| also(s, "", "-Wl,-rpath,$ORIGIN/../lib");
    rpath_relative: "load/rpath-relative", Policy::default,
        |s| engine_with(s, "", "-Wl,-rpath,$ORIGIN::lib"), |s| also(s, "", "-Wl,-rpath,$ORIGIN/lib");
    rpath_writable: "load/rpath-writable", Policy::default,
        |s| engine_with(s, "", "-Wl,-rpath,/tmp/lib"), |s| also(s, "", "-Wl,-rpath,/usr/lib");
    rpath_deprecated: "load/rpath-deprecated", Policy::default,
        |s| engine_with(s, "", "-Wl,-rpath,$ORIGIN -Wl,--disable-new-dtags"),
        |s| also(s, "", "-Wl,-rpath,$ORIGIN -Wl,--enable-new-dtags");

    arch_missing: "device/arch-missing", gfx942,
        |s| device(s, "bad.so", &bundle(&["gfx90a", "gfx942:oops"])),
        |s| device(s, "good.so", &bundle(&["gfx90a", "gfx9-4-generic"]));
    arch_features: "device/arch-features", gfx942,
        |s| device(s, "bad.so", &bundle(&["gfx942:sramecc+:xnack-"])),
        |s| device(s, "good.so", &bundle(&["gfx942:xnack-", "gfx942"]));
    bundle_damage: "device/bundle", Policy::default,
        |s| device(s, "bad.so", &bundle(&["gfx942"])[..60]),
        |s| device(s, "good.so", &bundle(&["gfx942"]));
    targets: "device/targets", Policy::default,
        |s| device(s, "bad.so", &bundle(&["gfx942"])), plain;

    forgiven: "elf/forgiven", Policy::default,
        |s| patched(s, "-Wl,--no-as-needed -lm", "double cbrt(double); double use(double x) { return cbrt(x); }",
            |bytes| patch_dynamic(bytes, 0x6fff_ffff, 0x6fff_ffff, |count| count + 7)),
        plain;
    symbol_count: "elf/symbol-count", Policy::default,
        |s| patched(s, "", "", |bytes| patch_dynsym_size(bytes)), plain;

    expired: "policy/expired-exception", || excepting("abi/entry-missing", "2026-11-30"),
        |s| s.c_file("bad.so", &without(NAME), ""), plain;
    unused: "policy/unused-exception", || excepting("abi/entry-missing", "2030-01-01"),
        plain, |s| s.c_file("bad.so", &without(NAME), "");
}

/// Gives a dynamic symbol another type.
fn patch_symbol(bytes: &mut [u8], name: &str, kind: u8) {
    let elf = goblin::elf::Elf::parse(bytes).unwrap();
    let named = |s: &goblin::elf::Sym| elf.dynstrtab.get_at(s.st_name) == Some(name);
    let index = elf.dynsyms.iter().position(|s| named(&s)).unwrap();
    let at = elf.dynsyms.offset() + index * 24 + 4;
    bytes[at] = bytes[at] & 0xf0 | kind;
}

/// Makes the section header of the dynamic symbol table one symbol shorter.
fn patch_dynsym_size(bytes: &mut [u8]) {
    let elf = goblin::elf::Elf::parse(bytes).unwrap();
    let is_dynsym = |s: &goblin::elf::SectionHeader| s.sh_type == 11;
    let index = elf.section_headers.iter().position(is_dynsym).unwrap();
    let at = elf.header.e_shoff as usize + index * 64 + 32;
    let size = elf.section_headers[index].sh_size - 24;
    bytes[at..at + 8].copy_from_slice(&size.to_le_bytes());
}

#[test]
fn every_rule_has_its_samples() {
    let mut without: Vec<_> = rules::all().map(|rule| rule.id).collect();
    without.retain(|id| !SAMPLES.iter().any(|sample| sample.rule == *id));
    assert!(without.is_empty(), "{without:?}");
}

/// A file with a heuristic plugin's functions and none of an engine's is held to its own.
#[test]
fn a_heuristic_plugin_has_its_own_entry_points() {
    let shop = Workshop::new();
    let common = mandatory_symbols().map(|symbol| symbol.name);
    let common = common.filter(|name| name.starts_with("hipdnnPlugin"));
    let all: Vec<_> = common.chain(HEURISTIC_PLUGIN.iter().copied()).collect();
    let without = |missing: &str| {
        let names = all.iter().copied().filter(|name| *name != missing);
        let file = shop.c_file("heuristic.so", &functions(names), "");
        let inspection = inspect_file(&file, &Policy::default());
        assert_eq!(hits(&inspection, "abi/heuristic"), 1);
        let missing = inspection.of_rule("abi/entry-missing");
        let names = missing.map(|finding| finding.subject.clone().unwrap().name);
        names.collect::<Vec<_>>()
    };
    assert!(without("").is_empty());
    assert!(without("hipdnnHeuristicPluginGetPolicyName").is_empty());
    let finalize = "hipdnnHeuristicPolicyFinalize";
    assert_eq!(without(finalize), [finalize]);
}

#[test]
fn what_hip_generates_is_information_and_nothing_else() {
    let shop = Workshop::new();
    let flags = "-Wl,-soname,bad.so -Wl,--build-id=sha1";
    let inspection = inspect_file(
        &engine_with(&shop, &hip("default"), flags),
        &Policy::default(),
    );
    let found: Vec<_> = inspection
        .outcomes
        .iter()
        .filter(|o| o.counting() > 0 && o.severity > dnn_assay_elf::Severity::Info)
        .map(|o| o.rule)
        .collect();
    assert!(found.is_empty(), "{found:?}");
    assert_eq!(hits(&inspection, "export/hip-generated"), 2);
}

#[test]
fn plugins_as_they_should_be_have_no_finding() {
    let shop = Workshop::new();
    let script = shop.version_script();
    let files = [
        plain(&shop),
        shop.c_file("example.so", &engine_source(), ""),
        shop.c_file(
            "complete.so",
            &complete_engine_source(),
            "-Wl,-soname,complete.so",
        ),
        shop.cxx_file("script.so", &cxx_engine_source(STRINGS), &script),
        shop.cxx_file("unique.so", &cxx_engine_source(TEMPLATE), &script),
    ];
    for file in files {
        let inspection = inspect_file(&file, &Policy::default());
        let found: Vec<_> = inspection
            .findings
            .iter()
            .filter(|f| f.severity > dnn_assay_elf::Severity::Info)
            .collect();
        assert!(found.is_empty(), "{}: {found:#?}", file.display());
        assert!(inspection.facts.prediction.loads);
    }
}

#[test]
fn an_absent_stack_note_is_an_executable_stack() {
    let shop = Workshop::new();
    let path = patched(&shop, "", "", |bytes| {
        let elf = goblin::elf::Elf::parse(bytes).unwrap();
        let stack = |p: &goblin::elf::ProgramHeader| p.p_type == 0x6474_e551;
        let index = elf.program_headers.iter().position(stack).unwrap();
        let at = elf.header.e_phoff as usize + index * 56;
        bytes[at..at + 4].copy_from_slice(&0_u32.to_le_bytes());
    });
    let inspection = inspect_file(&path, &Policy::default());
    let finding = inspection.of_rule("load/execstack").next().unwrap();
    assert!(finding.detail.contains("no PT_GNU_STACK"));
}

#[test]
fn the_policy_sets_severities_waives_and_limits() {
    let shop = Workshop::new();
    let helpers: Vec<String> = (0..30).map(|i| format!("helper_{i}")).collect();
    let own = functions(helpers.iter().map(String::as_str));
    let path = engine_with(&shop, &own, "");
    let rule = "export/unlisted";
    let default = inspect_file(&path, &Policy::default());
    assert_eq!(hits(&default, rule), 30);

    let mut policy = excepting(rule, "2030-01-01");
    policy.exceptions[0].subject = Some("helper_1*".into());
    policy.listed_per_rule = 5;
    let waived = inspect_file(&path, &policy);
    let outcome = waived.outcome(rule).unwrap();
    let expected = RuleState::Checked {
        found: 30,
        waived: 11,
        listed: 10,
    };
    assert_eq!(outcome.state, expected);
    assert_eq!(
        waived.of_rule(rule).filter(|f| f.waiver.is_some()).count(),
        5
    );

    policy.severities = [(rule.to_owned(), Level::Off)].into();
    assert_eq!(
        inspect_file(&path, &policy).outcome(rule).unwrap().state,
        RuleState::Off
    );

    let mut allowing = Policy::default();
    allowing.exports.allow = vec!["helper_*".into()];
    assert_eq!(hits(&inspect_file(&path, &allowing), rule), 0);
}

#[test]
fn readable_names_match_too_and_are_shown() {
    let shop = Workshop::new();
    let path = shop.cxx_file(
        "bad.so",
        &cxx_engine_source("namespace my { int f(int) { return 1; } }"),
        "",
    );
    let found = inspect_file(&path, &Policy::default());
    let subject = found
        .of_rule("export/unlisted")
        .next()
        .unwrap()
        .subject
        .clone()
        .unwrap();
    assert_eq!(subject.name, "_ZN2my1fEi");
    assert_eq!(subject.demangled.as_deref(), Some("my::f(int)"));
    let mut allowing = Policy::default();
    allowing.exports.allow = vec!["my::f(int)".into()];
    assert_eq!(hits(&inspect_file(&path, &allowing), "export/unlisted"), 0);
}

#[test]
fn an_inspection_and_a_policy_go_through_serde() {
    let shop = Workshop::new();
    let inspection = inspect_file(&plain(&shop), &Policy::default());
    let json = serde_json::to_value(&inspection).unwrap();
    assert_eq!(json["facts"]["prediction"]["loads"], true);
    assert_eq!(json["outcomes"][0]["state"], "checked");
    let policy = excepting("load/relro", "2030-01-01");
    let text = serde_json::to_string(&policy).unwrap();
    assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), policy);
    assert!(serde_json::from_str::<Policy>(r#"{"exprots": {}}"#).is_err());
}

#[test]
fn a_wrong_policy_names_everything_that_is_wrong() {
    let mut policy = excepting("load/relr", "tomorrow");
    policy.max_versions = [("GLIBC".to_owned(), "new".to_owned())].into();
    policy.arch = Some("mi300".into());
    policy.exports.allow = vec!["[*".into()];
    let errors = policy.ready().unwrap_err();
    let text: Vec<_> = errors.iter().map(ToString::to_string).collect();
    let text = text.join("\n");
    for part in ["load/relro", "tomorrow", "GLIBC", "mi300", "[*"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
