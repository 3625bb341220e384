//! What a conformance run found: the data of every report.

use serde::Serialize;

use super::check::Level;

/// All plugins, then all pairs.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The mildest level whose findings fail.
    pub level: Level,
    /// One per plugin or pair.
    pub subjects: Vec<SubjectReport>,
}

/// A plugin or a pair of plugins.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SubjectReport {
    /// The files.
    pub files: Vec<String>,
    /// What is known of them: label and text.
    pub facts: Vec<(String, String)>,
    /// Why it could not be examined at all, and whether the plugin is the reason.
    pub refused: Option<Refusal>,
    /// What the checks gave.
    pub results: Vec<CheckResult>,
}

/// Why there are no checks.
#[derive(Clone, Debug, Serialize)]
pub struct Refusal {
    /// What was said.
    pub message: String,
    /// The plugin cannot be loaded; else it is something that executes nothing.
    pub defect: bool,
}

/// One check's end.
#[derive(Clone, Debug, Serialize)]
pub struct CheckResult {
    /// The check's id.
    pub id: String,
    /// Its level.
    pub level: Level,
    /// What must hold.
    pub why: String,
    /// Where that is written.
    pub link: String,
    /// How it ended.
    pub outcome: OutcomeKind,
    /// The finding, the reason or a note.
    pub text: String,
    /// Time, seconds.
    pub seconds: f64,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeKind {
    /// The contract holds.
    Passed,
    /// It does not.
    Finding,
    /// There was nothing to check.
    NotApplicable,
    /// The machine failed.
    Error,
}

impl SubjectReport {
    /// The findings of a level.
    pub fn findings(&self, level: Level) -> impl Iterator<Item = &CheckResult> {
        self.results
            .iter()
            .filter(move |result| result.level == level && result.outcome == OutcomeKind::Finding)
    }

    /// The mildest level up to which there is no finding; `None` where a required check fails.
    pub fn reached(&self) -> Option<Level> {
        if self.refused.as_ref().is_some_and(|refusal| refusal.defect) {
            return None;
        }
        let clean = |level: &Level| self.findings(*level).next().is_none();
        Level::ALL.into_iter().take_while(clean).last()
    }

    /// Results of a kind.
    pub fn count(&self, outcome: OutcomeKind) -> usize {
        self.results.iter().filter(|r| r.outcome == outcome).count()
    }
}

impl Report {
    /// The exit code: 3 for a plugin that cannot be loaded, 1 for a finding at the level or above
    /// it, 5 where the machine failed.
    pub fn exit(&self) -> crate::exit::Exit {
        use crate::exit::Exit;
        let of = |subject: &SubjectReport| {
            let refused = subject.refused.as_ref().is_some_and(|r| r.defect);
            let failed = subject
                .results
                .iter()
                .any(|r| r.outcome == OutcomeKind::Finding && r.level <= self.level);
            let broken = subject.count(OutcomeKind::Error) > 0;
            Exit::strongest([
                if refused { Exit::Plugin } else { Exit::Ok },
                if failed { Exit::Failed } else { Exit::Ok },
                if broken {
                    Exit::Infrastructure
                } else {
                    Exit::Ok
                },
            ])
        };
        Exit::strongest(self.subjects.iter().map(of))
    }
}
