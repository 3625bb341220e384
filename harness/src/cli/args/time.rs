//! Times, and the limits of a worker's phases.

use std::time::Duration;

/// Limits of a worker's phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Opening and loading.
    pub load: Duration,
    /// Applicability to context.
    pub plan: Duration,
    /// One execution.
    pub execute: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            load: Duration::from_secs(60),
            plan: Duration::from_secs(120),
            execute: Duration::from_secs(30),
        }
    }
}

pub(super) fn parse_timeouts(text: &str) -> Result<Timeouts, String> {
    let mut timeouts = Timeouts::default();
    for part in text.split(',') {
        let (phase, time) = part
            .split_once('=')
            .ok_or_else(|| format!("expected PHASE=TIME, got '{part}'"))?;
        let time = parse_duration(time)?;
        match phase {
            "load" => timeouts.load = time,
            "plan" => timeouts.plan = time,
            "execute" => timeouts.execute = time,
            _ => {
                return Err(format!(
                    "no phase is called '{phase}'; there are load, plan, execute"
                ));
            }
        }
    }
    Ok(timeouts)
}

/// Reads `90s`, `5m`, `1h30m`, `500ms`; a bare number is seconds.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string());
    }
    let span: jiff::SignedDuration = text
        .parse()
        .map_err(|_| format!("'{text}' is no time; write 90s, 5m or 1h30m"))?;
    Duration::try_from(span).map_err(|_| format!("'{text}' is negative"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_timeouts() {
        assert_eq!(parse_duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration("2.5"), Ok(Duration::from_millis(2500)));
        assert!(parse_duration("-3s").is_err() && parse_duration("soon").is_err());
        let timeouts = parse_timeouts("execute=2s").expect("one phase is enough");
        assert_eq!(timeouts.execute, Duration::from_secs(2));
        assert_eq!(timeouts.load, Timeouts::default().load);
        assert!(parse_timeouts("exec=2s").is_err() && parse_timeouts("load").is_err());
    }
}
