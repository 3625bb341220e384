//! What a run is held to beside its bounds: claims (what must be accepted), waivers (what is known
//! to fail) and floors. Applied to each case's verdict before it is written.

mod claims;
mod document;
mod finding;
mod globs;
mod overrides;
mod range;
mod subject;
mod upstream;
mod waiver;

#[cfg(test)]
mod tests;

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::civil::Date;

pub use claims::{ClaimEntry, Claims, GoneEngine, claims_yaml, recorded};
pub use document::{Expected, Origin, check_schema, read_document, read_waivers};
pub use finding::{Observed, known_rules};
pub use overrides::{Overrides, Ruling, Validator};
pub use range::VersionRange;
pub use subject::{Subject, is_arch};
pub use upstream::UpstreamConfig;
pub use waiver::{FINDING, Waiver, WaiverEntry, Waivers};

use crate::journal::{CaseEnd, Journal, PluginRecord};
use crate::plan;
use crate::verdict::{FailKind, Verdict};

/// The tag of cases that an engine may decline, but must not accept and compute wrongly.
pub const OVER_ACCEPTANCE: &str = "over-acceptance";

/// What a run is held to. The empty gate changes nothing.
#[derive(Debug, Default)]
pub struct Gate {
    /// What is known to fail.
    pub waivers: Waivers,
    /// What must be accepted.
    pub claims: Claims,
    /// Least number of verified units per engine.
    pub floors: Vec<(String, u64)>,
    /// What hipDNN's own test configuration asks for and this program does not do.
    pub remarks: Vec<String>,
    /// Criteria that hipDNN's own test configuration asks for.
    pub overrides: Overrides,
    nightly: bool,
    today: Date,
    arch: Option<String>,
    rocm: Option<String>,
    seen: Mutex<Seen>,
}

/// What the run has shown so far.
#[derive(Debug, Default)]
struct Seen {
    plugins: Vec<PluginRecord>,
    waivers: Vec<bool>,
}

impl Gate {
    /// A gate for a run on `today`; `nightly` makes expired waivers void.
    pub fn new(waivers: Waivers, claims: Claims, nightly: bool, today: Date) -> Self {
        Self {
            seen: Mutex::new(Seen {
                plugins: Vec::new(),
                waivers: vec![false; waivers.len()],
            }),
            waivers,
            claims,
            nightly,
            today,
            ..Self::default()
        }
    }

    /// The device of the run, for entries that hold on some only.
    pub fn on_device(&mut self, arch: Option<String>, rocm: Option<String>) {
        self.arch = arch;
        self.rocm = rocm;
    }

    /// The architecture of the run's device, where it has one that is known.
    pub fn arch(&self) -> Option<&str> {
        self.arch.as_deref()
    }

    /// A plugin was examined.
    pub fn see_plugin(&self, record: &PluginRecord) {
        self.lock().plugins.push(record.clone());
    }

    /// The verdict after claims and waivers, with what was said of it in `reason` and `notes`.
    pub fn apply(&self, end: &mut CaseEnd) {
        over_acceptance(end);
        if self.waivers.is_empty() && self.claims.is_empty() {
            return;
        }
        let mut seen = self.lock();
        let record = seen.plugins.iter().find(|p| p.plugin == end.plugin);
        let subject = Subject::new(end, record, self.arch.as_deref(), self.rocm.as_deref());
        self.apply_claims(end, &subject);
        self.apply_waivers(end, &subject, &mut seen.waivers);
    }

    fn apply_claims(&self, end: &mut CaseEnd, subject: &Subject) {
        if end.verdict != Verdict::Unsupported {
            return;
        }
        if let Some(claim) = self.claims.find(subject) {
            end.verdict = Verdict::Fail(FailKind::OverClaim);
            end.reason = Some(format!(
                "claimed at {}, and the engine declines it",
                claim.origin
            ));
        }
    }

    fn apply_waivers(&self, end: &mut CaseEnd, subject: &Subject, used: &mut [bool]) {
        let mut other = None;
        for (index, waiver) in self.waivers.iter().enumerate() {
            if !waiver.is_for(subject) {
                continue;
            }
            used[index] = true;
            if self.nightly && waiver.is_expired(self.today) {
                end.notes.push(format!(
                    "the waiver at {} expired on {}",
                    waiver.origin,
                    waiver.expiry()
                ));
                continue;
            }
            let verdict = end
                .verdict
                .under_waiver(|v| waiver.expects(v), waiver.is_strict());
            if verdict != end.verdict {
                end.reason = Some(waiver.account(end));
                end.verdict = verdict;
                return;
            }
            if end.verdict.is_red() {
                other = Some(waiver);
            }
        }
        if let Some(waiver) = other {
            end.notes.push(format!(
                "the waiver at {} expects {}, not this",
                waiver.origin,
                waiver.expected()
            ));
        }
    }

    /// Claims of engines that no plugin of the run has. `None` where a plugin could not be used,
    /// for then nothing is known of its engines.
    pub fn gone_engine(&self) -> Option<GoneEngine> {
        let seen = self.lock();
        if seen.plugins.iter().any(|plugin| plugin.error.is_some()) {
            return None;
        }
        let engines: Vec<plan::Engine> = seen
            .plugins
            .iter()
            .flat_map(|plugin| &plugin.engines)
            .map(|engine| plan::Engine {
                id: engine.id,
                name: engine.name.clone(),
            })
            .collect();
        self.claims.gone_engine(&engines)
    }

    /// What is to be said of the entries themselves once every case has run: expired, and without
    /// a case or finding. `whole` says that the run took whole suites: with `--case` or `--filter`
    /// an entry without a case means nothing. `staged` says that rules and contracts were looked at.
    pub fn remarks(&self, whole: bool, staged: bool) -> Vec<String> {
        let seen = self.lock();
        let mut remarks = self.remarks.clone();
        for (waiver, used) in self.waivers.iter().zip(&seen.waivers) {
            if waiver.is_expired(self.today) {
                let effect = if self.nightly {
                    "it is void"
                } else {
                    "it is void with --nightly"
                };
                remarks.push(format!(
                    "the waiver at {} expired on {}: {effect} ({}, {})",
                    waiver.origin,
                    waiver.expiry(),
                    waiver.owner,
                    waiver.link
                ));
            }
            let may_match = seen.plugins.iter().any(|plugin| {
                waiver.is_for_plugin(plugin, self.arch.as_deref(), self.rocm.as_deref())
            });
            let (what, complete) = match waiver.is_for_findings() {
                true => ("finding that was looked for", staged),
                false => ("case", whole),
            };
            if complete && !used && may_match {
                remarks.push(format!(
                    "the waiver at {} matched no {what}: remove it, or mend {}",
                    waiver.origin,
                    waiver.selector()
                ));
            }
        }
        remarks
    }

    /// The first engine with fewer verified units than its floor asks for, said for people.
    pub fn unmet_floor(&self, journal: &Journal) -> Option<String> {
        let units = journal.units();
        self.floors.iter().find_map(|(engine, least)| {
            let verified = units
                .iter()
                .filter(|unit| unit.verdict.is_verified())
                .filter(|unit| crate::report::engine_argument(journal, &unit.key) == *engine)
                .count() as u64;
            (verified < *least).then(|| {
                format!("{engine}: {verified} cases verified, and its floor asks for {least}")
            })
        })
    }

    /// Whether an entry has expired in a run that minds: exit code 6 where nothing is worse.
    pub fn is_out_of_date(&self) -> bool {
        self.nightly && self.waivers.iter().any(|w| w.is_expired(self.today))
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An engine that takes a case of this sort and computes it wrongly claims more than it can.
fn over_acceptance(end: &mut CaseEnd) {
    use FailKind::{Inexact, NotFinite, Numeric, UndeclaredTrait};
    let is_wrong = matches!(
        end.verdict,
        Verdict::Fail(Numeric | NotFinite | Inexact | UndeclaredTrait)
    );
    if is_wrong && end.tags.iter().any(|tag| tag == OVER_ACCEPTANCE) {
        let seen = end.reason.take().unwrap_or_else(|| end.verdict.to_string());
        end.verdict = Verdict::Fail(FailKind::OverClaim);
        end.reason = Some(format!(
            "the engine accepts a graph that it could have declined, and computes it wrongly: {seen}"
        ));
    }
}
