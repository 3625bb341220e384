//! What an inspection found: the data of every report.

use std::path::PathBuf;

use dnn_assay_elf::{Finding, Inspection, NotAPlugin, PairInspection, RuleOutcome, Severity};

use crate::exit::Exit;

/// All files, then all pairs of those that are plugins.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// One per file, in the order of the command line.
    pub files: Vec<FileReport>,
    /// One per two files.
    pub pairs: Vec<PairInspection>,
}

/// One file: what was found in it, or why it was not looked into.
pub type FileReport = Result<Box<Inspection>, Refused>;

/// A file that is no plugin for this machine.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The file.
    pub path: PathBuf,
    /// What it is.
    pub what: NotAPlugin,
}

/// The part of a result that files and pairs have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged<'a> {
    /// One outcome per rule.
    pub outcomes: &'a [RuleOutcome],
    /// What was found, errors first.
    pub findings: &'a [Finding],
}

impl<'a> Judged<'a> {
    /// How many findings of this severity count.
    pub fn count(self, severity: Severity) -> usize {
        let of = |outcome: &&RuleOutcome| outcome.severity == severity;
        let counted = self.outcomes.iter().filter(of);
        counted.map(RuleOutcome::counting).sum()
    }

    /// The listed findings of a rule that count.
    pub fn counting(self, rule: &'a str) -> impl Iterator<Item = &'a Finding> {
        let listed = self.findings.iter();
        listed.filter(move |finding| finding.rule == rule && finding.waiver.is_none())
    }

    /// The listed findings that an exception accepts.
    pub fn waived(self) -> impl Iterator<Item = &'a Finding> {
        self.findings.iter().filter(|f| f.waiver.is_some())
    }
}

impl<'a> From<&'a Inspection> for Judged<'a> {
    fn from(of: &'a Inspection) -> Self {
        Self {
            outcomes: &of.outcomes,
            findings: &of.findings,
        }
    }
}

impl<'a> From<&'a PairInspection> for Judged<'a> {
    fn from(of: &'a PairInspection) -> Self {
        Self {
            outcomes: &of.outcomes,
            findings: &of.findings,
        }
    }
}

impl Report {
    /// The files that are plugins.
    pub fn inspections(&self) -> impl Iterator<Item = &Inspection> {
        self.files.iter().filter_map(|file| file.as_deref().ok())
    }

    /// Files and pairs alike.
    pub(super) fn judged(&self) -> impl Iterator<Item = Judged<'_>> {
        let files = self.inspections().map(Judged::from);
        files.chain(self.pairs.iter().map(Judged::from))
    }

    /// How many findings of this severity count, in files and pairs.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.judged().map(|judged| judged.count(severity)).sum()
    }

    /// The exit code: 3 for a file that is no plugin, 1 for an error that no exception accepts.
    #[must_use]
    pub fn exit(&self) -> Exit {
        if self.files.iter().any(Result::is_err) {
            Exit::Plugin
        } else if self.count(Severity::Error) > 0 {
            Exit::Failed
        } else {
            Exit::Ok
        }
    }
}
