//! How the plugin's calls ended.

use dnn_assay_abi::PluginStatus;

use super::Finding;
use crate::verdict::{Death, FailKind, Phase, SkipReason, Verdict};
use crate::worker::{CaseResult, Exit, Phase as Step};

/// The verdict that follows from the calls alone; `None` where they all succeeded.
pub fn judge_calls(result: &CaseResult) -> Option<Finding> {
    let finding = match result {
        CaseResult::Ok => return None,
        CaseResult::Declined => Finding::new(Verdict::Unsupported, "the engine declines the graph"),
        CaseResult::CallFailed { call, status, text } => Finding::new(
            Verdict::Fail(FailKind::Status),
            format!("{call} returned {}: {}", PluginStatus(*status), said(text)),
        ),
        CaseResult::Violation { call, what } => {
            Finding::new(Verdict::Fail(FailKind::Abi), format!("{call}: {what}"))
        }
        CaseResult::NoMemory { text, .. } => {
            Finding::new(Verdict::Skipped(SkipReason::Memory), text.as_str())
        }
        CaseResult::Execution(text) => Finding::new(
            Verdict::Fail(FailKind::Status),
            format!("ExecuteOpGraph returned SUCCESS, and then the device had an error: {text}"),
        ),
        CaseResult::Device(text) => Finding::new(
            Verdict::Skipped(SkipReason::NoDevice),
            format!("the device failed: {text}"),
        ),
        CaseResult::Crash(crash) => Finding {
            verdict: Verdict::Crash(death(crash.exit)),
            reason: format!("the worker ended with {crash}{}", killer(crash.exit)),
            phase: Some(phase(crash.phase)),
        },
        CaseResult::Timeout { phase: step, .. } => Finding {
            verdict: Verdict::Timeout(phase(*step)),
            reason: format!("no return from phase {step} within its limit"),
            phase: Some(phase(*step)),
        },
        CaseResult::Flood { phase: step, limit } => Finding {
            verdict: Verdict::Fail(FailKind::Flood),
            reason: format!("more than {limit} bytes of output in phase {step}"),
            phase: Some(phase(*step)),
        },
        CaseResult::Broken(what) => Finding::new(
            Verdict::Crash(Death::Exit(0)),
            format!("the worker's channel was damaged: {what}"),
        ),
    };
    Some(finding)
}

fn said(text: &str) -> &str {
    if text.is_empty() {
        "(no last-error text)"
    } else {
        text
    }
}

/// Who may have sent a signal that no fault of a program raises.
fn killer(exit: Exit) -> &'static str {
    match exit {
        Exit::Signal(9) => {
            ", which this program did not send; the system does where memory runs out"
        }
        _ => "",
    }
}

fn death(exit: Exit) -> Death {
    match exit {
        Exit::Signal(signal) => Death::Signal(signal),
        Exit::Code(code) => Death::Exit(code),
        Exit::Unknown => Death::Exit(-1),
    }
}

/// The phase of the time limits that a worker's step belongs to.
pub fn phase(step: Step) -> Phase {
    match step {
        Step::Start | Step::Load | Step::Create => Phase::Load,
        Step::Applicable | Step::Details | Step::Workspace | Step::Plan => Phase::Plan,
        Step::Execute => Phase::Execute,
        Step::Destroy | Step::Idle | Step::Exit => Phase::Destroy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::Crash;

    #[test]
    fn each_end_has_its_verdict() {
        for (signal, is_killed) in [(11, false), (9, true)] {
            let crash = CaseResult::Crash(Crash {
                exit: Exit::Signal(signal),
                phase: Step::Execute,
                stderr: String::new(),
                guard: None,
            });
            let finding = judge_calls(&crash).expect("a crash is a finding");
            assert_eq!(finding.verdict, Verdict::Crash(Death::Signal(signal)));
            assert_eq!(finding.phase, Some(Phase::Execute));
            assert_eq!(finding.reason.contains("memory runs out"), is_killed);
        }

        let failed = CaseResult::CallFailed {
            call: "ExecuteOpGraph".to_owned(),
            status: 3,
            text: String::new(),
        };
        let finding = judge_calls(&failed).expect("an error status is a finding");
        assert_eq!(finding.verdict, Verdict::Fail(FailKind::Status));
        assert!(finding.reason.contains("INTERNAL_ERROR") && finding.reason.contains("no last"));

        let declined = judge_calls(&CaseResult::Declined).expect("declining is said");
        assert_eq!(declined.verdict, Verdict::Unsupported);
        assert!(judge_calls(&CaseResult::Ok).is_none());
    }
}
