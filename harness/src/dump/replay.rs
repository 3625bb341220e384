//! Judging a dump again.

use clap::ValueEnum;
use dnn_assay_device::{BufferCheck, Role, Snapshot};
use dnn_assay_reference::evaluate;

use super::read::Dump;
use super::sampled::Samples;
use crate::cli::args::CriterionName;
use crate::journal::{CaseEnd, CaseStart, Infra, InfraKind, Journal, RunEnd};
use crate::judge::{Finding, Rules, Sampling, Unit, judge_samples, judge_values};
use crate::plan::Engine;
use crate::run::{OptionError, parse_traits};
use crate::suite::{Allowances, Tolerances};
use crate::verdict::Depth;

/// Why a dump cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The run's criterion or traits are not known to this version.
    #[error("the dump was judged by `{0}`, which this version does not know")]
    Criterion(String),
    /// A trait.
    #[error(transparent)]
    Trait(#[from] OptionError),
    /// The reference fails on the graph.
    #[error("the reference cannot compute the graph: {0}")]
    Reference(#[from] dnn_assay_reference::EvalError),
    /// The tables of this program.
    #[error("{0}")]
    Tables(String),
}

/// Judges the outputs of a dump by the rules of its run, and gives the journal of that: the one
/// case, as the run would report it. A case that was not judged by its outputs (a crash, an
/// overrun) is repeated from the dump, and the journal says so.
///
/// # Errors
/// [`ReplayError`]. A case that fails again is none.
pub fn replay(dump: &Dump) -> Result<Journal, ReplayError> {
    let recorded = &dump.manifest.end;
    if recorded.depth != Depth::Judged {
        let message = format!(
            "{} rests on what the worker did, not on its outputs: it is repeated from the dump, \
             not judged again",
            recorded.verdict
        );
        return Ok(journal(dump, recorded.clone(), vec![message]));
    }
    let end = judge(dump)?;
    let mut remarks = Vec::new();
    if end.verdict != recorded.verdict {
        remarks.push(format!(
            "the run of version {} said {}; this is version {}",
            dump.manifest.run.version,
            recorded.verdict,
            env!("CARGO_PKG_VERSION")
        ));
    }
    if end.criterion != recorded.criterion {
        let name = |criterion: &Option<String>| criterion.clone().unwrap_or_default();
        remarks.push(format!(
            "the run judged it by {}, as an override given with --expect asks, and this by {}: the \
             dump is of a version that kept no overrides",
            name(&recorded.criterion),
            name(&end.criterion)
        ));
    }
    Ok(journal(dump, end, remarks))
}

fn judge(dump: &Dump) -> Result<CaseEnd, ReplayError> {
    let rules = rules(dump)?;
    match &dump.samples {
        Some(samples) => Ok(judge_sampled(dump, samples, &rules)),
        None => judge_whole(dump, &rules),
    }
}

fn judge_whole(dump: &Dump, rules: &Rules) -> Result<CaseEnd, ReplayError> {
    let evaluation = evaluate(&dump.graph, &dump.inputs, &rules.arithmetic)?;
    let fill = dnn_assay_graph::case::Fill::from_name(&dump.manifest.fill).unwrap_or_default();
    let snapshot = snapshot(dump);
    let judged = judge_values(
        &dump.graph,
        &dump.inputs,
        &evaluation,
        &snapshot,
        fill,
        rules,
    );
    let mut end = dump.manifest.end.clone();
    match judged {
        Err(finding) => {
            end.verdict = finding.verdict;
            end.reason = Some(finding.reason);
        }
        Ok(values) => {
            found(&mut end, values.finding.clone());
            values.record(&mut end);
            keep_notes(&mut end, &dump.manifest.end);
        }
    }
    Ok(end)
}

fn judge_sampled(dump: &Dump, samples: &Samples, rules: &Rules) -> CaseEnd {
    let judged = judge_samples(&Sampling {
        graph: &dump.graph,
        source: &samples.inputs,
        looked: &samples.looked,
        rules,
    });
    let recorded = &dump.manifest.end;
    let mut end = recorded.clone();
    found(&mut end, judged.finding.clone());
    judged.record(&mut end);
    // Chosen elements that could not be computed alone are not in the dump, nor sums that the case has not.
    if let (Some(now), Some(then)) = (&mut end.sampled, &recorded.sampled) {
        now.left_out = then.left_out;
        now.no_sums = now
            .no_sums
            .take()
            .map(|why| then.no_sums.clone().unwrap_or(why));
    }
    keep_notes(&mut end, recorded);
    end
}

fn found(end: &mut CaseEnd, finding: Finding) {
    end.notes.clear();
    end.verdict = finding.verdict;
    end.reason = Some(finding.reason).filter(|reason| !reason.is_empty());
}

/// What the run noted beside the outputs stays, and so does its order.
fn keep_notes(end: &mut CaseEnd, recorded: &CaseEnd) {
    let fresh = std::mem::replace(&mut end.notes, recorded.notes.clone());
    let new = fresh.into_iter().filter(|n| !recorded.notes.contains(n));
    end.notes.extend(new);
}

/// The rules of the dump's run.
fn rules(dump: &Dump) -> Result<Rules, ReplayError> {
    let name = dump.manifest.run.criterion.as_deref().unwrap_or("bound");
    let criterion =
        CriterionName::from_str(name, true).map_err(|_| ReplayError::Criterion(name.to_owned()))?;
    let tables = |problem: Box<crate::yaml::Problem>| ReplayError::Tables(problem.render(false));
    let rules = Rules::new(
        criterion,
        &parse_traits(&dump.manifest.end.traits)?,
        Tolerances::embedded().map_err(tables)?,
        Allowances::embedded().map_err(tables)?,
    );
    let overridden = dump.manifest.overridden.iter();
    let rules = rules.with_recorded(overridden.map(|known| {
        let ruling = (known.rule.criterion(), known.because.clone());
        (known.tensor.clone(), ruling)
    }));
    Ok(of_unit(rules, &dump.manifest.end))
}

/// The rules for the unit of the run, whose engine and case an entry under `traits` names; as they are for
/// a case that is none of a suite.
fn of_unit(rules: Rules, end: &CaseEnd) -> Rules {
    let suite = crate::suite::of_ids(&[end.case.as_str()]).ok();
    let Some(case) = suite.and_then(|mut suite| suite.cases.pop()) else {
        return rules;
    };
    let engine = Engine {
        id: end.engine_id,
        name: end.engine.clone(),
    };
    rules.of_unit(Unit {
        case: &case,
        engine: &engine,
        arch: None,
    })
}

fn snapshot(dump: &Dump) -> Snapshot {
    let buffers = dump
        .got
        .iter()
        .map(|(uid, bytes)| BufferCheck::intact(*uid, Role::Output, bytes.clone()));
    Snapshot {
        buffers: buffers.collect(),
        workspace: None,
        notes: Vec::new(),
    }
}

/// A journal of one case.
fn journal(dump: &Dump, end: CaseEnd, remarks: Vec<String>) -> Journal {
    let mut plugin = dump.manifest.plugin.clone();
    plugin.planned = Some(1);
    let start = CaseStart {
        plugin: end.plugin,
        engine_id: end.engine_id,
        case: end.case.clone(),
        attempt: end.attempt,
        ..CaseStart::default()
    };
    let infra = remarks.into_iter().map(|message| Infra {
        time: None,
        kind: InfraKind::Configuration,
        message,
        rule: None,
        plugin: Some(end.plugin),
        case: Some(end.case.clone()),
    });
    let mut journal = Journal {
        start: Some(dump.manifest.run.clone()),
        plugins: vec![plugin],
        starts: vec![start],
        infra: infra.collect(),
        ends: vec![end],
        ..Journal::default()
    };
    journal.end = Some(RunEnd {
        exit: Some(exit_of(&journal).code()),
        ..RunEnd::default()
    });
    journal
}

/// As a run of this case alone would end.
pub fn exit_of(journal: &Journal) -> crate::exit::Exit {
    use crate::exit::Exit;
    let verdict = journal.ends.first().map(|end| &end.verdict);
    match verdict {
        Some(verdict) if verdict.is_red() => Exit::Failed,
        Some(verdict) if verdict.is_incomplete() => Exit::Incomplete,
        Some(verdict) if verdict.is_verified() => Exit::Ok,
        _ => Exit::NothingVerified,
    }
}
