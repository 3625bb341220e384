//! What all slots of a run share: the request, the rules, the journal, the reasons to stop.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use super::knobs::DeclaredKnobs;
use super::options::RunOptions;
use super::stop::Stop;
use crate::cli::args::FailOn;
use crate::dump::Dumper;
use crate::gate::Gate;
use crate::journal::{CaseEnd, CaseStart, Infra, InfraKind, JournalWriter, Record};
use crate::judge::Rules;
use crate::report::progress::Progress;
use crate::shrink::Shrinker;
use crate::verdict::{NotRunReason, Verdict};

/// Shared by all slots.
#[derive(Debug)]
pub struct Context {
    /// The request.
    pub options: RunOptions,
    /// The rules of judgement.
    pub rules: Rules,
    /// Where everything is written.
    pub journal: Log,
    /// Reasons to start no further case.
    pub stop: Stop,
    /// Claims, waivers and floors.
    pub gate: Gate,
    /// Where failing cases are dumped.
    pub dumper: Option<Dumper>,
    /// Makes failing cases smaller.
    pub shrinker: Option<Shrinker>,
    /// Knobs that engines declare, to tell a setting that none of them knows.
    pub knobs: DeclaredKnobs,
}

/// The journal, and the line that people watch while it grows.
#[derive(Debug)]
pub struct Log {
    inner: Mutex<(JournalWriter, Progress)>,
}

impl Log {
    /// A new journal at `path`.
    ///
    /// # Errors
    /// What the file system says.
    pub fn create(path: &Path, progress: Progress) -> io::Result<Self> {
        let writer = JournalWriter::create(path)?;
        Ok(Self {
            inner: Mutex::new((writer, progress)),
        })
    }

    /// Writes a record and shows it.
    ///
    /// # Errors
    /// What the journal's file says.
    pub fn append(&self, record: &Record) -> io::Result<()> {
        let mut inner = self.lock();
        inner.0.append(record)?;
        inner.1.see(record);
        Ok(())
    }

    /// A case is about to be given to a worker.
    ///
    /// # Errors
    /// What the journal's file says.
    pub fn case_start(&self, start: &CaseStart) -> io::Result<()> {
        self.append(&Record::CaseStart(start.clone()))
    }

    /// Something that is no case.
    ///
    /// # Errors
    /// What the journal's file says.
    pub fn infra(&self, infra: &Infra) -> io::Result<()> {
        self.append(&Record::Infra(infra.clone()))
    }

    /// Ends the watched line.
    pub fn finish(&self) {
        self.lock().1.finish();
    }

    fn lock(&self) -> MutexGuard<'_, (JournalWriter, Progress)> {
        self.inner
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Context {
    /// Writes the end of a case after claims and waivers; counts it if it is red, and shows it to
    /// `red` before it is written.
    ///
    /// A worker that died while the user was interrupting the run says nothing of the plugin.
    ///
    /// # Errors
    /// What the journal's file says.
    pub fn case_end(&self, mut end: CaseEnd, red: impl FnOnce(&mut CaseEnd)) -> io::Result<()> {
        if self.stop.interrupted() && matches!(end.verdict, Verdict::Crash(_)) {
            end.verdict = Verdict::NotRun(NotRunReason::Interrupted);
        }
        self.gate.apply(&mut end);
        if end.verdict.is_red() || self.is_made_red(&end.verdict) {
            self.stop.count_failure();
            red(&mut end);
        }
        self.journal.append(&Record::CaseEnd(Box::new(end)))
    }

    /// Writes an infrastructure record.
    ///
    /// # Errors
    /// What the journal's file says.
    pub fn infra(&self, kind: InfraKind, message: String) -> io::Result<()> {
        self.journal.infra(&Infra::now(kind, message))
    }

    /// Whether `--fail-on` makes a verdict red.
    pub fn is_made_red(&self, verdict: &Verdict) -> bool {
        self.options.fail_on.iter().any(|fail_on| match fail_on {
            FailOn::Weak => *verdict == Verdict::Weak,
            FailOn::Unsupported => *verdict == Verdict::Unsupported,
        })
    }
}

impl Context {
    /// Whether cases go as far as judgement; with `--until` nothing is verified and nothing need
    /// be.
    pub fn judges(&self) -> bool {
        self.options.until == crate::verdict::Depth::Judged
    }
}
