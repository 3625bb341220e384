//! Traits: deviations from plain f32 arithmetic that an engine declares by name.

use crate::arithmetic::Arithmetic;
use dnn_assay_graph::DataType;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// One declared property of an engine's arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trait {
    /// f32 accumulation, rounded to nearest: what is assumed, said aloud. Integer cases must then
    /// be exact.
    Rn,
    /// Accumulation rounded towards zero.
    Rz,
    /// Accumulation in f16.
    F16,
    /// Partial sums kept in bf16.
    Bf16Partials,
    /// Inputs of products rounded to 11 significant bits (xf32, TF32).
    Xf32,
    /// Winograd's algorithm.
    Winograd,
    /// Convolution by FFT.
    Fft,
    /// Variance as the mean of squares less the square of the mean.
    OnePassVariance,
    /// Subnormals are flushed to zero.
    FlushDenormals,
    /// Division and square root are not correctly rounded.
    ApproxDivSqrt,
}

impl Trait {
    /// Every trait with its name in configuration files.
    pub const ALL: &'static [(Self, &'static str)] = &[
        (Self::Rn, "rn"),
        (Self::Rz, "rz"),
        (Self::F16, "f16"),
        (Self::Bf16Partials, "bf16-partials"),
        (Self::Xf32, "xf32"),
        (Self::Winograd, "winograd"),
        (Self::Fft, "fft"),
        (Self::OnePassVariance, "one-pass-variance"),
        (Self::FlushDenormals, "flush-denormals"),
        (Self::ApproxDivSqrt, "approx-div-sqrt"),
    ];

    /// The name in configuration files.
    pub fn name(self) -> &'static str {
        let row = Self::ALL.iter().find(|(value, _)| *value == self);
        row.map_or("", |(_, name)| name)
    }

    /// Whether sums on integers stay exact: the trait changes no sum.
    fn keeps_sums_exact(self) -> bool {
        matches!(
            self,
            Self::Rn | Self::OnePassVariance | Self::FlushDenormals | Self::ApproxDivSqrt
        )
    }

    /// What the trait allows beyond plain f32 arithmetic; of several roundoffs the largest counts.
    ///
    /// `rz` errs by up to a whole unit in the last place and always to the same side. How far
    /// transforms err was measured: [`WINOGRAD`], [`FFT`].
    fn widen(self, arithmetic: &mut Arithmetic) {
        let accumulate = |arithmetic: &mut Arithmetic, roundoff: f64| {
            let known = arithmetic.accumulator_roundoff.unwrap_or(0.0);
            arithmetic.accumulator_roundoff = Some(known.max(roundoff));
        };
        match self {
            Self::Rn => {}
            Self::Rz => {
                accumulate(arithmetic, 2.0 * (-24f64).exp2());
                arithmetic.linear_growth = true;
            }
            Self::F16 => {
                accumulate(arithmetic, (-11f64).exp2());
                arithmetic.accumulator_type = Some(DataType::Half);
            }
            Self::Bf16Partials => arithmetic.partial_roundoff = (-8f64).exp2(),
            Self::Xf32 => arithmetic.product_roundoff = (-11f64).exp2(),
            Self::Winograd => arithmetic.transform = arithmetic.transform.max(WINOGRAD),
            Self::Fft => arithmetic.transform = arithmetic.transform.max(FFT),
            Self::OnePassVariance => arithmetic.one_pass_variance = true,
            Self::FlushDenormals => arithmetic.flushes_denormals = true,
            Self::ApproxDivSqrt => {
                let functions = &mut arithmetic.functions;
                functions.divide = functions.divide.max(APPROXIMATE_DIVIDE);
                functions.sqrt = functions.sqrt.max(APPROXIMATE_SQRT);
                // 1/√v by both.
                let both = APPROXIMATE_DIVIDE + APPROXIMATE_SQRT;
                functions.rsqrt = functions.rsqrt.max(both);
            }
        }
    }

    /// The trait that a diagnosis speaks of, where it speaks of one.
    pub fn of_hypothesis(id: &str) -> Option<Self> {
        Some(match id {
            "accumulator-f16" => Self::F16,
            "bf16-partials" => Self::Bf16Partials,
            "xf32-inputs" => Self::Xf32,
            "one-pass-variance" => Self::OnePassVariance,
            "denormals-flushed" | "input-denormals-flushed" => Self::FlushDenormals,
            _ => return None,
        })
    }
}

/// How much Winograd's algorithm errs over the largest bound of direct sums; see
/// [`crate::calibrate::transforms`]. The largest ratio measured is 6.8, of F(4×4, 3×3) on one channel
/// of heavy-tailed data; 40 planes are too few for less than twice that.
pub const WINOGRAD: f64 = 16.0;

/// The same for a convolution by Fourier's transform: the largest ratio measured is 0.23.
pub const FFT: f64 = 1.0;

/// Errors in units of u of an f32 division and square root that need not be correctly rounded: 2.5 and
/// 3 ulp (OpenCL C 3.0, table of relative errors of single precision), which clang's
/// `-fno-hip-fp32-correctly-rounded-divide-sqrt` allows on AMD's GPUs; 1 ulp is at most 2 u.
pub const APPROXIMATE_DIVIDE: f64 = 5.0;
/// See [`APPROXIMATE_DIVIDE`].
pub const APPROXIMATE_SQRT: f64 = 6.0;

/// The traits that an engine declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    declared: BTreeSet<Trait>,
}

/// No trait has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no trait {name:?}; there are {known}")]
pub struct UnknownTrait {
    /// What was written.
    pub name: String,
    known: String,
}

impl Traits {
    /// Whether the trait is declared.
    pub fn has(&self, which: Trait) -> bool {
        self.declared.contains(&which)
    }

    /// The engine declares plain f32 accumulation and nothing that contradicts it, so integer
    /// cases are judged bit for bit.
    pub fn promises_exact_sums(&self) -> bool {
        self.has(Trait::Rn) && self.declared.iter().all(|other| other.keeps_sums_exact())
    }

    /// Whether results that are copies of inputs must be so bit for bit.
    pub fn keep_copies(&self) -> bool {
        !self.has(Trait::FlushDenormals)
    }

    /// Nothing is declared.
    pub fn is_empty(&self) -> bool {
        self.declared.is_empty()
    }

    /// The declared ones, in the order of [`Trait::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = Trait> + '_ {
        self.declared.iter().copied()
    }

    /// These and one more.
    #[must_use]
    pub fn with(&self, which: Trait) -> Self {
        self.iter().chain([which]).collect()
    }

    /// `base` as far as these traits widen it.
    pub fn widened(&self, base: &Arithmetic) -> Arithmetic {
        let mut arithmetic = base.clone();
        for which in self.iter() {
            which.widen(&mut arithmetic);
        }
        arithmetic
    }

    /// The arithmetic under which an engine with these traits is judged, by the default constants.
    pub fn arithmetic(&self) -> Arithmetic {
        self.widened(&Arithmetic::default())
    }
}

impl FromIterator<Trait> for Traits {
    fn from_iter<I: IntoIterator<Item = Trait>>(traits: I) -> Self {
        Self {
            declared: traits.into_iter().collect(),
        }
    }
}

impl FromStr for Trait {
    type Err = UnknownTrait;

    fn from_str(name: &str) -> Result<Self, UnknownTrait> {
        let row = Self::ALL.iter().find(|(_, known)| *known == name);
        row.map(|(value, _)| *value).ok_or_else(|| UnknownTrait {
            name: name.to_owned(),
            known: Self::ALL
                .iter()
                .map(|(_, name)| *name)
                .collect::<Vec<_>>()
                .join(", "),
        })
    }
}

impl FromStr for Traits {
    type Err = UnknownTrait;

    /// Names separated by commas; an empty text declares nothing.
    fn from_str(text: &str) -> Result<Self, UnknownTrait> {
        let names = text
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        names.map(str::parse).collect()
    }
}

impl fmt::Display for Trait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Traits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.declared.iter().map(|which| which.name()).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for (which, name) in Trait::ALL {
            assert_eq!(
                (name.parse(), which.to_string()),
                (Ok(*which), (*name).to_owned())
            );
        }
        let traits: Traits = "winograd, rn".parse().unwrap();
        assert_eq!(traits.to_string(), "rn,winograd");
        assert_eq!("".parse(), Ok(Traits::default()));
        let message = "rm".parse::<Traits>().unwrap_err().to_string();
        assert!(
            message.starts_with("no trait \"rm\"; there are rn, rz, f16,"),
            "{message}"
        );
    }

    #[test]
    fn effects_widen_and_never_narrow() {
        assert_eq!(Traits::default().arithmetic(), Arithmetic::default());
        let both = "rz,f16".parse::<Traits>().unwrap().arithmetic();
        assert_eq!(both.accumulator_roundoff, Some(1.0 / 2048.0));
        assert!(both.linear_growth);
        // Every trait but `rn` changes something, and each something of its own.
        let changed: Vec<Arithmetic> = Trait::ALL
            .iter()
            .filter(|(which, _)| !matches!(which, Trait::Rn | Trait::Fft))
            .map(|(which, _)| Traits::default().with(*which).arithmetic())
            .collect();
        for (i, one) in changed.iter().enumerate() {
            assert_ne!(*one, Arithmetic::default());
            assert!(!changed[..i].contains(one));
        }
    }

    #[test]
    fn exact_sums_are_promised_by_rn_alone() {
        let promises = |text: &str| text.parse::<Traits>().unwrap().promises_exact_sums();
        assert!(promises("rn") && promises("rn,flush-denormals"));
        assert!(!promises("") && !promises("rn,f16") && !promises("rz"));
    }
}
