//! Sums that round more than an f32 accumulator does.

use std::ops::{Add, AddAssign, Mul};

use dnn_assay_cpu_kernels::Num;
use dnn_assay_plugin_sdk::Real;
use half::{bf16, f16};

/// How the sums of products are kept.
#[derive(Clone, Copy)]
pub enum Arithmetic {
    /// In f16.
    F16,
    /// In bf16.
    Bf16,
    /// In f32 over [`SPLIT`] terms at a time, the partial sums in bf16.
    SplitBf16,
    /// In f32, even where the tensors are f64.
    F32,
}

/// Terms of a partial sum.
const SPLIT: u8 = 16;

/// A type that sums are kept in.
pub trait Accumulator: Copy + Send + Sync + 'static {
    /// The nearest value that the accumulator can hold.
    fn keep(value: f32) -> f32;
}

/// [`Accumulator`] in f16.
#[derive(Clone, Copy)]
pub struct InF16;
/// [`Accumulator`] in bf16.
#[derive(Clone, Copy)]
pub struct InBf16;

impl Accumulator for InF16 {
    fn keep(value: f32) -> f32 {
        f16::from_f32(value).to_f32()
    }
}

impl Accumulator for InBf16 {
    fn keep(value: f32) -> f32 {
        bf16::from_f32(value).to_f32()
    }
}

/// A number whose sums are kept in `A`; products stay in f32.
#[derive(Clone, Copy)]
pub struct Kept<A> {
    value: f32,
    kept: std::marker::PhantomData<A>,
}

impl<A> Kept<A> {
    fn of(value: f32) -> Self {
        Self {
            value,
            kept: std::marker::PhantomData,
        }
    }
}

impl<A> Default for Kept<A> {
    fn default() -> Self {
        Self::of(0.0)
    }
}

impl<A: Accumulator> Add for Kept<A> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::of(A::keep(self.value + other.value))
    }
}

impl<A: Accumulator> AddAssign for Kept<A> {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl<A: Accumulator> Mul for Kept<A> {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self::of(self.value * other.value)
    }
}

impl<A: Accumulator> Real for Kept<A> {
    fn from_f64(value: f64) -> Self {
        Self::of(value as f32)
    }
    fn to_f64(self) -> f64 {
        f64::from(self.value)
    }
    fn to_f32(self) -> f32 {
        self.value
    }
    fn to_narrowable(self) -> f32 {
        self.value
    }
}

impl<A: Accumulator> Num for Kept<A> {}

/// A number whose sums are split: partial sums in f32, their total in bf16.
#[derive(Clone, Copy, Default)]
pub struct Split {
    total: f32,
    part: f32,
    terms: u8,
}

impl Split {
    fn of(value: f32) -> Self {
        Self {
            total: 0.0,
            part: value,
            terms: 0,
        }
    }

    fn value(self) -> f32 {
        self.total + self.part
    }
}

impl AddAssign for Split {
    fn add_assign(&mut self, other: Self) {
        self.part += other.value();
        self.terms += 1;
        if self.terms == SPLIT {
            self.total = InBf16::keep(self.total + InBf16::keep(self.part));
            self.part = 0.0;
            self.terms = 0;
        }
    }
}

impl Add for Split {
    type Output = Self;
    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl Mul for Split {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self::of(self.value() * other.value())
    }
}

impl Real for Split {
    fn from_f64(value: f64) -> Self {
        Self::of(value as f32)
    }
    fn to_f64(self) -> f64 {
        f64::from(self.value())
    }
    fn to_f32(self) -> f32 {
        self.value()
    }
    fn to_narrowable(self) -> f32 {
        self.value()
    }
}

impl Num for Split {}
