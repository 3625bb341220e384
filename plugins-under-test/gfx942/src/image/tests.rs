//! What the compiled kernels are. Without a compiler there are none, and nothing is checked.

use std::mem::size_of;

use goblin::elf::{Elf, Sym};

use super::{GFX942, MISSING, SM_90, is_built_in};
use crate::parameters::{ApplyParams, ConvParams, Kernel, PointwiseParams, StatisticsParams};

/// `EM_AMDGPU`.
const AMDGPU: u16 = 224;
/// gfx942, XNACK any, SRAMECC any (LLVM's AMDGPU usage guide, code object V5).
const FLAGS: u32 = 0x54C;

/// The first fields of a kernel descriptor (the same guide): bytes of LDS, scratch, arguments.
struct Descriptor {
    lds: u32,
    scratch: u32,
    arguments: u32,
}

fn descriptor(elf: &Elf<'_>, symbol: &Sym) -> Descriptor {
    let segment = elf
        .program_headers
        .iter()
        .find(|segment| segment.vm_range().contains(&(symbol.st_value as usize)))
        .unwrap();
    let at = (symbol.st_value - segment.p_vaddr + segment.p_offset) as usize;
    let word =
        |i: usize| u32::from_le_bytes(GFX942[at + 4 * i..at + 4 * i + 4].try_into().unwrap());
    Descriptor {
        lds: word(0),
        scratch: word(1),
        arguments: word(2),
    }
}

fn parameter_bytes(kernel: Kernel) -> usize {
    match kernel {
        Kernel::Pointwise => size_of::<PointwiseParams>(),
        Kernel::BatchnormApply => size_of::<ApplyParams>(),
        Kernel::ConvF32 | Kernel::ConvF64 | Kernel::ConvSumF32 | Kernel::ConvSumF64 => {
            size_of::<ConvParams>()
        }
        _ => size_of::<StatisticsParams>(),
    }
}

/// `true` where there is nothing to look at; says so.
fn skipped() -> bool {
    if !is_built_in() {
        eprintln!("not checked: {MISSING}");
    }
    !is_built_in()
}

#[test]
fn the_object_is_gfx942_and_holds_every_kernel_without_hidden_arguments_or_scratch() {
    if skipped() {
        return;
    }
    let elf = Elf::parse(GFX942).unwrap();
    assert_eq!(elf.header.e_machine, AMDGPU);
    assert_eq!(elf.header.e_flags, FLAGS);
    for &kernel in Kernel::ALL {
        let name = format!("{}.kd", kernel.name().to_str().unwrap());
        let symbol = elf
            .dynsyms
            .iter()
            .find(|symbol| elf.dynstrtab.get_at(symbol.st_name) == Some(name.as_str()))
            .unwrap_or_else(|| panic!("no {name}"));
        let found = descriptor(&elf, &symbol);
        assert_eq!(found.arguments as usize, parameter_bytes(kernel), "{name}");
        assert_eq!(found.scratch, 0, "{name}");
        assert!(found.lds <= 32 << 10, "{name}: {} bytes of LDS", found.lds);
    }
    let kernels = elf
        .dynsyms
        .iter()
        .filter_map(|symbol| elf.dynstrtab.get_at(symbol.st_name))
        .filter(|name| name.ends_with(".kd"));
    assert_eq!(kernels.count(), Kernel::ALL.len());
}

#[test]
fn the_ptx_has_every_kernel_and_calls_nothing_outside() {
    if skipped() {
        return;
    }
    assert!(SM_90.ends_with('\0') && SM_90.contains(".target sm_90"));
    for &kernel in Kernel::ALL {
        let entry = format!(".entry {}(", kernel.name().to_str().unwrap());
        assert!(SM_90.contains(&entry), "{entry}");
    }
    for line in SM_90.lines() {
        let line = line.trim();
        assert!(!line.starts_with(".extern .func"), "{line}");
        assert!(!line.starts_with("call"), "{line}");
        assert!(!line.starts_with(".local"), "{line}");
    }
}
