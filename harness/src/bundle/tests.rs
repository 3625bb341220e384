//! Sweeps, patches and damaged bundles.

use serde_json::{Value, json};
use std::path::Path;

use dnn_assay_graph::case::Case;
use dnn_assay_reference::{Arithmetic, dtype, evaluate, fill};

use super::sweep::expand;
use super::{Outcome, case_of, check, find, import, load};

fn expanded(template: Value, case: Value) -> Result<Value, String> {
    expand(&template, case.as_object().expect("an object"))
}

#[test]
fn placeholders_take_a_tensors_own_values_first() {
    let template = json!({
        "io_data_type": "${case.io}",
        "tensors": [
            {"uid": 1, "dims": "${case.dims}", "scale": "${case.io}", "name": "${case.dims} stays"},
            {"uid": 2, "dims": [4], "nested": "${case.a.b}"}
        ]
    });
    let case = json!({"values": {
        "io": "half", "dims": [9], "a": {"b": 7},
        "tensors": [{"uid": 1, "dims": [2, 3], "io": "float"}]
    }});
    let graph = expanded(template.clone(), case).expect("all have values");
    assert_eq!(graph["io_data_type"], "half");
    assert_eq!(
        graph["tensors"][0],
        json!({"uid": 1, "dims": [2, 3], "scale": "float", "name": "${case.dims} stays"})
    );
    assert_eq!(graph["tensors"][1]["nested"], 7);
    // Extents are each tensor's own: those of the case do not stand in for them.
    let shared = json!({"values": {"io": "half", "dims": [9], "a": {"b": 7}}});
    let error = expanded(template, shared).expect_err("no extents");
    assert!(error.contains("${case.dims}"), "{error}");
}

#[test]
fn patches_set_and_remove_fields() {
    let template = json!({"tensors": [{"uid": 4, "value": 1.0, "value_type": "Float32Value"}]});
    let patch = |uid: i64| {
        json!({"tensor_patches": [
            {"uid": uid, "set": {"is_runtime_pass_by_value": true}, "remove": ["value", "value_type"]}
        ]})
    };
    let graph = expanded(template.clone(), patch(4)).expect("the tensor is there");
    assert_eq!(
        graph["tensors"][0],
        json!({"uid": 4, "is_runtime_pass_by_value": true})
    );
    let error = expanded(template, patch(5)).expect_err("no such tensor");
    assert!(error.contains("tensor 5"), "{error}");
}

/// Writes a case as a bundle with golden tensors that are right but for `factor`.
fn write(folder: &Path, id: &str, factor: f64) {
    let case = Case::parse_short(id).expect("a case");
    let graph = case.graph().expect("a graph");
    let inputs = fill::generate(&graph, case.fill(), 3).expect("inputs");
    let evaluation = evaluate(&graph, &inputs, &Arithmetic::default()).expect("a reference");
    std::fs::create_dir_all(folder).expect("a folder");
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).expect("a file");
    put(
        "Small.json",
        dnn_assay_graph::json::to_string(&graph).as_bytes(),
    );
    put("Small.meta.json", br#"{"format_version": 1, "seed": 3}"#);
    put("Small.support.json", br#"{"claims": {}, "version": 1}"#);
    for tensor in graph.inputs().chain(graph.outputs()) {
        let mut bytes = vec![0; tensor.byte_size().expect("a size")];
        let values = match inputs.get(&tensor.uid) {
            Some(values) => values.clone(),
            None => {
                let exact = evaluation.tensors[&tensor.uid].value.iter();
                exact.map(|y| y * factor).collect()
            }
        };
        dtype::encode(tensor, &values, &mut bytes).expect("they fit");
        put(&format!("Small.tensor{}.bin", tensor.uid), &bytes);
    }
}

const CONV: &str = "conv.fprop+bias+relu_fwd/f16/nhwc/n2-c3-k4-i5x6-f3x3/pad1";

/// The outcomes of everything below a folder, by name.
fn outcomes(root: &Path) -> Vec<(String, Outcome)> {
    let found = find(root).expect("bundles");
    let loaded = load(root, &found);
    let broken = loaded.problems.into_iter();
    let broken = broken.map(|problem| (problem.name, Outcome::Broken(problem.text)));
    let judged = loaded.bundles.iter().map(|bundle| {
        let checked = check(bundle, &Arithmetic::default());
        (checked.name, checked.outcome)
    });
    let mut all: Vec<_> = broken.chain(judged).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

#[test]
fn right_golden_tensors_agree_and_wrong_ones_do_not() {
    let root = tempfile::tempdir().expect("a folder");
    write(&root.path().join("quick/A/Small"), CONV, 1.0);
    write(&root.path().join("quick/B/Small"), CONV, 1.01);
    let all = outcomes(root.path());
    assert_eq!(all[0].0, "quick/A/Small/Small");
    assert!(
        matches!(all[0].1, Outcome::Agrees { compared: 240, margin } if margin <= 1.0),
        "{all:?}"
    );
    assert!(
        matches!(&all[1].1, Outcome::Differs(text) if text.contains("outside the bound")),
        "{all:?}"
    );
}

#[test]
fn what_is_damaged_or_absent_is_named() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = |name: &str| root.path().join(name);
    for name in ["a", "b", "c", "d", "e", "f"] {
        write(&folder(name), CONV, 1.0);
    }
    std::fs::remove_file(folder("a/Small.tensor2.bin")).expect("it is there");
    std::fs::write(folder("b/Small.tensor2.bin"), [0; 3]).expect("a file");
    std::fs::remove_file(folder("c/Small.meta.json")).expect("it is there");
    std::fs::write(folder("d/Small.meta.json"), r#"{"format_version": 2}"#).expect("a file");
    std::fs::write(folder("e/Small.json"), r#"{"nodes": []}"#).expect("a file");
    for uid in [1, 2, 3, 4] {
        std::fs::remove_file(folder(&format!("f/Small.tensor{uid}.bin"))).expect("it is there");
    }
    let all = outcomes(root.path());
    assert_eq!(all.len(), 6, "{all:?}");
    for ((name, outcome), part) in all.iter().zip([
        "tensor2.bin is missing",
        "buffer of 3 bytes",
        "Small.meta.json",
        "`format_version` must be 1, not 2",
        "tensors",
    ]) {
        assert!(
            matches!(outcome, Outcome::Broken(text) if text.contains(part)),
            "{name}: {outcome:?}"
        );
    }
    assert!(matches!(all[5].1, Outcome::NoGolden(_)), "{all:?}");
    assert!(find(&folder("nowhere")).is_err());
}

#[test]
fn every_case_of_a_sweep_is_loaded_or_named() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = root.path().join("quick/Add/Default");
    std::fs::create_dir_all(&folder).expect("a folder");
    let put = |name: &str, value: &Value| {
        std::fs::write(folder.join(name), value.to_string()).expect("a file");
    };
    let tensor = |uid: i64| {
        json!({"uid": uid, "name": format!("t{uid}"), "data_type": "${case.data_type}",
               "dims": "${case.dims}", "strides": "${case.strides}", "virtual": false})
    };
    put(
        "graph.template.json",
        &json!({
            "name": "add", "compute_data_type": "float", "intermediate_data_type": "float",
            "io_data_type": "${case.io}", "tensors": [tensor(1), tensor(2), tensor(3)],
            "nodes": [{"type": "PointwiseAttributes", "name": "add", "compute_data_type": "float",
                       "inputs": {"operation": "add", "in_0_tensor_uid": 1, "in_1_tensor_uid": 2},
                       "outputs": {"out_0_tensor_uid": 3}}]
        }),
    );
    let of =
        |uid: i64| json!({"uid": uid, "data_type": "float", "dims": [2, 3], "strides": [3, 1]});
    let values = json!({"io": "float", "tensors": [of(1), of(2), of(3)]});
    let metadata = json!({"format_version": 1});
    put(
        "sweep.json",
        &json!({"version": 1, "cases": [
            {"id": "golden", "values": values, "metadata": metadata,
             "golden": {"path": "golden/golden/tensors.dvc"}},
            {"id": "plain", "values": values, "metadata": metadata},
            {"id": "plain", "values": values, "metadata": metadata},
            {"id": "no-metadata", "values": values},
            {"id": "no-values", "metadata": metadata},
            {"values": values, "metadata": metadata}
        ]}),
    );
    let golden = folder.join("golden/golden");
    std::fs::create_dir_all(&golden).expect("a folder");
    let numbers = [
        [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0],
        [0.5; 6],
        [1.5, 2.5, 3.5, 4.5, 5.5, 6.5],
    ];
    for (uid, values) in (1..).zip(numbers) {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        std::fs::write(golden.join(format!("tensor{uid}.bin")), bytes).expect("a file");
    }
    let all = outcomes(root.path());
    let of = |name: &str| {
        let found = all
            .iter()
            .filter(|(n, _)| n == &format!("quick/Add/Default:{name}"));
        found.map(|(_, outcome)| outcome).collect::<Vec<_>>()
    };
    assert_eq!(all.len(), 6, "{all:?}");
    assert!(
        matches!(of("golden")[..], [Outcome::Agrees { compared: 6, .. }]),
        "{all:?}"
    );
    assert_eq!(of("plain").len(), 2);
    let broken = |name: &str, part: &str| {
        let found = of(name).into_iter();
        let mut texts = found.filter_map(|outcome| match outcome {
            Outcome::Broken(text) => Some(text),
            _ => None,
        });
        assert!(texts.any(|text| text.contains(part)), "{name}: {all:?}");
    };
    broken("plain", "twice");
    broken("no-metadata", "`metadata` is missing");
    broken("no-values", "has no value");
    broken("#5", "no `id`");
}

#[test]
fn the_graph_of_every_case_is_that_case() {
    let mut same = 0;
    for index in 0..1000 {
        let case = crate::fuzz::case(21, index).with_fill(Default::default());
        let mut graph = case.graph().expect("a case has a graph");
        // Names and hints are no part of it.
        graph.name = "graph".to_owned();
        graph.preferred_engine_id = Some(7);
        for tensor in &mut graph.tensors {
            tensor.name.push_str("::0");
        }
        // Where extents are 1, two layouts are one: then another id says the same graph.
        match case_of(&graph) {
            Ok(found) if found == case => same += 1,
            Ok(found) => assert_eq!(shape_of(&found), shape_of(&case), "{found} for {case}"),
            Err(text) => panic!("{case}: {text}"),
        }
    }
    assert!(same > 500, "{same}");
}

/// What a case's graph computes: the graph without its names, and without the strides along axes
/// of one element.
fn shape_of(case: &Case) -> dnn_assay_graph::Graph {
    let mut graph = case.graph().expect("a case has a graph");
    graph.name.clear();
    for tensor in &mut graph.tensors {
        tensor.name.clear();
        for (stride, extent) in tensor.strides.iter_mut().zip(&tensor.dims) {
            if *extent == 1 {
                *stride = 0;
            }
        }
    }
    graph
}

#[test]
fn a_graph_that_no_id_says_is_named_with_its_difference() {
    let graph = |id: &str| {
        Case::parse_short(id)
            .expect("a case")
            .graph()
            .expect("a graph")
    };
    let mut other = graph("conv.fprop+bias/f32/nchw/n1-c2-k3-i4x4-f1x1");
    let bias = other
        .tensors
        .iter_mut()
        .find(|tensor| tensor.name == "bias");
    let bias = bias.expect("there is a bias");
    (bias.dims, bias.strides) = (vec![1, 1, 1, 4], vec![4, 4, 4, 1]);
    let error = case_of(&other).expect_err("the bias is along another axis");
    assert!(error.contains("dims of tensor"), "{error}");
    let mut swapped = graph("pointwise.sub/f32/nchw/n1-c2-i4x4");
    swapped.nodes[0].compute_type = dnn_assay_graph::DataType::Double;
    let error = case_of(&swapped).expect_err("another compute type");
    assert!(error.contains("compute type"), "{error}");
}

#[test]
fn ranges_of_inputs_become_those_of_the_case() {
    let root = tempfile::tempdir().expect("a folder");
    let sub = dnn_assay_graph::case::Case::parse_short("pointwise.sub/f32/nchw/n1-c2-i3x4");
    let sub = sub.expect("a case");
    let second = sub
        .graph()
        .expect("a graph")
        .inputs()
        .nth(1)
        .map(|tensor| tensor.uid);
    let (sub, second) = (sub.to_string(), second.expect("two inputs"));
    for (name, id) in [("a", CONV), ("b", &sub), ("c", CONV), ("d", CONV)] {
        write(&root.path().join(name), id, 1.0);
    }
    let put = |name: &str, inputs: &str| {
        let text = format!(r#"{{"format_version": 1, "inputs": {inputs}}}"#);
        std::fs::write(root.path().join(name), text).expect("a file");
    };
    put(
        "a/Small.meta.json",
        r#"{"1": {"min": -10, "max": 10}, "2": {"min": 0, "max": 0.5}}"#,
    );
    let range = format!(r#"{{"{second}": {{"min": 3, "max": 4}}}}"#);
    put("b/Small.meta.json", &range);
    put("c/Small.meta.json", r#"{"3": {"min": 0, "max": 1}}"#);
    put("d/Small.meta.json", r#"{"1": {"min": 2, "max": 1}}"#);
    let found = find(root.path()).expect("bundles");
    let imported = import(load(root.path(), &found));
    let broken: Vec<&str> = imported.broken.iter().map(|b| b.text.as_str()).collect();
    assert_eq!((imported.taken, broken.len()), (2, 2), "{imported:?}");
    assert!(broken[0].contains("3, which is no input"), "{broken:?}");
    assert!(broken[1].contains("2 is above 1"), "{broken:?}");
    let suite = crate::yaml::Source::new("suite.yaml", imported.suite("x"));
    let suite = crate::suite::load_source(suite).expect("a suite");
    let conv = suite
        .cases
        .iter()
        .find(|case| case.id != sub)
        .expect("a convolution");
    assert_eq!(
        (conv.ranges["x"], conv.ranges["w"]),
        ([-10.0, 10.0], [0.0, 0.5])
    );
    let other = suite
        .cases
        .iter()
        .find(|case| case.id == sub)
        .expect("a subtraction");
    assert_eq!(other.ranges.values().collect::<Vec<_>>(), [&[3.0, 4.0]]);
    assert_eq!(other.ranges.len(), 1);
}

#[test]
fn sidecars_become_claims_and_ranges_are_named() {
    let root = tempfile::tempdir().expect("a folder");
    for name in ["a", "b", "c"] {
        write(&root.path().join(name), CONV, 1.0);
    }
    let put =
        |name: &str, text: &str| std::fs::write(root.path().join(name), text).expect("a file");
    put(
        "a/Small.support.json",
        r#"{"version": 1, "claims": {"E": {"gfx942": ["linux"], "gfx1151": ["windows"]}}}"#,
    );
    put(
        "b/Small.meta.json",
        r#"{"format_version": 1, "inputs": {"1": {"min": -10, "max": 10}}}"#,
    );
    put("c/Small.support.json", r#"{"version": 2, "claims": {}}"#);
    let found = find(root.path()).expect("bundles");
    let imported = import(load(root.path(), &found));
    let id = Case::parse_short(CONV).expect("a case").to_string();
    assert_eq!(imported.cases.keys().collect::<Vec<_>>(), [&id]);
    let claims: Vec<_> = imported.claims.keys().cloned().collect();
    assert_eq!(claims, [("E".to_owned(), "gfx942".to_owned())]);
    assert_eq!((imported.left.len(), imported.broken.len()), (1, 1));
    assert!(
        imported.left[0]
            .text
            .contains("with other ranges of inputs"),
        "{imported:?}"
    );
    assert!(
        imported.broken[0].text.contains("`version` must be 1"),
        "{imported:?}"
    );
    let suite = crate::yaml::Source::new("suite.yaml", imported.suite("x"));
    let suite = crate::suite::load_source(suite).expect("a suite");
    assert_eq!(suite.cases[0].id, id);
    let claims = crate::yaml::Source::new("claims.yaml", imported.claims_file());
    crate::gate::Claims::read(&claims).expect("claims");
}
