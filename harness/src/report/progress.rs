//! What people watch while a run goes on: a bar on a terminal, a plain line now and then elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::say;
use crate::journal::Record;

/// Least time between two plain lines.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// Watches the records of a run as they are written.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    plain: Option<Plain>,
    planned: u64,
    done: u64,
    red: u64,
}

#[derive(Debug)]
struct Plain {
    last: Instant,
}

impl Progress {
    /// A bar on standard error; plain lines where that is no terminal, or `plain` asks for them.
    pub fn new(plain: bool) -> Self {
        let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
        let plain = (plain || !terminal).then(|| Plain {
            last: Instant::now(),
        });
        let target = match plain {
            Some(_) => ProgressDrawTarget::hidden(),
            None => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        bar.set_style(
            ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {elapsed}, {eta} left")
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self {
            bar,
            plain,
            planned: 0,
            done: 0,
            red: 0,
        }
    }

    /// Shows nothing: for tests and for runs inside test binaries.
    pub fn silent() -> Self {
        Self {
            bar: ProgressBar::hidden(),
            plain: None,
            planned: 0,
            done: 0,
            red: 0,
        }
    }

    /// Takes note of a record.
    pub fn see(&mut self, record: &Record) {
        match record {
            Record::Plugin(plugin) => {
                self.planned += plugin.planned.unwrap_or(0);
                self.bar.set_length(self.planned);
            }
            Record::CaseEnd(end) => {
                self.done += 1;
                self.red += u64::from(end.verdict.is_red());
                self.bar.inc(1);
                if self.red > 0 {
                    self.bar.set_message(format!("{} failed", self.red));
                }
                self.plain_line();
            }
            _ => {}
        }
    }

    fn plain_line(&mut self) {
        let Some(plain) = &mut self.plain else { return };
        if plain.last.elapsed() >= PLAIN_INTERVAL {
            plain.last = Instant::now();
            let (done, planned, red) = (self.done, self.planned, self.red);
            say(format_args!("{done} of {planned} done, {red} failed"));
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
