//! What a pass makes of its operands before it multiplies them.

use super::lane::Lane;

/// A function of one value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Map {
    /// The value.
    Same,
    /// Its magnitude.
    Abs,
    /// The square of the value times this factor, in the pass's element type.
    Square(f64),
}

/// An operand of a pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side<'a> {
    /// Packed values.
    pub values: &'a [f64],
    pub map: Map,
}

impl Map {
    /// Maps every `step`-th value from the first.
    #[inline(always)]
    pub fn copy<T: Lane>(self, values: &[f64], step: usize, target: &mut [T]) {
        match self {
            Self::Same => each(values, step, target, |value| T::of(Self::Same, value)),
            Self::Abs => each(values, step, target, |value| T::of(Self::Abs, value)),
            Self::Square(scale) => {
                each(values, step, target, |value| {
                    T::of(Self::Square(scale), value)
                });
            }
        }
    }
}

#[inline(always)]
fn each<T: Lane>(values: &[f64], step: usize, target: &mut [T], map: impl Fn(f64) -> T) {
    if step == 1 {
        // Rows are short: eight at a time, so that few are left over, and no call for a copy.
        let values = &values[..target.len()];
        let (eights, rest) = target.as_chunks_mut::<8>();
        let (value_eights, value_rest) = values.as_chunks::<8>();
        for (target, value) in eights.iter_mut().zip(value_eights) {
            // All before the first store: then they become a vector.
            let mut moved = [T::default(); 8];
            for lane in 0..8 {
                moved[lane] = map(value[lane]);
            }
            *target = moved;
        }
        for (target, &value) in rest.iter_mut().zip(value_rest) {
            *target = map(value);
        }
    } else {
        for (target, &value) in target.iter_mut().zip(values.iter().step_by(step)) {
            *target = map(value);
        }
    }
}
