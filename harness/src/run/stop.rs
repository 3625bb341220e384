//! Reasons to start no further case: time, failures, the user.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::verdict::NotRunReason;

/// Asked before each case; once it says stop it goes on saying so.
#[derive(Debug)]
pub struct Stop {
    started: Instant,
    budget: Option<Duration>,
    max_fails: Option<u32>,
    fails: AtomicU32,
    device_lost: AtomicBool,
    interrupted: &'static AtomicBool,
}

impl Stop {
    /// No limit but those given; `interrupted` is set by a signal handler.
    pub fn new(
        budget: Option<Duration>,
        max_fails: Option<u32>,
        interrupted: &'static AtomicBool,
    ) -> Self {
        Self {
            started: Instant::now(),
            budget,
            max_fails,
            fails: AtomicU32::new(0),
            device_lost: AtomicBool::new(false),
            interrupted,
        }
    }

    /// Why no further case may start, if so.
    pub fn reason(&self) -> Option<NotRunReason> {
        if self.interrupted() {
            return Some(NotRunReason::Interrupted);
        }
        if self.device_lost.load(Ordering::Relaxed) {
            return Some(NotRunReason::DeviceLost);
        }
        let fails = self.fails.load(Ordering::Relaxed);
        let spent = self.budget.is_some_and(|b| self.started.elapsed() >= b)
            || self.max_fails.is_some_and(|max| fails >= max);
        spent.then_some(NotRunReason::Budget)
    }

    /// Whether the user asked to stop.
    pub fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Counts a red verdict.
    pub fn count_failure(&self) {
        self.fails.fetch_add(1, Ordering::Relaxed);
    }

    /// The device is gone for good.
    pub fn lose_device(&self) {
        self.device_lost.store(true, Ordering::Relaxed);
    }

    /// Whether the device is gone.
    pub fn has_lost_device(&self) -> bool {
        self.device_lost.load(Ordering::Relaxed)
    }

    /// Since the run began.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_time_and_the_user_stop_a_run() {
        static NO: AtomicBool = AtomicBool::new(false);
        static YES: AtomicBool = AtomicBool::new(true);
        let by_failures = Stop::new(None, Some(2), &NO);
        by_failures.count_failure();
        assert_eq!(by_failures.reason(), None);
        by_failures.count_failure();
        assert_eq!(by_failures.reason(), Some(NotRunReason::Budget));
        let by_time = Stop::new(Some(Duration::ZERO), None, &NO);
        assert_eq!(by_time.reason(), Some(NotRunReason::Budget));
        let by_user = Stop::new(None, None, &YES);
        assert_eq!(by_user.reason(), Some(NotRunReason::Interrupted));
    }
}
