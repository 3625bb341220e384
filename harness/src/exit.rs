//! Exit codes, and which of several wins. The only place where they have numbers.

use std::process::ExitCode;

/// How a command ends. The numbers are a contract with pipelines: 5 may be retried, 1 never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// Everything is as expected.
    Ok = 0,
    /// A case failed, crashed, timed out, was flaky, or passed against a waiver.
    Failed = 1,
    /// The command line or a configuration file is wrong.
    Usage = 2,
    /// A plugin could not be loaded, or breaks the required ABI.
    Plugin = 3,
    /// Nothing, or less than the required minimum, was verified, and nothing failed.
    NothingVerified = 4,
    /// A device or the infrastructure failed, or a required device is absent.
    Infrastructure = 5,
    /// The baseline is out of date.
    Baseline = 6,
    /// Cases are missing or were not run.
    Incomplete = 7,
    /// No device, and `DNN_ASSAY_SKIP_IF_NO_DEVICE=1` makes that a skip.
    Skip = 77,
    /// Interrupted; reports were written.
    Interrupted = 130,
}

/// From the code that wins over all others to the one that any other beats.
const PRECEDENCE: [Exit; 10] = [
    Exit::Interrupted,
    Exit::Usage,
    Exit::Infrastructure,
    Exit::Plugin,
    Exit::Incomplete,
    Exit::Failed,
    Exit::Baseline,
    Exit::Skip,
    Exit::NothingVerified,
    Exit::Ok,
];

impl Exit {
    /// The number that the process ends with.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// One line that says what the code means.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "as expected",
            Self::Failed => "a case failed, crashed, timed out, was flaky, or passed unexpectedly",
            Self::Usage => "wrong usage or configuration",
            Self::Plugin => "a plugin could not be loaded or breaks the required ABI",
            Self::NothingVerified => "nothing was verified, or less than --min-verified",
            Self::Infrastructure => "device or infrastructure failure, or a required device absent",
            Self::Baseline => "the baseline is out of date",
            Self::Incomplete => "cases are missing or were not run",
            Self::Skip => "no device, and DNN_ASSAY_SKIP_IF_NO_DEVICE=1",
            Self::Interrupted => "interrupted; reports were written",
        }
    }

    /// All codes in ascending order, for the help text.
    pub const ALL: [Self; 10] = [
        Self::Ok,
        Self::Failed,
        Self::Usage,
        Self::Plugin,
        Self::NothingVerified,
        Self::Infrastructure,
        Self::Baseline,
        Self::Incomplete,
        Self::Skip,
        Self::Interrupted,
    ];

    /// The code that wins where several apply: 130, then 2 > 5 > 3 > 7 > 1 > 6 > 77 > 4 > 0.
    pub fn strongest(codes: impl IntoIterator<Item = Self>) -> Self {
        let rank = |code: &Self| PRECEDENCE.iter().position(|p| p == code);
        codes.into_iter().min_by_key(rank).unwrap_or(Self::Ok)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infrastructure_beats_a_failure_and_a_failure_beats_nothing_verified() {
        assert_eq!(
            Exit::strongest([Exit::Failed, Exit::Infrastructure, Exit::Ok]),
            Exit::Infrastructure
        );
        assert_eq!(
            Exit::strongest([Exit::NothingVerified, Exit::Failed]),
            Exit::Failed
        );
        assert_eq!(
            Exit::strongest([Exit::Incomplete, Exit::Plugin]),
            Exit::Plugin
        );
        assert_eq!(Exit::strongest([]), Exit::Ok);
        assert!(Exit::ALL.iter().all(|code| PRECEDENCE.contains(code)));
    }
}
