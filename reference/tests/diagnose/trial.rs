//! A case with its inputs and its truth, and outputs to be named.

use dnn_assay_graph::case::{Case, Fill, tensor_uid};
use dnn_assay_graph::{Graph, Tensor};
use dnn_assay_reference::diagnose::{
    BUDGET, Diagnosis, MOST_NAMES, Observed, diagnose, diagnose_samples,
};
use dnn_assay_reference::exact::{self, Exactness};
use dnn_assay_reference::sample::{self, Seen};
use dnn_assay_reference::{Arithmetic, Criterion, Evaluation, Values, dtype, evaluate, fill};
use std::collections::BTreeMap;

pub struct Trial {
    pub graph: Graph,
    pub inputs: Values,
    pub truth: Evaluation,
}

impl Trial {
    pub fn of(case: &str) -> Self {
        let case = Case::parse_short(case).unwrap_or_else(|error| panic!("{case}: {error}"));
        let graph = case.graph().unwrap();
        let inputs = fill::generate(&graph, case.fill(), 7).unwrap();
        let truth = evaluate(&graph, &inputs, &Arithmetic::default()).unwrap();
        Self {
            graph,
            inputs,
            truth,
        }
    }

    pub fn tensor(&self, name: &str) -> &Tensor {
        self.graph.tensor(tensor_uid(name).unwrap()).unwrap()
    }

    pub fn input(&self, name: &str) -> &[f64] {
        &self.inputs[&tensor_uid(name).unwrap()]
    }

    /// A scalar that travels in the graph.
    pub fn scalar(&self, name: &str) -> f64 {
        match self.tensor(name).value {
            Some(value) => value.as_f64().unwrap(),
            None => self.input(name)[0],
        }
    }

    /// The true output, not rounded.
    pub fn right(&self, name: &str) -> Vec<f64> {
        self.truth.tensors[&tensor_uid(name).unwrap()]
            .value
            .to_vec()
    }

    /// What is said of these outputs; those that are not given are right.
    pub fn diagnosis(&self, faulty: &[(&str, Vec<f64>)]) -> Diagnosis {
        self.diagnosis_within(BUDGET, faulty)
    }

    /// Bytes of every output; those that are not given are right.
    fn written(&self, faulty: &[(&str, Vec<f64>)]) -> BTreeMap<i64, Vec<u8>> {
        let outputs = self.graph.outputs().map(|tensor| {
            let given = faulty
                .iter()
                .find(|(name, _)| tensor_uid(name) == Some(tensor.uid));
            let values = given.map_or(&self.truth.tensors[&tensor.uid].value[..], |(_, v)| v);
            let mut bytes = vec![0; tensor.byte_size().unwrap()];
            dtype::encode(tensor, values, &mut bytes).unwrap();
            (tensor.uid, bytes)
        });
        outputs.collect()
    }

    /// What samples say of these outputs, and how many of them are wrong; `None` where the graph has to
    /// be judged as a whole.
    pub fn by_samples(&self, faulty: &[(&str, Vec<f64>)]) -> Option<(Diagnosis, usize)> {
        let usual = Arithmetic::default();
        if sample::refusal(&self.graph, Fill::Uniform, &usual).is_some() {
            return None;
        }
        let written = self.written(faulty);
        let one = |tensor: &Tensor| {
            let seen = Seen::gather(
                tensor,
                &written[&tensor.uid],
                sample::choose(tensor, 1, 150, 3),
            );
            let seen = (tensor, &seen.unwrap());
            let judged = sample::judge(&self.graph, &self.inputs, &usual, seen, &Criterion::Bound);
            (tensor.uid, judged.unwrap())
        };
        let judged: Vec<_> = self.graph.outputs().map(one).collect();
        let wrong = judged.iter().map(|(_, s)| s.comparison.mismatched).sum();
        let rows = judged.iter().map(|(uid, sampled)| (*uid, &sampled.row));
        let said = diagnose_samples(&self.graph, &self.inputs, &usual, rows).unwrap();
        Some((said, wrong))
    }

    /// Asserts that samples name the fault, or nothing where it needs the whole tensor or few of them
    /// are wrong; never another one.
    fn check_by_samples(&self, faulty: &[(&str, Vec<f64>)], id: &str) {
        let Some((said, wrong)) = self.by_samples(faulty) else {
            return;
        };
        let names: Vec<&str> = said.named.iter().map(|named| named.id).collect();
        let must = wrong >= 8 && !said.left_out.contains(&id);
        let fits = names.contains(&id) || names.is_empty() && !must;
        assert!(fits, "by samples, {wrong} wrong, {id} is {names:?}");
    }

    pub fn diagnosis_within(&self, budget: f64, faulty: &[(&str, Vec<f64>)]) -> Diagnosis {
        let exactness = exact::applies(&self.graph, &self.inputs, &self.truth);
        let exact = |uid: i64| match &exactness {
            Exactness::Applies(outputs) => outputs.iter().find(|output| output.uid == uid),
            Exactness::Not(_) => None,
        };
        let bytes = self.written(faulty);
        let observed = bytes
            .iter()
            .map(|(&uid, bytes)| {
                let criterion = exact(uid).map_or(Criterion::Bound, |output| {
                    Criterion::Exact(output.zero_sign)
                });
                (uid, Observed { bytes, criterion })
            })
            .collect();
        let arithmetic = Arithmetic::default();
        diagnose(
            &self.graph,
            &self.inputs,
            &self.truth,
            &arithmetic,
            &observed,
            budget,
        )
        .unwrap()
    }

    pub fn names(&self, faulty: &[(&str, Vec<f64>)]) -> Vec<&'static str> {
        self.diagnosis(faulty)
            .named
            .iter()
            .map(|named| named.id)
            .collect()
    }

    /// Asserts that the fault is named rightly, and that a right output and a random corruption
    /// are not named.
    pub fn check(&self, faulty: &[(&str, Vec<f64>)], id: &str) {
        let names = self.names(faulty);
        assert!(names.contains(&id), "{id} is not in {names:?}");
        assert!(names.len() <= MOST_NAMES, "{names:?}");
        assert!(self.names(&[]).is_empty(), "a right output is named");
        self.check_by_samples(faulty, id);
        let corrupted: Vec<(&str, Vec<f64>)> = faulty
            .iter()
            .map(|(name, values)| (*name, corrupted(self.right(name), values.len())))
            .collect();
        let names = self.names(&corrupted);
        assert!(names.is_empty(), "a random corruption is {names:?}");
        for none in [&[][..], &corrupted] {
            if let Some((said, _)) = self.by_samples(none) {
                assert!(said.named.is_empty(), "by samples: {said:?}");
            }
        }
    }
}

/// A third of the elements moved by something without a pattern.
fn corrupted(mut values: Vec<f64>, seed: usize) -> Vec<f64> {
    let mut state = seed as u64 ^ 0x9E37_79B9_7F4A_7C15;
    let last = values.len() - 1;
    for (index, value) in values.iter_mut().enumerate() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let unit = (state >> 11) as f64 / (1u64 << 53) as f64;
        if unit < 0.33 || index == 0 || index == last {
            *value += (1.0 + unit * 5.0) * (1.0 + value.abs());
        }
    }
    values
}
