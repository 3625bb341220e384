//! The attribute tables of the 23 node kinds, as data: one declaration gives the Rust struct, the
//! wire reader and writer, the JSON form and the list of inputs and outputs.
//!
//! Source: `flatbuffers_sdk/schemas/*.fbs` of hipDNN. A field's number is its FlatBuffers id (its
//! vtable offset is `4 + 2·id`). `input` and `output` fields hold tensor uids; `attr` fields hold
//! parameters. To add a node kind, add a block to `node_kinds!`; to add a field, a line.

use crate::enums::*;

/// What a field of an attribute table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Uids of tensors that the node reads.
    Input,
    /// Uids of tensors that the node writes.
    Output,
    /// A parameter.
    Attribute,
}

/// A field's place in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// FlatBuffers field id.
    pub id: u16,
    /// Name in the schema, such as `x_tensor_uid`.
    pub name: &'static str,
    /// Input, output or parameter.
    pub role: Role,
}

impl FieldInfo {
    /// Offset of the field's slot in a vtable.
    pub const fn vtable_offset(self) -> u16 {
        4 + 2 * self.id
    }

    /// The name without `_tensor_uid`: `x`, `dscale`, `pre_padding`.
    pub fn short_name(self) -> &'static str {
        self.name
            .strip_suffix("_tensor_uid")
            .or_else(|| self.name.strip_suffix("_tensor_uids"))
            .unwrap_or(self.name)
    }
}

/// A borrowed field of any wire type.
#[allow(missing_docs)]
pub enum FieldRef<'a> {
    Int64(&'a i64),
    OptInt64(&'a Option<i64>),
    Int32(&'a i32),
    OptInt32(&'a Option<i32>),
    OptFloat32(&'a Option<f32>),
    Bool(&'a bool),
    OptBool(&'a Option<bool>),
    Enum(&'a dyn WireEnum),
    Int64s(&'a Vec<i64>),
    Int32s(&'a Vec<i32>),
    Bytes(&'a Vec<u8>),
    Text(&'a String),
}

/// A mutably borrowed field of any wire type.
#[allow(missing_docs)]
pub enum FieldMut<'a> {
    Int64(&'a mut i64),
    OptInt64(&'a mut Option<i64>),
    Int32(&'a mut i32),
    OptInt32(&'a mut Option<i32>),
    OptFloat32(&'a mut Option<f32>),
    Bool(&'a mut bool),
    OptBool(&'a mut Option<bool>),
    Enum(&'a mut dyn WireEnum),
    Int64s(&'a mut Vec<i64>),
    Int32s(&'a mut Vec<i32>),
    Bytes(&'a mut Vec<u8>),
    Text(&'a mut String),
}

trait Field {
    fn field(&self) -> FieldRef<'_>;
    fn field_mut(&mut self) -> FieldMut<'_>;
}

macro_rules! field_types {
    ($($type:ty => $variant:ident),* $(,)?) => {
        $(impl Field for $type {
            fn field(&self) -> FieldRef<'_> { FieldRef::$variant(self) }
            fn field_mut(&mut self) -> FieldMut<'_> { FieldMut::$variant(self) }
        })*
    };
}

field_types! {
    i64 => Int64, Option<i64> => OptInt64, i32 => Int32, Option<i32> => OptInt32,
    Option<f32> => OptFloat32, bool => Bool, Option<bool> => OptBool,
    Vec<i64> => Int64s, Vec<i32> => Int32s, Vec<u8> => Bytes, String => Text,
    PointwiseMode => Enum, ConvMode => Enum, NormFwdPhase => Enum, ReductionMode => Enum,
    ResampleMode => Enum, PaddingMode => Enum, DiagonalAlignment => Enum, DataType => Enum,
    AttentionImplementation => Enum, MoeGroupedMatmulMode => Enum,
}

/// An attribute table, field by field.
pub trait Record {
    /// The table's name in the schema.
    fn table_name(&self) -> &'static str;
    /// Calls `visit` with each field in the order of the ids.
    fn visit<'a>(&'a self, visit: &mut dyn FnMut(FieldInfo, FieldRef<'a>));
    /// Calls `visit` with each field, mutably, in the order of the ids.
    fn visit_mut(&mut self, visit: &mut dyn FnMut(FieldInfo, FieldMut<'_>));
}

macro_rules! role {
    (input) => {
        Role::Input
    };
    (output) => {
        Role::Output
    };
    (attr) => {
        Role::Attribute
    };
}

macro_rules! node_kinds {
    ($($tag:literal $kind:ident: $table:ident {
        $($id:literal $role:ident $field:ident: $type:ty,)*
    })*) => {
        $(
            #[doc = concat!("Attributes of a `", stringify!($kind), "` node (union tag ", $tag, ").")]
            #[derive(Clone, Debug, Default, PartialEq)]
            pub struct $table {
                $(#[doc = concat!("Field ", $id, " (", stringify!($role), ").")] pub $field: $type,)*
            }

            impl Record for $table {
                fn table_name(&self) -> &'static str { stringify!($table) }
                fn visit<'a>(&'a self, visit: &mut dyn FnMut(FieldInfo, FieldRef<'a>)) {
                    $(visit(
                        FieldInfo { id: $id, name: stringify!($field), role: role!($role) },
                        self.$field.field(),
                    );)*
                }
                fn visit_mut(&mut self, visit: &mut dyn FnMut(FieldInfo, FieldMut<'_>)) {
                    $(visit(
                        FieldInfo { id: $id, name: stringify!($field), role: role!($role) },
                        self.$field.field_mut(),
                    );)*
                }
            }
        )*

        /// A node's operation and its parameters: the schema's union `NodeAttributes`.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Attributes {
            $(#[doc = concat!("Union tag ", $tag, ".")] $kind($table),)*
        }

        impl Attributes {
            /// Every kind of the schema, with default attributes, in the order of the tags.
            pub fn all() -> Vec<Self> { vec![$(Self::$kind($table::default())),*] }

            /// The kind with this union tag, with default attributes.
            pub fn from_tag(tag: u8) -> Option<Self> {
                match tag { $($tag => Some(Self::$kind($table::default())),)* _ => None }
            }

            /// The union tag.
            pub fn tag(&self) -> u8 { match self { $(Self::$kind(_) => $tag,)* } }

            /// The kind's name: `ConvolutionFwd`.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$kind(_) => stringify!($kind),)* }
            }

            /// The table, field by field.
            pub fn record(&self) -> &dyn Record { match self { $(Self::$kind(table) => table,)* } }

            /// The table, mutably.
            pub fn record_mut(&mut self) -> &mut dyn Record {
                match self { $(Self::$kind(table) => table,)* }
            }
        }

        $(impl From<$table> for Attributes {
            fn from(table: $table) -> Self { Self::$kind(table) }
        })*
    };
}

node_kinds! {
    1 BatchnormInference: BatchnormInferenceAttributes {
        0 input x_tensor_uid: i64,
        1 input mean_tensor_uid: i64,
        2 input inv_variance_tensor_uid: i64,
        3 input scale_tensor_uid: i64,
        4 input bias_tensor_uid: i64,
        5 output y_tensor_uid: i64,
    }
    2 Pointwise: PointwiseAttributes {
        0 attr operation: PointwiseMode,
        1 attr relu_lower_clip: Option<f32>,
        2 attr relu_upper_clip: Option<f32>,
        3 attr relu_lower_clip_slope: Option<f32>,
        4 attr axis_tensor_uid: Option<i64>,
        5 input in_0_tensor_uid: i64,
        6 input in_1_tensor_uid: Option<i64>,
        7 input in_2_tensor_uid: Option<i64>,
        8 output out_0_tensor_uid: i64,
        9 attr swish_beta: Option<f32>,
        10 attr elu_alpha: Option<f32>,
        11 attr softplus_beta: Option<f32>,
    }
    3 BatchnormBackward: BatchnormBackwardAttributes {
        0 input dy_tensor_uid: i64,
        1 input x_tensor_uid: i64,
        2 input mean_tensor_uid: Option<i64>,
        3 input inv_variance_tensor_uid: Option<i64>,
        4 input scale_tensor_uid: i64,
        5 input peer_stats_tensor_uid: Vec<i64>,
        6 output dx_tensor_uid: i64,
        7 output dscale_tensor_uid: i64,
        8 output dbias_tensor_uid: i64,
    }
    4 Batchnorm: BatchnormAttributes {
        0 input x_tensor_uid: i64,
        1 input scale_tensor_uid: i64,
        2 input bias_tensor_uid: i64,
        3 input epsilon_tensor_uid: i64,
        4 input peer_stats_tensor_uid: Vec<i64>,
        5 input prev_running_mean_tensor_uid: Option<i64>,
        6 input prev_running_variance_tensor_uid: Option<i64>,
        7 input momentum_tensor_uid: Option<i64>,
        8 output y_tensor_uid: i64,
        9 output mean_tensor_uid: Option<i64>,
        10 output inv_variance_tensor_uid: Option<i64>,
        11 output next_running_mean_tensor_uid: Option<i64>,
        12 output next_running_variance_tensor_uid: Option<i64>,
    }
    5 ConvolutionFwd: ConvolutionFwdAttributes {
        0 input x_tensor_uid: i64,
        1 input w_tensor_uid: i64,
        2 output y_tensor_uid: i64,
        3 attr pre_padding: Vec<i64>,
        4 attr post_padding: Vec<i64>,
        5 attr stride: Vec<i64>,
        6 attr dilation: Vec<i64>,
        7 attr conv_mode: ConvMode,
    }
    6 ConvolutionBwd: ConvolutionBwdAttributes {
        0 input dy_tensor_uid: i64,
        1 input w_tensor_uid: i64,
        2 output dx_tensor_uid: i64,
        3 attr pre_padding: Vec<i64>,
        4 attr post_padding: Vec<i64>,
        5 attr stride: Vec<i64>,
        6 attr dilation: Vec<i64>,
        7 attr conv_mode: ConvMode,
    }
    7 ConvolutionWrw: ConvolutionWrwAttributes {
        0 input x_tensor_uid: i64,
        1 input dy_tensor_uid: i64,
        2 output dw_tensor_uid: i64,
        3 attr pre_padding: Vec<i64>,
        4 attr post_padding: Vec<i64>,
        5 attr stride: Vec<i64>,
        6 attr dilation: Vec<i64>,
        7 attr conv_mode: ConvMode,
    }
    8 BatchnormInferenceVariance: BatchnormInferenceAttributesVarianceExt {
        0 input x_tensor_uid: i64,
        1 input mean_tensor_uid: i64,
        2 input variance_tensor_uid: i64,
        3 input scale_tensor_uid: i64,
        4 input bias_tensor_uid: i64,
        5 output y_tensor_uid: i64,
        6 input epsilon_tensor_uid: i64,
    }
    9 Matmul: MatmulAttributes {
        0 input a_tensor_uid: i64,
        1 input b_tensor_uid: i64,
        2 output c_tensor_uid: i64,
    }
    10 RMSNorm: RMSNormAttributes {
        0 input x_tensor_uid: i64,
        1 input scale_tensor_uid: i64,
        2 input epsilon_tensor_uid: i64,
        3 output y_tensor_uid: i64,
        4 input bias_tensor_uid: Option<i64>,
        5 output inv_rms_tensor_uid: Option<i64>,
        6 attr forward_phase: NormFwdPhase,
    }
    11 Layernorm: LayernormAttributes {
        0 input x_tensor_uid: i64,
        1 input scale_tensor_uid: i64,
        2 input bias_tensor_uid: i64,
        3 input epsilon_tensor_uid: i64,
        4 output y_tensor_uid: i64,
        5 attr normalized_dim_count: i64,
        6 output mean_tensor_uid: Option<i64>,
        7 output inv_variance_tensor_uid: Option<i64>,
        8 attr forward_phase: NormFwdPhase,
    }
    12 Sdpa: SdpaAttributes {
        0 input q_tensor_uid: i64,
        1 input k_tensor_uid: i64,
        2 input v_tensor_uid: i64,
        3 output o_tensor_uid: i64,
        4 input attn_mask_tensor_uid: Option<i64>,
        5 input scale_tensor_uid: Option<i64>,
        6 input seq_len_q_tensor_uid: Option<i64>,
        7 input seq_len_kv_tensor_uid: Option<i64>,
        8 input seed_tensor_uid: Option<i64>,
        9 input offset_tensor_uid: Option<i64>,
        10 input dropout_mask_tensor_uid: Option<i64>,
        11 input dropout_scale_tensor_uid: Option<i64>,
        12 input page_table_k_tensor_uid: Option<i64>,
        13 input page_table_v_tensor_uid: Option<i64>,
        14 input block_mask_tensor_uid: Option<i64>,
        15 input sink_token_tensor_uid: Option<i64>,
        16 input descale_q_tensor_uid: Option<i64>,
        17 input descale_k_tensor_uid: Option<i64>,
        18 input descale_v_tensor_uid: Option<i64>,
        19 input descale_s_tensor_uid: Option<i64>,
        20 input scale_s_tensor_uid: Option<i64>,
        21 input scale_o_tensor_uid: Option<i64>,
        22 output stats_tensor_uid: Option<i64>,
        23 output max_tensor_uid: Option<i64>,
        24 output sum_exp_tensor_uid: Option<i64>,
        25 output rng_dump_tensor_uid: Option<i64>,
        26 output amax_s_tensor_uid: Option<i64>,
        27 output amax_o_tensor_uid: Option<i64>,
        28 attr generate_stats: Option<bool>,
        29 attr alibi_mask: bool,
        30 attr padding_mask: bool,
        31 attr causal_mask: bool,
        32 attr causal_mask_bottom_right: bool,
        33 attr dropout_probability: Option<f32>,
        34 attr attn_scale_value: Option<f32>,
        35 attr left_bound: Option<i64>,
        36 attr right_bound: Option<i64>,
        37 attr max_seq_len_kv: Option<i32>,
        38 attr diagonal_alignment: DiagonalAlignment,
        39 attr mma_core_mode: DataType,
        40 attr implementation: AttentionImplementation,
    }
    13 BlockScaleDequantize: BlockScaleDequantizeAttributes {
        0 input x_tensor_uid: i64,
        1 input scale_tensor_uid: i64,
        2 output y_tensor_uid: i64,
        3 attr block_size: Vec<i32>,
        4 attr is_negative_scale: bool,
    }
    14 BlockScaleQuantize: BlockScaleQuantizeAttributes {
        0 input x_tensor_uid: i64,
        1 output y_tensor_uid: i64,
        2 output scale_tensor_uid: i64,
        3 attr block_size: i32,
        4 attr axis: Option<i64>,
        5 attr transpose: bool,
    }
    15 SdpaBackward: SdpaBackwardAttributes {
        0 input q_tensor_uid: i64,
        1 input k_tensor_uid: i64,
        2 input v_tensor_uid: i64,
        3 input o_tensor_uid: i64,
        4 input do_tensor_uid: i64,
        5 input stats_tensor_uid: i64,
        6 output dq_tensor_uid: i64,
        7 output dk_tensor_uid: i64,
        8 output dv_tensor_uid: i64,
        9 input scale_tensor_uid: Option<i64>,
        10 input attn_mask_tensor_uid: Option<i64>,
        11 input seq_len_q_tensor_uid: Option<i64>,
        12 input seq_len_kv_tensor_uid: Option<i64>,
        13 input seed_tensor_uid: Option<i64>,
        14 input offset_tensor_uid: Option<i64>,
        15 input dropout_mask_tensor_uid: Option<i64>,
        16 input dropout_scale_tensor_uid: Option<i64>,
        17 input dropout_scale_inv_tensor_uid: Option<i64>,
        18 output dbias_tensor_uid: Option<i64>,
        19 attr alibi_mask: bool,
        20 attr padding_mask: bool,
        21 attr causal_mask: bool,
        22 attr causal_mask_bottom_right: bool,
        23 attr dropout_probability: Option<f32>,
        24 attr attn_scale_value: Option<f32>,
        25 attr left_bound: Option<i64>,
        26 attr right_bound: Option<i64>,
        27 attr diagonal_alignment: DiagonalAlignment,
    }
    16 CustomOp: CustomOpAttributes {
        0 attr custom_op_id: String,
        1 input input_tensor_uids: Vec<i64>,
        2 output output_tensor_uids: Vec<i64>,
        3 attr data: Vec<u8>,
    }
    17 RMSNormBackward: RMSNormBackwardAttributes {
        0 input dy_tensor_uid: i64,
        1 input x_tensor_uid: i64,
        2 input scale_tensor_uid: i64,
        3 input inv_rms_tensor_uid: i64,
        4 output dx_tensor_uid: i64,
        5 output dscale_tensor_uid: i64,
        6 output dbias_tensor_uid: Option<i64>,
    }
    18 Reduction: ReductionAttributes {
        0 attr mode: ReductionMode,
        1 input in_tensor_uid: i64,
        2 output out_tensor_uid: i64,
        3 attr is_deterministic: bool,
    }
    19 ResampleFwd: ResampleFwdAttributes {
        0 input x_tensor_uid: i64,
        1 output y_tensor_uid: i64,
        2 output index_tensor_uid: Option<i64>,
        3 attr pre_padding: Vec<i64>,
        4 attr post_padding: Vec<i64>,
        5 attr stride: Vec<i64>,
        6 attr window: Vec<i64>,
        7 attr resample_mode: ResampleMode,
        8 attr padding_mode: PaddingMode,
        9 attr generate_index: bool,
    }
    20 LayernormBackward: LayernormBackwardAttributes {
        0 input dy_tensor_uid: i64,
        1 input x_tensor_uid: i64,
        2 input scale_tensor_uid: i64,
        3 input mean_tensor_uid: Option<i64>,
        4 input inv_variance_tensor_uid: Option<i64>,
        5 input epsilon_tensor_uid: Option<i64>,
        6 output dx_tensor_uid: i64,
        7 output dscale_tensor_uid: i64,
        8 output dbias_tensor_uid: i64,
        9 attr normalized_dim_count: i64,
    }
    21 ResampleBwd: ResampleBwdAttributes {
        0 input dy_tensor_uid: i64,
        1 output dx_tensor_uid: i64,
        2 input index_tensor_uid: Option<i64>,
        3 attr pre_padding: Vec<i64>,
        4 attr post_padding: Vec<i64>,
        5 attr stride: Vec<i64>,
        6 attr window: Vec<i64>,
        7 attr resample_mode: ResampleMode,
        8 attr padding_mode: PaddingMode,
    }
    22 MoeGroupedMatmul: MoeGroupedMatmulAttributes {
        0 input token_tensor_uid: i64,
        1 input weight_tensor_uid: i64,
        2 input first_token_offset_tensor_uid: i64,
        3 input token_index_tensor_uid: Option<i64>,
        4 input token_ks_tensor_uid: Option<i64>,
        5 output output_tensor_uid: i64,
        6 attr mode: MoeGroupedMatmulMode,
        7 attr top_k: i32,
    }
    23 MoeGroupedMatmulBwd: MoeGroupedMatmulBwdAttributes {
        0 input doutput_tensor_uid: i64,
        1 input token_tensor_uid: i64,
        2 input first_token_offset_tensor_uid: i64,
        3 output dweight_tensor_uid: i64,
    }
}

impl Attributes {
    /// Calls `visit` with the field and uid of each tensor that the node names in `role`;
    /// optional tensors that are absent are passed over.
    pub fn visit_uids(&self, role: Role, visit: &mut dyn FnMut(FieldInfo, i64)) {
        self.record().visit(&mut |info, field| {
            if info.role != role {
                return;
            }
            match field {
                FieldRef::Int64(uid) | FieldRef::OptInt64(Some(uid)) => visit(info, *uid),
                FieldRef::Int64s(uids) => uids.iter().for_each(|uid| visit(info, *uid)),
                _ => {}
            }
        });
    }

    /// The uids that the node reads, in the order of the fields.
    pub fn inputs(&self) -> Vec<i64> {
        let mut uids = Vec::new();
        self.visit_uids(Role::Input, &mut |_, uid| uids.push(uid));
        uids
    }

    /// The uids that the node writes, in the order of the fields.
    pub fn outputs(&self) -> Vec<i64> {
        let mut uids = Vec::new();
        self.visit_uids(Role::Output, &mut |_, uid| uids.push(uid));
        uids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_dense_and_ids_ascend_from_zero() {
        let kinds = Attributes::all();
        assert_eq!(kinds.len(), 23);
        for (i, kind) in kinds.iter().enumerate() {
            assert_eq!(usize::from(kind.tag()), i + 1);
            let mut next = 0;
            kind.record().visit(&mut |info, _| {
                assert_eq!(info.id, next, "{}", info.name);
                next += 1;
            });
        }
        assert!(Attributes::from_tag(0).is_none() && Attributes::from_tag(24).is_none());
    }

    #[test]
    fn inputs_and_outputs_follow_the_fields() {
        let conv = Attributes::from(ConvolutionFwdAttributes {
            x_tensor_uid: 1,
            w_tensor_uid: 2,
            y_tensor_uid: 3,
            ..Default::default()
        });
        assert_eq!((conv.inputs(), conv.outputs()), (vec![1, 2], vec![3]));
        let training = Attributes::from(BatchnormAttributes {
            mean_tensor_uid: Some(9),
            y_tensor_uid: 8,
            ..Default::default()
        });
        assert_eq!(training.outputs(), vec![8, 9]);
    }
}
