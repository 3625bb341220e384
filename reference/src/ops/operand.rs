//! Operands and results of an operation.

use crate::arithmetic::Precision;
use crate::estimate::Alternative;
use dnn_assay_graph::DataType;

/// A tensor that an operation reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand<'a> {
    /// Packed, logical order.
    pub value: &'a [f64],
    /// Uncertainty per element; empty where the values are exact.
    pub error: &'a [f32],
    /// See [`crate::Estimate::also`].
    pub also: &'a [Alternative],
    /// Extents.
    pub dims: &'a [i64],
    /// The tensor's type; what a virtual tensor holds need not be representable in it.
    pub data_type: DataType,
    /// An intermediate: its values are not rounded to its type.
    pub is_virtual: bool,
}

impl Operand<'_> {
    /// The error of element `index`.
    #[inline]
    pub fn error_at(&self, index: usize) -> f64 {
        self.error.get(index).map_or(0.0, |&error| f64::from(error))
    }

    /// The error of element `index` over its magnitude; 0 of an exact element, whatever its value.
    pub fn relative_error_at(&self, index: usize) -> f64 {
        let error = self.error_at(index);
        if error == 0.0 {
            0.0
        } else {
            error / self.value[index].abs()
        }
    }

    /// Whether every element is exact.
    pub fn is_exact(&self) -> bool {
        self.error.iter().all(|&error| error == 0.0)
    }

    /// Bits of the significands of the values, 53 where they are not rounded to a type.
    pub fn significand(&self) -> u32 {
        if self.is_virtual {
            return 53;
        }
        match crate::dtype::precision(self.data_type) {
            0 => 53,
            bits => bits,
        }
    }

    /// Whether a value may have more digits than TF32 and f16 hold.
    pub fn is_wide(&self) -> bool {
        self.significand() > 11
    }

    /// Whether reading a value into the compute type may round it.
    pub fn rounds_into(&self, compute: &Precision) -> bool {
        !self.is_virtual && self.significand() > compute.bits
    }
}

/// Marks element `index` as possibly anything that an overflow leaves behind.
pub(crate) fn any_overflow(index: usize) -> [Alternative; 3] {
    [f64::INFINITY, f64::NEG_INFINITY, f64::NAN].map(|value| Alternative { index, value })
}
