//! The few styles of the terminal report.

use anstyle::{AnsiColor, Style};

/// A style that paints text.
#[derive(Clone, Copy, Debug)]
pub struct Paint(Style);

/// Right.
pub const GOOD: Paint = Paint(AnsiColor::Green.on_default());
/// Wrong.
pub const BAD: Paint = Paint(AnsiColor::Red.on_default().bold());
/// Worth a look.
pub const ODD: Paint = Paint(AnsiColor::Yellow.on_default());
/// A name.
pub const BOLD: Paint = Paint(Style::new().bold());
/// A label.
pub const DIM: Paint = Paint(Style::new().dimmed());

impl Paint {
    /// The text in this style.
    pub fn paint(self, text: &str) -> String {
        format!("{}{text}{}", self.0.render(), self.0.render_reset())
    }
}
