//! One case on one engine: what is known of it when it is handed over, and the end that it comes to.

use std::time::Instant;

use dnn_assay_graph::wire::KnobSetting;

use crate::journal::{CaseEnd, UnitKey};
use crate::judge::{Finding, Rules};
use crate::plan::Engine;
use crate::suite::SuiteCase;
use crate::verdict::Depth;

/// What is known of a case when it is handed to an engine.
pub(super) struct Unit<'a> {
    pub case: &'a SuiteCase,
    pub engine: &'a Engine,
    /// The rules of the run, with the traits of this unit.
    pub rules: Rules,
    pub started: Instant,
    /// The knobs that are set.
    pub knobs: Vec<KnobSetting>,
}

impl Unit<'_> {
    /// The end with this finding, at this depth.
    pub(super) fn end(&self, finding: Finding, depth: Depth) -> CaseEnd {
        let key = UnitKey {
            plugin: 0,
            engine_id: self.engine.id,
            case: self.case.id.clone(),
        };
        let mut end = CaseEnd::new(key, 1, finding.verdict);
        end.engine = self.engine.name.clone();
        end.attempts = Some(1);
        let knobs = self.knobs.iter();
        end.knobs = knobs
            .map(|knob| {
                (
                    knob.knob_id.clone(),
                    crate::conform::knob::show(&knob.value),
                )
            })
            .collect();
        end.reason = Some(finding.reason).filter(|reason| !reason.is_empty());
        end.phase = finding.phase;
        end.depth = depth;
        end.traits = self.rules.traits.iter().map(|t| t.to_string()).collect();
        end.tier = Some(self.case.tier.to_string());
        end.tags = self.case.tags.to_vec();
        end.ranges = (*self.case.ranges).clone();
        end.times.total_ms = Some(self.started.elapsed().as_secs_f64() * 1e3);
        if end.verdict.is_red() {
            end.file = Some(self.case.origin.file().to_owned());
            end.line = self.case.origin.line();
        }
        end
    }

    /// A finding takes the place of a pass.
    pub(super) fn turn_red(&self, finding: Finding, end: &mut CaseEnd) {
        let red = self.end(finding, end.depth);
        end.verdict = red.verdict;
        end.reason = red.reason;
        end.phase = red.phase;
        (end.file, end.line) = (red.file, red.line);
    }
}
