//! Shrinking the failures of a run while it runs.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::regression::{Regression, regression};
use super::search::{Limits, Way, shrink};
use crate::journal::CaseEnd;
use crate::judge::Rules;
use crate::run::{Context, Prober, SlotError, Subject};
use crate::suite::SuiteCase;

/// Failures that one run shrinks at most.
pub const MOST_SHRUNK: usize = 10;

/// Effort for one failure of a run.
const LIMITS: Limits = Limits {
    tries: 400,
    time: Duration::from_secs(60),
};

/// Shrinks failures, and writes a suite of each smallest case below one folder.
#[derive(Debug)]
pub struct Shrinker {
    folder: PathBuf,
    rules: Rules,
    begun: AtomicUsize,
}

impl Shrinker {
    /// Writes below `folder`; `rules` are those of the run.
    pub fn new(folder: PathBuf, rules: Rules) -> Self {
        Self {
            folder,
            rules: rules.without_names(),
            begun: AtomicUsize::new(0),
        }
    }

    /// Shrinks a case that failed in slot `number`, and tells `end` what it came to. A machine that fails meanwhile
    /// is said and changes nothing.
    pub fn shrink(
        &self,
        context: &Context,
        subject: &Subject,
        number: usize,
        case: &SuiteCase,
        end: &mut CaseEnd,
    ) {
        if self.begun.fetch_add(1, Ordering::Relaxed) >= MOST_SHRUNK {
            return;
        }
        if let Err(error) = self.try_to(context, subject, number, case, end) {
            end.notes.push(format!("not shrunk: {error}"));
        }
    }

    fn try_to(
        &self,
        context: &Context,
        subject: &Subject,
        number: usize,
        case: &SuiteCase,
        end: &mut CaseEnd,
    ) -> Result<(), SlotError> {
        let mut prober = Prober::new(context, subject, number, end.engine_id, &self.rules);
        let way = Way::of(end);
        let again = prober.probe(case)?.filter(|again| Way::of(again) == way);
        let Some(again) = again else {
            end.notes
                .push("not shrunk: the case did not fail a second time".to_owned());
            return Ok(());
        };
        let shrunk = shrink(case, &way, LIMITS, &mut |case| prober.probe(case))?;
        let smallest = shrunk.end.unwrap_or(again);
        end.shrunk = Some(shrunk.case.id.clone());
        let text = regression(&Regression {
            end: &smallest,
            from: &case.id,
            seed: context.options.seed,
        });
        fs::create_dir_all(&self.folder)?;
        let hash = dnn_assay_abi::engine_id(&shrunk.case.id).cast_unsigned() as u32;
        let op = shrunk.case.case.op();
        let path = self.folder.join(format!("{op}-{hash:08x}.yaml"));
        fs::write(path, text)?;
        Ok(())
    }
}
