//! Operation × types × layout by engine, at the depth that the cases reached.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use super::failure::engine_argument;
use super::text::{count, one_line};
use crate::journal::{Journal, Unit};
use crate::verdict::{Depth, Verdict};

/// What the cases of one cell came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cell {
    /// Cases.
    pub cases: u64,
    /// Accepted by the engine.
    pub accepted: u64,
    /// Passed.
    pub passed: u64,
    /// Red: failed, crashed, timed out, unexpectedly passed, flaky.
    pub red: u64,
    /// Declined.
    pub declined: u64,
    /// Failed as a waiver expects.
    pub waived: u64,
    /// The deepest point that a case reached.
    pub depth: Depth,
    /// The largest margin of a passed case.
    pub margin: Option<f64>,
}

/// One row: an operation with its types and layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct RowKey {
    /// `conv.fprop+bias`.
    pub op: String,
    /// `f16+f32`.
    pub dtype: String,
    /// `nhwc`; strides are left out.
    pub layout: String,
}

/// The matrix.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// Engines, in the order of the run.
    pub engines: Vec<String>,
    /// Rows, each with a cell by engine.
    pub rows: BTreeMap<RowKey, BTreeMap<String, Cell>>,
}

#[derive(Serialize)]
struct JsonRow<'a> {
    #[serde(flatten)]
    key: &'a RowKey,
    engines: &'a BTreeMap<String, Cell>,
}

#[derive(Serialize)]
struct JsonMatrix<'a> {
    schema: u32,
    engines: &'a [String],
    rows: Vec<JsonRow<'a>>,
}

impl RowKey {
    /// Of a case id; what is no id stands as an operation without types.
    pub fn of(case: &str) -> Self {
        let mut fields = case.split('/').map(one_line);
        let mut next = || fields.next().unwrap_or_default();
        let (op, dtype, layout) = (next(), next(), next());
        let layout = layout.split('~').next().unwrap_or_default().to_owned();
        Self { op, dtype, layout }
    }
}

impl Cell {
    /// Takes a unit in.
    pub fn add(&mut self, unit: &Unit<'_>) {
        let end = unit.attempts.last();
        let depth = end.map_or(Depth::None, |end| end.depth);
        self.cases += 1;
        self.depth = self.depth.max(depth);
        self.accepted += u64::from(depth >= Depth::Applicable);
        self.red += u64::from(unit.verdict.is_red());
        match unit.verdict {
            Verdict::Pass => {
                self.passed += 1;
                let margin = end.and_then(|end| end.margin);
                self.margin = self.margin.into_iter().chain(margin).reduce(f64::max);
            }
            Verdict::Unsupported => self.declined += 1,
            Verdict::ExpectedFail => self.waived += 1,
            _ => {}
        }
    }

    /// A few characters for a table.
    pub fn text(&self) -> String {
        if self.cases == self.declined {
            return "declined".to_owned();
        }
        let of = |n: u64| format!("{}/{}", count(n), count(self.cases));
        let mut text = match self.depth {
            Depth::Judged => format!("{} right", of(self.passed)),
            Depth::None | Depth::Loaded => "loaded".to_owned(),
            depth => format!("{} {depth}", of(self.accepted)),
        };
        if self.red > 0 {
            let _ = write!(text, ", {} RED", count(self.red));
        }
        if self.waived > 0 {
            let _ = write!(text, ", {} waived", count(self.waived));
        }
        text
    }
}

impl Matrix {
    /// Of a journal.
    pub fn of(journal: &Journal) -> Self {
        let mut matrix = Self::default();
        let mut known = BTreeSet::new();
        let several = journal.plugins.len() > 1;
        for unit in journal.units() {
            let mut engine = one_line(&engine_argument(journal, &unit.key));
            if several {
                let _ = write!(engine, " #{}", unit.key.plugin);
            }
            if known.insert(engine.clone()) {
                matrix.engines.push(engine.clone());
            }
            let row = matrix.rows.entry(RowKey::of(&unit.key.case)).or_default();
            row.entry(engine).or_default().add(&unit);
        }
        matrix
    }

    /// For a terminal.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY);
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(self.header());
        for row in self.lines() {
            table.add_row(row);
        }
        format!("{table}\n")
    }

    /// For a page.
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut out = line(self.header());
        out.push_str(&line(
            self.header().iter().map(|_| "---".to_owned()).collect(),
        ));
        for row in self.lines() {
            out.push_str(&line(
                row.iter().map(|cell| cell.replace('|', "\\|")).collect(),
            ));
        }
        out
    }

    /// One JSON document.
    pub fn json(&self) -> String {
        let rows = self
            .rows
            .iter()
            .map(|(key, engines)| JsonRow { key, engines });
        let matrix = JsonMatrix {
            schema: 1,
            engines: &self.engines,
            rows: rows.collect(),
        };
        let text = serde_json::to_string_pretty(&matrix);
        text.map_or_else(|error| format!("\"{error}\"\n"), |text| text + "\n")
    }

    fn header(&self) -> Vec<String> {
        let fixed = ["operation", "types", "layout"].map(str::to_owned);
        fixed
            .into_iter()
            .chain(self.engines.iter().cloned())
            .collect()
    }

    fn lines(&self) -> impl Iterator<Item = Vec<String>> {
        self.rows.iter().map(|(key, cells)| {
            let fixed = [&key.op, &key.dtype, &key.layout].map(String::clone);
            let cell = |engine| cells.get(engine).map_or_else(String::new, Cell::text);
            fixed
                .into_iter()
                .chain(self.engines.iter().map(cell))
                .collect()
        })
    }
}
