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
    BatchnormInference = c"dnn_batchnorm_inference",
    BatchnormTraining = c"dnn_batchnorm_training",
    BatchnormBackward = c"dnn_batchnorm_backward",
    BatchnormBackwardSaved = c"dnn_batchnorm_backward_saved",
    BatchnormApply = c"dnn_batchnorm_apply",
    ConvF32 = c"dnn_conv_f32",
    ConvF64 = c"dnn_conv_f64",
    ConvSumF32 = c"dnn_conv_sum_f32",
    ConvSumF64 = c"dnn_conv_sum_f64",
}

/// Axes of a [`Walk`].
pub(crate) const MAX_RANK: usize = 6;
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

/// Bytes of a channel's coefficients: four doubles.
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
    pub unused: u32,
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
    pub unused: u32,
}

// The sizes that the compiled kernels have (a test reads them from the code object).
const _: () = {
    assert!(size_of::<PointwiseParams>() == 352);
    assert!(size_of::<StatisticsParams>() == 416);
    assert!(size_of::<ApplyParams>() == 272);
    assert!(size_of::<ConvParams>() == 632);
};
