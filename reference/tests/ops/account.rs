//! The numbers that explain a bound add up to it.

use crate::graphs::{graph, tensor};
use dnn_assay_graph::case::{Case, Fill};
use dnn_assay_graph::schema::MatmulAttributes;
use dnn_assay_graph::{DataType, Graph};
use dnn_assay_reference::{Account, Arithmetic, Trait, Traits, account, evaluate, fill, naive_f32};
use rstest::rstest;

/// The accounts of an element of each output, and the uncertainty that the reference gives it.
fn accounts(id: &str, arithmetic: &Arithmetic) -> Vec<(Vec<Account>, f64)> {
    accounts_of(&Case::parse_short(id).unwrap().graph().unwrap(), arithmetic)
}

fn accounts_of(graph: &Graph, arithmetic: &Arithmetic) -> Vec<(Vec<Account>, f64)> {
    let inputs = fill::generate(graph, Fill::Uniform, 3).unwrap();
    let whole = evaluate(graph, &inputs, arithmetic).unwrap();
    let mut all = Vec::new();
    for output in graph.outputs() {
        let count = output.element_count().unwrap();
        for index in [0, count / 2, count - 1] {
            let told = account(graph, &inputs, arithmetic, output.uid, index).unwrap();
            all.push((told, f64::from(whole.tensors[&output.uid].error[index])));
        }
    }
    all
}

#[rstest]
#[case("conv.fprop/f32/nchw/n2-c6-k4-i7x5-f3x3/pad1")]
#[case("conv.fprop/f16/nhwc/n2-c6-k4-i7x5-f3x3/pad1-g2-mode-conv")]
#[case("conv.dgrad/bf16/nchw/n2-c6-k4-i7x5-f3x3/pad1-str2")]
#[case("conv.wgrad/f32/nchw/n2-c6-k4-i7x5-f3x3/pad1")]
#[case("conv.wgrad/f32/nchw/n2-c6-k4-i7x5-f3x2/mode-conv")]
#[case("conv.fprop+bias/f16/nchw/n1-c3-k4-i5x5-f3x3")]
#[case("conv.fprop+bias+swish_fwd/f16/nchw/n1-c3-k4-i5x5-f3x3")]
#[case("batchnorm.inference/f16+f32/nchw/n2-c3-i4x5")]
#[case("batchnorm.inference_var/f32/nchw/n2-c3-i4x5/eps0.01")]
#[case("batchnorm.training/f32/nchw/n2-c3-i4x5/eps0.01-mom0.5-stats-run")]
#[case("batchnorm.training+relu_fwd/f32/nchw/n2-c3-i4x5/eps0.01-stats")]
#[case("batchnorm.backward/f32/nchw/n2-c3-i4x5/stats")]
#[case("batchnorm.backward/f16+f32/nhwc/n2-c3-i4x5")]
#[case("pointwise.gelu_fwd/f32/nchw/n1-c2-i4x4")]
#[case("pointwise.softplus_fwd/f16/nchw/n1-c2-i4x4/beta2")]
#[case("pointwise.div/f32/nchw/n1-c2-i4x4")]
#[case("pointwise.add/f16/nchw/n1-c2-i4x4")]
fn the_parts_add_up_to_the_uncertainty(#[case] id: &str) {
    add_up(id, &accounts(id, &Arithmetic::default()));
}

/// Of a product, which no case id says: one batch, and batches of which the first operand has fewer.
#[rstest]
#[case(DataType::Float, 1, 1)]
#[case(DataType::Half, 2, 2)]
#[case(DataType::Bfloat16, 3, 1)]
#[case(DataType::Double, 1, 2)]
fn the_parts_of_a_product_add_up_too(
    #[case] data_type: DataType,
    #[case] batches: i64,
    #[case] repeat: i64,
) {
    let attributes = MatmulAttributes {
        a_tensor_uid: 1,
        b_tensor_uid: 2,
        c_tensor_uid: 3,
    };
    let tensors = vec![
        tensor(1, data_type, &[batches, 5, 70]),
        tensor(2, data_type, &[batches * repeat, 70, 6]),
        tensor(3, data_type, &[batches * repeat, 5, 6]),
    ];
    let graph = graph(tensors, vec![attributes.into()]);
    let told = accounts_of(&graph, &Arithmetic::default());
    add_up("matmul", &told);
    let figures = &told[0].0[0].figures;
    assert!(figures.iter().any(|f| f.value == 70.0), "{figures:?}");
}

/// Every account has figures, and its parts add up to the uncertainty of the reference.
fn add_up(id: &str, told: &[(Vec<Account>, f64)]) {
    assert!(!told.is_empty());
    for (accounts, error) in told {
        let last = accounts.last().unwrap();
        assert_eq!(last.error, *error, "{id}");
        for account in accounts {
            assert!(!account.figures.is_empty(), "{id}: {account:?}");
            let sum: f64 = account.parts.iter().map(|part| part.value).sum();
            let close = (sum - account.error).abs() <= 2e-3 * account.error + 1e-40;
            assert!(close, "{id}: {sum} for {}: {account:?}", account.error);
            let rest = account
                .parts
                .iter()
                .any(|part| part.name.contains("rules of a trait"));
            assert!(!rest, "{id}: {account:?}");
        }
    }
}

#[test]
fn a_chain_is_told_from_its_first_node() {
    let told = accounts(
        "conv.fprop+bias+relu_fwd/f16/nchw/n1-c3-k4-i5x5-f3x3",
        &Arithmetic::default(),
    );
    let nodes: Vec<usize> = told[0].0.iter().map(|account| account.node).collect();
    assert_eq!(nodes, [0, 1, 2]);
    let names = |account: &Account| {
        account
            .figures
            .iter()
            .map(|f| f.name.clone())
            .collect::<Vec<_>>()
    };
    assert!(
        names(&told[0].0[0])
            .iter()
            .any(|name| name.starts_with("Q = "))
    );
    assert!(names(&told[0].0[2]).iter().any(|name| name == "operand 0"));
}

#[test]
fn what_a_transform_adds_is_said_to_be_a_traits() {
    let winograd = Traits::default().with(Trait::Winograd).arithmetic();
    let told = accounts("conv.fprop/f32/nchw/n1-c3-k4-i8x8-f3x3/pad1", &winograd);
    for (accounts, error) in told {
        let parts = &accounts[0].parts;
        assert!(
            parts
                .iter()
                .any(|part| part.name.contains("rules of a trait"))
        );
        let sum: f64 = parts.iter().map(|part| part.value).sum();
        assert!((sum - error).abs() <= 2e-3 * error);
    }
}

#[rstest]
#[case("conv.fprop/f32/nchw/n2-c6-k4-i7x5-f3x3/pad1")]
#[case("conv.dgrad/bf16/nchw/n2-c6-k4-i7x5-f3x3/pad1-str2")]
#[case("conv.wgrad/f32/nchw/n2-c6-k4-i7x5-f3x3/pad1")]
#[case("conv.fprop+bias+swish_fwd/f16/nchw/n1-c3-k4-i5x5-f3x3")]
#[case("batchnorm.inference/f16+f32/nchw/n2-c3-i4x5")]
#[case("batchnorm.inference_var/f32/nchw/n2-c3-i4x5/eps0.01")]
#[case("batchnorm.training/f32/nchw/n2-c3-i4x5/eps0.01-mom0.5-stats-run")]
#[case("batchnorm.backward/f32/nchw/n2-c3-i4x5/stats")]
#[case("batchnorm.backward/f16+f32/nhwc/n2-c3-i4x5")]
#[case("pointwise.gelu_fwd/f32/nchw/n1-c2-i4x4")]
#[case("pointwise.div/f32/nchw/n1-c2-i4x4")]
#[case("pointwise.relu_bwd/f32/nchw/n1-c2-i4x4")]
fn a_plain_f32_loop_is_within_the_bound(#[case] id: &str) {
    let graph = Case::parse_short(id).unwrap().graph().unwrap();
    let inputs = fill::generate(&graph, Fill::Uniform, 3).unwrap();
    let whole = evaluate(&graph, &inputs, &Arithmetic::default()).unwrap();
    let mut differs = false;
    for output in graph.outputs() {
        let estimate = &whole.tensors[&output.uid];
        for (index, (&y, &error)) in estimate.value.iter().zip(&estimate.error).enumerate() {
            let naive = f64::from(naive_f32(&graph, &inputs, output.uid, index).unwrap());
            let bound = f64::from(error) + (-23f64).exp2() * y.abs() + 1e-40;
            assert!(
                (naive - y).abs() <= bound,
                "{id}[{index}]: {naive} for {y}, {bound}"
            );
            differs |= naive != y;
        }
    }
    assert!(differs || id.contains("relu"), "{id}: f32 rounds somewhere");
}

#[test]
fn f64_has_no_f32_loop() {
    let graph = Case::parse_short("pointwise.add/f64/nchw/n1-c2-i4x4")
        .unwrap()
        .graph()
        .unwrap();
    let inputs = fill::generate(&graph, Fill::Uniform, 3).unwrap();
    assert_eq!(naive_f32(&graph, &inputs, 3, 0), None);
}
