//! `dnn-assay check`: the gate. Inspection, conformance and the suites, with claims and waivers;
//! one summary, one JUnit, one exit code.

use std::path::PathBuf;

use clap::Parser;
use dnn_assay_elf::{Inspection, Policy, RuleOutcome, RuleState, Severity};

use super::Error;
use super::args::{Cli, Command, RunArgs};
use super::run::{Stage, Staged, execute_staged};
use crate::conform::{Level, OutcomeKind, SubjectReport, conform};
use crate::exit::Exit;
use crate::gate::Observed;
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
    for (index, source) in (0u32..).zip(sources) {
        let Ok(Ok(found)) = inspector.inspect_file(&source.path) else {
            continue;
        };
        let errors = of_severity(&found, Severity::Error);
        for outcome in errors.filter(|o| matches!(o.state, RuleState::Checked { .. })) {
            staged.observed.push(Observed {
                rule: format!("inspect/{}", outcome.rule),
                plugins: vec![index],
                broken: broken_rule(&found, outcome.rule),
            });
        }
        let counting = |severity| -> usize {
            of_severity(&found, severity)
                .map(RuleOutcome::counting)
                .sum()
        };
        let text = format!(
            "inspect {}: {} rules, {} errors, {} warnings",
            source.path.display(),
            found.outcomes.len(),
            counting(Severity::Error),
            counting(Severity::Warning),
        );
        staged.note(InfraKind::Configuration, text);
    }
    Ok(staged)
}

fn of_severity(found: &Inspection, severity: Severity) -> impl Iterator<Item = &RuleOutcome> {
    let outcomes = found.outcomes.iter();
    outcomes.filter(move |outcome| outcome.severity == severity)
}

/// The findings of a rule that count, each with the command that shows it.
fn broken_rule(found: &Inspection, rule: &str) -> Vec<String> {
    let findings = found.findings.iter();
    let counting = findings.filter(|finding| finding.rule == rule && finding.waiver.is_none());
    counting
        .map(|finding| {
            let subject = finding.subject.as_ref();
            let subject = subject.map_or("", |s| s.demangled.as_ref().unwrap_or(&s.name));
            let text = format!("inspect {rule}: {subject} {}", finding.detail);
            format!("{}; see it: {}", text.trim_end(), finding.command)
        })
        .collect()
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
        staged.conformance_of(subject, sources);
    }
    Ok(staged)
}

impl Staged {
    fn conformance_of(&mut self, subject: &SubjectReport, sources: &[PluginSource]) {
        let files = subject.files.join(" + ");
        let is_of = |source: &PluginSource| {
            let path = source.path.display().to_string();
            subject.files.contains(&path)
        };
        let plugins = (0u32..).zip(sources).filter(|(_, source)| is_of(source));
        let plugins: Vec<u32> = plugins.map(|(index, _)| index).collect();
        let required = subject
            .results
            .iter()
            .filter(|r| r.level == Level::Required);
        for result in required {
            let broken = match result.outcome {
                OutcomeKind::Passed => Vec::new(),
                OutcomeKind::Finding => vec![format!(
                    "conform {}: {}; {} ({})",
                    result.id, result.text, result.why, result.link
                )],
                OutcomeKind::NotApplicable | OutcomeKind::Error => continue,
            };
            self.observed.push(Observed {
                rule: format!("conform/{}", result.id),
                plugins: plugins.clone(),
                broken,
            });
        }
        for result in &subject.results {
            if result.outcome == OutcomeKind::Error {
                let text = format!(
                    "conform {} could not be checked: {}",
                    result.id, result.text
                );
                self.note(InfraKind::Unchecked, text);
            }
        }
        if subject.refused.is_none() {
            let text = format!(
                "conform {files}: {} contracts hold, {} found broken, of them required {}",
                subject.count(OutcomeKind::Passed),
                subject.count(OutcomeKind::Finding),
                subject.findings(Level::Required).count(),
            );
            self.note(InfraKind::Configuration, text);
        }
    }

    fn note(&mut self, kind: InfraKind, message: String) {
        self.records.push(Infra::now(kind, message));
    }
}
