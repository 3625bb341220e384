//! The rules by which an output may be judged.

use std::fmt;

/// A rule of judgement. [`Criterion::Bound`] is the default; the others are offered by name.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Criterion {
    /// `|got − y| ≤ e + u·(|y| + e) + ½·smallest subnormal`, with the uncertainty e of the
    /// estimate and the unit roundoff u of the output's type.
    #[default]
    Bound,
    /// The bits of the reference rounded once to the output's type.
    Exact(ZeroSign),
    /// Upstream hipDNN's: `|got − ref| ≤ atol + rtol·|ref|`, ref rounded to the output's type.
    /// A NaN or an infinity on either side fails, even where both agree; integers must be equal.
    /// (Upstream takes the difference in f32, we in f64.)
    Table {
        /// Absolute tolerance.
        atol: f64,
        /// Relative tolerance.
        rtol: f64,
    },
    /// MIOpenDriver's, one figure for the tensor:
    /// `√Σ(ref − got)² / (√n · max(max|ref|, max|got|)) ≤ threshold`. A NaN or an infinity on
    /// either side fails.
    Rms {
        /// The largest figure that passes.
        threshold: f64,
    },
    /// At most this many units in the last place from the reference rounded to the output's type.
    Ulp {
        /// The largest distance that passes.
        limit: u64,
    },
}

/// Whether −0 and +0 differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZeroSign {
    /// They are equal; differences are counted.
    #[default]
    Ignored,
    /// They differ: for neg, abs and identity.
    Significant,
}

impl Criterion {
    /// The name in suites and on the command line.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Bound => "bound",
            Self::Exact(_) => "exact",
            Self::Table { .. } => "table",
            Self::Rms { .. } => "rms",
            Self::Ulp { .. } => "ulp",
        }
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bound | Self::Exact(_) => f.write_str(self.name()),
            Self::Table { atol, rtol } => write!(f, "table(atol={atol:e}, rtol={rtol:e})"),
            Self::Rms { threshold } => write!(f, "rms(threshold={threshold:e})"),
            Self::Ulp { limit } => write!(f, "ulp({limit})"),
        }
    }
}
