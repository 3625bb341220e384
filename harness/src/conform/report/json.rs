//! One JSON document.

use std::io::{self, Write};

use serde::Serialize;

use crate::conform::check::Level;
use crate::conform::results::{Report, SubjectReport};

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    level: Level,
    exit: u8,
    subjects: Vec<Subject<'a>>,
}

#[derive(Serialize)]
struct Subject<'a> {
    #[serde(flatten)]
    report: &'a SubjectReport,
    /// `null` where a required check fails.
    reached: Option<Level>,
}

/// Writes the report as JSON.
///
/// # Errors
/// What `out` says.
pub fn write_json(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let document = Document {
        schema: 1,
        level: report.level,
        exit: report.exit().code(),
        subjects: report
            .subjects
            .iter()
            .map(|subject| Subject {
                reached: subject.reached(),
                report: subject,
            })
            .collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}
