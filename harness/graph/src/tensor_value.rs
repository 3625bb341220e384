//! Scalars that travel inside a graph. On the wire this is a union of bare structs, which
//! FlatBuffers' Rust generator refuses; [`crate::wire`] reads and writes it by hand.

/// A compile-time pass-by-value scalar: the schema's union `TensorValue`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TensorValue {
    /// Tag 1.
    Float32(f32),
    /// Tag 2: a half tensor's value, carried as f32.
    Float16(f32),
    /// Tag 3: a bfloat16 tensor's value, carried as f32.
    Bfloat16(f32),
    /// Tag 4: the bits of an 8-bit float.
    Float8(u8),
    /// Tag 5.
    Int32(i32),
    /// Tag 6.
    Float64(f64),
    /// Tag 7.
    Int64(i64),
    /// Tag 8.
    Bool(bool),
}

impl TensorValue {
    /// The union tag.
    pub const fn tag(self) -> u8 {
        match self {
            Self::Float32(_) => 1,
            Self::Float16(_) => 2,
            Self::Bfloat16(_) => 3,
            Self::Float8(_) => 4,
            Self::Int32(_) => 5,
            Self::Float64(_) => 6,
            Self::Int64(_) => 7,
            Self::Bool(_) => 8,
        }
    }

    /// Bytes of the struct behind the tag, and its alignment.
    pub const fn wire_size(tag: u8) -> Option<usize> {
        match tag {
            1 | 2 | 3 | 5 => Some(4),
            4 | 8 => Some(1),
            6 | 7 => Some(8),
            _ => None,
        }
    }

    /// The value as f64; `None` for the bits of an 8-bit float, whose format the tensor's type
    /// names.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Self::Float32(v) | Self::Float16(v) | Self::Bfloat16(v) => Some(f64::from(v)),
            Self::Float8(_) => None,
            Self::Int32(v) => Some(f64::from(v)),
            Self::Float64(v) => Some(v),
            Self::Int64(v) => Some(v as f64),
            Self::Bool(v) => Some(f64::from(u8::from(v))),
        }
    }
}
