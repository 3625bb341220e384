//! What the reference says of a tensor: a value and an uncertainty for each element.

use crate::array::Array;
use std::collections::BTreeMap;

/// Packed values by tensor uid, in logical row-major order of the tensor's `dims` (N, C,
/// spatial…), whatever its layout in memory. Every value is exactly representable in the
/// tensor's type.
pub type Values = BTreeMap<i64, Array<f64>>;

/// A tensor as the reference sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The f64 result, packed in logical order, not rounded to the tensor's type.
    pub value: Array<f64>,
    /// For each element, how far a correct engine may be from `value` *before* the final rounding
    /// to the tensor's own type. Rounded up to f32; finite wherever `value` is finite and the
    /// arithmetic has a bound at all.
    pub error: Array<f32>,
    /// Elements where a correct engine may give something else altogether, ascending by index: an
    /// overflow inside the textbook formula, for one. Empty for most tensors; an index may occur
    /// more than once.
    pub also: Vec<Alternative>,
}

/// Another value that a correct engine may give for an element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alternative {
    /// Index of the element in logical row-major order.
    pub index: usize,
    /// The value: ±Inf, or NaN for any NaN; finite ones do not occur, as `error` covers them.
    pub value: f64,
}

impl Estimate {
    /// Values without uncertainty: what a graph's inputs are.
    pub fn exact(value: impl Into<Array<f64>>) -> Self {
        let value = value.into();
        let error = Array::zeros(value.len());
        Self::new(value, error)
    }

    /// Values with uncertainty and no alternatives.
    pub fn new(value: Array<f64>, error: Array<f32>) -> Self {
        debug_assert_eq!(value.len(), error.len());
        Self {
            value,
            error,
            also: Vec::new(),
        }
    }

    /// `len` elements to be overwritten one and all: what they hold means nothing.
    pub(crate) fn unset(len: usize) -> Self {
        Self::new(Array::unset(len), Array::unset(len))
    }

    /// Whether a correct engine may give the non-finite value `got` for element `index` besides
    /// what `value` and `error` allow.
    pub fn allows_also(&self, index: usize, got: f64) -> bool {
        let start = self.also.partition_point(|other| other.index < index);
        self.also[start..]
            .iter()
            .take_while(|other| other.index == index)
            .any(|other| other.value == got || (other.value.is_nan() && got.is_nan()))
    }
}

/// `x` as f32, rounded towards +∞; NaN becomes +∞, because an unknown error has no bound.
pub fn round_up(x: f64) -> f32 {
    let nearest = x as f32;
    if x.is_nan() {
        f32::INFINITY
    } else if f64::from(nearest) < x {
        nearest.next_up()
    } else {
        nearest
    }
}

/// An f32 at or above `x`, at most three units in the last place higher, and 0 for 0; cheaper than
/// [`round_up`], because it has no branches.
#[inline(always)]
pub(crate) fn above(x: f64) -> f32 {
    // The factor covers the conversion's error of a normal number, the addend a subnormal's.
    let raised = (x * (1.0 + f64::from(f32::EPSILON))) as f32 + f32::from_bits(1);
    let bound = if raised.is_nan() {
        f32::INFINITY
    } else {
        raised
    };
    if x == 0.0 { 0.0 } else { bound }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_up_never_down() {
        for x in [0.0, 1.0, 0.1, 1e-50, 1.0 + 1e-12, 3e38, 1e39, f64::INFINITY] {
            assert!(f64::from(round_up(x)) >= x, "{x}");
            assert!(f64::from(above(x)) >= x, "{x}");
            // Beyond f32's range the only bound is infinity.
            let close = f64::from(above(x)) <= x * (1.0 + 4e-7) + 3e-45;
            assert!(close || x > f64::from(f32::MAX), "{x}");
        }
        assert_eq!(round_up(1.0), 1.0);
        assert_eq!(round_up(1.0 + 1e-12), 1.0f32.next_up());
        assert_eq!(round_up(f64::NAN), f32::INFINITY);
        assert_eq!(above(f64::NAN), f32::INFINITY);
    }

    #[test]
    fn alternatives_are_found_by_index_and_kind() {
        let estimate = Estimate {
            also: vec![
                Alternative {
                    index: 1,
                    value: f64::INFINITY,
                },
                Alternative {
                    index: 1,
                    value: f64::NAN,
                },
            ],
            ..Estimate::exact(vec![0.0; 3])
        };
        assert!(estimate.allows_also(1, f64::INFINITY) && estimate.allows_also(1, f64::NAN));
        assert!(!estimate.allows_also(1, f64::NEG_INFINITY));
        assert!(!estimate.allows_also(0, f64::NAN) && !estimate.allows_also(2, f64::INFINITY));
    }
}
