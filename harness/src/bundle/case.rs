//! From a bundle's graph to the case that is the same graph, where there is one.

use std::collections::BTreeMap;

use dnn_assay_graph::case::{
    AttributeKey as Key, AttributeValue as Value, BatchnormPhase, Case, ConvDirection, Layout, Op,
    StridedTensor,
};
use dnn_assay_graph::schema::{PointwiseAttributes, Role};
use dnn_assay_graph::{
    Attributes, ConvMode, Convolution, DataType, Graph, PointwiseMode, Tensor, Window, json,
};

use crate::suite::Draft;

/// The case whose graph this is, but for names, uids and hints to the engine.
///
/// # Errors
/// Why no case is: an operation that ids do not name, or the first difference from the nearest.
pub fn case_of(graph: &Graph) -> Result<Case, String> {
    let draft = draft(graph)?;
    let case = draft
        .case()
        .map_err(|error| format!("no id says this: {}", error.message))?;
    let ours = case.graph().map_err(|error| error.message)?;
    match difference(&Plain::of(graph), &Plain::of(&ours)) {
        None => Ok(case),
        Some(text) => Err(format!("no id says this: {text}, unlike {case}")),
    }
}

/// What a node of a chain is to a case.
fn draft(graph: &Graph) -> Result<Draft, String> {
    let nodes: Vec<&Attributes> = graph.nodes.iter().map(|node| &node.attributes).collect();
    let mut from = From {
        graph,
        draft: Draft::new(Op::ConvBias, Layout::Nchw),
    };
    let Some((first, rest)) = nodes.split_first() else {
        return Err("the graph has no nodes".to_owned());
    };
    let understood = match (first, first.convolution()) {
        (_, Some(conv)) => from.convolution(&conv, rest),
        (Attributes::Pointwise(node), None) if rest.is_empty() => Ok(from.pointwise(node)?),
        _ => from.norm(first, rest),
    };
    understood.map_err(|text| text.unwrap_or_else(|| unknown(&nodes)))?;
    Ok(from.draft)
}

fn unknown(nodes: &[&Attributes]) -> String {
    let kinds: Vec<&str> = nodes.iter().map(|node| node.kind()).collect();
    format!("ids do not name {}", kinds.join(" + "))
}

fn pointwise_modes(nodes: &[&Attributes]) -> Result<Vec<PointwiseMode>, String> {
    let modes = nodes.iter().map(|node| match node {
        Attributes::Pointwise(node) => Ok(node.operation),
        _ => Err(unknown(nodes)),
    });
    modes.collect()
}

fn last_output(nodes: &[&Attributes]) -> Option<i64> {
    nodes.last()?.outputs().first().copied()
}

struct From<'a> {
    graph: &'a Graph,
    draft: Draft,
}

impl From<'_> {
    fn tensor(&self, uid: i64) -> Result<&Tensor, String> {
        let tensor = self.graph.tensor(uid);
        tensor.ok_or_else(|| format!("there is no tensor {uid}"))
    }

    /// Extents and layout of the image; layouts are told apart where extents are not 1.
    fn image(&mut self, uid: i64) -> Result<(), String> {
        let tensor = self.tensor(uid)?.clone();
        let [n, c, i @ ..] = tensor.dims.as_slice() else {
            return Err(format!("tensor {uid} has fewer than three axes"));
        };
        let first = Layout::for_spatial(i.len(), false);
        let first = first.ok_or_else(|| format!("tensor {uid} has {} spatial axes", i.len()))?;
        let last = Layout::for_spatial(i.len(), true).unwrap_or(first);
        self.draft.layout = match is_packed(&tensor, first) || !is_packed(&tensor, last) {
            true => first,
            false => last,
        };
        (self.draft.n, self.draft.c, self.draft.i) = (*n, *c, i.to_vec());
        Ok(())
    }

    /// Strides of a tensor that is not packed in the draft's layout.
    fn strides(&mut self, which: StridedTensor, uid: i64) -> Result<(), String> {
        let tensor = self.tensor(uid)?.clone();
        if !is_packed(&tensor, self.draft.layout) {
            self.draft.strides.push((which, tensor.strides));
        }
        Ok(())
    }

    fn types(&mut self, input: i64, output: DataType) -> Result<(), String> {
        let input = self.tensor(input)?.data_type;
        self.draft.dtypes = vec![input, output];
        self.draft.dtypes.dedup();
        let hidden = self.graph.tensors.iter().find(|tensor| tensor.is_virtual);
        let wide = matches!(input, DataType::Float | DataType::Double);
        if hidden.is_some_and(|tensor| tensor.data_type == input) && !wide {
            self.draft.set(Key::VirtualIo, Value::Flag);
        }
        Ok(())
    }

    /// A convolution with what follows it; `Err(None)` where the chain has no name.
    fn convolution(
        &mut self,
        conv: &Convolution<'_>,
        rest: &[&Attributes],
    ) -> Result<(), Option<String>> {
        let modes = pointwise_modes(rest)?;
        self.draft.op = match (conv.direction, modes.as_slice()) {
            (direction, []) => Op::Conv(direction),
            (ConvDirection::Fprop, [PointwiseMode::Add]) => Op::ConvBias,
            (ConvDirection::Fprop, [PointwiseMode::Add, mode]) => Op::ConvBiasActivation(*mode),
            (ConvDirection::Fprop, [mode]) => Op::ConvActivation(*mode),
            _ => return Err(None),
        };
        self.window(&conv.window);
        let y = last_output(rest).unwrap_or(conv.y);
        self.tensors(&Convolution { y, ..*conv })?;
        self.activation(rest.last());
        Ok(())
    }

    fn window(&mut self, window: &Window<'_>) {
        for (key, dims) in [
            (Key::Pre, window.pre),
            (Key::Post, window.post),
            (Key::Str, window.stride),
            (Key::Dil, window.dilation),
        ] {
            self.draft.set(key, Value::Dims(dims.to_vec()));
        }
        if window.mode == ConvMode::Convolution {
            self.draft.set(Key::ModeConv, Value::Flag);
        }
    }

    /// The extents, groups, strides and types of a convolution.
    fn tensors(&mut self, conv: &Convolution<'_>) -> Result<(), String> {
        self.image(conv.x)?;
        let filter = self.tensor(conv.w)?.dims.clone();
        let [k, per_group, f @ ..] = filter.as_slice() else {
            return Err("the filter has too few axes".to_owned());
        };
        (self.draft.k, self.draft.f) = (Some(*k), f.to_vec());
        let groups = self.draft.c / (*per_group).max(1);
        self.draft.set(Key::Groups, Value::Int(groups));
        self.strides(StridedTensor::X, conv.x)?;
        self.strides(StridedTensor::Y, conv.y)?;
        self.strides(StridedTensor::W, conv.w)?;
        let output = self.tensor(conv.result())?.data_type;
        self.types(conv.operands()[0], output)
    }

    fn activation(&mut self, node: Option<&&Attributes>) {
        let Some(Attributes::Pointwise(node)) = node else {
            return;
        };
        let floats = [
            (Key::Lower, node.relu_lower_clip),
            (Key::Upper, node.relu_upper_clip),
            (Key::Slope, node.relu_lower_clip_slope),
            (Key::Beta, node.swish_beta.or(node.softplus_beta)),
            (Key::Alpha, node.elu_alpha),
        ];
        for (key, value) in floats {
            if let Some(value) = value {
                self.draft.set(key, Value::Float(value));
            }
        }
        if let Some(axis) = node.axis_tensor_uid {
            self.draft.set(Key::Axis, Value::Int(axis));
        }
    }

    fn pointwise(&mut self, node: &PointwiseAttributes) -> Result<(), String> {
        self.draft.op = Op::Pointwise(node.operation);
        self.image(node.out_0_tensor_uid)?;
        self.strides(StridedTensor::X, node.out_0_tensor_uid)?;
        let full = self.tensor(node.out_0_tensor_uid)?.dims.clone();
        let operands = [
            (Key::In0, Some(node.in_0_tensor_uid)),
            (Key::In1, node.in_1_tensor_uid),
            (Key::In2, node.in_2_tensor_uid),
        ];
        let mut types = Vec::new();
        for (key, uid) in operands {
            let Some(uid) = uid else { continue };
            let tensor = self.tensor(uid)?.clone();
            types.push(tensor.data_type);
            if tensor.dims != full {
                self.draft.set(key, Value::Dims(tensor.dims));
            }
        }
        types.push(self.tensor(node.out_0_tensor_uid)?.data_type);
        if types.iter().all(|dtype| *dtype == types[0]) {
            types.truncate(1);
        }
        self.draft.dtypes = types;
        self.activation(Some(&&Attributes::Pointwise(node.clone())));
        Ok(())
    }

    /// A batchnorm with what follows it; `Err(None)` where the chain has no name.
    fn norm(&mut self, norm: &Attributes, rest: &[&Attributes]) -> Result<(), Option<String>> {
        let (phase, x, scale) = match norm {
            Attributes::BatchnormInference(n) => (
                BatchnormPhase::Inference,
                n.x_tensor_uid,
                n.scale_tensor_uid,
            ),
            Attributes::BatchnormInferenceVariance(n) => {
                self.scalar(Key::Epsilon, n.epsilon_tensor_uid)?;
                (
                    BatchnormPhase::InferenceVariance,
                    n.x_tensor_uid,
                    n.scale_tensor_uid,
                )
            }
            Attributes::Batchnorm(n) => {
                self.scalar(Key::Epsilon, n.epsilon_tensor_uid)?;
                if let Some(momentum) = n.momentum_tensor_uid {
                    self.scalar(Key::Momentum, momentum)?;
                    self.draft.set(Key::Running, Value::Flag);
                }
                if n.mean_tensor_uid.is_some() {
                    self.draft.set(Key::Stats, Value::Flag);
                }
                (BatchnormPhase::Training, n.x_tensor_uid, n.scale_tensor_uid)
            }
            Attributes::BatchnormBackward(n) => {
                if n.mean_tensor_uid.is_some() {
                    self.draft.set(Key::Stats, Value::Flag);
                }
                (BatchnormPhase::Backward, n.x_tensor_uid, n.scale_tensor_uid)
            }
            _ => return Err(None),
        };
        self.draft.op = match (phase, rest) {
            (phase, []) => Op::Batchnorm(phase),
            (
                BatchnormPhase::Inference,
                [
                    Attributes::Pointwise(node),
                    Attributes::BatchnormBackward(_),
                ],
            ) => Op::BatchnormActivationBackward(node.operation),
            (phase, [Attributes::Pointwise(node)]) if phase != BatchnormPhase::Backward => {
                Op::BatchnormActivation(phase, node.operation)
            }
            _ => return Err(None),
        };
        self.activation(rest.first());
        self.image(x)?;
        self.strides(StridedTensor::X, x)?;
        let parameters = self.tensor(scale)?.data_type;
        Ok(self.types(x, parameters)?)
    }

    fn scalar(&mut self, key: Key, uid: i64) -> Result<(), String> {
        let value = self.tensor(uid)?.value.and_then(|value| value.as_f64());
        let value = value
            .ok_or_else(|| format!("`{}` is no number of the graph; ids state it", key.name()))?;
        self.draft.set(key, Value::Float(value as f32));
        Ok(())
    }
}

/// Whether the strides are the packed ones of a layout, on axes with more than one element.
fn is_packed(tensor: &Tensor, layout: Layout) -> bool {
    let Some(packed) = layout.strides(&tensor.dims) else {
        return false;
    };
    let axes = tensor.dims.iter().zip(packed.iter().zip(&tensor.strides));
    axes.into_iter().all(|(&dim, (a, b))| dim == 1 || a == b)
}

/// A graph without names, uids and hints: tensors by the order in which nodes name them.
struct Plain {
    nodes: Vec<serde_json::Value>,
    tensors: Vec<serde_json::Value>,
}

impl Plain {
    fn of(graph: &Graph) -> Self {
        let mut order: BTreeMap<i64, usize> = BTreeMap::new();
        let mut nodes = Vec::new();
        let text = json::to_string(graph);
        let document: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        for (index, node) in graph.nodes.iter().enumerate() {
            let mut uses = Vec::new();
            for role in [Role::Input, Role::Output] {
                node.attributes.visit_uids(role, &mut |field, uid| {
                    let next = order.len();
                    let place = *order.entry(uid).or_insert(next);
                    uses.push((field.name, place));
                });
            }
            let mut parameters = document["nodes"][index].clone();
            strip(&mut parameters);
            nodes.push(serde_json::json!({
                "kind": node.attributes.kind(),
                "compute type": node.compute_type.short_name(),
                "tensors": uses,
                "parameters": parameters,
            }));
        }
        let mut tensors: Vec<(usize, serde_json::Value)> = graph
            .tensors
            .iter()
            .filter_map(|tensor| Some((*order.get(&tensor.uid)?, plain_tensor(tensor))))
            .collect();
        tensors.sort_by_key(|(place, _)| *place);
        Self {
            nodes,
            tensors: tensors.into_iter().map(|(_, tensor)| tensor).collect(),
        }
    }
}

fn plain_tensor(tensor: &Tensor) -> serde_json::Value {
    let axes = tensor.dims.iter().zip(&tensor.strides);
    // The stride of an axis with one element says nothing.
    let strides = axes.map(|(&dim, &stride)| if dim == 1 { 0 } else { stride });
    serde_json::json!({
        "dims": tensor.dims,
        "strides": strides.collect::<Vec<i64>>(),
        "type": tensor.data_type.short_name(),
        "virtual": tensor.is_virtual,
        "value": tensor.value.and_then(|value| value.as_f64()),
        "pass by value": tensor.runtime_pass_by_value,
        "ragged": tensor.ragged_offset_uid.is_some(),
    })
}

/// Takes names and uids out of a node, and fields that are null.
fn strip(value: &mut serde_json::Value) {
    let serde_json::Value::Object(object) = value else {
        return;
    };
    object.retain(|key, value| {
        let is_uid = key.contains("_tensor_uid") && key != "axis_tensor_uid";
        !is_uid && key != "name" && key != "compute_data_type" && !value.is_null()
    });
    object.values_mut().for_each(strip);
}

/// The first thing that is not the same, in words.
fn difference(theirs: &Plain, ours: &Plain) -> Option<String> {
    let pairs = theirs
        .nodes
        .iter()
        .zip(&ours.nodes)
        .map(|pair| ("node", pair));
    let tensors = theirs
        .tensors
        .iter()
        .zip(&ours.tensors)
        .map(|pair| ("tensor", pair));
    for (index, (what, (a, b))) in pairs.chain(tensors).enumerate() {
        let fields = a.as_object().into_iter().flatten();
        for (field, value) in fields {
            if *value != b[field] {
                let place = match what {
                    "node" => index,
                    _ => index - theirs.nodes.len().min(ours.nodes.len()),
                };
                return Some(format!("the {field} of {what} {place} is {value}"));
            }
        }
    }
    let counts = |plain: &Plain| (plain.nodes.len(), plain.tensors.len());
    (counts(theirs) != counts(ours)).then(|| "it has other nodes or tensors".to_owned())
}
