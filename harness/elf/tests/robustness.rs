//! No file panics: real libraries, cut and changed at random.

#![expect(clippy::unwrap_used, reason = "a test may unwrap")]

mod common;

use common::*;
use dnn_assay_elf::closure::{FileBytes, LoadEnvironment, MemorySource};
use dnn_assay_elf::{Policy, ReadyPolicy, Setting, identify, inspect, inspect_pairs};
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// A sequence of pseudo-random numbers (splitmix64), so that a failure can be seen again.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// Values that break arithmetic more often than random ones.
const NASTY: [u64; 9] = [
    0,
    1,
    0x7f,
    0xff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
];

/// Changes a few words, most of them in the headers and tables, and sometimes cuts the file.
fn mutate(original: &[u8], tables: &[(usize, usize)], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..=numbers.below(6) {
        let at = match numbers.below(4) {
            0 => numbers.below(bytes.len()),
            _ => {
                let (start, size) = tables[numbers.below(tables.len())];
                start + numbers.below(size)
            }
        };
        let width = [1, 2, 4, 8][numbers.below(4)];
        let value = match numbers.below(2) {
            0 => NASTY[numbers.below(NASTY.len())],
            _ => numbers.next() >> numbers.below(64),
        };
        let end = (at + width).min(bytes.len());
        if at < end {
            bytes[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
        }
    }
    if numbers.below(8) == 0 {
        bytes.truncate(numbers.below(original.len()));
    }
    bytes
}

/// The places of the ELF header, the header tables and the tables of the loader.
fn tables(bytes: &[u8]) -> Vec<(usize, usize)> {
    let elf = goblin::elf::Elf::parse(bytes).unwrap();
    let header = &elf.header;
    let mut found = vec![
        (0, 64),
        (header.e_phoff as usize, usize::from(header.e_phnum) * 56),
        (header.e_shoff as usize, usize::from(header.e_shnum) * 64),
    ];
    let in_file = |s: &&goblin::elf::SectionHeader| s.sh_type != 8 && s.sh_size > 0;
    let code = |s: &&goblin::elf::SectionHeader| s.sh_type != 1;
    let sections = elf.section_headers.iter().filter(in_file).filter(code);
    found.extend(sections.map(|s| (s.sh_offset as usize, s.sh_size as usize)));
    found
}

fn samples(shop: &Workshop) -> Vec<Vec<u8>> {
    let strings = "#include <map>\n#include <string>\nstd::map<std::string, int> table;
        int use() { return table[\"a\"]; }";
    let fat = "__asm__(\".pushsection .hip_fatbin,\\\"a\\\"\\n .ascii \\\"__CLANG_OFFLOAD_BUNDLE__\\\"\\n .quad 1, 80, 4, 32\\n .ascii \\\"hipv4-amdgcn-amd-amdhsa--gfx942\\\"\\n .quad 1\\n .popsection\");";
    shop.write("v.map", "V1 { global: hipdnn*; local: *; };");
    vec![
        shop.c(
            &format!("{fat}\n{}", engine_source()),
            "-Wl,--hash-style=both",
        ),
        shop.c(
            &engine_source(),
            "-s -Wl,--version-script=v.map -Wl,-rpath,$ORIGIN:",
        ),
        std::fs::read(shop.cxx_file("c.so", &cxx_engine_source(strings), "-g")).unwrap(),
        std::fs::read("/lib/x86_64-linux-gnu/libz.so.1").unwrap_or_default(),
    ]
    .into_iter()
    .filter(|bytes| !bytes.is_empty())
    .collect()
}

static POLICY: LazyLock<ReadyPolicy> = LazyLock::new(|| {
    let policy = Policy {
        arch: Some("gfx942".into()),
        ..Policy::default()
    };
    policy.ready().unwrap()
});

/// Everything that this crate does with a file.
fn exercise(bytes: Vec<u8>) {
    let bytes: FileBytes = Arc::new(bytes);
    let _ = identify(&bytes);
    let source = MemorySource::new().with("/usr/lib/libc.so.6", bytes.to_vec());
    let policy = &*POLICY;
    let today = "2026-12-01".parse().unwrap();
    let setting = Setting {
        environment: &LoadEnvironment::standard(),
        source: &source,
        policy,
        today,
    };
    let inspection = inspect(Path::new("/p/mutant.so"), &bytes, &setting);
    if inspection.is_ok() {
        let other = Arc::new(bytes.iter().copied().chain([0]).collect());
        let files = [("/p/a.so".into(), bytes), ("/p/b.so".into(), other)];
        let _ = inspect_pairs(&files, &source, policy, today);
    }
}

/// A mutant that takes longer has found a loop; a busy machine alone does not take that long.
const PATIENCE: Duration = Duration::from_secs(60);

fn run(seed: u64, time: Duration) -> u64 {
    let shop = Workshop::new();
    let samples = samples(&shop);
    let places: Vec<_> = samples.iter().map(|bytes| tables(bytes)).collect();
    let start = Instant::now();
    let mut numbers = Numbers(seed);
    let mut rounds = 0;
    while start.elapsed() < time {
        let index = numbers.below(samples.len());
        let state = numbers.0;
        let mutant = mutate(&samples[index], &places[index], &mut numbers);
        let kept = mutant.clone();
        let began = Instant::now();
        let outcome = std::panic::catch_unwind(|| exercise(mutant));
        if outcome.is_err() || began.elapsed() > PATIENCE {
            let path = std::env::temp_dir().join(format!("mutant-{state:x}.so"));
            std::fs::write(&path, kept).unwrap();
            panic!("sample {index}, state {state:#x}: see {}", path.display());
        }
        rounds += 1;
    }
    rounds
}

#[test]
fn mutants_never_panic() {
    let rounds = run(4, Duration::from_secs(2));
    assert!(rounds > 20, "only {rounds} mutants in the time given");
}

/// `MUTATION_SECONDS` and `MUTATION_SEED` say how long and where to begin.
#[test]
#[ignore = "runs for minutes"]
fn mutants_never_panic_for_long() {
    let number =
        |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let seconds = number("MUTATION_SECONDS", 600);
    let rounds = run(number("MUTATION_SEED", 1), Duration::from_secs(seconds));
    println!("{rounds} mutants in {seconds} s");
}

/// `MUTANT` names a file that a run has left behind.
#[test]
#[ignore = "needs a file"]
fn one_mutant() {
    let path = std::env::var("MUTANT").unwrap();
    let start = Instant::now();
    exercise(std::fs::read(path).unwrap());
    println!("{:?}", start.elapsed());
}

#[test]
fn debug_sections_larger_than_any_file_never_panic() {
    let shop = Workshop::new();
    let mut bytes = shop.c(&engine_source(), "-g");
    let elf = goblin::elf::Elf::parse(&bytes).unwrap();
    let start = elf.header.e_shoff as usize;
    let is_debug = |s: &goblin::elf::SectionHeader| {
        let name = elf.shdr_strtab.get_at(s.sh_name);
        name.is_some_and(|name| name.starts_with(".debug"))
    };
    let sections = elf.section_headers.iter().enumerate();
    let places: Vec<usize> = sections
        .filter(|(_, section)| is_debug(section))
        .map(|(index, _)| start + index * 64 + 32)
        .collect();
    assert!(places.len() > 1);
    for at in places {
        bytes[at..at + 8].fill(0xff);
    }
    exercise(bytes);
}

#[test]
fn a_file_cut_anywhere_never_panics() {
    let shop = Workshop::new();
    let bytes = shop.c(&engine_source(), "-s -Wl,--hash-style=both");
    for end in (0..bytes.len()).step_by(61) {
        exercise(bytes[..end].to_vec());
        // Zeroes instead of the tail, so that the headers' promises hold in length only.
        let mut padded = bytes[..end].to_vec();
        padded.resize(bytes.len(), 0);
        exercise(padded);
    }
}
