//! One case's evidence to one verdict. Three witnesses are heard in turn: how the calls ended,
//! what happened to the memory around the tensors, and what the tensors hold.

mod bias;
mod calls;
mod declared;
mod diagnosis;
mod geometry;
mod looked;
mod memory;
mod overflow;
mod repeats;
mod rules;
mod sampled;
mod separating;
mod undeclared;
mod values;

pub use calls::judge_calls;
pub use declared::{Declared, ScopeEntry, TraitEntry, Unit};
pub use looked::{Looked, look};
pub use memory::{is_suspicious, judge_memory};
pub use overflow::overflow_named;
pub use repeats::judge_repeats;
pub use rules::{Rules, WEAK_ALLOWED, exactness_note};
pub use sampled::{SampledValues, Sampling, judge_samples};
pub use separating::separating_cases;
pub use values::{Values, judge_values};

use crate::verdict::{Phase, Verdict};

/// What a witness says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The verdict.
    pub verdict: Verdict,
    /// One line for people.
    pub reason: String,
    /// Where it happened, for calls.
    pub phase: Option<Phase>,
}

impl Finding {
    fn new(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self {
            verdict,
            reason: reason.into(),
            phase: None,
        }
    }
}
