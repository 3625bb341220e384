//! One case, ready to be run on any engine: graph, input data, reference, buffers.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use dnn_assay_device::{BufferSpec, Element, ElementView, MemoryKind, Placement, Residence, Role};
use dnn_assay_graph::case::Fill;
use dnn_assay_graph::wire::{Generation, WireError, write_graph};
use dnn_assay_graph::{DataType, Graph, Tensor};
use dnn_assay_reference::{
    Arithmetic, EvalError, Evaluation, Values, dtype, evaluate, fill, sample,
};

use super::options::RunOptions;
use crate::cli::args::CriterionName;
use crate::judge::Rules;
use crate::suite::SuiteCase;
use crate::verdict::SkipReason;

/// A case's graph and data.
pub struct Prepared {
    /// The graph as it is judged: where only the elements of a tensor are memory, its strides leave
    /// no gaps, as its bytes in a snapshot have none.
    pub graph: Graph,
    /// The bytes of the graph as it is, in the plugin's generation.
    pub bytes: Vec<u8>,
    /// Values of the inputs; none while they are [`Prepared::drawn`] one by one.
    pub values: Values,
    /// Where the elements of those tensors lie, by uid.
    pub sparse: BTreeMap<i64, ElementView>,
    /// Inputs of a case that is judged by samples.
    pub drawn: Option<Samples>,
    /// Why a case that should be judged by samples is not.
    pub whole: Option<String>,
}

/// What a case is judged by that is not judged as a whole.
pub struct Samples {
    /// The inputs, by element.
    pub inputs: fill::Drawn,
    /// The ranges within which they are drawn, by uid.
    pub ranges: fill::Ranges,
    /// Elements of each output at random.
    pub random: NonZeroU32,
}

/// Why a case cannot be run, through nobody's fault.
#[derive(Debug, thiserror::Error)]
pub enum Unprepared {
    /// The generation cannot express the graph.
    #[error("the plugin's wire generation cannot express the graph: {0}")]
    Wire(#[from] WireError),
    /// The reference cannot compute it.
    #[error(transparent)]
    Reference(#[from] EvalError),
    /// The inputs cannot be made.
    #[error(transparent)]
    Fill(#[from] fill::FillError),
    /// Values that do not fit a tensor.
    #[error(transparent)]
    Layout(#[from] dtype::LayoutError),
    /// A tensor has a size or type that no buffer can have.
    #[error(
        "tensor {uid} ({name}): no buffer can hold {dtype} of {dims:?} with strides {strides:?}"
    )]
    Buffer {
        /// The tensor.
        uid: i64,
        /// Its name.
        name: String,
        /// Its type.
        dtype: DataType,
        /// Its extents.
        dims: Vec<i64>,
        /// Its strides.
        strides: Vec<i64>,
    },
    /// A tensor that is mostly gap, on a device: all of its span would have to be allocated.
    #[error(
        "tensor {uid} ({name}) spans {bytes} bytes and is mostly gap: only host memory can hold its elements alone"
    )]
    Sparse {
        /// The tensor.
        uid: i64,
        /// Its name.
        name: String,
        /// From its first byte to its last.
        bytes: u64,
    },
}

impl Unprepared {
    /// The reason for which the case is skipped.
    pub fn skip_reason(&self) -> SkipReason {
        match self {
            Self::Wire(_) => SkipReason::Wire,
            Self::Reference(_) | Self::Fill(_) => SkipReason::NoReference,
            Self::Buffer { .. } | Self::Layout(_) | Self::Sparse { .. } => SkipReason::Memory,
        }
    }
}

/// The serialized graph of a case.
///
/// # Errors
/// [`Unprepared::Wire`] where the generation has no form for it.
pub fn graph_bytes(graph: &Graph, generation: Generation) -> Result<Vec<u8>, Unprepared> {
    Ok(write_graph(graph, generation)?)
}

/// Makes the inputs of a case.
///
/// # Errors
/// [`Unprepared::Fill`] where the graph has no data that would mean anything.
pub fn fill_inputs(
    case: &SuiteCase,
    graph: Graph,
    bytes: Vec<u8>,
    options: &RunOptions,
) -> Result<Prepared, Unprepared> {
    let fill = case.case.fill();
    let ranges = ranges(case, &graph, options);
    let asked = samples(case, &graph, options);
    let refusal = asked.and_then(|_| sample::refusal(&graph, fill, &Arithmetic::default()));
    if let Some(random) = asked.filter(|_| refusal.is_none()) {
        return Ok(Prepared {
            whole: None,
            sparse: BTreeMap::new(),
            drawn: Some(Samples {
                inputs: fill::Drawn::new(&graph, fill, options.seed, &ranges)?,
                ranges,
                random,
            }),
            values: Values::new(),
            graph,
            bytes,
        });
    }
    let values = fill::generate_within(&graph, fill, options.seed, &ranges)?;
    Ok(Prepared {
        whole: refusal,
        ..Prepared::new(graph, bytes, values)
    })
}

/// Ranges of inputs that the suite or the run gives, by uid; the run's come last.
fn ranges(case: &SuiteCase, graph: &Graph, options: &RunOptions) -> fill::Ranges {
    let named = case.ranges.iter().map(|(name, range)| (name, *range));
    let named = named.chain(options.ranges.iter().map(|(name, range)| (name, *range)));
    let found = named.filter_map(|(name, [low, high])| {
        let mut inputs = graph.inputs();
        let tensor = inputs.find(|tensor| tensor.name == *name)?;
        Some((tensor.uid, (low, high)))
    });
    found.collect()
}

/// Draws at random for a case that should be judged by samples: one that the run or its suite asks it
/// for, and that is larger than its samples.
fn samples(case: &SuiteCase, graph: &Graph, options: &RunOptions) -> Option<NonZeroU32> {
    let random = options.sample.or(case.sample)?;
    let elements: usize = graph.outputs().filter_map(Tensor::element_count).sum();
    let is_large = elements > random.get() as usize;
    (is_large && options.criterion == CriterionName::Bound).then_some(random)
}

impl Prepared {
    /// A graph, its bytes for the plugin, and values for its inputs.
    pub fn new(mut graph: Graph, bytes: Vec<u8>, values: Values) -> Self {
        let mut sparse = BTreeMap::new();
        for tensor in &mut graph.tensors {
            if let Some(view) = sparse_view(tensor) {
                tensor.strides = view.without_gaps().strides;
                sparse.insert(tensor.uid, view);
            }
        }
        Self {
            graph,
            bytes,
            values,
            sparse,
            drawn: None,
            whole: None,
        }
    }

    /// The reference, and how long it took.
    ///
    /// # Errors
    /// [`Unprepared::Reference`] where the reference has no such operation.
    pub fn evaluate(&self, rules: &Rules) -> Result<(Evaluation, Duration), Unprepared> {
        let start = Instant::now();
        if self.drawn.is_some() {
            // Samples are computed when there is something to compare them with.
            return Ok((Evaluation::default(), start.elapsed()));
        }
        let evaluation = evaluate(&self.graph, &self.values, &rules.arithmetic)?;
        Ok((evaluation, start.elapsed()))
    }

    /// Gives a case that is judged by samples up to judgement as a whole, where the engine's
    /// arithmetic needs that.
    pub fn settle(&mut self, fill: Fill, arithmetic: &Arithmetic) {
        if self.drawn.is_none() {
            return;
        }
        let refusal = sample::refusal(&self.graph, fill, arithmetic);
        if refusal.is_some() {
            self.make_whole();
            self.whole = refusal;
        }
    }

    /// Has the case judged as a whole, whether or not samples were asked for.
    pub fn make_whole(&mut self) {
        if let Some(samples) = self.drawn.take() {
            self.values = samples.inputs.values();
        }
    }

    /// The buffers that a plugin is given: inputs first, then outputs.
    ///
    /// # Errors
    /// [`Unprepared::Buffer`] for a tensor without a size, [`Unprepared::Sparse`] for one that is
    /// mostly gap on a device.
    pub fn buffers(&self, placement: Placement) -> Result<Vec<BufferSpec>, Unprepared> {
        let inputs = self.graph.inputs().map(|tensor| {
            let role = if tensor.runtime_pass_by_value {
                Role::HostScalar
            } else {
                Role::Input
            };
            (tensor, role)
        });
        let outputs = self.graph.outputs().map(|tensor| (tensor, Role::Output));
        inputs
            .chain(outputs)
            .map(|(tensor, role)| {
                let sparse = self.sparse.get(&tensor.uid);
                let size = match sparse {
                    Some(view) => view.byte_size(),
                    None => tensor.in_memory().byte_size().map(|size| size as u64),
                };
                let size = size.ok_or_else(|| no_buffer(tensor))?;
                if sparse.is_some() && placement == Placement::Middle {
                    return Err(Unprepared::Sparse {
                        uid: tensor.uid,
                        name: tensor.name.clone(),
                        bytes: size,
                    });
                }
                Ok(BufferSpec {
                    uid: tensor.uid,
                    size,
                    align: u64::try_from(tensor.alignment).unwrap_or(0),
                    placement,
                    role,
                    residence: match sparse {
                        Some(_) => Residence::Elements,
                        None => Residence::Whole,
                    },
                })
            })
            .collect()
    }

    /// Where the elements of an output lie.
    pub fn view(&self, tensor: &Tensor) -> ElementView {
        let sparse = self.sparse.get(&tensor.uid);
        sparse.cloned().unwrap_or_else(|| output_view(tensor))
    }

    /// An input's bytes in its own layout; the gaps of a strided one hold zeros, and a sparse one is
    /// without them.
    ///
    /// # Errors
    /// [`Unprepared::Layout`] for a tensor whose values do not fit its extents.
    pub fn input_bytes(&self, tensor: &Tensor) -> Result<Vec<u8>, Unprepared> {
        let placed = tensor.in_memory();
        let mut bytes = vec![0; placed.byte_size().ok_or_else(|| no_buffer(tensor))?];
        if let Some(samples) = &self.drawn {
            samples.inputs.encode(&placed, &mut bytes)?;
            return Ok(bytes);
        }
        let values = self
            .values
            .get(&tensor.uid)
            .ok_or_else(|| no_buffer(tensor))?;
        dtype::encode(&placed, values, &mut bytes)?;
        Ok(bytes)
    }
}

fn no_buffer(tensor: &Tensor) -> Unprepared {
    Unprepared::Buffer {
        uid: tensor.uid,
        name: tensor.name.clone(),
        dtype: tensor.data_type,
        dims: tensor.dims.clone(),
        strides: tensor.strides.clone(),
    }
}

/// Where the elements of a tensor lie that is mostly gap, so that only they are memory. A ragged
/// tensor's images lie where another tensor says.
fn sparse_view(tensor: &Tensor) -> Option<ElementView> {
    let has_buffer = !tensor.is_virtual && tensor.value.is_none();
    if !has_buffer || tensor.ragged_offset_uid.is_some() {
        return None;
    }
    let view = output_view(tensor);
    let size = tensor.byte_size()? as u64;
    view.is_sparse(size).then_some(view)
}

/// Bytes of memory that the buffers of a graph take, gaps of strided tensors included where they are
/// memory. Tensors without a size count nothing.
pub fn buffer_bytes(graph: &Graph) -> f64 {
    let buffers = graph
        .tensors
        .iter()
        .filter(|tensor| !tensor.is_virtual && tensor.value.is_none());
    let bytes = buffers.filter_map(|tensor| {
        let size = tensor.in_memory().byte_size()? as u64;
        Some(match sparse_view(tensor) {
            Some(view) => view.resident_bytes(size),
            None => size,
        })
    });
    bytes.map(|bytes| bytes as f64).sum()
}

/// How the arena sees an output.
pub fn output_view(tensor: &Tensor) -> ElementView {
    let element = match tensor.data_type {
        DataType::Float => Element::F32,
        DataType::Half => Element::F16,
        DataType::Bfloat16 => Element::Bf16,
        DataType::Double => Element::F64,
        other => Element::Sentinel(other.size().unwrap_or(1) as u8),
    };
    ElementView {
        element,
        dims: tensor.dims.clone(),
        strides: tensor.strides.clone(),
    }
}

/// Which end of the buffers is guarded by a fault: fixed by the id, so that a case always runs the
/// same way, and both ways occur for every operation.
/// Devices have no inaccessible pages: there, canaries lie on both sides.
pub fn placement(id: &str, memory: MemoryKind) -> Placement {
    if memory != MemoryKind::Host {
        return Placement::Middle;
    }
    // FNV's low bit depends on all bytes.
    if dnn_assay_abi::engine_id(id).count_ones().is_multiple_of(4) {
        Placement::Start
    } else {
        Placement::End
    }
}
