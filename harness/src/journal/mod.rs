//! The journal of a run: one JSON object per line, written as things happen. Every report is a
//! pure function of it.

mod forms;
mod journal_file;
mod reader;
mod record;
mod sampled;
mod summary;
mod writer;

pub use journal_file::{Attempt, Journal, Unit};
pub use reader::{JournalError, read, read_bytes};
pub use record::{
    CaseEnd, CaseStart, DeviceIdentity, EngineRecord, Host, Infra, InfraKind, MismatchGeometry,
    PluginError, PluginRecord, Record, RunEnd, RunStart, SCHEMA, Shard, Times, UnitKey, Worst,
};
pub use sampled::{Miss, SampledRecord, SumsRecord};
pub use summary::{DecoyCount, Slow, Summary, WorstMargin};
pub use writer::JournalWriter;

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
