//! The C and C++ examples: built with the system's compiler, loaded, executed.

#![allow(clippy::unwrap_used)]

#[allow(dead_code, clippy::undocumented_unsafe_blocks)]
mod host;

use dnn_assay_graph::schema::{ConvolutionFwdAttributes, PointwiseAttributes};
use dnn_assay_graph::wire::{Generation, write_graph};
use dnn_assay_graph::{Attributes, ConvMode, DataType, Graph, PointwiseMode, Tensor};
use host::{Host, exported, graph, is_mapped, memory_note, pointwise, target_dir};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds an example as its README says; `None`, and said aloud, where there is no compiler.
fn build(
    test: &str,
    folder: &str,
    compiler: &str,
    standard: &str,
    source: &str,
) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(folder);
    let library = target_dir().join(format!("{test}-{}.so", std::process::id()));
    let run = Command::new(compiler)
        .args([
            standard, "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
        ])
        .args([
            "-fvisibility=hidden",
            "-Wl,--version-script=exports.map",
            "-o",
        ])
        .arg(&library)
        .arg(source)
        .current_dir(&folder)
        .output();
    match run {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{compiler} {source}: {errors}");
            Some(library)
        }
        Err(error) => {
            eprintln!("SKIPPED {test}: there is no compiler `{compiler}`: {error}");
            None
        }
    }
}

fn c(test: &str) -> Option<PathBuf> {
    build(test, "c-example", "cc", "-std=c11", "c_plugin.c")
}

fn cpp(test: &str) -> Option<PathBuf> {
    build(test, "cpp-example", "g++", "-std=c++17", "cpp_plugin.cpp")
}

const NAN: f32 = f32::NAN;

fn check_pointwise(path: &Path) {
    let host = Host::open(path);
    let id = host.engines()[0];
    let name = host.engine_name(id).unwrap();
    assert!(name.ends_with("EXAMPLE_ENGINE"), "{name}");
    let add = pointwise(PointwiseMode::Add, &[&[2, 3], &[2, 3]], &[2, 3]);
    assert!(host.takes(&add));
    let bytes = write_graph(&add, Generation::Current).unwrap();
    assert_eq!(host.details(id, &bytes).unwrap().engine_id, id);
    let a = [1., 2., 3., 4., 5., 6.];
    let b = [10., 20., 30., 40., 50., 60.];
    let got = host.run(&add, &[(1, &a), (2, &b)]);
    assert_eq!(got[&9], [11., 22., 33., 44., 55., 66.]);
    let relu = pointwise(PointwiseMode::ReluFwd, &[&[4]], &[4]);
    let got = host.run(&relu, &[(1, &[-1.0, 2.0, NAN, 0.0])]);
    assert_eq!(got[&9][..2], [0.0, 2.0]);
    assert!(got[&9][2].is_nan());
}

fn check_declines(path: &Path) {
    let host = Host::open(path);
    let add = || pointwise(PointwiseMode::Add, &[&[2, 3], &[2, 3]], &[2, 3]);
    let change = |tensor: usize, change: fn(&mut Tensor)| {
        let mut graph = add();
        change(&mut graph.tensors[tensor]);
        graph
    };
    let relu6 = {
        let mut graph = pointwise(PointwiseMode::ReluFwd, &[&[4]], &[4]);
        if let Attributes::Pointwise(a) = &mut graph.nodes[0].attributes {
            a.relu_upper_clip = Some(6.0);
        }
        graph
    };
    let two_nodes = {
        let mut graph = add();
        let mut second = graph.nodes[0].clone();
        graph
            .tensors
            .push(Tensor::packed(10, "", DataType::Float, &[2, 3]));
        second.attributes = PointwiseAttributes {
            operation: PointwiseMode::ReluFwd,
            in_0_tensor_uid: 9,
            out_0_tensor_uid: 10,
            ..Default::default()
        }
        .into();
        graph.nodes.push(second);
        graph
    };
    for (what, graph) in [
        ("another mode", pointwise(PointwiseMode::Tan, &[&[4]], &[4])),
        (
            "broadcasting",
            pointwise(PointwiseMode::Add, &[&[2, 3], &[1, 3]], &[2, 3]),
        ),
        ("another type", change(0, |t| t.data_type = DataType::Half)),
        ("strides", change(1, |t| t.strides = vec![1, 2])),
        (
            "a run-time scalar",
            change(0, |t| t.runtime_pass_by_value = true),
        ),
        ("clips", relu6),
        ("two nodes", two_nodes),
    ] {
        assert!(!host.takes(&graph), "{what}");
    }
    assert!(host.takes(&add()));
}

/// No byte changed or cut off may crash the reader; what it answers is its business.
fn check_hostile_bytes(path: &Path) {
    let host = Host::open(path);
    let add = pointwise(PointwiseMode::Add, &[&[2, 3], &[2, 3]], &[2, 3]);
    for wire in [Generation::Current, Generation::Nov2025] {
        let bytes = write_graph(&add, wire).unwrap();
        for length in 1..bytes.len() {
            let _ = host.applicable(&bytes[..length]);
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7F, 0x80, 0xFF] {
                let mut changed = bytes.clone();
                changed[at] = value;
                let _ = host.applicable(&changed);
            }
        }
    }
}

fn check_library(path: &Path) {
    let absent = [
        "SetLoggingCallback",
        "SetLogLevel",
        "ExecuteOpGraphWithOverrides",
        "SerializeExecutionContext",
        "SerializeExecutionContextWithEngineId",
        "DestroySerializedExecutionContext",
        "CreateExecutionContextFromSerialized",
    ];
    assert_eq!(exported(path), host::abi_symbols_without(&absent));
    assert_eq!(memory_note(path).as_deref(), Some("memory=host"));
    check_pointwise(path);
    check_declines(path);
    check_hostile_bytes(path);
    assert!(!is_mapped(path), "something keeps the library");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn the_c_example_is_right_and_declines_the_rest() {
    if let Some(path) = c("c") {
        check_library(&path);
    }
}

#[test]
fn the_cpp_example_is_right_and_declines_the_rest() {
    if let Some(path) = cpp("cpp") {
        check_convolution(&path);
        check_library(&path);
    }
}

fn convolution(mode: ConvMode) -> Graph {
    let tensors = vec![
        Tensor::packed(1, "x", DataType::Float, &[1, 2, 2, 3]),
        Tensor::packed(2, "w", DataType::Float, &[2, 1, 1, 2]),
        Tensor::packed(3, "y", DataType::Float, &[1, 2, 2, 3]),
    ];
    let attributes = ConvolutionFwdAttributes {
        x_tensor_uid: 1,
        w_tensor_uid: 2,
        y_tensor_uid: 3,
        pre_padding: vec![0, 1],
        post_padding: vec![0, 0],
        stride: vec![1, 1],
        dilation: vec![1, 1],
        conv_mode: mode,
    };
    graph(tensors, vec![attributes.into()])
}

fn check_convolution(path: &Path) {
    let host = Host::open(path);
    let graph = convolution(ConvMode::CrossCorrelation);
    assert!(host.takes(&graph));
    let x: Vec<f32> = (1u8..=12).map(f32::from).collect();
    let got = host.run(&graph, &[(1, &x), (2, &[10.0, 1.0, -1.0, 2.0])]);
    let expected = [1., 12., 23., 4., 45., 56., 14., 9., 10., 20., 12., 13.];
    assert_eq!(got[&3], expected);
    assert!(!host.takes(&convolution(ConvMode::Convolution)));
}
