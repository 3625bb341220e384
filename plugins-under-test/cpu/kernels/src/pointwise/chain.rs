//! Graphs of pointwise nodes alone, part after part: giant tensors need no copies in wide types.

use super::functions::evaluate;
use super::{broadcast_steps, operands};
use crate::program::{Num, Parts, Storage};
use dnn_assay_graph::semantics::Parameters;
use dnn_assay_graph::{Attributes, Graph, PointwiseMode, Tensor};
use dnn_assay_plugin_sdk::Error;
use std::collections::BTreeMap;
use std::ops::Range;

/// Elements of a part: what a few tensors of it take stays in a core's cache.
const PART: usize = 1 << 14;

/// Pointwise nodes whose outputs all have the same extents.
pub(crate) struct Chain<T> {
    dims: Vec<usize>,
    /// Tensors of these extents that are read.
    inputs: Vec<(i64, usize)>,
    /// Smaller operands, held as a whole.
    small: Vec<Small<T>>,
    nodes: Vec<Node>,
    slots: usize,
}

/// An operand that is broadcast, with what to skip per step along each axis of the output.
struct Small<T> {
    values: Vec<T>,
    steps: Vec<usize>,
    slot: usize,
}

struct Node {
    operation: PointwiseMode,
    parameters: Parameters,
    operands: [usize; 3],
    out: usize,
    /// The buffer to write, unless the tensor is virtual.
    stored: Option<i64>,
}

impl<T: Num> Chain<T> {
    /// The chain of a graph; `None` for one that has other nodes, or outputs of several extents.
    pub(crate) fn of(storage: &dyn Storage<T>) -> Result<Option<Self>, Error> {
        let graph = storage.graph();
        let Some(dims) = common_extents(graph) else {
            return Ok(None);
        };
        let mut chain = Self {
            dims,
            inputs: Vec::new(),
            small: Vec::new(),
            nodes: Vec::new(),
            slots: 0,
        };
        let mut known = BTreeMap::new();
        for node in &graph.nodes {
            let Attributes::Pointwise(table) = &node.attributes else {
                return Ok(None);
            };
            let is_index = table.operation == PointwiseMode::GenIndex;
            let uids = if is_index {
                Vec::new()
            } else {
                operands(table)
            };
            let mut slots = Vec::new();
            for uid in uids {
                slots.push(chain.operand(storage, uid, &mut known)?);
            }
            let first = slots.first().copied().unwrap_or(0);
            // An absent operand reads the first one, which evaluation then ignores.
            let operand = |at: usize| slots.get(at).copied().unwrap_or(first);
            let uid = table.out_0_tensor_uid;
            let out = chain.slot();
            known.insert(uid, out);
            let is_virtual = graph.tensor(uid).is_some_and(|tensor| tensor.is_virtual);
            chain.nodes.push(Node {
                operation: table.operation,
                parameters: Parameters::of(table),
                operands: [operand(0), operand(1), operand(2)],
                out,
                stored: (!is_virtual).then_some(uid),
            });
        }
        Ok(Some(chain))
    }

    fn slot(&mut self) -> usize {
        self.slots += 1;
        self.slots - 1
    }

    fn operand(
        &mut self,
        storage: &dyn Storage<T>,
        uid: i64,
        known: &mut BTreeMap<i64, usize>,
    ) -> Result<usize, Error> {
        if let Some(&slot) = known.get(&uid) {
            return Ok(slot);
        }
        let slot = self.slot();
        known.insert(uid, slot);
        let tensor = storage.graph().tensor(uid);
        let tensor =
            tensor.ok_or_else(|| Error::internal(format!("the graph has no tensor {uid}")))?;
        let own = extents(tensor);
        if own == self.dims && tensor.value.is_none() {
            self.inputs.push((uid, slot));
        } else {
            self.small.push(Small {
                values: storage.load(uid)?,
                steps: broadcast_steps(&own, &self.dims),
                slot,
            });
        }
        Ok(slot)
    }

    /// Computes every node on one part of the elements after the other.
    pub(crate) fn run(&self, storage: &dyn Parts<T>) -> Result<(), Error> {
        let count: usize = self.dims.iter().product();
        let mut slots = vec![Vec::new(); self.slots];
        for start in (0..count).step_by(PART) {
            let range = start..count.min(start + PART);
            for (uid, slot) in &self.inputs {
                slots[*slot].clear();
                storage.load_part(*uid, range.clone(), &mut slots[*slot])?;
            }
            for small in &self.small {
                small.spread(&self.dims, range.clone(), &mut slots[small.slot]);
            }
            for node in &self.nodes {
                let mut out = std::mem::take(&mut slots[node.out]);
                node.compute(&slots, (&self.dims, range.clone()), &mut out);
                if let Some(uid) = node.stored {
                    storage.store_part(uid, start, &out)?;
                }
                slots[node.out] = out;
            }
        }
        Ok(())
    }
}

impl Node {
    fn compute<T: Num>(
        &self,
        slots: &[Vec<T>],
        (dims, range): (&[usize], Range<usize>),
        out: &mut Vec<T>,
    ) {
        out.clear();
        if self.operation == PointwiseMode::GenIndex {
            let axis = self.parameters.axis.unwrap_or(0) as usize;
            let inner: usize = dims[axis + 1..].iter().product();
            out.extend(range.map(|i| T::from_f64((i / inner % dims[axis]) as f64)));
            return;
        }
        let [x, y, z] = self.operands.map(|slot| &slots[slot]);
        out.extend(x.iter().zip(y).zip(z).map(|((x, y), z)| {
            let (x, y, z) = (x.to_f64(), y.to_f64(), z.to_f64());
            T::from_f64(evaluate(self.operation, &self.parameters, x, y, z))
        }));
    }
}

impl<T: Num> Small<T> {
    /// The operand's values for elements `range` of the output.
    fn spread(&self, dims: &[usize], range: Range<usize>, out: &mut Vec<T>) {
        out.clear();
        let Some((&row, outer)) = dims.split_last() else {
            return out.extend_from_slice(&self.values);
        };
        let step = self.steps[outer.len()];
        let mut start = range.start;
        while start < range.end {
            let (mut rest, first) = (start / row, start % row);
            let mut at = first * step;
            for axis in (0..outer.len()).rev() {
                at += rest % outer[axis] * self.steps[axis];
                rest /= outer[axis];
            }
            let count = (row - first).min(range.end - start);
            out.extend((0..count).map(|i| self.values[at + i * step]));
            start += count;
        }
    }
}

/// The extents that all outputs have; `None` where they differ, or a node is no pointwise one.
fn common_extents(graph: &Graph) -> Option<Vec<usize>> {
    let mut common = None;
    for node in &graph.nodes {
        let Attributes::Pointwise(table) = &node.attributes else {
            return None;
        };
        let own = extents(graph.tensor(table.out_0_tensor_uid)?);
        if common.get_or_insert_with(|| own.clone()) != &own {
            return None;
        }
    }
    common
}

fn extents(tensor: &Tensor) -> Vec<usize> {
    tensor.dims.iter().map(|&dim| dim as usize).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::program::run;
    use dnn_assay_graph::schema::PointwiseAttributes;
    use dnn_assay_graph::{DataType, Node as GraphNode};
    use std::cell::RefCell;

    /// Tensors in memory, which are given out in parts or only as a whole.
    struct Memory {
        graph: Graph,
        tensors: RefCell<BTreeMap<i64, Vec<f32>>>,
        in_parts: bool,
        largest: RefCell<usize>,
    }

    impl Storage<f32> for Memory {
        fn graph(&self) -> &Graph {
            &self.graph
        }

        fn load(&self, uid: i64) -> Result<Vec<f32>, Error> {
            Ok(self.tensors.borrow()[&uid].clone())
        }

        fn scalar(&self, uid: i64) -> Result<Option<f64>, Error> {
            Ok(self.load(uid)?.first().map(|&value| f64::from(value)))
        }

        fn store(&self, uid: i64, values: &[f32]) -> Result<(), Error> {
            self.store_part(uid, 0, values)
        }

        fn parts(&self) -> Option<&dyn Parts<f32>> {
            self.in_parts.then_some(self)
        }
    }

    impl Parts<f32> for Memory {
        fn load_part(
            &self,
            uid: i64,
            range: Range<usize>,
            values: &mut Vec<f32>,
        ) -> Result<(), Error> {
            let mut largest = self.largest.borrow_mut();
            *largest = range.len().max(*largest);
            values.extend_from_slice(&self.tensors.borrow()[&uid][range]);
            Ok(())
        }

        fn store_part(&self, uid: i64, start: usize, values: &[f32]) -> Result<(), Error> {
            let mut tensors = self.tensors.borrow_mut();
            let tensor = tensors.entry(uid).or_default();
            assert_eq!(tensor.len(), start, "parts come in order");
            tensor.extend_from_slice(values);
            Ok(())
        }
    }

    const DIMS: [i64; 4] = [3, 5, 50, 61];

    /// x (1), y (2), a bias of channels (3), one of columns (4); hidden tensors and outputs of DIMS.
    fn graph(nodes: Vec<PointwiseAttributes>, hidden: &[i64]) -> Graph {
        let float = |uid, dims: &[i64]| Tensor::packed(uid, "", DataType::Float, dims);
        let mut tensors = vec![
            float(1, &DIMS),
            float(2, &DIMS),
            float(3, &[1, 5, 1, 1]),
            float(4, &[61]),
        ];
        tensors.extend(nodes.iter().map(|node| Tensor {
            is_virtual: hidden.contains(&node.out_0_tensor_uid),
            ..float(node.out_0_tensor_uid, &DIMS)
        }));
        let nodes = nodes.into_iter().map(|attributes| GraphNode {
            attributes: attributes.into(),
            name: String::new(),
            compute_type: DataType::Float,
        });
        Graph {
            tensors,
            nodes: nodes.collect(),
            ..Graph::default()
        }
    }

    fn node(operation: PointwiseMode, inputs: &[i64], out: i64) -> PointwiseAttributes {
        PointwiseAttributes {
            operation,
            in_0_tensor_uid: inputs.first().copied().unwrap_or(0),
            in_1_tensor_uid: inputs.get(1).copied(),
            in_2_tensor_uid: inputs.get(2).copied(),
            out_0_tensor_uid: out,
            axis_tensor_uid: (operation == PointwiseMode::GenIndex).then_some(1),
            ..PointwiseAttributes::default()
        }
    }

    fn memory(graph: &Graph, in_parts: bool) -> Memory {
        let mut state = 1u32;
        let mut values = |count: i64| -> Vec<f32> {
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 23) as f32 - 1.0
            };
            (0..count).map(|_| next()).collect()
        };
        let inputs = [
            (1, DIMS.iter().product()),
            (2, DIMS.iter().product()),
            (3, 5),
            (4, 61),
        ];
        let tensors = inputs.into_iter().map(|(uid, count)| (uid, values(count)));
        Memory {
            graph: graph.clone(),
            tensors: RefCell::new(tensors.collect()),
            in_parts,
            largest: RefCell::default(),
        }
    }

    #[test]
    fn parts_have_the_bits_of_the_whole() {
        use PointwiseMode::{Add, BinarySelect, GeluFwd, GenIndex, Mul, ReluBwd, Sub, TanhFwd};
        for (nodes, hidden) in [
            (vec![node(TanhFwd, &[1], 9)], &[][..]),
            (vec![node(Sub, &[1, 2], 9)], &[]),
            (vec![node(ReluBwd, &[2, 1], 9)], &[]),
            (vec![node(Mul, &[1, 3], 9)], &[]),
            (vec![node(Add, &[4, 1], 9)], &[]),
            (vec![node(Add, &[3, 4], 9)], &[]),
            (vec![node(BinarySelect, &[1, 3, 2], 9)], &[]),
            (vec![node(GenIndex, &[], 9)], &[]),
            (
                vec![
                    node(Add, &[1, 3], 8),
                    node(GeluFwd, &[8], 9),
                    node(Mul, &[9, 8], 10),
                    node(Add, &[10, 1], 11),
                ],
                &[8, 10],
            ),
        ] {
            let graph = graph(nodes, hidden);
            let [whole, parts] = [false, true].map(|in_parts| memory(&graph, in_parts));
            run(&whole).unwrap();
            run(&parts).unwrap();
            assert_eq!(*whole.largest.borrow(), 0);
            // More than one part, and none longer than it should be.
            assert!(*parts.largest.borrow() <= PART);
            assert!(DIMS.iter().product::<i64>() as usize > 2 * PART);
            let bits = |memory: &Memory| -> Vec<Vec<u32>> {
                let tensors = memory.tensors.borrow();
                let bits = |values: &Vec<f32>| values.iter().map(|v| v.to_bits()).collect();
                tensors.values().map(bits).collect()
            };
            assert!(bits(&whole) == bits(&parts), "{:?}", graph.nodes);
            assert_eq!(
                whole.tensors.borrow().len(),
                4 + graph.nodes.len() - hidden.len()
            );
        }
    }

    #[test]
    fn other_graphs_are_run_as_a_whole() {
        let mut smaller = graph(vec![node(PointwiseMode::Add, &[1, 2], 8)], &[]);
        let mut more = smaller.clone();
        more.tensors
            .push(Tensor::packed(9, "", DataType::Float, &[61]));
        let attributes = node(PointwiseMode::Neg, &[4], 9);
        more.nodes.push(GraphNode {
            attributes: attributes.into(),
            ..more.nodes[0].clone()
        });
        assert!(Chain::of(&memory(&more, true)).unwrap().is_none());
        smaller.nodes[0].attributes = Attributes::Batchnorm(Default::default());
        assert!(Chain::of(&memory(&smaller, true)).unwrap().is_none());
    }
}
