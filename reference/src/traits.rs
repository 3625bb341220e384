//! Traits: deviations from plain f32 arithmetic that an engine declares by name.

use crate::arithmetic::Arithmetic;
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
    ];

    /// The name in configuration files.
    pub fn name(self) -> &'static str {
        let row = Self::ALL.iter().find(|(value, _)| *value == self);
        row.map_or("", |(_, name)| name)
    }

    /// Roundoff of the accumulator and growth of sums, where the trait changes them. `rz` errs by
    /// up to a whole unit in the last place and always to the same side.
    fn effect(self) -> Option<(f64, Growth)> {
        match self {
            Self::Rz => Some((2.0 * (-24f64).exp2(), Growth::Linear)),
            Self::F16 => Some(((-11f64).exp2(), Growth::SquareRoot)),
            Self::Bf16Partials => Some(((-8f64).exp2(), Growth::SquareRoot)),
            Self::Xf32 => Some(((-11f64).exp2(), Growth::SquareRoot)),
            Self::Winograd | Self::Fft => Some(((-24f64).exp2(), Growth::Linear)),
            Self::Rn | Self::OnePassVariance | Self::FlushDenormals => None,
        }
    }
}

/// How the error of a sum grows with its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    SquareRoot,
    Linear,
}

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
        self.has(Trait::Rn) && self.declared.iter().all(|other| other.effect().is_none())
    }

    /// The arithmetic under which an engine with these traits is judged: of several roundoffs the
    /// largest counts. `one-pass-variance` and `flush-denormals` change nothing here yet.
    pub fn arithmetic(&self) -> Arithmetic {
        let mut arithmetic = Arithmetic::default();
        for (roundoff, growth) in self.declared.iter().filter_map(|which| which.effect()) {
            let largest = arithmetic
                .accumulator_roundoff
                .map_or(roundoff, |u| u.max(roundoff));
            arithmetic.accumulator_roundoff = Some(largest);
            arithmetic.linear_growth |= growth == Growth::Linear;
        }
        arithmetic
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
        let both = "f16,bf16-partials".parse::<Traits>().unwrap().arithmetic();
        assert_eq!(both.accumulator_roundoff, Some(1.0 / 256.0));
        assert!(!both.linear_growth && "rz".parse::<Traits>().unwrap().arithmetic().linear_growth);
    }

    #[test]
    fn exact_sums_are_promised_by_rn_alone() {
        let promises = |text: &str| text.parse::<Traits>().unwrap().promises_exact_sums();
        assert!(promises("rn") && promises("rn,flush-denormals"));
        assert!(!promises("") && !promises("rn,f16") && !promises("rz"));
    }
}
