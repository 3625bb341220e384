//! What the compiled kernels are. Without a compiler there are none, and nothing is checked.

use std::mem::size_of;

use dnn_assay_kernel_build::{Compiler, Source, Target};
use goblin::elf::{Elf, Sym};
use rmpv::Value;

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
        Kernel::Pointwise
        | Kernel::PointwiseLight
        | Kernel::PointwiseHeavy
        | Kernel::PointwiseSingle => size_of::<PointwiseParams>(),
        Kernel::BatchnormApply | Kernel::BatchnormApplyVector => size_of::<ApplyParams>(),
        Kernel::ConvF32
        | Kernel::ConvLinear
        | Kernel::ConvF64
        | Kernel::ConvSumF32
        | Kernel::ConvSumF64 => size_of::<ConvParams>(),
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

/// What the object's metadata says of a kernel (`NT_AMDGPU_METADATA`, LLVM's AMDGPU usage guide).
struct Metadata(Value);

impl Metadata {
    fn all() -> Vec<Self> {
        const NT_AMDGPU_METADATA: u32 = 32;
        let elf = Elf::parse(GFX942).unwrap();
        let notes = elf.iter_note_headers(GFX942).unwrap();
        let note = notes
            .map(Result::unwrap)
            .find(|note| note.n_type == NT_AMDGPU_METADATA && note.name.starts_with("AMDGPU"));
        let root = rmpv::decode::read_value(&mut note.unwrap().desc).unwrap();
        let kernels = Self(root).get("amdhsa.kernels").as_array().unwrap().clone();
        kernels.into_iter().map(Self).collect()
    }

    fn get(&self, name: &str) -> Value {
        let fields = self.0.as_map().unwrap();
        let field = fields.iter().find(|(key, _)| key.as_str() == Some(name));
        field.map_or(Value::Nil, |(_, value)| value.clone())
    }

    fn number(&self, name: &str) -> u64 {
        let value = self.get(name);
        value.as_u64().unwrap_or_else(|| panic!("{name}: {value}"))
    }

    fn name(&self) -> String {
        self.get(".name").as_str().unwrap().to_owned()
    }
}

/// Kernels that large cases spend their time in.
const HOT: &[Kernel] = &[
    Kernel::PointwiseLight,
    Kernel::PointwiseHeavy,
    Kernel::PointwiseSingle,
    Kernel::BatchnormApplyVector,
    Kernel::ConvLinear,
    Kernel::ConvF32,
];

#[test]
fn the_metadata_names_every_kernel_its_one_argument_and_what_it_uses() {
    if skipped() {
        return;
    }
    let all = Metadata::all();
    let names: Vec<String> = all.iter().map(Metadata::name).collect();
    for &kernel in Kernel::ALL {
        let name = kernel.name().to_str().unwrap();
        let at = names.iter().position(|found| found == name);
        let found = &all[at.unwrap_or_else(|| panic!("no {name}"))];
        let arguments = found.get(".args");
        let arguments = arguments.as_array().unwrap();
        assert_eq!(arguments.len(), 1, "{name}: hidden arguments");
        let argument = Metadata(arguments[0].clone());
        assert_eq!(
            argument.get(".value_kind").as_str(),
            Some("by_value"),
            "{name}"
        );
        assert_eq!(
            argument.number(".size") as usize,
            parameter_bytes(kernel),
            "{name}"
        );
        let bytes = found.number(".kernarg_segment_size") as usize;
        assert_eq!(bytes, parameter_bytes(kernel), "{name}");
        // Two blocks of 256 threads per compute unit: 256 registers for each lane of four SIMDs
        // that hold two waves each, and half of 64 KiB.
        let registers = found.number(".vgpr_count") + found.number(".agpr_count");
        assert!(registers <= 256, "{name}: {registers} registers");
        assert!(
            found.number(".group_segment_fixed_size") <= 32 << 10,
            "{name}"
        );
        assert_eq!(found.number(".wavefront_size"), 64, "{name}");
        if HOT.contains(&kernel) {
            assert_eq!(
                found.number(".private_segment_fixed_size"),
                0,
                "{name}: scratch"
            );
            assert_eq!(found.number(".vgpr_spill_count"), 0, "{name}: spills");
        }
    }
    assert_eq!(names.len(), Kernel::ALL.len());
}

fn source() -> Source {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/kernels.cpp");
    Source { file: file.into() }
}

#[test]
fn the_same_source_gives_the_same_object_byte_for_byte() {
    if skipped() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("again.hsaco");
    let compiler = Compiler {
        path: env!("DNN_ASSAY_KERNELS_CLANG").into(),
        version: String::new(),
    };
    source()
        .compile(&compiler, Target::Gfx942, &target)
        .unwrap();
    assert!(std::fs::read(&target).unwrap() == GFX942, "another object");
}

#[test]
fn both_images_name_their_source() {
    if skipped() {
        return;
    }
    let print = source().fingerprint().unwrap();
    let elf = Elf::parse(GFX942).unwrap();
    let mut names = elf
        .dynsyms
        .iter()
        .filter_map(|symbol| elf.dynstrtab.get_at(symbol.st_name));
    assert!(names.any(|name| name == print), "{print}");
    assert!(SM_90.contains(&print), "{print}");
}
