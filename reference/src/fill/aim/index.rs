//! The image says where each element is, and every filter takes one element of it: the output
//! shows which element was read.

use super::Sight;
use super::places::each_element;
use crate::dtype;
use dnn_assay_graph::case::ConvDirection;
use dnn_assay_graph::{DataType, Tensor};

/// Sums must stay below this to be exact in f32, whatever the number of terms.
const EXACT: f64 = 16_777_216.0;

pub(super) fn aim(sight: &mut Sight<'_>) {
    for attributes in sight.nodes() {
        let Some(conv) = attributes.convolution() else {
            continue;
        };
        let (image, filter, summed) = match conv.direction {
            ConvDirection::Fprop => (conv.x, conv.w, 1),
            ConvDirection::Dgrad => (conv.y, conv.w, 0),
            ConvDirection::Wgrad => continue,
        };
        let Some(w) = sight.graph.tensor(filter) else {
            continue;
        };
        let one_output = w.dims.get(1 - summed).copied().unwrap_or(1).max(1);
        let terms = w.element_count().unwrap_or(1) as f64 / one_output as f64;
        sight.edit(image, |tensor, values| {
            let modulus = modulus(tensor.data_type, terms);
            for (index, value) in values.iter_mut().enumerate() {
                *value = code(index, modulus);
            }
        });
        sight.edit(filter, |tensor, values| unit_taps(tensor, values, summed));
    }
}

/// What element `index` of the image holds: 1 to `modulus`, so that 0 is no element.
pub(crate) fn code(index: usize, modulus: usize) -> f64 {
    (1 + index % modulus) as f64
}

/// A prime up to which the type and a sum of `terms` hold every integer: extents are no multiples
/// of it, so neighbours along any axis differ.
pub(crate) fn modulus(data_type: DataType, terms: f64) -> usize {
    let holds = f64::from(dtype::precision(data_type).min(24)).exp2();
    let most = holds.min(EXACT / terms.max(1.0)).max(2.0) as usize;
    (2..=most)
        .rev()
        .find(|&n| is_prime(n))
        .expect("2 is a prime")
}

fn is_prime(n: usize) -> bool {
    n >= 2
        && (2..)
            .take_while(|d| d * d <= n)
            .all(|d| !n.is_multiple_of(d))
}

/// For each index of the other axis one element of the summed axis and the window, another one for
/// each.
fn unit_taps(tensor: &Tensor, values: &mut [f64], summed: usize) {
    let other = 1 - summed;
    each_element(tensor, |index, at| {
        let mut rest = at[other];
        let mut is_taken = at[summed] == rest % tensor.dims[summed];
        for (&tap, &taps) in at.iter().zip(&tensor.dims).skip(2) {
            // Taps move on together with the index, so that neighbours take different ones.
            rest += 1;
            is_taken &= tap == rest % taps;
        }
        values[index] = f64::from(u8::from(is_taken));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moduli_are_primes_that_fit() {
        assert_eq!(modulus(DataType::Half, 9.0), 2039);
        assert_eq!(modulus(DataType::Bfloat16, 9.0), 251);
        assert_eq!(modulus(DataType::Float, 1.0), 16_777_213);
        assert_eq!(modulus(DataType::Float, 1e9), 2);
    }

    #[test]
    fn every_filter_takes_one_element() {
        let w = Tensor::packed(2, "w", DataType::Float, &[5, 3, 2, 3]);
        let mut values = vec![7.0; 90];
        unit_taps(&w, &mut values, 1);
        for filter in values.chunks(18) {
            assert_eq!(filter.iter().sum::<f64>(), 1.0);
        }
        assert_ne!(values[..18], values[18..36]);
    }
}
