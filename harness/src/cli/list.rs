//! `dnn-assay list`: the plan, without a plugin and without a device.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};

use dnn_assay_reference::{array_bytes, memory_bytes};
use serde::Serialize;

use super::args::{ListArgs, ListFormat};
use super::select::select;
use super::{Error, stdout};
use crate::exit::Exit;
use crate::plan::Fields;
use crate::run::buffer_bytes;
use crate::suite::{Suite, SuiteCase};

/// Floating-point operations per second and core of a case: the built-in plugin, the reference beside it,
/// comparison and diagnosis. An estimate, not a promise: relative to the overhead, runs of the standard
/// tier gave 0.9 to 2·10⁹, of the full suite 3.0 to 4.3·10⁹ with 512-bit vectors.
const REFERENCE_RATE: f64 = 2.5e9;
/// Seconds of a core for a case, whatever its size: 3153 cases of the smoke suite take 5.5 s on two.
const CASE_OVERHEAD: f64 = 3.5e-3;

#[derive(Serialize)]
struct Listing<'a> {
    schema: u32,
    suite: &'a str,
    cases: Vec<Entry<'a>>,
    tiers: BTreeMap<String, Tier>,
}

#[derive(Serialize)]
struct Entry<'a> {
    id: &'a str,
    op: String,
    direction: String,
    dtype: String,
    layout: String,
    fill: String,
    tier: String,
    tags: &'a [String],
    flops: f64,
    reference_seconds: f64,
    /// The tensors' buffers, and what the reference says that it needs at most.
    memory_bytes: f64,
    /// Of that, the reference's arrays: their memory is kept for later cases.
    kept_bytes: f64,
}

#[derive(Default, Serialize)]
struct Tier {
    cases: u64,
    reference_seconds: f64,
    largest_memory_bytes: f64,
    /// What may be kept of one case while another runs.
    largest_kept_bytes: f64,
}

impl Tier {
    fn add(&mut self, other: &Self) {
        self.cases += other.cases;
        self.reference_seconds += other.reference_seconds;
        self.largest_memory_bytes = self.largest_memory_bytes.max(other.largest_memory_bytes);
        self.largest_kept_bytes = self.largest_kept_bytes.max(other.largest_kept_bytes);
    }

    /// The largest case beside what is kept of another.
    fn bytes(&self) -> f64 {
        self.largest_memory_bytes + self.largest_kept_bytes
    }
}

/// Prints the cases.
///
/// # Errors
/// Usage, for a selection that cannot be understood or is empty.
pub fn list(args: &ListArgs) -> Result<Exit, Error> {
    let suite = select(&args.selection, args.seed)?;
    let mut out = BufWriter::new(stdout());
    let written = match args.format {
        ListFormat::Terse => suite
            .cases
            .iter()
            .try_for_each(|case| writeln!(out, "{}", case.id))
            .and_then(|()| out.flush()),
        ListFormat::Tiers => tiers(&suite, &mut out).and_then(|()| out.flush()),
        ListFormat::Json => serde_json::to_writer_pretty(&mut out, &listing(&suite))
            .map_err(std::io::Error::from)
            .and_then(|()| writeln!(out))
            .and_then(|()| out.flush()),
    };
    match written {
        // `dnn-assay list | head` is no error.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Exit::Ok),
        other => other.map(|()| Exit::Ok).map_err(Error::from),
    }
}

/// Bytes of a judgement by samples beside the buffers: operands of the sums, mostly.
const SAMPLED: f64 = 256.0 * 1024.0 * 1024.0;

/// Cores that the times of tiers are for.
const CORES: f64 = 2.0;

/// A line for each tier, in the order of running, and one for all.
fn tiers(suite: &Suite, out: &mut dyn Write) -> std::io::Result<()> {
    let listing = listing(suite);
    let mut all = Tier::default();
    for tier in crate::suite::Tier::ALL {
        let Some(row) = listing.tiers.get(tier.name()) else {
            continue;
        };
        all.add(row);
        tier_line(out, tier.name(), row)?;
    }
    tier_line(out, "all", &all)
}

fn tier_line(out: &mut dyn Write, name: &str, tier: &Tier) -> std::io::Result<()> {
    writeln!(
        out,
        "{name:<9} {:>6} cases {:>8.1} s {:>8.1} MiB",
        tier.cases,
        tier.reference_seconds / CORES,
        tier.bytes() / f64::from(1 << 20),
    )
}

/// What is said of some cases: seconds on two cores, and bytes of the largest beside what is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statement {
    /// Seconds on two cores.
    pub seconds: f64,
    /// Bytes that the largest case needs, and that are kept of another at most.
    pub bytes: f64,
}

/// The statement of all cases of a suite together.
pub fn statement(suite: &Suite) -> Statement {
    let mut all = Tier::default();
    listing(suite).tiers.values().for_each(|tier| all.add(tier));
    Statement {
        seconds: all.reference_seconds / CORES,
        bytes: all.bytes(),
    }
}

fn listing(suite: &Suite) -> Listing<'_> {
    let cases: Vec<_> = suite.cases.iter().map(entry).collect();
    let mut tiers: BTreeMap<String, Tier> = BTreeMap::new();
    for case in &cases {
        let tier = tiers.entry(case.tier.clone()).or_default();
        tier.add(&Tier {
            cases: 1,
            reference_seconds: case.reference_seconds,
            largest_memory_bytes: case.memory_bytes,
            largest_kept_bytes: case.kept_bytes,
        });
    }
    Listing {
        schema: 1,
        suite: &suite.name,
        cases,
        tiers,
    }
}

fn entry(case: &SuiteCase) -> Entry<'_> {
    let first = |field| case.values(field).into_iter().next().unwrap_or_default();
    let work = case.case.work();
    let graph = case.case.graph().ok().filter(|_| case.sample.is_none());
    Entry {
        id: &case.id,
        op: first("op"),
        direction: first("direction"),
        dtype: case.case.dtype_name(),
        layout: first("layout"),
        fill: first("fill"),
        tier: first("tier"),
        tags: &case.tags,
        flops: work.flops,
        reference_seconds: CASE_OVERHEAD + work.flops / REFERENCE_RATE,
        memory_bytes: match case.sample {
            // What was written to the inputs and what was read of the outputs is kept beside them.
            Some(_) => 2.0 * work.bytes + SAMPLED,
            None => graph
                .as_ref()
                .map_or(0.0, |graph| buffer_bytes(graph) + memory_bytes(graph)),
        },
        kept_bytes: graph.as_ref().map_or(0.0, array_bytes),
    }
}
