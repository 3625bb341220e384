//! Rounding of f64 to the element types, and the types' constants.
//!
//! For a type that the reference does not compute with, every function here gives NaN: nothing
//! derived from it can pass a comparison.

use super::element::{Element, with_element};
use dnn_assay_graph::DataType;

/// Whether the reference computes with this type: f32, f16, bf16, f64, u8, i8, i32, i64.
pub const fn supported(data_type: DataType) -> bool {
    matches!(
        data_type,
        DataType::Float
            | DataType::Half
            | DataType::Bfloat16
            | DataType::Double
            | DataType::Uint8
            | DataType::Int8
            | DataType::Int32
            | DataType::Int64
    )
}

/// `value` rounded once to the type: to nearest, ties to even, with gradual underflow, and to
/// infinity from [`overflow_threshold`] on. Integers saturate and take NaN as 0.
pub fn round(data_type: DataType, value: f64) -> f64 {
    with_element!(data_type, E => E::round(value)).unwrap_or(f64::NAN)
}

/// Bits of the significand, the hidden one included: 24, 11, 8, 53; of an integer type, the bits of
/// its magnitude. 0 for a type that the reference does not compute with.
pub const fn precision(data_type: DataType) -> u32 {
    match data_type {
        DataType::Float => 24,
        DataType::Half => 11,
        DataType::Bfloat16 => 8,
        DataType::Double => 53,
        DataType::Uint8 => 8,
        DataType::Int8 => 7,
        DataType::Int32 => 31,
        DataType::Int64 => 63,
        _ => 0,
    }
}

/// Largest relative error of rounding to a normal number, 2⁻ᵖ; 0 for integers, whose error is
/// absolute (see [`smallest_subnormal`]).
pub fn unit_roundoff(data_type: DataType) -> f64 {
    if !supported(data_type) {
        f64::NAN
    } else if data_type.is_float() {
        (-f64::from(precision(data_type))).exp2()
    } else {
        0.0
    }
}

/// The smallest positive number of the type: half of it is the largest error of rounding near
/// zero. 1 for integers.
pub fn smallest_subnormal(data_type: DataType) -> f64 {
    match data_type {
        DataType::Float => f64::from(f32::from_bits(1)),
        DataType::Half => (-24f64).exp2(),
        DataType::Bfloat16 => (-133f64).exp2(),
        DataType::Double => f64::from_bits(1),
        _ if supported(data_type) => 1.0,
        _ => f64::NAN,
    }
}

/// The smallest normal number; 0 for integers.
pub fn smallest_normal(data_type: DataType) -> f64 {
    let bits = precision(data_type).saturating_sub(1);
    smallest_subnormal(data_type) * f64::from(bits).exp2()
}

/// The largest finite number of the type. For i64 that is 2⁶³ in f64, which cannot hold 2⁶³ − 1.
pub fn largest_finite(data_type: DataType) -> f64 {
    match data_type {
        DataType::Float => f64::from(f32::MAX),
        DataType::Half => 65504.0,
        DataType::Bfloat16 => (2.0 - (-7f64).exp2()) * 127f64.exp2(),
        DataType::Double => f64::MAX,
        DataType::Uint8 => f64::from(u8::MAX),
        DataType::Int8 => f64::from(i8::MAX),
        DataType::Int32 => f64::from(i32::MAX),
        DataType::Int64 => i64::MAX as f64,
        _ => f64::NAN,
    }
}

/// The smallest magnitude that rounds to infinity: the largest finite number plus half a unit in
/// its last place. Infinite for f64, where it cannot be written, and for integers, which saturate.
pub fn overflow_threshold(data_type: DataType) -> f64 {
    match data_type {
        DataType::Float | DataType::Half | DataType::Bfloat16 => {
            let largest = largest_finite(data_type);
            let exponent = largest.log2().floor();
            largest + (exponent - f64::from(precision(data_type))).exp2()
        }
        _ if supported(data_type) => f64::INFINITY,
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(DataType::Float)]
    #[case(DataType::Half)]
    #[case(DataType::Bfloat16)]
    fn constants_agree_with_rounding(#[case] data_type: DataType) {
        let (largest, threshold) = (largest_finite(data_type), overflow_threshold(data_type));
        let below = f64::from_bits(threshold.to_bits() - 1);
        assert_eq!(round(data_type, largest), largest);
        assert_eq!(round(data_type, below), largest);
        assert_eq!(round(data_type, threshold), f64::INFINITY);
        assert_eq!(round(data_type, -threshold), f64::NEG_INFINITY);
        let tiny = smallest_subnormal(data_type);
        assert_eq!(round(data_type, tiny), tiny);
        assert_eq!(round(data_type, tiny / 2.0), 0.0);
        assert_eq!(round(data_type, tiny * 0.500_000_1), tiny);
        assert_eq!(round(data_type, -tiny / 2.0).to_bits(), (-0.0f64).to_bits());
        let u = unit_roundoff(data_type);
        assert_eq!(round(data_type, 1.0 + u), 1.0);
        assert_eq!(
            round(data_type, 1.0 + u * (1.0 + 1e-6)),
            1.0 + 2.0 * u,
            "above the tie"
        );
        assert!(round(data_type, f64::NAN).is_nan());
        assert_eq!(round(data_type, f64::INFINITY), f64::INFINITY);
    }

    #[rstest]
    #[case(DataType::Uint8, 2.5, 2.0)]
    #[case(DataType::Uint8, -1.0, 0.0)]
    #[case(DataType::Uint8, 300.0, 255.0)]
    #[case(DataType::Int8, -129.0, -128.0)]
    #[case(DataType::Int32, 3.5, 4.0)]
    #[case(DataType::Int32, 1e20, 2147483647.0)]
    #[case(DataType::Int64, -0.75, -1.0)]
    #[case(DataType::Int8, f64::NAN, 0.0)]
    fn integers_round_and_saturate(
        #[case] data_type: DataType,
        #[case] value: f64,
        #[case] expected: f64,
    ) {
        assert_eq!(round(data_type, value), expected);
    }

    #[test]
    fn unsupported_types_give_nan() {
        assert!(round(DataType::Fp8E4m3, 1.0).is_nan());
        assert!(unit_roundoff(DataType::Unset).is_nan());
        assert!(!supported(DataType::Int4));
    }
}
