//! One JSON document.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use dnn_assay_elf::rules::Rule;
use dnn_assay_elf::{Inspection, NotAPlugin, PairInspection};
use serde::Serialize;

use super::rule;
use crate::inspect::results::{FileReport, Report};

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    exit: u8,
    files: Vec<File<'a>>,
    pairs: &'a [PairInspection],
    /// Those that found something.
    rules: BTreeMap<&'static str, &'static Rule>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum File<'a> {
    Inspected(&'a Inspection),
    Refused {
        path: &'a Path,
        message: String,
        #[serde(rename = "not-a-plugin")]
        what: &'a NotAPlugin,
    },
}

/// Writes the report as JSON.
///
/// # Errors
/// What `out` says.
pub fn write_json(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let findings = report.judged().flat_map(|judged| judged.findings);
    let document = Document {
        schema: 1,
        exit: report.exit().code(),
        files: report.files.iter().map(file).collect(),
        pairs: &report.pairs,
        rules: findings.map(|f| (f.rule, rule(f.rule))).collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn file(file: &FileReport) -> File<'_> {
    match file {
        Ok(inspection) => File::Inspected(inspection),
        Err(refused) => File::Refused {
            path: &refused.path,
            message: refused.what.to_string(),
            what: &refused.what,
        },
    }
}
