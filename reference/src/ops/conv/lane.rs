//! The element types of the kernels, over `pulp`'s vectors.

use super::map::Map;
use super::scratch::Buffered;
use crate::array::Number;
use pulp::Simd;

/// f64 for values, f32 for the sums of squares.
pub(crate) trait Lane: Number + Buffered {
    /// Products are always added in one rounding: their bits need not match a chain of two.
    const ALWAYS_FUSED: bool;
    /// Elements in a vector.
    fn lanes<S: Simd>() -> usize;
    /// A vector of them.
    type Vector<S: Simd>: Copy;
    /// Every lane `value`.
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;
    /// `c + a·b`, rounded once.
    fn fused<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// `c + a·b`, rounded twice.
    fn separate<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// `a + b`.
    fn sum<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// The whole vectors at the start of a slice.
    fn vectors<S: Simd>(slice: &[Self]) -> &[Self::Vector<S>];
    /// The whole vectors at the start of a slice, mutable.
    fn vectors_mut<S: Simd>(slice: &mut [Self]) -> &mut [Self::Vector<S>];
    /// Stores the first lanes, as many as the slice has.
    fn store_part<S: Simd>(simd: S, slice: &mut [Self], vector: Self::Vector<S>);
    /// The sum, rounded.
    fn plus(self, other: Self) -> Self;
    /// The product, rounded.
    fn times(self, other: Self) -> Self;
    /// What `map` makes of a value.
    fn of(map: Map, value: f64) -> Self;
}

macro_rules! lane {
    ($type:ident, $fused_only:literal, $vector:ident, $lanes:ident, $splat:ident, $fused:ident, $mul:ident, $add:ident,
     $vectors:ident, $vectors_mut:ident, $store_part:ident) => {
        impl Lane for $type {
            const ALWAYS_FUSED: bool = $fused_only;
            type Vector<S: Simd> = S::$vector;
            #[inline(always)]
            fn lanes<S: Simd>() -> usize {
                S::$lanes
            }
            #[inline(always)]
            fn splat<S: Simd>(simd: S, value: Self) -> S::$vector {
                simd.$splat(value)
            }
            #[inline(always)]
            fn fused<S: Simd>(simd: S, a: S::$vector, b: S::$vector, c: S::$vector) -> S::$vector {
                simd.$fused(a, b, c)
            }
            #[inline(always)]
            fn separate<S: Simd>(
                simd: S,
                a: S::$vector,
                b: S::$vector,
                c: S::$vector,
            ) -> S::$vector {
                simd.$add(c, simd.$mul(a, b))
            }
            #[inline(always)]
            fn sum<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$add(a, b)
            }
            #[inline(always)]
            fn vectors<S: Simd>(slice: &[Self]) -> &[S::$vector] {
                S::$vectors(slice).0
            }
            #[inline(always)]
            fn vectors_mut<S: Simd>(slice: &mut [Self]) -> &mut [S::$vector] {
                S::$vectors_mut(slice).0
            }
            #[inline(always)]
            fn store_part<S: Simd>(simd: S, slice: &mut [Self], vector: S::$vector) {
                simd.$store_part(slice, vector);
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn of(map: Map, value: f64) -> Self {
                match map {
                    Map::Same => value as $type,
                    Map::Abs => value.abs() as $type,
                    Map::Square(scale) => {
                        let value = (value * scale) as $type;
                        value * value
                    }
                }
            }
        }
    };
}

lane!(
    f64,
    false,
    f64s,
    F64_LANES,
    splat_f64s,
    mul_add_f64s,
    mul_f64s,
    add_f64s,
    as_simd_f64s,
    as_mut_simd_f64s,
    partial_store_f64s
);
lane!(
    f32,
    true,
    f32s,
    F32_LANES,
    splat_f32s,
    mul_add_f32s,
    mul_f32s,
    add_f32s,
    as_simd_f32s,
    as_mut_simd_f32s,
    partial_store_f32s
);
