//! The graph: tensors, nodes, and what holds for all of them.

use crate::enums::DataType;
use crate::schema::Attributes;
use crate::tensor_value::TensorValue;
use dnn_assay_abi::ApiVersion;

/// An operation graph as hipDNN serializes it.
///
/// An absent string and an empty one are the same thing here, and so are an absent vector and an
/// empty one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// Name, for people.
    pub name: String,
    /// Type of arithmetic, unless a node says otherwise.
    pub compute_type: DataType,
    /// Default type of virtual tensors.
    pub intermediate_type: DataType,
    /// Default type of the other tensors.
    pub io_type: DataType,
    /// Tensors, with unique uids.
    pub tensors: Vec<Tensor>,
    /// Nodes in topological order.
    pub nodes: Vec<Node>,
    /// The engine that the application prefers.
    pub preferred_engine_id: Option<i64>,
    /// Shapes may be overridden at execution (engine API 1.1.0).
    pub override_shapes: bool,
    /// The lowest engine API version that may see this graph; absent means 1.0.0.
    pub min_engine_api: Option<ApiVersion>,
    /// Identity of the graph, absent on hand-made ones.
    pub id: Option<[u8; 16]>,
}

/// A tensor of a graph. `dims` and `strides` are in elements and in logical order (N, C,
/// spatial…), whatever the layout in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Unique in the graph.
    pub uid: i64,
    /// Name, for people.
    pub name: String,
    /// Element type.
    pub data_type: DataType,
    /// Elements to skip per step along each axis.
    pub strides: Vec<i64>,
    /// Extents.
    pub dims: Vec<i64>,
    /// An intermediate: it has no buffer.
    pub is_virtual: bool,
    /// A scalar that travels in the graph: it has no buffer either.
    pub value: Option<TensorValue>,
    /// A scalar whose host pointer is given at execution (engine API 1.2.0).
    pub runtime_pass_by_value: bool,
    /// The tensor that holds the offsets of a ragged one (engine API 1.3.0).
    pub ragged_offset_uid: Option<i64>,
    /// Alignment of the buffer in bytes; other than 16 needs engine API 1.3.0.
    pub alignment: i64,
    /// Elements per unit of a ragged offset.
    pub ragged_offset_multiplier: i64,
}

/// The alignment that a tensor has unless it says otherwise, bytes.
pub const DEFAULT_ALIGNMENT: i64 = 16;

impl Default for Tensor {
    fn default() -> Self {
        Self {
            uid: 0,
            name: String::new(),
            data_type: DataType::Unset,
            strides: Vec::new(),
            dims: Vec::new(),
            is_virtual: false,
            value: None,
            runtime_pass_by_value: false,
            ragged_offset_uid: None,
            alignment: DEFAULT_ALIGNMENT,
            ragged_offset_multiplier: 1,
        }
    }
}

/// A node: one operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Name, for people.
    pub name: String,
    /// Type of arithmetic. The 2025-11 wire has no such field: there it is read as unset.
    pub compute_type: DataType,
    /// The operation.
    pub attributes: Attributes,
}

impl Graph {
    /// The tensor with this uid.
    pub fn tensor(&self, uid: i64) -> Option<&Tensor> {
        self.tensors.iter().find(|tensor| tensor.uid == uid)
    }

    /// Tensors that some node writes and that have a buffer: what there is to judge.
    pub fn outputs(&self) -> impl Iterator<Item = &Tensor> {
        let written = self.written();
        self.tensors
            .iter()
            .filter(move |tensor| !tensor.is_virtual && written.contains(&tensor.uid))
    }

    /// Tensors that no node writes and that have a buffer: what there is to fill. Run-time
    /// pass-by-value scalars are among them; compile-time ones are not.
    pub fn inputs(&self) -> impl Iterator<Item = &Tensor> {
        let written = self.written();
        self.tensors.iter().filter(move |tensor| {
            !tensor.is_virtual && tensor.value.is_none() && !written.contains(&tensor.uid)
        })
    }

    fn written(&self) -> Vec<i64> {
        self.nodes
            .iter()
            .flat_map(|node| node.attributes.outputs())
            .collect()
    }
}

/// Elements between two images of a ragged tensor: an engine that takes the images for packed reads
/// other data.
const RAGGED_GAP: i64 = 16;

impl Tensor {
    /// A packed tensor with the axes in `dims` from slowest to fastest.
    pub fn packed(uid: i64, name: &str, data_type: DataType, dims: &[i64]) -> Self {
        Self {
            uid,
            name: name.to_owned(),
            data_type,
            strides: packed_strides(dims),
            dims: dims.to_vec(),
            ..Self::default()
        }
    }

    /// Elements; `None` where an extent is negative or the product does not fit.
    pub fn element_count(&self) -> Option<usize> {
        self.dims.iter().try_fold(1usize, |product, &dim| {
            product.checked_mul(usize::try_from(dim).ok()?)
        })
    }

    /// Elements from the first to one past the last that the strides reach; 0 for an empty
    /// tensor, `None` where a stride or extent is negative or the span does not fit.
    pub fn span(&self) -> Option<usize> {
        if self.dims.contains(&0) {
            return Some(0);
        }
        self.dims
            .iter()
            .zip(&self.strides)
            .try_fold(1usize, |span, (&dim, &stride)| {
                let steps = usize::try_from(dim.checked_sub(1)?).ok()?;
                span.checked_add(steps.checked_mul(usize::try_from(stride).ok()?)?)
            })
    }

    /// Elements from one image of a ragged tensor to the next in the data of our cases: the offsets
    /// that its second tensor holds are multiples of it. `None` for tensors that are not ragged,
    /// and where it does not fit.
    pub fn ragged_step(&self) -> Option<i64> {
        self.ragged_offset_uid?;
        self.strides.first()?.checked_add(RAGGED_GAP)
    }

    /// The tensor as its data lie: a ragged one with its images a [`Tensor::ragged_step`] apart,
    /// any other as it is.
    pub fn in_memory(&self) -> Self {
        let mut placed = self.clone();
        if let (Some(step), Some(stride)) = (self.ragged_step(), placed.strides.first_mut()) {
            *stride = step;
        }
        placed
    }

    /// Bytes that a buffer of this tensor needs, `None` where that does not fit or the type has
    /// no whole number of bytes.
    pub fn byte_size(&self) -> Option<usize> {
        self.span()?.checked_mul(self.data_type.size()?)
    }
}

/// Strides of a packed tensor with the last axis fastest; saturates rather than overflow.
pub fn packed_strides(dims: &[i64]) -> Vec<i64> {
    let mut strides = vec![1i64; dims.len()];
    for axis in (0..dims.len().saturating_sub(1)).rev() {
        strides[axis] = strides[axis + 1].saturating_mul(dims[axis + 1].max(1));
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ragged_tensor_has_gaps_between_its_images() {
        let mut x = Tensor::packed(1, "x", DataType::Float, &[3, 2, 4]);
        assert_eq!((x.ragged_step(), x.in_memory()), (None, x.clone()));
        x.ragged_offset_uid = Some(2);
        assert_eq!(x.ragged_step(), Some(24));
        assert_eq!(x.in_memory().byte_size(), Some((2 * 24 + 8) * 4));
        assert_eq!(x.in_memory().strides, [24, 4, 1]);
    }

    #[test]
    fn spans_and_sizes() {
        let tensor = Tensor::packed(1, "x", DataType::Half, &[2, 3, 5]);
        assert_eq!(tensor.strides, [15, 5, 1]);
        assert_eq!(tensor.byte_size(), Some(60));
        let gaps = Tensor {
            strides: vec![40, 10, 2],
            ..tensor.clone()
        };
        assert_eq!(gaps.span(), Some(40 + 20 + 8 + 1));
        let huge = Tensor {
            dims: vec![i64::MAX, 3],
            strides: vec![3, 1],
            ..tensor
        };
        assert_eq!((huge.element_count(), huge.span()), (None, None));
    }
}
