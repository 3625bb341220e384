//! `dnn-assay check`: the gate. Inspection, conformance and the suites, with claims and waivers;
//! one summary, one JUnit, one exit code.

use std::path::PathBuf;

use clap::Parser;
use dnn_assay_elf::{Policy, Severity};

use super::Error;
use super::args::{Cli, Command, RunArgs};
use super::run::{Stage, Staged, execute_staged};
use crate::conform::{Level, OutcomeKind, conform};
use crate::exit::Exit;
use crate::inspect::Inspector;
use crate::journal::{Infra, InfraKind};
use crate::plan::PluginSource;

/// Runs every stage.
///
/// # Errors
/// As for a run.
pub fn check(args: RunArgs) -> Result<Exit, Error> {
    let stages: [Stage; 2] = [inspection, conformance];
    Ok(execute_staged(args, &stages)?.exit)
}

/// What the files say, without loading them. A file that is no plugin is the run's to report.
fn inspection(_: &RunArgs, sources: &[PluginSource]) -> Result<Staged, Error> {
    let policy = Policy::default().ready();
    let policy = policy.map_err(|_| Error::infrastructure("the default policy is unusable"))?;
    let inspector = Inspector::new(policy);
    let mut staged = Staged::default();
    for source in sources {
        let Ok(Ok(found)) = inspector.inspect_file(&source.path) else {
            continue;
        };
        let counting = found
            .findings
            .iter()
            .filter(|finding| finding.waiver.is_none());
        let mut errors = 0;
        for finding in counting.filter(|finding| finding.severity == Severity::Error) {
            let subject = finding
                .subject
                .as_ref()
                .map_or("", |subject| subject.name.as_str());
            let text = format!(
                "inspect {}: {} {subject}; see it: {}",
                finding.rule, finding.detail, finding.command
            );
            staged.push(InfraKind::Finding, text);
            errors += 1;
        }
        let rules = found.outcomes.len();
        let text = format!(
            "inspect {}: {rules} rules, {errors} errors",
            source.path.display()
        );
        staged.push(InfraKind::Configuration, text);
    }
    Ok(staged)
}

/// The contracts of the ABI, as far as the host relies on them.
fn conformance(args: &RunArgs, sources: &[PluginSource]) -> Result<Staged, Error> {
    let Ok(Command::Conform(mut wanted)) =
        Cli::try_parse_from(["dnn-assay", "conform"]).map(|cli| cli.command)
    else {
        return Err(Error::infrastructure(
            "the default options of conform cannot be had",
        ));
    };
    wanted.plugins = sources
        .iter()
        .map(|source| PathBuf::from(&source.path))
        .collect();
    wanted.engine.clone_from(&args.engine);
    wanted.wire = args.wire;
    wanted.loading = args.loading.clone();
    let report = conform(&wanted, sources).map_err(Error::usage)?;
    let mut staged = Staged::default();
    for subject in &report.subjects {
        let files = subject.files.join(" + ");
        for result in subject.findings(Level::Required) {
            let text = format!(
                "conform {}: {}; {} ({})",
                result.id, result.text, result.why, result.link
            );
            staged.push(InfraKind::Finding, text);
        }
        if subject.refused.is_none() {
            let text = format!(
                "conform {files}: {} contracts hold, {} found broken, of them required {}",
                subject.count(OutcomeKind::Passed),
                subject.count(OutcomeKind::Finding),
                subject.findings(Level::Required).count(),
            );
            staged.push(InfraKind::Configuration, text);
        }
    }
    Ok(staged)
}

impl Staged {
    fn push(&mut self, kind: InfraKind, message: String) {
        self.records.push(Infra {
            time: Some(jiff::Timestamp::now().to_string()),
            kind,
            message,
            plugin: None,
            case: None,
        });
    }
}
