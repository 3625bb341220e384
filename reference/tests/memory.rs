//! The statement of [`memory_bytes`] against what an evaluation holds at its peak.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use dnn_assay_graph::schema::{
    BatchnormAttributes, ConvolutionBwdAttributes, ConvolutionFwdAttributes, PointwiseAttributes,
};
use dnn_assay_graph::{Attributes, DataType, Graph, Node, PointwiseMode, Tensor, TensorValue};
use dnn_assay_reference::{Arithmetic, Values, evaluate, memory_bytes, release_memory};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

fn tensor(uid: i64, dims: &[i64]) -> Tensor {
    Tensor::packed(uid, "", DataType::Float, dims)
}

fn graph(tensors: Vec<Tensor>, nodes: Vec<Attributes>) -> Graph {
    Graph {
        compute_type: DataType::Float,
        tensors,
        nodes: nodes
            .into_iter()
            .map(|attributes| Node {
                name: String::new(),
                compute_type: DataType::Float,
                attributes,
            })
            .collect(),
        ..Graph::default()
    }
}

/// Signed values of many magnitudes, or positive ones, whose sums all need more than a square root.
fn inputs(graph: &Graph, signed: bool) -> Values {
    let value = |i: usize| {
        let z = (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        let value = f64::from(z as f32 / 16_777_216.0);
        if signed {
            2.0 * value - 1.0
        } else {
            value + 0.5
        }
    };
    graph
        .inputs()
        .map(|tensor| {
            (
                tensor.uid,
                (0..tensor.element_count().unwrap()).map(value).collect(),
            )
        })
        .collect()
}

/// 3×3 with padding 1 on `[4, 16, 288, 288]`: 48 filters, 191 MiB of results.
fn convolution() -> ConvolutionFwdAttributes {
    ConvolutionFwdAttributes {
        x_tensor_uid: 1,
        w_tensor_uid: 2,
        y_tensor_uid: 3,
        pre_padding: vec![1; 2],
        post_padding: vec![1; 2],
        stride: vec![1; 2],
        dilation: vec![1; 2],
        ..Default::default()
    }
}

fn large_tensors() -> Vec<Tensor> {
    vec![
        tensor(1, &[4, 16, 288, 288]),
        tensor(2, &[48, 16, 3, 3]),
        tensor(3, &[4, 48, 288, 288]),
    ]
}

fn fprop() -> Graph {
    graph(large_tensors(), vec![convolution().into()])
}

/// As many results in images of 2²⁰ elements: what has one sign is listed an image at a time.
fn smaller_images() -> Graph {
    let tensors = vec![
        tensor(1, &[16, 16, 144, 144]),
        tensor(2, &[48, 16, 3, 3]),
        tensor(3, &[16, 48, 144, 144]),
    ];
    graph(tensors, vec![convolution().into()])
}

/// The gradient of a strided convolution, whose result falls into four parts.
fn dgrad() -> Graph {
    let node = ConvolutionBwdAttributes {
        dy_tensor_uid: 1,
        w_tensor_uid: 2,
        dx_tensor_uid: 3,
        pre_padding: vec![1; 2],
        post_padding: vec![0; 2],
        stride: vec![2; 2],
        dilation: vec![1; 2],
        ..Default::default()
    };
    let tensors = vec![
        tensor(1, &[4, 16, 144, 144]),
        tensor(2, &[16, 32, 3, 3]),
        tensor(3, &[4, 32, 288, 288]),
    ];
    graph(tensors, vec![node.into()])
}

/// A convolution, a bias, batchnorm and ReLU: three virtual tensors.
fn chain() -> Graph {
    let mut tensors = large_tensors();
    let like_y = tensors[2].dims.clone();
    tensors[2].is_virtual = true;
    tensors.push(tensor(4, &[1, 48, 1, 1]));
    for uid in [5, 6] {
        tensors.push(Tensor {
            is_virtual: true,
            ..tensor(uid, &like_y)
        });
    }
    tensors.push(tensor(7, &like_y));
    tensors.push(Tensor {
        value: Some(TensorValue::Float32(1e-5)),
        ..tensor(8, &[1])
    });
    let bias = PointwiseAttributes {
        operation: PointwiseMode::Add,
        in_0_tensor_uid: 3,
        in_1_tensor_uid: Some(4),
        out_0_tensor_uid: 5,
        ..Default::default()
    };
    let norm = BatchnormAttributes {
        x_tensor_uid: 5,
        scale_tensor_uid: 4,
        bias_tensor_uid: 4,
        epsilon_tensor_uid: 8,
        y_tensor_uid: 6,
        ..Default::default()
    };
    let relu = PointwiseAttributes {
        operation: PointwiseMode::ReluFwd,
        in_0_tensor_uid: 6,
        out_0_tensor_uid: 7,
        ..Default::default()
    };
    let nodes = vec![convolution().into(), bias.into(), norm.into(), relu.into()];
    graph(tensors, nodes)
}

/// One test, because the peak is the process's. On as many threads as the statement is for at most.
#[test]
fn an_evaluation_needs_no_more_than_it_says() {
    for threads in [2, 16] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(no_more_than_it_says);
    }
}

fn no_more_than_it_says() {
    for (name, graph, signed) in [
        ("fprop", fprop(), true),
        ("fprop of one sign", smaller_images(), false),
        ("dgrad", dgrad(), true),
        ("chain", chain(), true),
    ] {
        let values = inputs(&graph, signed);
        // The inputs lie there before the evaluation begins.
        let given: usize = values.values().map(|values| values.len() * 8).sum();
        // What earlier cases left would hide what this one takes.
        release_memory();
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let evaluation = evaluate(&graph, &values, &Arithmetic::default()).unwrap();
        let peak = ALLOCATOR.peak_usage() - before + given;
        let stated = memory_bytes(&graph);
        assert!(
            peak as f64 <= stated,
            "{name}: {peak} bytes, {stated} stated"
        );
        // The statement is no more than the 64 MiB too large.
        let held: usize = evaluation
            .tensors
            .values()
            .map(|tensor| tensor.value.len() * 12)
            .sum();
        assert!(peak >= held, "{name}: the counter sees the results");
        let rest = stated - (held + given) as f64;
        assert!(rest <= f64::from(64 << 20), "{name}: {rest}");
        assert_eq!(evaluation.linear_growth > 0, !signed, "{name}");
    }
}
