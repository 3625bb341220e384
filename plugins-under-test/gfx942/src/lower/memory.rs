//! Where tensors lie: the host's buffers, the workspace, or the parameters.

use std::collections::BTreeMap;

use dnn_assay_graph::model::packed_strides;
use dnn_assay_graph::{DataType, Graph, Tensor};
use dnn_assay_plugin_sdk::Error;

use super::is_wide;
use super::view::View;
use crate::parameters::element;

/// Alignment of everything in the workspace, bytes.
const ALIGN: usize = 256;

/// The buffers of an execution.
pub(crate) trait Addresses {
    /// The device address of a tensor's buffer.
    fn address(&self, uid: i64) -> Result<u64, Error>;
    /// The value behind a host pointer.
    fn host_scalar(&self, uid: i64) -> Result<f64, Error>;
}

/// No buffers yet: for planning.
pub(super) struct Nowhere;

impl Addresses for Nowhere {
    fn address(&self, _uid: i64) -> Result<u64, Error> {
        Ok(ALIGN as u64)
    }

    fn host_scalar(&self, _uid: i64) -> Result<f64, Error> {
        Ok(0.0)
    }
}

/// Hands out views of tensors and scratch space of the workspace.
pub(super) struct Memory<'a> {
    graph: &'a Graph,
    addresses: &'a dyn Addresses,
    workspace: u64,
    wide: bool,
    used: usize,
    virtuals: BTreeMap<i64, usize>,
}

impl<'a> Memory<'a> {
    pub(super) fn new(graph: &'a Graph, addresses: &'a dyn Addresses, workspace: u64) -> Self {
        Self {
            graph,
            addresses,
            workspace,
            wide: is_wide(graph),
            used: 0,
            virtuals: BTreeMap::new(),
        }
    }

    pub(super) fn workspace_bytes(&self) -> usize {
        self.used
    }

    /// The address of `bytes` of the workspace that nothing else uses.
    pub(super) fn scratch(&mut self, bytes: usize) -> Result<u64, Error> {
        let at = self.used;
        self.used = bytes
            .checked_next_multiple_of(ALIGN)
            .and_then(|bytes| at.checked_add(bytes))
            .ok_or_else(|| Error::not_applicable("the workspace would be too large"))?;
        Ok(self.workspace + at as u64)
    }

    fn tensor(&self, uid: i64) -> Result<&'a Tensor, Error> {
        self.graph
            .tensor(uid)
            .ok_or_else(|| Error::internal(format!("the graph has no tensor {uid}")))
    }

    /// The tensor in memory. Constants of the graph and host scalars have none: see
    /// [`operand`](Self::operand).
    pub(super) fn view(&mut self, uid: i64) -> Result<View, Error> {
        let tensor = self.tensor(uid)?;
        if tensor.value.is_some() || tensor.runtime_pass_by_value {
            return Err(Error::not_applicable(format!(
                "tensor {uid} is passed by value where the kernels read memory"
            )));
        }
        if !tensor.is_virtual {
            return Ok(View {
                address: self.addresses.address(uid)?,
                kind: kind(tensor.data_type)?,
                dims: tensor.dims.clone(),
                strides: tensor.strides.clone(),
                constant: 0.0,
            });
        }
        let (kind, size) = if self.wide {
            (element::F64, 8)
        } else {
            (element::F32, 4)
        };
        let at = match self.virtuals.get(&uid) {
            Some(&at) => at,
            None => {
                let count = tensor.element_count().and_then(|n| n.checked_mul(size));
                let bytes = count.ok_or_else(|| Error::not_applicable("a tensor is too large"))?;
                let at = self.used;
                self.scratch(bytes)?;
                self.virtuals.insert(uid, at);
                at
            }
        };
        Ok(View {
            address: self.workspace + at as u64,
            kind,
            dims: tensor.dims.clone(),
            strides: packed_strides(&tensor.dims),
            constant: 0.0,
        })
    }

    /// The tensor in memory, or its value where it is passed by value.
    pub(super) fn operand(&mut self, uid: i64) -> Result<View, Error> {
        match self.by_value(uid)? {
            None => self.view(uid),
            Some(constant) => Ok(View {
                address: 0,
                kind: element::CONSTANT,
                dims: Vec::new(),
                strides: Vec::new(),
                constant,
            }),
        }
    }

    /// A scalar that is passed by value.
    pub(super) fn scalar(&self, uid: i64) -> Result<f64, Error> {
        self.by_value(uid)?.ok_or_else(|| {
            Error::not_applicable(format!(
                "scalar {uid} lies in device memory; the kernels take it by value"
            ))
        })
    }

    fn by_value(&self, uid: i64) -> Result<Option<f64>, Error> {
        let tensor = self.tensor(uid)?;
        if let Some(value) = tensor.value {
            let unreadable = || Error::not_applicable(format!("the value of scalar {uid}"));
            return Ok(Some(value.as_f64().ok_or_else(unreadable)?));
        }
        if tensor.runtime_pass_by_value {
            return Ok(Some(self.addresses.host_scalar(uid)?));
        }
        Ok(None)
    }
}

fn kind(data_type: DataType) -> Result<u32, Error> {
    Ok(match data_type {
        DataType::Float => element::F32,
        DataType::Half => element::F16,
        DataType::Bfloat16 => element::BF16,
        DataType::Double => element::F64,
        DataType::Int8 => element::I8,
        DataType::Uint8 => element::U8,
        DataType::Int32 => element::I32,
        DataType::Int64 => element::I64,
        other => return Err(Error::not_applicable(format!("elements of type {other}"))),
    })
}
