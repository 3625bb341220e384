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

macro_rules! display_names {
    ($($type:ident { $($variant:ident => $text:literal),* $(,)? })*) => {
        $(
            impl $type {
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
