//! What a file is called when it is a plugin, and when it is not.

#![expect(clippy::unwrap_used, reason = "a test may unwrap")]

mod common;

use common::{Workshop, engine_source, functions};
use dnn_assay_abi::symbols::{HEURISTIC_PLUGIN, mandatory_symbols};
use dnn_assay_elf::{NamedMemory, PluginRole, SymbolKind, What, identify};
use rstest::rstest;

fn what(bytes: &[u8]) -> What {
    identify(bytes).unwrap_err().what
}

#[test]
fn a_complete_plugin_is_described() {
    let shop = Workshop::new();
    let flags = "-Wl,--no-as-needed -lm -Wl,-soname,libx.so.1 -Wl,--build-id=sha1 -Wl,-rpath,$ORIGIN/../lib:/opt/x";
    let file = identify(&shop.c(&engine_source(), flags)).unwrap();
    assert_eq!(file.role, PluginRole::Engine);
    assert_eq!(file.missing.count(), 0);
    assert_eq!(file.soname.as_deref(), Some("libx.so.1"));
    assert_eq!(file.needed, ["libm.so.6", "libc.so.6"]);
    assert_eq!(file.build_id.unwrap().len(), 40);
    assert_eq!(
        [file.runpath, file.rpath].concat(),
        ["$ORIGIN/../lib", "/opt/x"]
    );
    let create = file
        .exports
        .iter()
        .find(|export| export.name == "hipdnnEnginePluginCreate")
        .unwrap();
    assert_eq!(create.kind, SymbolKind::Function);
    assert!(create.size > 0);
}

#[test]
fn missing_symbols_are_named_in_the_hosts_order() {
    let shop = Workshop::new();
    let without = |gone: &[&str]| {
        let names = mandatory_symbols().map(|symbol| symbol.name);
        functions(names.filter(|name| !gone.contains(name)))
    };
    let gone = ["hipdnnEnginePluginExecuteOpGraph", "hipdnnPluginGetType"];
    let file = identify(&shop.c(&without(&gone), "")).unwrap();
    assert_eq!(file.missing.first(), Some("hipdnnPluginGetType"));
    assert_eq!(file.missing.count(), 2);
    let plain = identify(&shop.c("int answer(void) { return 42; }", "")).unwrap();
    assert_eq!(plain.role, PluginRole::None);
    assert_eq!(plain.missing.count(), 16);
    assert_eq!(plain.missing.first(), Some("hipdnnPluginGetName"));
}

#[test]
fn a_hidden_symbol_is_a_missing_symbol() {
    let shop = Workshop::new();
    let file = identify(&shop.c(&engine_source(), "-fvisibility=hidden")).unwrap();
    assert_eq!(file.missing.count(), 16);
}

#[test]
fn a_heuristic_plugin_is_named() {
    let shop = Workshop::new();
    let common = mandatory_symbols().map(|s| s.name).take(4);
    let source = functions(common.chain(HEURISTIC_PLUGIN.iter().copied()));
    let file = identify(&shop.c(&source, "")).unwrap();
    assert!(file.looks_heuristic());
    assert_eq!(file.missing.count(), 12);
}

#[rstest]
#[case::bare_text(
    r#"__attribute__((used, section(".note.dnn_assay"))) static const char note[] = "memory=hip,cuda";"#
)]
#[case::elf_note(
    r#"__asm__(".pushsection .note.dnn_assay,\"a\",@note\n .balign 4\n"
       " .long 10, 15, 1\n .asciz \"dnn-assay\"\n .balign 4\n .ascii \"memory=hip,cuda\"\n"
       " .balign 4\n .popsection");"#
)]
fn the_memory_note_is_read(#[case] note: &str) {
    let shop = Workshop::new();
    let file = identify(&shop.c(&format!("{note}\n{}", engine_source()), "")).unwrap();
    let kinds = file.memory_note.unwrap().kinds;
    assert_eq!(kinds, [NamedMemory::Hip, NamedMemory::Cuda]);
}

#[test]
fn device_code_is_seen() {
    let shop = Workshop::new();
    let code = r#"__attribute__((used, section(".hip_fatbin"))) static const char fat[] = "x";"#;
    let file = identify(&shop.c(&format!("{code}\n{}", engine_source()), "")).unwrap();
    assert!(file.has_hip_fatbin);
    assert!(!file.has_cuda_fatbin);
    let without = identify(&shop.c(&engine_source(), "")).unwrap();
    assert!(!without.has_hip_fatbin);
}

#[test]
fn a_file_cut_at_any_64_byte_step_is_truncated() {
    let shop = Workshop::new();
    let bytes = shop.c(&engine_source(), "");
    assert_eq!(what(&[]), What::Empty);
    for end in (64..bytes.len()).step_by(64).chain([1, 2, 3, 4, 5, 16, 63]) {
        let error = identify(&bytes[..end]).unwrap_err();
        let What::Truncated { present, announced } = error.what else {
            panic!("cut at {end}: {error}");
        };
        assert_eq!(present, end as u64);
        assert!(announced > present);
    }
}

#[test]
fn a_cut_file_without_section_headers_is_truncated_too() {
    let shop = Workshop::new();
    let mut bytes = shop.c(&engine_source(), "-s");
    // No section headers: offset, count and name index are zero.
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    let file = identify(&bytes).unwrap();
    assert_eq!(file.missing.count(), 0);
    let last = bytes.iter().rposition(|&b| b != 0).unwrap();
    let half = last / 2;
    assert!(matches!(what(&bytes[..half]), What::Truncated { .. }));
}

#[test]
fn other_elf_files_are_named() {
    let shop = Workshop::new();
    let library = shop.c(&engine_source(), "");
    let patched = |offset: usize, bytes: &[u8]| {
        let mut copy = library.clone();
        copy[offset..offset + bytes.len()].copy_from_slice(bytes);
        what(&copy)
    };
    assert_eq!(patched(4, &[1]), What::Elf32);
    assert_eq!(patched(5, &[2]), What::BigEndian);
    assert!(matches!(patched(4, &[9]), What::Malformed(_)));
    let machine = if cfg!(target_arch = "aarch64") {
        62
    } else {
        183
    };
    let name = if cfg!(target_arch = "aarch64") {
        "x86-64"
    } else {
        "AArch64"
    };
    assert_eq!(patched(18, &[machine, 0]), What::WrongMachine(name.into()));
    let What::WrongMachine(gpu) = patched(18, &[224, 0]) else {
        panic!("a code object is another machine's")
    };
    assert!(gpu.contains("code object"));
    assert_eq!(patched(16, &[4, 0]), What::CoreDump);
    assert_eq!(patched(16, &[77, 0]), What::UnknownElfType(77));
    shop.run("objcopy", "--only-keep-debug out.so out.debug");
    assert_eq!(what(&shop.read("out.debug")), What::DebugOnly);
}

#[test]
fn programs_objects_and_archives_are_named() {
    let shop = Workshop::new();
    shop.write("main.c", "int main(void) { return 0; }");
    shop.run("cc", "main.c -o pie -pie -fPIE");
    shop.run("cc", "main.c -o fixed -no-pie");
    shop.run("cc", "-c main.c -o main.o");
    shop.run("ar", "rc libmain.a main.o");
    shop.run("ar", "rcT libthin.a main.o");
    assert_eq!(what(&shop.read("pie")), What::Executable);
    assert_eq!(what(&shop.read("fixed")), What::Executable);
    assert_eq!(what(&shop.read("main.o")), What::Object);
    assert_eq!(
        what(&shop.read("libmain.a")),
        What::StaticArchive { thin: false }
    );
    assert_eq!(
        what(&shop.read("libthin.a")),
        What::StaticArchive { thin: true }
    );
}

/// The first 0x60 bytes of a PE file whose header lies at 0x40.
fn windows(characteristics: u16) -> Vec<u8> {
    let mut bytes = vec![0; 0x60];
    bytes[..2].copy_from_slice(b"MZ");
    bytes[0x3c] = 0x40;
    bytes[0x40..0x44].copy_from_slice(b"PE\0\0");
    bytes[0x56..0x58].copy_from_slice(&characteristics.to_le_bytes());
    bytes
}

#[rstest]
#[case(b"# my plugin\nnotes", What::Text("# my plugin".into()))]
#[case(b"#!/bin/sh\nexit 0\n", What::Script("#!/bin/sh".into()))]
#[case(b"/* GNU ld script */\nINPUT(libx.so.1)\n", What::LinkerScript)]
#[case(b"version https://git-lfs.github.com/spec/v1\n", What::GitLfsPointer)]
#[case(&windows(0x2022), What::Windows { library: true })]
#[case(&windows(0x0022), What::Windows { library: false })]
#[case(b"MZ", What::Windows { library: true })]
#[case(b"\xcf\xfa\xed\xfe\x07\0\0\x01", What::MachO)]
#[case(b"\xca\xfe\xba\xbe\0\0\0\x02", What::MachO)]
#[case(b"BC\xc0\xde1234", What::Bitcode)]
#[case(b"\0asm\x01\0\0\0", What::WebAssembly)]
#[case(b"\x1f\x8b\x08\0", What::Compressed("gzip"))]
#[case(b"\x01\x02\xff", What::Unknown("0102ff".into()))]
fn foreign_files_are_named(#[case] bytes: &[u8], #[case] expected: What) {
    assert_eq!(what(bytes), expected);
}

#[test]
fn the_message_says_what_it_is_and_what_was_expected() {
    let text = identify(b"hello\n").unwrap_err().to_string();
    assert!(text.contains("`hello`"), "{text}");
    assert!(
        text.contains("64-bit little-endian ELF shared object"),
        "{text}"
    );
}
