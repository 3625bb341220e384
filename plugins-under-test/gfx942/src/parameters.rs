//! The kernels and their parameters, as `kernels/*.hpp` lay them out.

use std::ffi::CStr;

macro_rules! kernels {
    ($($variant:ident = $name:literal,)*) => {
        /// A kernel of the module.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kernel { $($variant,)* }

        impl Kernel {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its symbol.
            pub(crate) const fn name(self) -> &'static CStr {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

kernels! {
    Pointwise = c"dnn_pointwise",
    PointwiseLight = c"dnn_pointwise_light",
    PointwiseHeavy = c"dnn_pointwise_heavy",
    PointwiseSingle = c"dnn_pointwise_single",
    BatchnormInference = c"dnn_batchnorm_inference",
    BatchnormTraining = c"dnn_batchnorm_training",
    BatchnormBackward = c"dnn_batchnorm_backward",
    BatchnormBackwardSaved = c"dnn_batchnorm_backward_saved",
    BatchnormApply = c"dnn_batchnorm_apply",
    BatchnormApplyVector = c"dnn_batchnorm_apply_vector",
    ConvF32 = c"dnn_conv_f32",
    ConvLinear = c"dnn_conv_linear",
    ConvF64 = c"dnn_conv_f64",
    ConvSumF32 = c"dnn_conv_sum_f32",
    ConvSumF64 = c"dnn_conv_sum_f64",
}

/// Axes of a [`Walk`].
pub(crate) const MAX_RANK: usize = 6;
/// Neighbours that a thread of the vector kernels treats.
pub(crate) const VECTOR: usize = 4;
/// Spatial axes.
pub(crate) const AXES: usize = 3;

/// `ElementType`.
pub(crate) mod element {
    pub(crate) const F32: u32 = 0;
    pub(crate) const F16: u32 = 1;
    pub(crate) const BF16: u32 = 2;
    pub(crate) const F64: u32 = 3;
    pub(crate) const I8: u32 = 4;
    pub(crate) const U8: u32 = 5;
    pub(crate) const I32: u32 = 6;
    pub(crate) const I64: u32 = 7;
    pub(crate) const CONSTANT: u32 = 8;

    /// Bytes of an element that the kernels load in whole vectors; `None` for other types.
    pub(crate) const fn vectored(kind: u32) -> Option<u64> {
        match kind {
            F32 => Some(4),
            F16 | BF16 => Some(2),
            _ => None,
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Walk {
    pub total: u32,
    pub rank: u32,
    pub dims: [u32; MAX_RANK],
}

pub(crate) type Steps = [i64; MAX_RANK];

#[repr(C)]
#[derive(Clone, Debug, Default)]
pub(crate) struct PointwiseParams {
    pub out: u64,
    pub inputs: [u64; 3],
    pub constant: [f64; 3],
    pub lower: f64,
    pub upper: f64,
    pub slope: f64,
    pub swish_beta: f64,
    pub elu_alpha: f64,
    pub softplus_beta: f64,
    pub out_type: u32,
    pub in_type: [u32; 3],
    pub mode: u32,
    pub axis: u32,
    pub walk: Walk,
    pub steps: [Steps; 4],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChannelValues {
    pub base: u64,
    pub step: i64,
    pub kind: u32,
    pub unused: u32,
}

#[repr(C)]
#[derive(Clone, Debug, Default)]
pub(crate) struct StatisticsParams {
    pub x: u64,
    pub dy: u64,
    pub coefficients: u64,
    pub mean: ChannelValues,
    pub inverse: ChannelValues,
    pub variance: ChannelValues,
    pub scale: ChannelValues,
    pub bias: ChannelValues,
    pub previous_mean: ChannelValues,
    pub previous_variance: ChannelValues,
    pub next_mean: ChannelValues,
    pub next_variance: ChannelValues,
    pub dscale: ChannelValues,
    pub dbias: ChannelValues,
    pub epsilon: f64,
    pub momentum: f64,
    pub x_type: u32,
    pub dy_type: u32,
    pub channels: u32,
    pub count: u32,
    pub extents: [u32; AXES],
    pub unused: u32,
    pub x_step: [i64; AXES + 1],
    pub dy_step: [i64; AXES + 1],
    pub x_channel: i64,
    pub dy_channel: i64,
}

/// Bytes of a channel's coefficients: four doubles, in four rows.
pub(crate) const COEFFICIENTS: usize = 32;

#[repr(C)]
#[derive(Clone, Debug, Default)]
pub(crate) struct ApplyParams {
    pub out: u64,
    pub x: u64,
    pub dy: u64,
    pub coefficients: u64,
    pub out_type: u32,
    pub x_type: u32,
    pub dy_type: u32,
    pub channels: u32,
    pub walk: Walk,
    pub steps: [Steps; 4],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Decoder {
    pub radix: [u32; AXES],
    pub unused: u32,
    pub step: [i64; AXES + 1],
    pub factor: [i32; AXES],
    pub offset: [i32; AXES],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Operand {
    pub base: u64,
    pub row: Decoder,
    pub depth: Decoder,
    pub step: [i64; AXES],
    pub extent: [i32; AXES],
    pub divisor: [i32; AXES],
    pub group: i64,
    pub kind: u32,
    pub spatial: u32,
}

#[repr(C)]
#[derive(Clone, Debug, Default)]
pub(crate) struct ConvParams {
    pub a: Operand,
    pub b: Operand,
    pub row: Decoder,
    pub column: Decoder,
    pub out: u64,
    pub partial: u64,
    pub group: i64,
    pub out_type: u32,
    pub rows: u32,
    pub columns: u32,
    pub depth: u32,
    pub groups: u32,
    pub parts: u32,
    pub part: u32,
    pub beside: u32,
}

/// `A_BESIDE` and `B_BESIDE` of `kernels/conv_linear.hpp`.
pub(crate) const BESIDE: [u32; 2] = [1, 2];

/// Parameters as bytes that do not depend on where things lie.
macro_rules! without_addresses {
    ($($type:ident: $($($part:ident).+)*;)*) => {$(
        impl $type {
            /// Its bytes, with 1 in place of every address that is not 0.
            pub(crate) fn without_addresses(&self) -> Vec<u8> {
                let mut p = self.clone();
                $(p.$($part).+ = u64::from(p.$($part).+ != 0);)*
                // SAFETY: the structure is made of numbers, without padding (the sizes below).
                let bytes = unsafe {
                    std::slice::from_raw_parts((&raw const p).cast::<u8>(), size_of::<Self>())
                };
                bytes.to_vec()
            }
        }
    )*};
}
without_addresses! {
    ApplyParams: out x dy coefficients;
    ConvParams: a.base b.base out partial;
    StatisticsParams: x dy coefficients mean.base inverse.base variance.base scale.base bias.base
        previous_mean.base previous_variance.base next_mean.base next_variance.base dscale.base
        dbias.base;
}

impl PointwiseParams {
    /// As of the others.
    pub(crate) fn without_addresses(&self) -> Vec<u8> {
        let mut p = self.clone();
        for address in p.inputs.iter_mut().chain([&mut p.out]) {
            *address = u64::from(*address != 0);
        }
        // SAFETY: the structure is made of numbers, without padding (the sizes below).
        let bytes =
            unsafe { std::slice::from_raw_parts((&raw const p).cast::<u8>(), size_of::<Self>()) };
        bytes.to_vec()
    }
}

// The sizes that the compiled kernels have (a test reads them from the code object).
const _: () = {
    assert!(size_of::<PointwiseParams>() == 352);
    assert!(size_of::<StatisticsParams>() == 416);
    assert!(size_of::<ApplyParams>() == 272);
    assert!(size_of::<ConvParams>() == 632);
};
