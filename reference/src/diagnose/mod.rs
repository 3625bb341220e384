//! What is wrong with an output, once it is known to be wrong: where its wrong elements lie, and
//! which known fault would have given just this output.
//!
//! A fault is named only if the output that it would give matches what was seen everywhere, within
//! the bound, and differs from the truth beyond the bound somewhere.

mod agreement;
mod batchnorm;
mod conv;
mod geometry;
mod hypotheses;
mod inputs;
mod layout;
mod nodes;
mod outputs;
mod precision;
mod run;
mod samples;
mod scene;
mod window;

pub use geometry::{Geometry, geometry};
pub use hypotheses::{HYPOTHESES, Hypothesis, Operation, hypothesis};
pub use run::{BUDGET, Diagnosis, MOST_NAMES, Named, Observed, diagnose, diagnose_samples};
