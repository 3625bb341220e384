use super::*;
use crate::case::Case;
use crate::enums::{ConvMode, DataType, WireEnum};
use crate::model::Node;
use crate::schema::{FieldMut, Role};
use crate::tensor_value::TensorValue;
use proptest::prelude::*;
use rstest::rstest;

fn graph(short: &str) -> Graph {
    Case::parse_short(short).unwrap().graph().unwrap()
}

fn tensor<'a>(graph: &'a mut Graph, name: &str) -> &'a mut Tensor {
    let mut tensors = graph.tensors.iter_mut();
    tensors.find(|tensor| tensor.name == name).unwrap()
}

const CONV: &str = "conv.fprop/c4-k6-i5x5-f3x3/pad1-g2";
const FUSED: &str = "conv.fprop+bias+relu/c4-k6-i5x5-f3x3/pad1";
const TRAINING: &str = "batchnorm.training/n2-c3-i4x4/stats-run";
const BACKWARD: &str = "batchnorm.backward/n2-c3-i4x4/stats";
const ADD: &str = "pointwise.add/n2-c3-i4x4/in1.3x1x1";

fn conv(graph: &mut Graph) -> &mut crate::schema::ConvolutionFwdAttributes {
    match &mut graph.nodes[0].attributes {
        Attributes::ConvolutionFwd(node) => node,
        other => panic!("{other:?}"),
    }
}

fn pointwise_node(graph: &mut Graph) -> &mut crate::schema::PointwiseAttributes {
    match &mut graph.nodes[0].attributes {
        Attributes::Pointwise(node) => node,
        other => panic!("{other:?}"),
    }
}

fn norm(graph: &mut Graph) -> &mut crate::schema::BatchnormAttributes {
    match &mut graph.nodes[0].attributes {
        Attributes::Batchnorm(node) => node,
        other => panic!("{other:?}"),
    }
}

/// A good case, a change that breaks it, and the field that must be named.
#[rstest]
#[case::uid_twice(CONV, |g: &mut Graph| tensor(g, "w").uid = 1, "uid")]
#[case::no_nodes(CONV, |g: &mut Graph| g.nodes.clear(), "nodes")]
#[case::zero_extent(CONV, |g: &mut Graph| tensor(g, "x").dims[2] = 0, "dims")]
#[case::huge(CONV, |g: &mut Graph| tensor(g, "x").dims = vec![i64::MAX; 4], "dims")]
#[case::stride_count(CONV, |g: &mut Graph| { tensor(g, "x").strides.pop(); }, "strides")]
#[case::stride_zero(CONV, |g: &mut Graph| tensor(g, "x").strides[1] = 0, "strides")]
#[case::stride_negative(CONV, |g: &mut Graph| tensor(g, "x").strides[1] = -25, "strides")]
#[case::overlap(CONV, |g: &mut Graph| tensor(g, "x").strides[1] = 24, "strides")]
#[case::stride_huge(CONV, |g: &mut Graph| tensor(g, "x").strides[1] = i64::MAX, "strides")]
#[case::no_type(CONV, |g: &mut Graph| tensor(g, "x").data_type = DataType::Unset, "data_type")]
#[case::alignment(CONV, |g: &mut Graph| tensor(g, "x").alignment = 24, "alignment")]
#[case::constant_image(CONV, |g: &mut Graph| tensor(g, "x").value = Some(TensorValue::Float32(1.0)), "dims")]
#[case::value_type(TRAINING, |g: &mut Graph| tensor(g, "epsilon").value = Some(TensorValue::Int32(1)), "value")]
#[case::ragged(CONV, |g: &mut Graph| tensor(g, "x").ragged_offset_uid = Some(99), "ragged_offset_tensor_uid")]
#[case::absent(CONV, |g: &mut Graph| conv(g).w_tensor_uid = 99, "w_tensor_uid")]
#[case::absent_output(CONV, |g: &mut Graph| conv(g).y_tensor_uid = 99, "y_tensor_uid")]
#[case::in_place(ADD, |g: &mut Graph| pointwise_node(g).in_0_tensor_uid = 40, "in_0_tensor_uid")]
#[case::order(FUSED, |g: &mut Graph| g.nodes.swap(0, 1), "in_0_tensor_uid")]
#[case::second_writer(FUSED, |g: &mut Graph| { let node = g.nodes[0].clone(); g.nodes.push(node); }, "y_tensor_uid")]
#[case::hole(FUSED, |g: &mut Graph| { g.nodes.remove(0); }, "in_0_tensor_uid")]
#[case::conv_mode(CONV, |g: &mut Graph| conv(g).conv_mode = ConvMode::Unset, "conv_mode")]
#[case::padding(CONV, |g: &mut Graph| conv(g).pre_padding[0] = -1, "pre_padding")]
#[case::padding_count(CONV, |g: &mut Graph| conv(g).post_padding.push(0), "post_padding")]
#[case::conv_stride(CONV, |g: &mut Graph| conv(g).stride[1] = 0, "stride")]
#[case::dilation(CONV, |g: &mut Graph| conv(g).dilation.clear(), "dilation")]
#[case::dilation_size(CONV, |g: &mut Graph| conv(g).dilation[0] = 2, "y_tensor_uid")]
#[case::dilation_huge(CONV, |g: &mut Graph| conv(g).dilation[0] = i64::MAX, "y_tensor_uid")]
#[case::channels(CONV, |g: &mut Graph| tensor(g, "w").dims[1] = 3, "w_tensor_uid")]
#[case::groups(CONV, |g: &mut Graph| tensor(g, "w").dims[0] = 5, "w_tensor_uid")]
#[case::output_channels(CONV, |g: &mut Graph| tensor(g, "y").dims[1] = 4, "y_tensor_uid")]
#[case::output_extent(CONV, |g: &mut Graph| tensor(g, "y").dims[3] = 4, "y_tensor_uid")]
#[case::parameter_shape(TRAINING, |g: &mut Graph| tensor(g, "scale").dims = vec![3, 1, 1, 1], "scale_tensor_uid")]
#[case::statistics(TRAINING, |g: &mut Graph| norm(g).mean_tensor_uid = None, "mean and inv_variance")]
#[case::running(TRAINING, |g: &mut Graph| norm(g).next_running_mean_tensor_uid = None,
    "running mean and variance, prev and next")]
#[case::momentum(TRAINING, |g: &mut Graph| norm(g).momentum_tensor_uid = None, "momentum_tensor_uid")]
#[case::epsilon(TRAINING, |g: &mut Graph| norm(g).epsilon_tensor_uid = 8, "epsilon_tensor_uid")]
#[case::gradient(BACKWARD, |g: &mut Graph| tensor(g, "dx").dims[0] = 1, "dx_tensor_uid")]
#[case::mode(ADD, |g: &mut Graph| pointwise_node(g).operation = Default::default(), "operation")]
#[case::operand_missing(ADD, |g: &mut Graph| pointwise_node(g).in_1_tensor_uid = None, "in_1_tensor_uid")]
#[case::operand_extra(ADD, |g: &mut Graph| pointwise_node(g).in_2_tensor_uid = Some(30), "in_2_tensor_uid")]
#[case::broadcast(ADD, |g: &mut Graph| tensor(g, "in1").dims[0] = 2, "in_1_tensor_uid")]
#[case::broadcast_output(ADD, |g: &mut Graph| tensor(g, "out").dims[0] = 1, "in_0_tensor_uid")]
#[case::type_of_operand("pointwise.exp/c3-i4x4",
    |g: &mut Graph| tensor(g, "in0").data_type = DataType::Int32, "in_0_tensor_uid")]
#[case::axis("pointwise.gen_index/c3-i4x4",
    |g: &mut Graph| pointwise_node(g).axis_tensor_uid = Some(-1), "axis_tensor_uid")]
#[case::axis_missing("pointwise.gen_index/c3-i4x4",
    |g: &mut Graph| pointwise_node(g).axis_tensor_uid = None, "axis_tensor_uid")]
#[case::clips("pointwise.relu_fwd/c3-i4x4",
    |g: &mut Graph| pointwise_node(g).relu_upper_clip = Some(-1.0), "relu_upper_clip")]
#[case::clip_nan("pointwise.relu_fwd/c3-i4x4",
    |g: &mut Graph| pointwise_node(g).relu_lower_clip = Some(f32::NAN), "relu_upper_clip")]
fn a_broken_graph_is_refused_by_field(
    #[case] short: &str,
    #[case] damage: fn(&mut Graph),
    #[case] field: &str,
) {
    let mut graph = graph(short);
    assert_eq!(validate(&graph), Ok(()));
    damage(&mut graph);
    let problems = validate(&graph).expect_err("the damage must be found");
    let found = problems.iter().any(|problem| problem.field == field);
    assert!(found, "{field} is not among {problems:#?}");
}

#[test]
fn a_problem_says_where_what_and_what_to_do() {
    let mut graph = graph(CONV);
    tensor(&mut graph, "y").dims[3] = 4;
    tensor(&mut graph, "y").strides = vec![120, 20, 4, 1];
    let problems = validate(&graph).unwrap_err();
    assert_eq!(
        problems[0].to_string(),
        "node 0, y_tensor_uid: expected 5 along spatial axis 1, found 4; it is \
         (x + pre + post - dilation·(w - 1) - 1) / stride + 1, rounded down"
    );
}

#[rstest]
#[case(&[2, 3], &[3, 1], None)]
#[case(&[2, 3], &[1, 2], None)]
#[case(&[2, 3], &[2, 1], Some(0))]
#[case(&[1, 3], &[1, 1], None)]
#[case(&[2, 2], &[1, 1], Some(1))]
#[case(&[i64::MAX, 2], &[i64::MAX, i64::MAX], Some(1))]
fn overlap_finds_the_axis(
    #[case] dims: &[i64],
    #[case] strides: &[i64],
    #[case] expected: Option<usize>,
) {
    assert_eq!(overlap(dims, strides), expected);
}

#[rstest]
#[case(&[2, 3, 4], &[2, 4, 5], &[2, 3, 5], true)]
#[case(&[1, 3, 4], &[2, 4, 5], &[2, 3, 5], true)]
#[case(&[2, 3, 4], &[2, 3, 5], &[2, 3, 5], false)]
#[case(&[3, 3, 4], &[2, 4, 5], &[2, 3, 5], false)]
#[case(&[3, 4], &[4, 5], &[3, 4], false)]
fn matmul_shapes(#[case] a: &[i64], #[case] b: &[i64], #[case] c: &[i64], #[case] good: bool) {
    let graph = Graph {
        tensors: vec![
            Tensor::packed(1, "a", DataType::Float, a),
            Tensor::packed(2, "b", DataType::Float, b),
            Tensor::packed(3, "c", DataType::Float, c),
        ],
        nodes: vec![Node {
            name: String::new(),
            compute_type: DataType::Float,
            attributes: Attributes::from(crate::schema::MatmulAttributes {
                a_tensor_uid: 1,
                b_tensor_uid: 2,
                c_tensor_uid: 3,
            }),
        }],
        ..Graph::default()
    };
    assert_eq!(validate(&graph).is_ok(), good, "{:?}", validate(&graph));
}

const EXTREMES: &[i64] = &[i64::MIN, -1, 0, 1, 2, 3, 4, 5, 1 << 31, 1 << 62, i64::MAX];

fn extreme() -> impl Strategy<Value = i64> {
    prop_oneof![4 => 0i64..5, 1 => prop::sample::select(EXTREMES)]
}

fn hostile_tensor() -> impl Strategy<Value = Tensor> {
    let numbers = || prop::collection::vec(extreme(), 0..6);
    (
        extreme(),
        numbers(),
        numbers(),
        any::<(bool, bool, bool)>(),
        extreme(),
        -1i8..18,
    )
        .prop_map(
            |(uid, dims, strides, (is_virtual, by_value, constant), alignment, dtype)| Tensor {
                uid,
                dims,
                strides,
                is_virtual,
                runtime_pass_by_value: by_value,
                value: constant.then_some(TensorValue::Float32(1.0)),
                alignment,
                data_type: DataType::from_number(dtype).unwrap_or_default(),
                ..Tensor::default()
            },
        )
}

/// A node of any kind whose fields are drawn from a pool.
fn hostile_node() -> impl Strategy<Value = Node> {
    (1u8..24, prop::collection::vec(extreme(), 64)).prop_map(|(tag, pool)| {
        let mut attributes = Attributes::from_tag(tag).unwrap();
        let mut next = pool.iter().copied().cycle();
        let mut draw = move || next.next().unwrap();
        attributes
            .record_mut()
            .visit_mut(&mut |info, field| match field {
                FieldMut::Int64(value) => *value = draw(),
                FieldMut::OptInt64(value) => *value = Some(draw()).filter(|v| v % 3 != 0),
                FieldMut::Int64s(values) if info.role == Role::Attribute => {
                    *values = (0..draw().rem_euclid(4)).map(|_| draw()).collect();
                }
                FieldMut::Int64s(values) => *values = vec![draw()],
                FieldMut::OptFloat32(value) => *value = Some(draw() as f32),
                FieldMut::Enum(value) => {
                    let number = draw().rem_euclid(48) as i8;
                    let value: &mut dyn WireEnum = value;
                    value.set_number(number);
                }
                _ => {}
            });
        Node {
            name: String::new(),
            compute_type: DataType::Float,
            attributes,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn hostile_graphs_do_not_panic(
        tensors in prop::collection::vec(hostile_tensor(), 0..8),
        nodes in prop::collection::vec(hostile_node(), 0..4),
    ) {
        let graph = Graph { tensors, nodes, ..Graph::default() };
        if let Err(problems) = validate(&graph) {
            prop_assert!(!problems.is_empty());
            for problem in problems {
                prop_assert!(problem.to_string().len() < 400, "{problem}");
            }
        }
    }

    /// Valid tensors under hostile nodes: the shape checks get further.
    #[test]
    fn hostile_nodes_on_good_tensors_do_not_panic(
        dims in prop::collection::vec(prop::collection::vec(1i64..4, 1..5), 5),
        nodes in prop::collection::vec(hostile_node(), 1..4),
    ) {
        let tensors = dims.iter().zip(0..);
        let tensors = tensors.map(|(dims, uid)| Tensor::packed(uid, "t", DataType::Float, dims));
        let graph = Graph { tensors: tensors.collect(), nodes, ..Graph::default() };
        let _ = validate(&graph);
    }

    /// Any change of one extent is found. (Coprime channel counts: 1 of w's 4 channels would else
    /// be a convolution in 4 groups, and right.)
    #[test]
    fn a_changed_extent_of_a_convolution_is_found(which in 0..3usize, axis in 0..4usize, to in 1i64..9) {
        let mut graph = graph("conv.dgrad/n3-c5-k7-i7x7-f3x3/pad1");
        let old = std::mem::replace(&mut graph.tensors[which].dims[axis], to);
        prop_assert_eq!(validate(&graph).is_ok(), old == to);
    }
}
