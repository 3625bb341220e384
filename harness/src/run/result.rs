//! From a journal to the exit code.

use super::context::Context;
use crate::exit::Exit;
use crate::journal::{InfraKind, Journal, Unit};
use crate::verdict::{SkipReason, Verdict};

/// The code that the run of `journal` ends with.
pub fn exit_of(context: &Context, journal: &Journal, environment: Environment) -> Exit {
    let summary = journal.summary();
    let units = journal.units();
    let mut codes = Vec::new();
    if context.stop.interrupted() {
        codes.push(Exit::Interrupted);
    }
    if summary.plugin_errors > 0 {
        codes.push(Exit::Plugin);
    }
    let is_red = |unit: &Unit<'_>| match &unit.verdict {
        Verdict::Flaky => !context.options.allow_flaky,
        other => other.is_red() || context.is_made_red(other),
    };
    if units.iter().any(is_red) {
        codes.push(Exit::Failed);
    }
    if summary.missing > 0 || units.iter().any(|unit| unit.verdict.is_incomplete()) {
        codes.push(Exit::Incomplete);
    }
    if context.stop.has_lost_device() {
        codes.push(Exit::Infrastructure);
    }
    if environment.require_device && units.iter().any(has_no_device) {
        codes.push(Exit::Infrastructure);
    }
    for infra in &journal.infra {
        match infra.kind {
            InfraKind::Finding => codes.push(Exit::Failed),
            InfraKind::Unchecked => codes.push(Exit::Infrastructure),
            _ => {}
        }
    }
    if context.gate.is_out_of_date() {
        codes.push(Exit::Baseline);
    }
    if context.judges() && context.gate.unmet_floor(journal).is_some() {
        codes.push(Exit::NothingVerified);
    }
    if summary.verified < context.options.min_verified && context.judges() {
        codes.push(nothing_verified(&units, environment));
    }
    Exit::strongest(codes)
}

fn has_no_device(unit: &Unit<'_>) -> bool {
    unit.verdict == Verdict::Skipped(SkipReason::NoDevice)
}

/// 77 only where it is asked for and the missing device is the only reason.
fn nothing_verified(units: &[Unit<'_>], environment: Environment) -> Exit {
    let mut unverified = units.iter().filter(|unit| !unit.verdict.is_verified());
    let only_the_device = !units.is_empty() && unverified.all(has_no_device);
    if environment.skip_if_no_device && only_the_device {
        Exit::Skip
    } else {
        Exit::NothingVerified
    }
}

/// What the environment asks for where there is no device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `DNN_ASSAY_REQUIRE_DEVICE=1`.
    pub require_device: bool,
    /// `DNN_ASSAY_SKIP_IF_NO_DEVICE=1`.
    pub skip_if_no_device: bool,
}

impl Environment {
    /// Reads both variables.
    ///
    /// # Errors
    /// A message where both are set: they contradict each other.
    pub fn read() -> Result<Self, String> {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| value == "1");
        Self::new(
            is_set("DNN_ASSAY_REQUIRE_DEVICE"),
            is_set("DNN_ASSAY_SKIP_IF_NO_DEVICE"),
        )
    }

    fn new(require_device: bool, skip_if_no_device: bool) -> Result<Self, String> {
        if require_device && skip_if_no_device {
            return Err(
                "DNN_ASSAY_REQUIRE_DEVICE=1 and DNN_ASSAY_SKIP_IF_NO_DEVICE=1 contradict each \
                 other; unset one"
                    .to_owned(),
            );
        }
        Ok(Self {
            require_device,
            skip_if_no_device,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::UnitKey;
    use crate::verdict::FailKind;

    fn unit(verdict: Verdict) -> Unit<'static> {
        Unit {
            key: UnitKey {
                plugin: 0,
                engine_id: 1,
                case: "c".to_owned(),
            },
            verdict,
            attempts: Vec::new(),
        }
    }

    #[test]
    fn a_skip_is_77_only_if_asked_for_and_only_the_device_is_missing() {
        let asked = Environment::new(false, true).expect("one variable");
        let device = || unit(Verdict::Skipped(SkipReason::NoDevice));
        assert_eq!(nothing_verified(&[device()], asked), Exit::Skip);
        assert_eq!(
            nothing_verified(&[device()], Environment::default()),
            Exit::NothingVerified
        );
        let declined = [device(), unit(Verdict::Unsupported)];
        assert_eq!(nothing_verified(&declined, asked), Exit::NothingVerified);
        assert_eq!(nothing_verified(&[], asked), Exit::NothingVerified);
        let failed = [device(), unit(Verdict::Fail(FailKind::Numeric))];
        assert_eq!(nothing_verified(&failed, asked), Exit::Skip);
    }

    #[test]
    fn both_variables_contradict_each_other() {
        assert!(Environment::new(true, true).is_err());
    }
}
