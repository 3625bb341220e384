//! What can be said of a case, and the rules that combine it. The only place where verdicts are
//! made into a result.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The outcome of one plan unit: a case on an engine of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "verdict", content = "kind", rename_all = "kebab-case")]
pub enum Verdict {
    /// Judged, and every element lies within its bound.
    Pass,
    /// Judged or observed, and wrong.
    Fail(FailKind),
    /// Judged, but the criterion would accept a decoy too: it counts for nothing.
    Weak,
    /// The engine declined the graph.
    Unsupported,
    /// Not run, for a reason that was known beforehand.
    Skipped(SkipReason),
    /// The plugin ended the worker.
    Crash(Death),
    /// The plugin did not return in time.
    Timeout(Phase),
    /// Different verdicts in several attempts.
    Flaky,
    /// Failed, and a waiver expected it.
    ExpectedFail,
    /// Passed, although a waiver expected a failure.
    UnexpectedPass,
    /// Planned, but the run ended before it.
    NotRun(NotRunReason),
    /// Planned, and no record says what became of it.
    Missing,
}

/// What is wrong about a failed case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailKind {
    /// An element lies outside its bound.
    Numeric,
    /// NaN or infinity where the reference is finite, or the reverse.
    NotFinite,
    /// Integer data, an engine declared `rn`, and bits that differ.
    Inexact,
    /// Outside the bound, but inside that of a trait the engine did not declare.
    UndeclaredTrait,
    /// An output element was never written.
    Unwritten,
    /// Memory before a buffer was written.
    GuardBefore,
    /// Memory after a buffer was written.
    GuardAfter,
    /// The workspace was overrun or misreported.
    Workspace,
    /// An input was changed.
    InputChanged,
    /// Two runs of the same case differ.
    Nondeterministic,
    /// A call returned an error status.
    Status,
    /// The engine accepted a graph that it computes wrongly by design.
    OverClaim,
    /// A contract of the C ABI was broken.
    Abi,
    /// Endless output on stdout, stderr or the log callback.
    Flood,
    /// Something was not given back.
    Leak,
}

impl FailKind {
    /// Whether the outputs' values are wrong, and nothing else was found.
    pub const fn is_of_values(self) -> bool {
        matches!(
            self,
            Self::Numeric | Self::NotFinite | Self::Inexact | Self::UndeclaredTrait
        )
    }
}

/// Why a case was not run although it was planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// The memory kind of the plugin has no device here.
    NoDevice,
    /// The plugin's engine API version is below what the graph needs.
    ApiVersion,
    /// The plugin's wire generation cannot express the graph.
    Wire,
    /// The case does not fit into memory.
    Memory,
    /// The reference cannot compute the graph yet.
    NoReference,
    /// `--until` asked for less than judgement.
    Until,
}

/// How a worker died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Death {
    /// Killed by this signal.
    Signal(i32),
    /// Exited with this code.
    Exit(i32),
}

/// A phase of a case in the worker; each has a time limit of its own.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Opening the library, its constructors, the load sequence, Create.
    #[default]
    Load,
    /// Applicability, details, workspace size, context creation.
    Plan,
    /// ExecuteOpGraph.
    Execute,
    /// Destroying contexts, details and handles.
    Destroy,
}

/// Why a planned case was not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotRunReason {
    /// `--budget` or `--max-fails` ended the run.
    Budget,
    /// The device was lost.
    DeviceLost,
    /// Ctrl-C or a termination signal.
    Interrupted,
}

/// How far a case came.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Depth {
    /// Nothing happened.
    #[default]
    None,
    /// The plugin was loaded.
    Loaded,
    /// The engine offered itself for the graph.
    Applicable,
    /// An execution context exists.
    Planned,
    /// ExecuteOpGraph returned.
    Executed,
    /// The output was compared.
    Judged,
}

impl Verdict {
    /// Whether the case was verified: judged, and found right or wrong. `Weak` was not.
    pub fn is_verified(&self) -> bool {
        matches!(self, Self::Pass | Self::Fail(_))
    }

    /// Whether the verdict makes a run red: exit code 1.
    pub fn is_red(&self) -> bool {
        matches!(
            self,
            Self::Fail(_) | Self::Crash(_) | Self::Timeout(_) | Self::UnexpectedPass | Self::Flaky
        )
    }

    /// Whether the verdict makes a run incomplete: exit code 7.
    pub fn is_incomplete(&self) -> bool {
        matches!(self, Self::Missing | Self::NotRun(_))
    }

    /// What the verdict becomes under a waiver: an expected failure is no longer red, and a pass
    /// is, where the waiver is `strict`. All else stays.
    pub fn under_waiver(&self, expects: impl Fn(&Self) -> bool, strict: bool) -> Self {
        match self {
            Self::Pass if strict => Self::UnexpectedPass,
            other if other.is_red() && expects(other) => Self::ExpectedFail,
            other => other.clone(),
        }
    }

    /// The verdict without its kind: `pass`, `fail`, `not-run`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail(_) => "fail",
            Self::Weak => "weak",
            Self::Unsupported => "unsupported",
            Self::Skipped(_) => "skipped",
            Self::Crash(_) => "crash",
            Self::Timeout(_) => "timeout",
            Self::Flaky => "flaky",
            Self::ExpectedFail => "expected-fail",
            Self::UnexpectedPass => "unexpected-pass",
            Self::NotRun(_) => "not-run",
            Self::Missing => "missing",
        }
    }
}

/// A verdict that a waiver expects: `fail`, `fail(numeric)`, `crash(SIGSEGV)`, `timeout`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerdictPattern(String);

impl VerdictPattern {
    /// The names of the verdicts that can be expected.
    const NAMES: [&'static str; 4] = ["fail", "crash", "timeout", "flaky"];

    /// Reads the name of a red verdict, with or without its kind.
    ///
    /// # Errors
    /// What is wrong, with the nearest known name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (name, kind) = match text.strip_suffix(')').and_then(|t| t.split_once('(')) {
            Some((name, kind)) => (name, Some(kind)),
            None => (text, None),
        };
        check_name("verdict", name, &Self::NAMES)?;
        let fail_kinds = FailKind::ALL.map(FailKind::name);
        let phases = Phase::ALL.map(Phase::name);
        match (name, kind) {
            ("fail", Some(kind)) => check_name("kind of failure", kind, &fail_kinds)?,
            ("timeout", Some(phase)) => check_name("phase", phase, &phases)?,
            ("flaky", Some(_)) => return Err("`flaky` has no kinds".to_owned()),
            _ => {}
        }
        Ok(Self(text.to_owned()))
    }

    /// Patterns that together match every red verdict but an unexpected pass.
    pub fn any_red() -> Vec<Self> {
        Self::NAMES.map(|name| Self(name.to_owned())).to_vec()
    }

    /// Whether the verdict is meant.
    pub fn matches(&self, verdict: &Verdict) -> bool {
        self.0 == verdict.name() || self.0 == verdict.to_string()
    }
}

fn check_name(what: &str, name: &str, known: &[&'static str]) -> Result<(), String> {
    if known.contains(&name) {
        return Ok(());
    }
    let near = crate::yaml::nearest(name, known.iter().copied());
    let hint = near.map_or_else(String::new, |near| format!(", did you mean `{near}`?"));
    Err(format!(
        "`{name}` is no {what}{hint}; known are {}",
        known.join(", ")
    ))
}

impl fmt::Display for VerdictPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! display_names {
    ($($type:ident { $($variant:ident => $text:literal),* $(,)? })*) => {
        $(
            impl $type {
                /// All of them, in the order of their declaration.
                pub const ALL: [Self; [$(stringify!($variant)),*].len()] = [$(Self::$variant),*];

                /// The name used in journals, reports and filters.
                pub const fn name(self) -> &'static str {
                    match self { $(Self::$variant => $text,)* }
                }
            }

            impl fmt::Display for $type {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(self.name())
                }
            }
        )*
    };
}

display_names! {
    FailKind {
        Numeric => "numeric", NotFinite => "not-finite", Inexact => "inexact",
        UndeclaredTrait => "undeclared-trait", Unwritten => "unwritten",
        GuardBefore => "guard-before", GuardAfter => "guard-after", Workspace => "workspace",
        InputChanged => "input-changed", Nondeterministic => "nondeterministic",
        Status => "status", OverClaim => "over-claim", Abi => "abi", Flood => "flood",
        Leak => "leak",
    }
    SkipReason {
        NoDevice => "no-device", ApiVersion => "api-version", Wire => "wire", Memory => "memory",
        NoReference => "no-reference", Until => "until",
    }
    Phase { Load => "load", Plan => "plan", Execute => "execute", Destroy => "destroy" }
    NotRunReason { Budget => "budget", DeviceLost => "device-lost", Interrupted => "interrupted" }
    Depth {
        None => "none", Loaded => "loaded", Applicable => "applicable", Planned => "planned",
        Executed => "executed", Judged => "judged",
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "{name}"),
                None => write!(f, "signal {signal}"),
            },
            Self::Exit(code) => write!(f, "exit code {code}"),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Fail(kind) => write!(f, "({kind})"),
            Self::Skipped(reason) => write!(f, "({reason})"),
            Self::Crash(death) => write!(f, "({death})"),
            Self::Timeout(phase) => write!(f, "({phase})"),
            Self::NotRun(reason) => write!(f, "({reason})"),
            _ => Ok(()),
        }
    }
}

/// The usual name of a signal on Linux.
pub fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_form_round_trips() {
        for verdict in [
            Verdict::Pass,
            Verdict::Fail(FailKind::GuardAfter),
            Verdict::Crash(Death::Signal(11)),
            Verdict::Timeout(Phase::Execute),
            Verdict::Skipped(SkipReason::NoDevice),
            Verdict::NotRun(NotRunReason::DeviceLost),
            Verdict::Missing,
        ] {
            let text = serde_json::to_string(&verdict).expect("a verdict is plain data");
            assert_eq!(
                serde_json::from_str::<Verdict>(&text).expect("what was written is read"),
                verdict
            );
        }
        assert_eq!(
            serde_json::to_string(&Verdict::Fail(FailKind::Numeric)).expect("plain data"),
            r#"{"verdict":"fail","kind":"numeric"}"#
        );
        assert_eq!(
            Verdict::Crash(Death::Signal(11)).to_string(),
            "crash(SIGSEGV)"
        );
    }

    #[test]
    fn weak_and_declined_are_neither_verified_nor_red() {
        for verdict in [
            Verdict::Weak,
            Verdict::Unsupported,
            Verdict::Skipped(SkipReason::NoDevice),
        ] {
            assert!(!verdict.is_verified() && !verdict.is_red() && !verdict.is_incomplete());
        }
        assert!(Verdict::Missing.is_incomplete() && !Verdict::Missing.is_red());
        assert!(Verdict::Fail(FailKind::Abi).is_red() && Verdict::Flaky.is_red());
    }
}
