//! The schema's enums, all one signed byte on the wire.

use std::fmt;

/// An enum of the schema: a known set of values, each with a number and a name.
pub trait WireEnum {
    /// The number on the wire.
    fn number(&self) -> i8;
    /// The name in the schema, `UPPER_CASE`.
    fn name(&self) -> &'static str;
    /// Becomes the value with this number; `false`, and unchanged, if there is none.
    fn set_number(&mut self, number: i8) -> bool;
    /// Becomes the value with this name (any case); `false`, and unchanged, if there is none.
    fn set_name(&mut self, name: &str) -> bool;
    /// The enum's own name, for messages.
    fn enum_name(&self) -> &'static str;
}

macro_rules! wire_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $number:literal $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(i8)]
        pub enum $name {
            $(#[doc = concat!("`", $text, "`")] $(#[$vmeta])* $variant = $number,)*
        }

        impl $name {
            /// Every value, in the order of the schema.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The value with this number on the wire.
            pub fn from_number(number: i8) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)* _ => None }
            }

            /// The value with this schema name, in any case.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|v| v.name().eq_ignore_ascii_case(name))
            }

            /// The name in the schema.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The number on the wire.
            pub const fn number(self) -> i8 { self as i8 }
        }

        impl WireEnum for $name {
            fn number(&self) -> i8 { *self as i8 }
            fn name(&self) -> &'static str { (*self).name() }
            fn set_number(&mut self, number: i8) -> bool {
                Self::from_number(number).map(|v| *self = v).is_some()
            }
            fn set_name(&mut self, name: &str) -> bool {
                Self::from_name(name).map(|v| *self = v).is_some()
            }
            fn enum_name(&self) -> &'static str { stringify!($name) }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.name()) }
        }
    };
}

wire_enum! {
    /// Element types. There is no boolean: masks are of any type, and non-zero is true.
    DataType {
        #[default] Unset = 0 "UNSET",
        Float = 1 "FLOAT",
        Half = 2 "HALF",
        Bfloat16 = 3 "BFLOAT16",
        Double = 4 "DOUBLE",
        Uint8 = 5 "UINT8",
        Int32 = 6 "INT32",
        Int8 = 7 "INT8",
        Fp8E4m3 = 8 "FP8_E4M3",
        Fp8E5m2 = 9 "FP8_E5M2",
        Fp8E8m0 = 10 "FP8_E8M0",
        Fp4E2m1 = 11 "FP4_E2M1",
        Fp6E2m3 = 12 "FP6_E2M3",
        Fp6E3m2 = 13 "FP6_E3M2",
        Int4 = 14 "INT4",
        Int64 = 15 "INT64",
        Fp8E4m3Fnuz = 16 "FP8_E4M3_FNUZ",
        Fp8E5m2Fnuz = 17 "FP8_E5M2_FNUZ",
    }
}

wire_enum! {
    /// Pointwise operations; what each computes stands in [`crate::semantics`].
    PointwiseMode {
        #[default] Unset = 0 "UNSET",
        Abs = 1 "ABS",
        Add = 2 "ADD",
        AddSquare = 3 "ADD_SQUARE",
        BinarySelect = 4 "BINARY_SELECT",
        Ceil = 5 "CEIL",
        CmpEq = 6 "CMP_EQ",
        CmpGe = 7 "CMP_GE",
        CmpGt = 8 "CMP_GT",
        CmpLe = 9 "CMP_LE",
        CmpLt = 10 "CMP_LT",
        CmpNeq = 11 "CMP_NEQ",
        Div = 12 "DIV",
        EluBwd = 13 "ELU_BWD",
        EluFwd = 14 "ELU_FWD",
        Erf = 15 "ERF",
        Exp = 16 "EXP",
        Floor = 17 "FLOOR",
        GeluApproxTanhBwd = 18 "GELU_APPROX_TANH_BWD",
        GeluApproxTanhFwd = 19 "GELU_APPROX_TANH_FWD",
        GeluBwd = 20 "GELU_BWD",
        GeluFwd = 21 "GELU_FWD",
        GenIndex = 22 "GEN_INDEX",
        Identity = 23 "IDENTITY",
        Log = 24 "LOG",
        LogicalAnd = 25 "LOGICAL_AND",
        LogicalNot = 26 "LOGICAL_NOT",
        LogicalOr = 27 "LOGICAL_OR",
        MaxOp = 28 "MAX_OP",
        MinOp = 29 "MIN_OP",
        Mul = 30 "MUL",
        Neg = 31 "NEG",
        Reciprocal = 32 "RECIPROCAL",
        ReluBwd = 33 "RELU_BWD",
        ReluFwd = 34 "RELU_FWD",
        Rsqrt = 35 "RSQRT",
        SigmoidBwd = 36 "SIGMOID_BWD",
        SigmoidFwd = 37 "SIGMOID_FWD",
        Sin = 38 "SIN",
        SoftplusBwd = 39 "SOFTPLUS_BWD",
        SoftplusFwd = 40 "SOFTPLUS_FWD",
        Sqrt = 41 "SQRT",
        Sub = 42 "SUB",
        SwishBwd = 43 "SWISH_BWD",
        SwishFwd = 44 "SWISH_FWD",
        Tan = 45 "TAN",
        TanhBwd = 46 "TANH_BWD",
        TanhFwd = 47 "TANH_FWD",
    }
}

wire_enum! {
    /// Whether the filter is flipped.
    ConvMode {
        #[default] Unset = 0 "UNSET",
        Convolution = 1 "CONVOLUTION",
        CrossCorrelation = 2 "CROSS_CORRELATION",
    }
}

wire_enum! {
    /// Whether a norm saves its statistics.
    NormFwdPhase {
        #[default] NotSet = 0 "NOT_SET",
        Inference = 1 "INFERENCE",
        Training = 2 "TRAINING",
    }
}

wire_enum! {
    /// How a reduction combines elements.
    ReductionMode {
        #[default] NotSet = 0 "NOT_SET",
        Add = 1 "ADD",
        Mul = 2 "MUL",
        MinOp = 3 "MIN_OP",
        MaxOp = 4 "MAX_OP",
        Amax = 5 "AMAX",
        Avg = 6 "AVG",
        Norm1 = 7 "NORM1",
        Norm2 = 8 "NORM2",
        MulNoZeros = 9 "MUL_NO_ZEROS",
    }
}

wire_enum! {
    /// How a resampling window is combined.
    ResampleMode {
        #[default] NotSet = 0 "NOT_SET",
        Maxpool = 1 "MAXPOOL",
        AvgpoolExcludePadding = 2 "AVGPOOL_EXCLUDE_PADDING",
        AvgpoolIncludePadding = 3 "AVGPOOL_INCLUDE_PADDING",
    }
}

wire_enum! {
    /// What a resampling window sees outside the tensor.
    PaddingMode {
        #[default] PaddingNotSet = 0 "PADDING_NOT_SET",
        NegInfPad = 1 "NEG_INF_PAD",
        ZeroPad = 2 "ZERO_PAD",
    }
}

wire_enum! {
    /// Where the diagonal of an attention mask starts.
    DiagonalAlignment {
        #[default] TopLeft = 0 "TOP_LEFT",
        BottomRight = 1 "BOTTOM_RIGHT",
    }
}

wire_enum! {
    /// Which form of attention is asked for.
    AttentionImplementation {
        #[default] Auto = 0 "AUTO",
        Composite = 1 "COMPOSITE",
        Unified = 2 "UNIFIED",
    }
}

wire_enum! {
    /// How tokens are routed to experts.
    MoeGroupedMatmulMode {
        #[default] None = 0 "NONE",
        Gather = 1 "GATHER",
        Scatter = 2 "SCATTER",
    }
}

impl DataType {
    /// Short names used in case ids and on the command line.
    const SHORT: &'static [(Self, &'static str)] = &[
        (Self::Float, "f32"),
        (Self::Half, "f16"),
        (Self::Bfloat16, "bf16"),
        (Self::Double, "f64"),
        (Self::Uint8, "u8"),
        (Self::Int32, "i32"),
        (Self::Int8, "i8"),
        (Self::Fp8E4m3, "fp8e4m3"),
        (Self::Fp8E5m2, "fp8e5m2"),
        (Self::Fp8E8m0, "fp8e8m0"),
        (Self::Fp4E2m1, "fp4e2m1"),
        (Self::Fp6E2m3, "fp6e2m3"),
        (Self::Fp6E3m2, "fp6e3m2"),
        (Self::Int4, "i4"),
        (Self::Int64, "i64"),
        (Self::Fp8E4m3Fnuz, "fp8e4m3fnuz"),
        (Self::Fp8E5m2Fnuz, "fp8e5m2fnuz"),
        (Self::Unset, "unset"),
    ];

    /// The short name: `f32`, `bf16`, `i64`.
    pub fn short_name(self) -> &'static str {
        Self::SHORT
            .iter()
            .find(|(value, _)| *value == self)
            .map_or("unset", |(_, name)| name)
    }

    /// The type with this short name.
    pub fn from_short_name(name: &str) -> Option<Self> {
        Self::SHORT
            .iter()
            .find(|(_, short)| *short == name)
            .map(|(value, _)| *value)
    }

    /// Every short name, for messages.
    pub fn short_names() -> impl Iterator<Item = &'static str> {
        Self::SHORT.iter().map(|(_, name)| *name)
    }

    /// Bytes of one element; `None` where elements are packed below a byte or the type is unset.
    pub const fn size(self) -> Option<usize> {
        match self {
            Self::Double | Self::Int64 => Some(8),
            Self::Float | Self::Int32 => Some(4),
            Self::Half | Self::Bfloat16 => Some(2),
            Self::Uint8
            | Self::Int8
            | Self::Fp8E4m3
            | Self::Fp8E5m2
            | Self::Fp8E8m0
            | Self::Fp8E4m3Fnuz
            | Self::Fp8E5m2Fnuz => Some(1),
            Self::Fp4E2m1 | Self::Fp6E2m3 | Self::Fp6E3m2 | Self::Int4 | Self::Unset => None,
        }
    }

    /// Whether this is one of the floating types that the reference computes with.
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            Self::Float | Self::Half | Self::Bfloat16 | Self::Double
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_round_trip() {
        for &mode in PointwiseMode::ALL {
            assert_eq!(PointwiseMode::from_number(mode.number()), Some(mode));
            assert_eq!(PointwiseMode::from_name(mode.name()), Some(mode));
        }
        assert_eq!(PointwiseMode::ALL.len(), 48);
        assert_eq!(PointwiseMode::from_number(48), None);
        for &dtype in DataType::ALL {
            assert_eq!(
                DataType::from_short_name(dtype.short_name()),
                Some(dtype),
                "{dtype}"
            );
        }
    }
}
