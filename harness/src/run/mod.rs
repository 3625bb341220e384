//! The main job: examine plugins, run the cases on them, judge, write the journal, report.

mod again;
mod batch;
mod case;
mod context;
mod device;
mod dumping;
mod execution;
mod finding;
mod floor;
mod interrupt;
mod judging;
mod knobs;
mod memory;
mod options;
mod prepared;
mod probe;
mod result;
mod separate;
mod single;
mod slot;
mod slot_device;
mod start;
mod stop;
mod subject;
mod sweep;
mod unit;
mod wire;

use std::sync::atomic::{AtomicUsize, Ordering};

pub use batch::{Batch, BatchError, Expectation, is_taken, missing_device, run_batch};
pub use context::{Context, Log};
pub use device::device_of;
pub use interrupt::on_interrupt;
pub use knobs::DeclaredKnobs;
pub use memory::{MemoryDecision, decide as decide_memory, device_present, mock_library};
pub use options::{OptionError, RunOptions, parse_traits};
pub use prepared::{buffer_bytes, output_view};
pub use probe::Prober;
pub use result::{Environment, exit_of};
pub use single::{Single, execute_once};
pub use slot::SlotError;
pub use start::run_start;
pub use stop::Stop;
pub use subject::{ExamineError, Examined, Subject, examine};

use crate::journal::{InfraKind, Record};
use crate::plan::PluginSource;
use crate::suite::Suite;
use crate::verdict::NotRunReason;
use slot::Slot;

/// Why a run cannot go on: nothing that a plugin did.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A plugin could not be examined.
    #[error(transparent)]
    Examine(#[from] ExamineError),
    /// A slot failed.
    #[error(transparent)]
    Slot(#[from] SlotError),
    /// A claim is for an engine that no plugin has.
    #[error(transparent)]
    GoneEngine(#[from] crate::gate::GoneEngine),
    /// The journal cannot be written.
    #[error(transparent)]
    Journal(#[from] std::io::Error),
}

/// Examines every plugin, then runs `suite` on those that can be loaded. Everything that happens
/// goes to the context's journal; the caller reports from there.
///
/// # Errors
/// [`RunError`] where the machine fails; the journal then holds what was done until then.
pub fn run(context: &Context, sources: &[PluginSource], suite: &Suite) -> Result<(), RunError> {
    let subjects = examine_all(context, sources, suite)?;
    run_cases(context, &subjects, suite)
}

/// Examines every plugin; those that can be loaded are given back.
///
/// # Errors
/// [`RunError`] where the machine fails, and where a claim is for an engine that none of them has.
pub fn examine_all(
    context: &Context,
    sources: &[PluginSource],
    suite: &Suite,
) -> Result<Vec<Subject>, RunError> {
    let mut subjects = Vec::new();
    for (index, source) in (0u32..).zip(sources) {
        let mut examined = examine(index, source, &context.options)?;
        let engines = examined.subject.as_ref().map(|s| s.engines.len());
        examined.record.planned = engines.map(|n| (n * suite.cases.len()) as u64);
        context.gate.see_plugin(&examined.record);
        if let Some(dumper) = &context.dumper {
            dumper.see_plugin(&examined.record);
        }
        context
            .journal
            .append(&Record::Plugin(Box::new(examined.record)))?;
        subjects.extend(examined.subject);
    }
    match context.gate.gone_engine() {
        Some(gone) if context.options.engines.is_empty() => Err(gone.into()),
        _ => Ok(subjects),
    }
}

/// Runs `suite` on plugins that have been examined.
///
/// # Errors
/// [`RunError`] where the machine fails.
pub fn run_cases(context: &Context, subjects: &[Subject], suite: &Suite) -> Result<(), RunError> {
    for subject in subjects {
        device::note_users(context, subject)?;
        run_subject(context, subject, suite)?;
        device::note_errors(context, subject)?;
    }
    Ok(())
}

/// Runs all cases on one plugin, on as many workers as asked for.
fn run_subject(context: &Context, subject: &Subject, suite: &Suite) -> Result<(), RunError> {
    let next = AtomicUsize::new(0);
    let jobs = context.options.jobs(subject.devices.len());
    let jobs = jobs.min(suite.cases.len()).max(1);
    std::thread::scope(|scope| {
        let slots: Vec<_> = (0..jobs)
            .map(|number| (number, &next))
            .map(|(number, next)| {
                scope.spawn(move || run_slot(Slot::new(context, subject, number), suite, next))
            })
            .collect();
        slots.into_iter().try_for_each(|slot| {
            slot.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    Ok(())
}

fn run_slot(mut slot: Slot<'_>, suite: &Suite, next: &AtomicUsize) -> Result<(), SlotError> {
    let context = slot.context();
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(case) = suite.cases.get(index) else {
            return Ok(());
        };
        match context.stop.reason() {
            None => {
                let result = slot.run(case);
                if result.is_err() {
                    // The other slots stop after their current case.
                    next.store(suite.cases.len(), Ordering::Relaxed);
                }
                result?;
            }
            Some(reason) => slot.not_run(case, reason, &not_run_text(context, reason))?,
        }
    }
}

fn not_run_text(context: &Context, reason: NotRunReason) -> String {
    let seconds = context.stop.elapsed().as_secs();
    match reason {
        NotRunReason::Budget => {
            format!("the budget of time or failures was spent after {seconds} s")
        }
        NotRunReason::DeviceLost => "the device was lost".to_owned(),
        NotRunReason::Interrupted => format!("interrupted after {seconds} s"),
    }
}

/// Notes in the journal why a run ended early.
///
/// # Errors
/// What the journal's file says.
pub fn note_early_end(context: &Context) -> std::io::Result<()> {
    let Some(reason) = context.stop.reason() else {
        return Ok(());
    };
    let kind = match reason {
        NotRunReason::Budget => InfraKind::Budget,
        NotRunReason::DeviceLost => InfraKind::DeviceLost,
        NotRunReason::Interrupted => InfraKind::Interrupted,
    };
    context.infra(kind, not_run_text(context, reason))
}
