//! One element as bytes: load, store and round, per type.

/// An element type, as a type.
pub(crate) trait Element: Send + Sync {
    /// Bytes of one element.
    const SIZE: usize;
    /// The value of the first [`Self::SIZE`] bytes, little endian.
    fn load(bytes: &[u8]) -> f64;
    /// Rounds `value` once and writes it to the first [`Self::SIZE`] bytes.
    fn store(value: f64, bytes: &mut [u8]);
    /// `value` rounded once to the type.
    fn round(value: f64) -> f64;
    /// The place of a value of the type among all of them: neighbours differ by 1, ±0 are both 0.
    /// Of a NaN it means nothing.
    fn ordinal(value: f64) -> i64;

    /// [`Self::ordinal`] of a finite value, in a form that a loop can do in vectors.
    #[inline(always)]
    fn finite_ordinal(value: f64) -> i64 {
        Self::ordinal(value)
    }

    /// Units in the last place between two values of the type; `None` with a NaN.
    #[inline]
    fn ulps(a: f64, b: f64) -> Option<u64> {
        if a == b {
            Some(0)
        } else if a.is_nan() || b.is_nan() {
            None
        } else {
            Some(Self::ordinal(a).abs_diff(Self::ordinal(b)))
        }
    }
}

/// The ordinal of a sign and the bits of a magnitude.
#[inline(always)]
fn signed(value: f64, magnitude: u64) -> i64 {
    let magnitude = magnitude as i64;
    if value.is_sign_negative() {
        -magnitude
    } else {
        magnitude
    }
}

/// Evaluates `$body` with `$element` the [`Element`] of a `DataType`: `Some`, or `None` for a type
/// that the reference does not compute with.
macro_rules! with_element {
    ($data_type:expr, $element:ident => $body:expr) => {{
        use ::dnn_assay_graph::DataType;
        use $crate::dtype::element;
        match $data_type {
            DataType::Float => with_element!(@ $element = element::F32, $body),
            DataType::Half => with_element!(@ $element = element::F16, $body),
            DataType::Bfloat16 => with_element!(@ $element = element::Bf16, $body),
            DataType::Double => with_element!(@ $element = element::F64, $body),
            DataType::Uint8 => with_element!(@ $element = element::U8, $body),
            DataType::Int8 => with_element!(@ $element = element::I8, $body),
            DataType::Int32 => with_element!(@ $element = element::I32, $body),
            DataType::Int64 => with_element!(@ $element = element::I64, $body),
            _ => None,
        }
    }};
    (@ $element:ident = $type:ty, $body:expr) => {{
        type $element = $type;
        Some($body)
    }};
}
pub(crate) use with_element;

macro_rules! native_element {
    ($($(#[$doc:meta])* $name:ident: $native:ty, $value:ident => $convert:expr, $ordinal:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name;

        impl Element for $name {
            const SIZE: usize = size_of::<$native>();

            #[inline(always)]
            fn load(bytes: &[u8]) -> f64 {
                let (first, _) = bytes
                    .split_first_chunk::<{ size_of::<$native>() }>()
                    .expect("a whole element");
                <$native>::from_le_bytes(*first) as f64
            }

            #[inline(always)]
            fn store($value: f64, bytes: &mut [u8]) {
                let native: $native = $convert;
                bytes[..Self::SIZE].copy_from_slice(&native.to_le_bytes());
            }

            #[inline]
            fn round($value: f64) -> f64 {
                let native: $native = $convert;
                native as f64
            }

            #[inline(always)]
            fn ordinal($value: f64) -> i64 {
                $ordinal
            }
        }
    )*};
}

native_element! {
    /// IEEE binary32: `as` rounds once, to nearest even.
    F32: f32, value => value as f32, signed(value, u64::from((value as f32).abs().to_bits()));
    /// IEEE binary64.
    F64: f64, value => value, signed(value, value.abs().to_bits());
    /// Unsigned byte; `as` saturates.
    U8: u8, value => value.round_ties_even() as u8, value as i64;
    /// Signed byte.
    I8: i8, value => value.round_ties_even() as i8, value as i64;
    /// 32-bit integer.
    I32: i32, value => value.round_ties_even() as i32, value as i64;
    /// 64-bit integer; beyond 2⁵³ the f64 is the nearest one.
    I64: i64, value => value.round_ties_even() as i64, value as i64;
}

/// IEEE binary16.
pub(crate) struct F16;

/// bfloat16: the upper half of a binary32.
pub(crate) struct Bf16;

macro_rules! narrow_element {
    ($name:ident, $exponent_bits:literal, $mantissa_bits:literal) => {
        impl Element for $name {
            const SIZE: usize = 2;

            #[inline(always)]
            fn load(bytes: &[u8]) -> f64 {
                let (first, _) = bytes.split_first_chunk().expect("a whole element");
                widen::<$exponent_bits, $mantissa_bits>(u16::from_le_bytes(*first))
            }

            #[inline(always)]
            fn store(value: f64, bytes: &mut [u8]) {
                let code = narrow::<$exponent_bits, $mantissa_bits>(value);
                bytes[..2].copy_from_slice(&code.to_le_bytes());
            }

            #[inline]
            fn round(value: f64) -> f64 {
                widen::<$exponent_bits, $mantissa_bits>(narrow::<$exponent_bits, $mantissa_bits>(
                    value,
                ))
            }

            #[inline]
            fn ordinal(value: f64) -> i64 {
                let code = narrow::<$exponent_bits, $mantissa_bits>(value.abs());
                signed(value, u64::from(code))
            }

            #[inline(always)]
            fn finite_ordinal(value: f64) -> i64 {
                signed(value, finite_code::<$exponent_bits, $mantissa_bits>(value))
            }
        }
    };
}

narrow_element!(F16, 5, 10);
narrow_element!(Bf16, 8, 7);

const SIGN: u64 = 1 << 63;
const INFINITY: u64 = 0x7ff << 52;

/// The 16-bit code nearest to `value`, ties to even: one rounding from all 53 bits.
///
/// `half` 2.x is not used here: it converts f64 through f32 where the processor has F16C, and
/// drops the low 32 bits of the significand where it has not; both round some values twice (the
/// tests show some).
#[inline(always)]
fn narrow<const EXPONENT_BITS: u32, const MANTISSA_BITS: u32>(value: f64) -> u16 {
    let bits = value.to_bits();
    let magnitude = bits & !SIGN;
    let sign = ((bits & SIGN) >> 48) as u16;
    let infinity = ((1u64 << EXPONENT_BITS) - 1) << MANTISSA_BITS;
    // Every case is computed and one is taken: without branches a loop over this becomes vectors.
    let quiet = 1u64 << (MANTISSA_BITS - 1);
    let payload = (magnitude >> (52 - MANTISSA_BITS)) & ((1 << MANTISSA_BITS) - 1);
    let nan = infinity | quiet | payload;
    // Exponent of the smallest normal number of the narrow type, with f64's bias.
    let smallest_normal = 1023 - ((1u64 << (EXPONENT_BITS - 1)) - 2);
    let exponent = magnitude >> 52;
    let drop = 52 - MANTISSA_BITS;
    let rebias = (smallest_normal - 1) << MANTISSA_BITS;
    let normal = round_shift(magnitude, drop)
        .wrapping_sub(rebias)
        .min(infinity);
    // Below the normals the last place stays where it is, so more bits are dropped; a carry into
    // the exponent field gives the smallest normal, as it should. A subnormal f64 is far below half
    // of the narrow type's smallest number and drops out with the others.
    let significand = (magnitude & ((1 << 52) - 1)) | (1 << 52);
    let shift = u64::from(drop) + smallest_normal.wrapping_sub(exponent).min(64);
    let dropped = round_shift(significand, shift.min(54) as u32);
    let subnormal = if shift > 53 { 0 } else { dropped };
    let finite = if exponent >= smallest_normal {
        normal
    } else {
        subnormal
    };
    sign | (if magnitude > INFINITY { nan } else { finite }) as u16
}

/// `bits / 2^shift` to nearest, ties to even, for shifts of 1 to 54.
#[inline(always)]
fn round_shift(bits: u64, shift: u32) -> u64 {
    let odd = (bits >> shift) & 1;
    (bits + ((1u64 << (shift - 1)) - 1) + odd) >> shift
}

/// The code of a finite value's magnitude that the type holds: nothing has to be rounded.
#[inline(always)]
fn finite_code<const EXPONENT_BITS: u32, const MANTISSA_BITS: u32>(value: f64) -> u64 {
    // The inverse of `widen`'s scale; what is below the normals becomes a subnormal of f64, whose
    // significand is the code.
    let scale = f64::from_bits(((1u64 << (EXPONENT_BITS - 1)) - 1) << 52);
    (value.abs() * scale).to_bits() >> (52 - MANTISSA_BITS)
}

/// The value of a 16-bit code, exactly.
#[inline(always)]
fn widen<const EXPONENT_BITS: u32, const MANTISSA_BITS: u32>(code: u16) -> f64 {
    let sign = u64::from(code >> 15) << 63;
    let magnitude = u64::from(code & 0x7fff) << (52 - MANTISSA_BITS);
    let infinity = ((1u64 << EXPONENT_BITS) - 1) << 52;
    let special = sign | INFINITY | (magnitude & ((1 << 52) - 1));
    // Read with f64's bias the number is too small by a power of two; the product is exact, for
    // subnormals too, and normalises them.
    let scale = f64::from_bits((1023 + 1023 - ((1u64 << (EXPONENT_BITS - 1)) - 1)) << 52);
    let finite = sign | (f64::from_bits(magnitude) * scale).to_bits();
    f64::from_bits(if magnitude >= infinity {
        special
    } else {
        finite
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};
    use proptest::prelude::*;

    fn f16_code(value: f64) -> u16 {
        narrow::<5, 10>(value)
    }

    fn bf16_code(value: f64) -> u16 {
        narrow::<8, 7>(value)
    }

    #[test]
    fn every_code_decodes_as_half_says_and_encodes_to_itself() {
        for code in 0..=u16::MAX {
            let (ours, theirs) = (widen::<5, 10>(code), f16::from_bits(code).to_f64_const());
            assert!(ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan());
            assert_eq!(ours.is_sign_negative(), theirs.is_sign_negative());
            let back = f16_code(ours);
            if ours.is_finite() {
                assert_eq!(F16::finite_ordinal(ours), F16::ordinal(ours), "{code:04x}");
                assert_eq!(finite_code::<5, 10>(ours), u64::from(code & 0x7fff));
            }
            assert!(back == code || f16::from_bits(code).is_nan() && back == code | 0x200);
            let (ours, theirs) = (widen::<8, 7>(code), bf16::from_bits(code).to_f64_const());
            assert!(ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan());
            let back = bf16_code(ours);
            if ours.is_finite() {
                assert_eq!(
                    Bf16::finite_ordinal(ours),
                    Bf16::ordinal(ours),
                    "{code:04x}"
                );
                assert_eq!(finite_code::<8, 7>(ours), u64::from(code & 0x7fff));
            }
            assert!(back == code || bf16::from_bits(code).is_nan() && back == code | 0x40);
        }
    }

    /// Between any two neighbours: the tie goes to the even code, and the f64 next to the tie on
    /// either side goes to the near code, whatever stands in between.
    fn check_ties(narrow: fn(f64) -> u16, widen: fn(u16) -> f64, infinity: u16, overflow: f64) {
        for low in 0..infinity {
            let high = low + 1;
            let below = widen(low);
            let above = if high == infinity {
                overflow
            } else {
                widen(high)
            };
            let tie = below + (above - below) / 2.0;
            let tie = if high == infinity { overflow } else { tie };
            let even = if low % 2 == 0 { low } else { high };
            let near = |bits: u64| narrow(f64::from_bits(bits));
            assert_eq!(narrow(tie), even, "tie above {low:#x}");
            assert_eq!(
                near(tie.to_bits() - 1),
                low,
                "just under the tie above {low:#x}"
            );
            assert_eq!(
                near(tie.to_bits() + 1),
                high,
                "just over the tie above {low:#x}"
            );
            assert_eq!(narrow(-tie), even | 0x8000);
        }
    }

    #[test]
    fn ties_and_their_neighbours() {
        check_ties(f16_code, widen::<5, 10>, 0x7c00, 65520.0);
        let overflow = (2.0 - (-8f64).exp2()) * 127f64.exp2();
        check_ties(bf16_code, widen::<8, 7>, 0x7f80, overflow);
    }

    /// A value just above a tie rounds up; through f32 it becomes the tie and rounds down. It is
    /// why `half` does not do this: one of its two paths goes through f32, the other drops the
    /// low 32 bits.
    #[test]
    fn double_rounding_cases() {
        let above_tie = 1.0 + (-11f64).exp2() + (-40f64).exp2();
        assert_eq!(f16_code(above_tie), 0x3c01);
        assert_eq!(
            f16_code(f64::from(above_tie as f32)),
            0x3c00,
            "rounded twice"
        );
        assert_eq!(f16::from_f64_const(above_tie).to_bits(), 0x3c00, "half");
        let above_tie = 1.0 + (-8f64).exp2() + (-40f64).exp2();
        assert_eq!(bf16_code(above_tie), 0x3f81);
        assert_eq!(
            bf16_code(f64::from(above_tie as f32)),
            0x3f80,
            "rounded twice"
        );
        assert_eq!(bf16::from_f64_const(above_tie).to_bits(), 0x3f80, "half");
    }

    #[test]
    fn nan_stays_nan_whatever_its_payload() {
        for bits in [INFINITY + 1, INFINITY | 1 << 51, u64::MAX] {
            let value = f64::from_bits(bits);
            assert!(f16::from_bits(f16_code(value)).is_nan());
            assert!(bf16::from_bits(bf16_code(value)).is_nan());
        }
    }

    proptest! {
        /// The nearest code: no neighbour is nearer, and an equally near one is odd.
        #[test]
        fn rounding_is_to_nearest_even(bits in any::<u64>(), exponent in 900u64..1160) {
            for value in [f64::from_bits(bits), f64::from_bits(bits & !INFINITY | exponent << 52)] {
                nearest(value, f16_code, widen::<5, 10>, 0x7c00)?;
                nearest(value, bf16_code, widen::<8, 7>, 0x7f80)?;
            }
        }
    }

    fn nearest(
        value: f64,
        narrow: fn(f64) -> u16,
        widen: fn(u16) -> f64,
        infinity: u16,
    ) -> Result<(), TestCaseError> {
        let code = narrow(value);
        let magnitude = code & 0x7fff;
        if magnitude >= infinity {
            return Ok(());
        }
        let error = (widen(code) - value).abs();
        for neighbour in [magnitude.wrapping_sub(1), magnitude + 1] {
            if neighbour < infinity {
                let other = (widen(neighbour | code & 0x8000) - value).abs();
                prop_assert!(
                    error < other || error == other && code & 1 == 0,
                    "{value:e}"
                );
            }
        }
        Ok(())
    }
}
