//! A mutational fuzzer for everything that reads bytes from outside, on stable Rust.
//!
//! Inputs are kept when some reader's outcome is new: an error's text without its numbers, or the
//! shape of what was read. Beyond "no panic" it holds the readers to two laws: what was read can be
//! written, and reading that again changes nothing; and the same through JSON.
//!
//! * `DNN_ASSAY_FUZZ_SECONDS`: how long to run; 2 by default.
//! * `DNN_ASSAY_FUZZ_SEED`: another sequence of mutations; 1 by default.
//! * `DNN_ASSAY_FUZZ_SAVE`: a folder for inputs with new outcomes and for the input that failed.

#[path = "formats/arbitrary.rs"]
#[allow(dead_code)]
mod arbitrary;

use arbitrary::{Tape, graph_from};
use dnn_assay_graph::wire::*;
use dnn_assay_graph::{Graph, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn fixtures(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(folder)
}

/// Every kept input; the extension says which pool it belongs to.
fn kept() -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<PathBuf> = [fixtures("fuzz/wire"), fixtures("json")]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).expect("the folder is in the repository"))
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "bin" || e == "json"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| (path.clone(), std::fs::read(path).expect("readable")))
        .collect()
}

/// Runs every reader on one input, checks the laws, and says what came of it.
fn outcome(bytes: &[u8]) -> String {
    let mut signature = String::new();
    let mut note = |reader: &str, text: String| {
        let _ = writeln!(signature, "{reader}: {}", outline(&text));
    };
    match read_graph(bytes) {
        Ok((graph, generation)) => {
            check_graph(&graph, generation);
            note("graph", format!("{generation} {}", shape(&graph)));
        }
        Err(error) => note("graph", error.to_string()),
    }
    for &generation in Generation::ALL {
        if let Ok(graph) = read_graph_as(bytes, generation) {
            check_graph(&graph, generation);
        }
    }
    match read_engine_config(bytes) {
        Ok(config) => {
            let bytes = write_engine_config(&config, Generation::Current).expect("expressible");
            let again = read_engine_config(&bytes).expect("was just written");
            assert_eq!(format!("{config:?}"), format!("{again:?}"));
            note("config", config.knobs.len().min(3).to_string());
        }
        Err(error) => note("config", error.to_string()),
    }
    match read_engine_details(bytes) {
        Ok(details) => {
            let bytes = write_engine_details(&details, Generation::Current).expect("expressible");
            let again = read_engine_details(&bytes).expect("was just written");
            assert_eq!(format!("{details:?}"), format!("{again:?}"));
            note("details", details.knobs.len().min(3).to_string());
        }
        Err(error) => note("details", error.to_string()),
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        match json::from_str(text) {
            Ok(graph) => {
                check_json(&graph);
                note("json", shape(&graph));
            }
            Err(error) => note("json", error.to_string()),
        }
    }
    signature
}

/// A message without numbers, without what it quotes and without what was seen.
fn outline(text: &str) -> String {
    let text = text.split(", saw").next().unwrap_or_default();
    let unquoted = text.split(['"', '`']).step_by(2);
    let mut outline: String = unquoted.collect();
    outline.retain(|c| !c.is_ascii_digit());
    outline
}

/// What is read can be written, and reading that gives the same graph.
fn check_graph(graph: &Graph, generation: Generation) {
    let bytes = match write_graph(graph, generation) {
        Ok(bytes) => bytes,
        Err(WireError::TooLarge { .. }) => return,
        Err(error) => panic!("read but not writable: {error}"),
    };
    let again = read_graph_as(&bytes, generation).expect("was just written");
    assert_eq!(format!("{graph:?}"), format!("{again:?}"));
    check_json(graph);
}

fn check_json(graph: &Graph) {
    let text = json::to_string(graph);
    let again = json::from_str(&text).expect("was just written");
    assert_eq!(format!("{graph:?}"), format!("{again:?}"));
}

/// A coarse description of a graph: the kinds of its first node and first scalar.
fn shape(graph: &Graph) -> String {
    let node = graph.nodes.first().map(|node| node.attributes.kind());
    let value = graph.tensors.iter().find_map(|tensor| tensor.value);
    let names = ["", "f", "h", "b", "8", "i", "d", "l", "o"];
    format!(
        "{node:?} {:?}",
        value.map(|value| names[usize::from(value.tag())])
    )
}

/// Marsaglia's xorshift with Vigna's multiplier: the sequence is the seed's alone.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Inputs larger than this are cut: a large input finds nothing that a small one does not.
const LARGEST: usize = 8192;

/// Scalars that parsers stumble over.
const EDGES: [u32; 12] = [
    0,
    1,
    2,
    4,
    7,
    8,
    0x7f,
    0xff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
];

/// Pieces of the JSON form.
const TOKENS: [&str; 20] = [
    "null",
    "true",
    "-1",
    "1e400",
    "9223372036854775808",
    "\"inf\"",
    "\"nan\"",
    "{}",
    "[]",
    "[[",
    "\"inputs\"",
    "\"outputs\"",
    "\"parameters\"",
    "\"type\"",
    "\"value\"",
    "\"half\"",
    "\"MatmulAttributes\"",
    "\"value_type\":\"BoolValue\"",
    "\"\\ud800\"",
    ",",
];

fn mutate(input: &mut Vec<u8>, other: &[u8], text: bool, random: &mut Random) {
    let at = random.below(input.len());
    let kinds = if text { 9 } else { 7 };
    match random.below(kinds) {
        _ if input.is_empty() => input.extend_from_slice(other),
        0 => input[at] ^= 1 << random.below(8),
        1 => input[at] = random.next() as u8,
        2 | 3 => {
            let width = [2, 4][random.below(2)];
            let at = at / width * width;
            let edge = match random.below(3) {
                0 => random.below(64) as u32,
                1 => random.below(2 * input.len()) as u32,
                _ => EDGES[random.below(EDGES.len())],
            };
            let bytes = edge.to_le_bytes();
            if at + width <= input.len() {
                input[at..at + width].copy_from_slice(&bytes[..width]);
            }
        }
        4 => {
            let end = (at + 1 + random.below(32)).min(input.len());
            input.drain(at..end);
        }
        5 => {
            let from = random.below(other.len());
            let end = (from + 1 + random.below(64)).min(other.len());
            input.splice(at..at, other[from..end].iter().copied());
        }
        6 => {
            let from = random.below(input.len());
            let end = (from + 1 + random.below(16)).min(input.len());
            let block = input[from..end].to_vec();
            for (slot, byte) in input[at..].iter_mut().zip(block) {
                *slot = byte;
            }
        }
        _ => {
            let token = TOKENS[random.below(TOKENS.len())];
            let end = (at + random.below(12)).min(input.len());
            input.splice(at..end, token.bytes());
        }
    }
    input.truncate(LARGEST);
}

struct Pool {
    binary: Vec<Vec<u8>>,
    text: Vec<Vec<u8>>,
    seen: BTreeSet<String>,
}

impl Pool {
    /// The kept inputs, and graphs of every kind in both generations and as JSON.
    fn start() -> Self {
        let mut pool = Self {
            binary: Vec::new(),
            text: Vec::new(),
            seen: BTreeSet::new(),
        };
        for (path, bytes) in kept() {
            let text = path
                .extension()
                .is_some_and(|extension| extension == "json");
            pool.add(bytes, text);
        }
        for seed in 1..200u64 {
            let words = (1..300).map(|i| (seed * i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 9);
            let generation = Generation::ALL[seed as usize % 2];
            let graph = graph_from(&mut Tape::new(words.collect()), generation);
            pool.add(write_graph(&graph, generation).expect("expressible"), false);
            pool.add(json::to_string(&graph).into_bytes(), true);
        }
        pool
    }

    fn add(&mut self, bytes: Vec<u8>, text: bool) {
        self.learn(&outcome(&bytes));
        if text {
            &mut self.text
        } else {
            &mut self.binary
        }
        .push(bytes);
    }

    /// Remembers the outcome of each reader, and says whether one of them is new.
    fn learn(&mut self, outcome: &str) -> bool {
        let mut new = false;
        for line in outcome.lines() {
            new |= self.seen.insert(line.to_owned());
        }
        new
    }
}

fn variable<T: std::str::FromStr>(name: &str, default: T) -> T {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn save(name: &str, bytes: &[u8]) {
    if let Ok(folder) = std::env::var("DNN_ASSAY_FUZZ_SAVE") {
        std::fs::create_dir_all(&folder).expect("a folder that can be made");
        std::fs::write(Path::new(&folder).join(name), bytes).expect("a file that can be written");
    }
}

#[test]
fn kept_inputs_replay() {
    let kept = kept();
    assert!(kept.len() > 3, "the corpus is in the repository");
    for (path, bytes) in kept {
        let result = catch_unwind(|| outcome(&bytes));
        assert!(result.is_ok(), "{}", path.display());
    }
}

#[test]
fn mutations_find_no_panic() {
    let limit = Duration::from_secs(variable("DNN_ASSAY_FUZZ_SECONDS", 2));
    let mut random = Random(variable("DNN_ASSAY_FUZZ_SEED", 1u64).max(1));
    let mut pool = Pool::start();
    let begun = Instant::now();
    let (mut executions, mut slowest, mut new) = (0u64, Duration::ZERO, 0);
    while begun.elapsed() < limit {
        let text = random.below(4) == 0;
        let inputs = if text { &pool.text } else { &pool.binary };
        let mut input = inputs[random.below(inputs.len())].clone();
        let other = &inputs[random.below(inputs.len())];
        for _ in 0..1 + random.below(6) {
            mutate(&mut input, other, text, &mut random);
        }
        let started = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| outcome(&input)));
        slowest = slowest.max(started.elapsed());
        executions += 1;
        let extension = if text { "json" } else { "bin" };
        let Ok(signature) = result else {
            save(&format!("failed-{executions}.{extension}"), &input);
            panic!("execution {executions} of this seed failed on {input:02x?}");
        };
        if pool.learn(&signature) {
            new += 1;
            save(&format!("new-{new:05}.{extension}"), &input);
            if text {
                &mut pool.text
            } else {
                &mut pool.binary
            }
            .push(input);
        }
    }
    println!(
        "{executions} executions in {:.0?}, {new} new outcomes, slowest {slowest:.1?}",
        begun.elapsed()
    );
    assert!(executions > 100, "only {executions} executions");
}
