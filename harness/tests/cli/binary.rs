//! The program itself: it must not satisfy a plugin's missing dependency by luck.

use crate::support::PROGRAM;

#[test]
fn the_program_needs_four_libraries_and_exports_nothing() {
    let bytes = std::fs::read(PROGRAM).unwrap();
    let elf = dnn_assay_elf::ElfView::parse(&bytes).unwrap();
    let allowed = [
        "libc.so.6",
        "libm.so.6",
        "libgcc_s.so.1",
        "ld-linux-x86-64.so.2",
    ];
    for needed in elf.needed() {
        assert!(allowed.contains(&needed.as_str()), "it needs {needed}");
    }
    let exported: Vec<_> = elf.exports().map(|symbol| symbol.name.clone()).collect();
    assert!(exported.is_empty(), "it exports {exported:?}");
}
