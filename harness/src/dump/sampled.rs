//! Dumps of cases that were judged by samples: the elements that were looked at instead of whole
//! tensors, and instead of the inputs what draws them again.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use dnn_assay_device::Snapshot;
use dnn_assay_graph::case::Fill;
use dnn_assay_graph::{Graph, Tensor};
use dnn_assay_reference::fill::{Drawn, Ranges};
use dnn_assay_reference::sample::{self, Choice, Row, Seen, Source, Written};
use dnn_assay_reference::{Arithmetic, Criterion, bounds};
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

use super::file::{Part, TensorEntry, safetensors_type};
use crate::judge::{Looked, look};

/// Sums of an output that a dump holds at most: 64 MB.
const MOST_SUMS: usize = 1 << 22;
/// Elements of each input that its fingerprint looks at.
const WITNESSES: usize = 256;

/// What draws the inputs and the choice of elements again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Draws {
    /// The seed of both.
    pub seed: u64,
    /// Elements of each output at random.
    pub random: u32,
    /// Ranges of inputs that the suite or the run gave, by uid.
    #[serde(default)]
    pub ranges: Ranges,
    /// A hash of some elements of each input, in hexadecimal: a version that draws others cannot judge
    /// the dump.
    pub inputs: String,
}

/// A case that was judged by samples.
pub struct SampledCase<'a> {
    /// Its inputs.
    pub inputs: &'a Drawn,
    /// Ranges of inputs, by uid.
    pub ranges: &'a Ranges,
    /// Elements of each output at random.
    pub random: NonZeroU32,
    /// Seed of inputs and choice.
    pub seed: u64,
    /// The arithmetic of the engine.
    pub arithmetic: &'a Arithmetic,
}

/// Samples in memory.
#[derive(Clone, Debug)]
pub struct Samples {
    /// The inputs.
    pub inputs: Drawn,
    /// What was written.
    pub looked: Vec<Looked>,
}

/// A tensor on its way to the file: part, type, extents, bytes.
pub(super) type Stored = (Part, Dtype, Vec<usize>, Vec<u8>);

impl SampledCase<'_> {
    /// What draws the inputs again.
    pub(super) fn draws(&self, graph: &Graph) -> Draws {
        Draws {
            seed: self.seed,
            random: self.random.get(),
            ranges: self.ranges.clone(),
            inputs: fingerprint(graph, self.inputs),
        }
    }

    /// The tensors of each output by uid; none where the outputs cannot be looked at.
    pub(super) fn tensors(&self, graph: &Graph, snapshot: &Snapshot) -> Vec<(i64, Vec<Stored>)> {
        let draws = (self.random.get(), self.seed);
        let looked = look(graph, snapshot, self.arithmetic, draws).unwrap_or_default();
        let one = |looked: &Looked| {
            let tensor = graph.tensor(looked.uid)?;
            Some((looked.uid, self.of(graph, tensor, looked)?))
        };
        looked.iter().filter_map(one).collect()
    }

    fn of(&self, graph: &Graph, output: &Tensor, looked: &Looked) -> Option<Vec<Stored>> {
        let bound = Criterion::Bound;
        let seen = (output, &looked.seen);
        let sampled = sample::judge(graph, self.inputs, self.arithmetic, seen, &bound).ok()?;
        let Row {
            tensor,
            indices,
            estimate,
            bytes,
        } = sampled.row;
        let (count, rank) = (indices.len(), output.dims.len());
        let places = indices.iter().flat_map(|&index| coordinates(output, index));
        let places: Vec<u8> = places.flat_map(i64::to_le_bytes).collect();
        let row = |values: &[f64]| {
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect()
        };
        let allowed = bounds(&tensor, &estimate, &bound);
        let mut stored = vec![
            (Part::Coordinates, Dtype::I64, vec![count, rank], places),
            (
                Part::Expected,
                Dtype::F64,
                vec![count],
                row(&estimate.value),
            ),
            (Part::Bound, Dtype::F64, vec![count], row(&allowed)),
            (
                Part::Got,
                safetensors_type(tensor.data_type)?,
                vec![count],
                bytes,
            ),
        ];
        if let Some(sums) = looked
            .sums
            .as_ref()
            .ok()
            .filter(|sums| sums.len() <= MOST_SUMS)
        {
            let pairs: Vec<f64> = sums.iter().flat_map(|s| [s.sum, s.magnitude]).collect();
            stored.push((Part::Sums, Dtype::F64, vec![sums.len(), 2], row(&pairs)));
        }
        Some(stored)
    }
}

fn coordinates(tensor: &Tensor, mut index: usize) -> Vec<i64> {
    let mut place = vec![0; tensor.dims.len()];
    for (at, &dim) in place.iter_mut().zip(&tensor.dims).rev() {
        let dim = dim.max(1) as usize;
        *at = (index % dim) as i64;
        index /= dim;
    }
    place
}

/// A hash (FNV-1a of the bits) of elements of each input, evenly spaced.
fn fingerprint(graph: &Graph, inputs: &dyn Source) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for tensor in graph.inputs() {
        let count = tensor.element_count().unwrap_or(0);
        for index in (0..count).step_by((count / WITNESSES).max(1)) {
            let value = inputs.value(tensor.uid, index).unwrap_or(f64::NAN);
            for byte in value.to_bits().to_le_bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
    }
    format!("{hash:016x}")
}

/// The samples of a dump.
///
/// # Errors
/// What was expected and what was seen.
pub(super) fn read(
    graph: &Graph,
    (fill, draws): (Fill, &Draws),
    entries: &[TensorEntry],
    file: &SafeTensors<'_>,
) -> Result<Samples, String> {
    let inputs = Drawn::new(graph, fill, draws.seed, &draws.ranges).map_err(|e| e.to_string())?;
    let drawn = fingerprint(graph, &inputs);
    if drawn != draws.inputs {
        return Err(format!(
            "the inputs that seed {} draws have the fingerprint {drawn}, and those of the run had {}: \
             this version draws others; run the case again",
            draws.seed, draws.inputs
        ));
    }
    let mut keys: BTreeMap<i64, BTreeMap<&'static str, &str>> = BTreeMap::new();
    for entry in entries {
        let parts = keys.entry(entry.uid).or_default();
        parts.insert(entry.part.name(), &entry.key);
    }
    let outputs = graph
        .outputs()
        .filter(|output| keys.contains_key(&output.uid));
    let looked = outputs.map(|output| {
        let parts = Parts {
            output,
            keys: &keys[&output.uid],
            file,
        };
        parts.looked(draws.random)
    });
    Ok(Samples {
        looked: looked.collect::<Result<_, _>>()?,
        inputs,
    })
}

/// The tensors of one output in a file.
struct Parts<'a> {
    output: &'a Tensor,
    keys: &'a BTreeMap<&'static str, &'a str>,
    file: &'a SafeTensors<'a>,
}

impl Parts<'_> {
    fn looked(&self, random: u32) -> Result<Looked, String> {
        let rank = self.output.dims.len();
        let places = self.bytes(Part::Coordinates, Dtype::I64, &[None, Some(rank)])?;
        let places: Vec<i64> = words(places).map(i64::from_le_bytes).collect();
        let indices = match rank {
            0 => return Err(format!("{} has no axes", self.output.name)),
            rank => places.chunks(rank).map(|place| self.index(place)),
        };
        let indices: Vec<usize> = indices.collect::<Result<_, _>>()?;
        if !indices.is_sorted_by(|a, b| a < b) {
            let key = self.keys[Part::Coordinates.name()];
            return Err(format!("`{key}` is not in ascending order"));
        }
        let data_type = safetensors_type(self.output.data_type)
            .ok_or_else(|| format!("{} has a type without values", self.output.name))?;
        let bytes = self.bytes(Part::Got, data_type, &[Some(indices.len())])?;
        let sums = match self.keys.contains_key(Part::Sums.name()) {
            false => Err("the dump holds none".to_owned()),
            true => {
                let pairs = self.bytes(Part::Sums, Dtype::F64, &[None, Some(2)])?;
                let pairs: Vec<f64> = words(pairs).map(f64::from_le_bytes).collect();
                let written = pairs.chunks_exact(2);
                let written = written.map(|pair| Written {
                    sum: pair[0],
                    magnitude: pair[1],
                });
                Ok(written.collect())
            }
        };
        Ok(Looked {
            uid: self.output.uid,
            seen: Seen {
                choice: Choice {
                    indices,
                    random: random as usize,
                },
                bytes: bytes.to_vec(),
            },
            sums,
        })
    }

    fn index(&self, place: &[i64]) -> Result<usize, String> {
        let dims = &self.output.dims;
        let mut axes = dims.iter().zip(place);
        let index = axes.try_fold(0usize, |index, (&dim, &at)| {
            (0..dim)
                .contains(&at)
                .then(|| index * dim as usize + at as usize)
        });
        index.ok_or_else(|| format!("{} has no element {place:?} in {dims:?}", self.output.name))
    }

    /// The bytes of a part, whose type and extents are as given; `None` for any extent.
    fn bytes(&self, part: Part, dtype: Dtype, extents: &[Option<usize>]) -> Result<&[u8], String> {
        let key = self.keys.get(part.name());
        let key = key.ok_or_else(|| format!("{} has no {}", self.output.name, part.name()))?;
        let view = self
            .file
            .tensor(key)
            .map_err(|error| format!("`{key}`: {error}"))?;
        let shape = view.shape();
        let fits = shape.len() == extents.len()
            && shape
                .iter()
                .zip(extents)
                .all(|(dim, wanted)| wanted.is_none_or(|w| w == *dim));
        if view.dtype() != dtype || !fits {
            let wanted: Vec<String> = extents
                .iter()
                .map(|extent| extent.map_or_else(|| "…".to_owned(), |extent| extent.to_string()))
                .collect();
            return Err(format!(
                "`{key}` is {:?} {shape:?}; expected {dtype:?} [{}]",
                view.dtype(),
                wanted.join(", ")
            ));
        }
        Ok(view.data())
    }
}

/// Bytes in eights.
fn words(bytes: &[u8]) -> impl Iterator<Item = [u8; 8]> + '_ {
    bytes.as_chunks::<8>().0.iter().copied()
}
