//! One execution: the host's buffers, seen through the graph that was planned.

use crate::engine::Error;
use crate::host::{self, Real};
use dnn_assay_abi::{DeviceBuffer, RawStream};
use dnn_assay_graph::{Graph, Tensor};
use std::ffi::c_void;
use std::ops::Range;

/// What the host passed to one execution, for the time of that call.
///
/// A plugin for host memory uses [`load`](Self::load) and [`store`](Self::store) and needs no
/// `unsafe`; one for a device takes [`pointer`](Self::pointer)s, [`workspace`](Self::workspace)
/// and [`stream`](Self::stream) and does as its run time demands.
pub struct Execution<'a> {
    graph: &'a Graph,
    buffers: &'a [DeviceBuffer],
    workspace: *mut c_void,
    stream: RawStream,
}

impl<'a> Execution<'a> {
    /// # Safety
    /// Until the value is dropped, each non-null buffer whose uid is a tensor of `graph` must be
    /// valid for reads of that tensor's span, and for writes where a node writes the tensor. That
    /// is the ABI's contract of `ExecuteOpGraph` for plugins whose memory is the host's.
    pub(crate) unsafe fn new(
        graph: &'a Graph,
        buffers: &'a [DeviceBuffer],
        workspace: *mut c_void,
        stream: RawStream,
    ) -> Self {
        Self {
            graph,
            buffers,
            workspace,
            stream,
        }
    }

    /// The graph, with the shapes of this execution.
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// The pointer that the host gave for tensor `uid`; `None` if it gave none, or null.
    pub fn pointer(&self, uid: i64) -> Option<*mut c_void> {
        self.buffers
            .iter()
            .find(|buffer| buffer.uid == uid)
            .map(|buffer| buffer.ptr)
            .filter(|pointer| !pointer.is_null())
    }

    /// The workspace; null where the plan needs none.
    pub fn workspace(&self) -> *mut c_void {
        self.workspace
    }

    /// The handle's stream; null is the default stream.
    pub fn stream(&self) -> RawStream {
        self.stream
    }

    /// The elements of tensor `uid` in logical row-major order, whatever its strides, converted
    /// to `T`. Scalars that travel in the graph are read from there. Only for host memory.
    ///
    /// # Errors
    /// An unknown uid, a tensor without buffer, a type other than f32, f16, bf16, f64, i32, i64,
    /// i8, u8, or negative or overflowing extents.
    pub fn load<T: Real>(&self, uid: i64) -> Result<Vec<T>, Error> {
        let tensor = self.tensor(uid)?;
        if let Some(value) = tensor.value {
            let value = value.as_f64().ok_or_else(|| unreadable(tensor))?;
            return Ok(vec![T::from_f64(value)]);
        }
        let count = tensor.element_count().ok_or_else(|| unreadable(tensor))?;
        let mut values = Vec::new();
        self.load_part(uid, 0..count, &mut values)?;
        Ok(values)
    }

    /// Appends elements `range`, in logical row-major order, of tensor `uid` to `values`, as
    /// [`load`](Self::load) has them: a kernel that goes through giant tensors in parts needs no copy of
    /// them. Only for tensors with a buffer.
    ///
    /// # Errors
    /// As [`load`](Self::load); a range that is not within the tensor.
    pub fn load_part<T: Real>(
        &self,
        uid: i64,
        range: Range<usize>,
        values: &mut Vec<T>,
    ) -> Result<(), Error> {
        let tensor = self.tensor(uid)?;
        within(tensor, &range)?;
        let buffer = self.buffer(tensor)?;
        // SAFETY: `new` was promised that the buffer of a tensor of this graph is valid for reads
        // of the tensor's span, and the range is within it.
        unsafe { host::load(tensor, buffer, range, values) }.ok_or_else(|| unreadable(tensor))
    }

    /// Writes tensor `uid` from `values`, packed in logical row-major order, with one rounding to
    /// the tensor's type. Memory between strided elements is left alone. Only for host memory.
    ///
    /// # Errors
    /// As [`load`](Self::load); a tensor that no node of the graph writes; a wrong number of
    /// values.
    pub fn store<T: Real>(&self, uid: i64, values: &[T]) -> Result<(), Error> {
        let tensor = self.tensor(uid)?;
        if tensor.element_count() != Some(values.len()) {
            return Err(Error::internal(format!(
                "{} values for tensor {uid} of shape {:?}",
                values.len(),
                tensor.dims
            )));
        }
        self.store_part(uid, 0, values)
    }

    /// Writes the elements of tensor `uid` from `start` on, in logical row-major order, as
    /// [`store`](Self::store) does; the others are left alone.
    ///
    /// # Errors
    /// As [`store`](Self::store); elements that are not within the tensor.
    pub fn store_part<T: Real>(&self, uid: i64, start: usize, values: &[T]) -> Result<(), Error> {
        let tensor = self.tensor(uid)?;
        let written = self
            .graph
            .nodes
            .iter()
            .any(|node| node.attributes.outputs().contains(&uid));
        if !written || tensor.value.is_some() {
            return Err(Error::internal(format!(
                "no node of the graph writes tensor {uid}"
            )));
        }
        within(tensor, &(start..start.saturating_add(values.len())))?;
        let buffer = self.buffer(tensor)?;
        // SAFETY: `new` was promised that the buffer of a tensor that a node writes is valid for
        // writes of the tensor's span, a node writes this one, and the elements are within it.
        unsafe { host::store(tensor, buffer, start, values) }.ok_or_else(|| unreadable(tensor))
    }

    fn tensor(&self, uid: i64) -> Result<&'a Tensor, Error> {
        self.graph
            .tensor(uid)
            .ok_or_else(|| Error::internal(format!("the graph has no tensor {uid}")))
    }

    fn buffer(&self, tensor: &Tensor) -> Result<*mut u8, Error> {
        self.pointer(tensor.uid)
            .map(<*mut c_void>::cast)
            .ok_or_else(|| {
                Error::bad_param(format!(
                    "no buffer was given for tensor {} '{}'",
                    tensor.uid, tensor.name
                ))
            })
    }
}

fn within(tensor: &Tensor, range: &Range<usize>) -> Result<(), Error> {
    let count = tensor.element_count().ok_or_else(|| unreadable(tensor))?;
    if range.start <= range.end && range.end <= count {
        return Ok(());
    }
    Err(Error::internal(format!(
        "elements {range:?} of tensor {}, which has {count}",
        tensor.uid
    )))
}

fn unreadable(tensor: &Tensor) -> Error {
    Error::invalid_value(format!(
        "tensor {} '{}' of type {}, shape {:?} and strides {:?} cannot be read or written here",
        tensor.uid, tensor.name, tensor.data_type, tensor.dims, tensor.strides
    ))
}
