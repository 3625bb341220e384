//! Files that are no plugin for this machine are named as what they are.

use dnn_assay::exit::Exit;
use rstest::rstest;

use crate::plugins::{scripted, with_helper, write};
use crate::support::run;

/// A DLL: `MZ`, then `PE` where offset 0x3c says.
fn dll() -> Vec<u8> {
    let mut bytes = vec![0; 256];
    bytes[..2].copy_from_slice(b"MZ");
    bytes[0x3c] = 0x80;
    bytes[0x80..0x84].copy_from_slice(b"PE\0\0");
    bytes[0x84..0x86].copy_from_slice(&0x8664_u16.to_le_bytes());
    // IMAGE_FILE_EXECUTABLE_IMAGE and IMAGE_FILE_DLL.
    bytes[0x96..0x98].copy_from_slice(&0x2002_u16.to_le_bytes());
    bytes
}

/// A Mach-O file of 64 bits.
fn mach_o() -> Vec<u8> {
    let mut bytes = 0xfeed_facf_u32.to_le_bytes().to_vec();
    bytes.resize(256, 0);
    bytes
}

#[rstest]
#[case("notes.so", b"# a script\necho\n".to_vec(), "text that begins")]
#[case("plugin.dll.so", dll(), "Windows DLL")]
#[case("plugin.dylib.so", mach_o(), "Mach-O")]
#[case("empty.so", Vec::new(), "empty")]
fn what_is_no_plugin_is_named(#[case] name: &str, #[case] bytes: Vec<u8>, #[case] text: &str) {
    let path = write(name, bytes);
    let ran = run(&["inspect", path.to_str().unwrap()]);
    ran.expect(Exit::Plugin, &[text, "not a plugin", "exit 3"]);
}

#[test]
fn a_truncated_plugin_and_an_object_file_are_named() {
    let bytes = std::fs::read(scripted()).unwrap();
    let cut = write("cut.so", &bytes[..bytes.len() / 3]);
    run(&["inspect", cut.to_str().unwrap()]).expect(Exit::Plugin, &["truncated"]);
    let source = write("object.c", "int f(void) { return 1; }");
    let object = crate::plugins::compile("cc", "object.so", &format!("-c {}", source.display()));
    run(&["inspect", object.to_str().unwrap()]).expect(Exit::Plugin, &["has not been linked"]);
}

#[test]
fn one_bad_file_does_not_hide_the_others() {
    let text = write("other.so", "text");
    let plugin = with_helper("beside", "helper_beside", 5);
    let files = [text.to_str().unwrap(), plugin.to_str().unwrap()];
    run(&["inspect", files[0], files[1]])
        .expect(Exit::Plugin, &["text that begins", "helper_beside"]);
}

#[test]
fn a_missing_file_is_wrong_usage() {
    run(&["inspect", "no-such.so"]).expect(Exit::Usage, &["no-such.so"]);
    run(&["inspect"]).expect(Exit::Usage, &["FILE"]);
}
