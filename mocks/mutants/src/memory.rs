//! Faults that touch memory that is not theirs. The only place here with raw memory.

use std::sync::atomic::{AtomicU64, Ordering};

use dnn_assay_graph::{Graph, Tensor};
use dnn_assay_plugin_sdk::Execution;

use crate::fault::{coordinates, extents};

/// Which memory is touched, and how.
#[derive(Clone, Copy)]
pub enum MemoryFault {
    /// Writes this many bytes behind the first output.
    PastEnd(usize),
    /// Writes this many bytes before the first output.
    BeforeStart(usize),
    /// Reads this many bytes behind the first input.
    ReadPastEnd(usize),
    /// Reads this many bytes before the first input.
    ReadBeforeStart(usize),
    /// Asks for a workspace of the first size and writes the second one.
    Workspace {
        /// What the plan says, bytes.
        reported: usize,
        /// What the execution writes, bytes.
        written: usize,
    },
    /// Writes before the workspace.
    BeforeWorkspace,
    /// Changes the last byte of the first input.
    ChangesInput,
    /// Writes between the elements of a strided output.
    Gaps,
}

/// What is written where nothing must be.
const MARK: u8 = 0x5A;

/// Where a read that must not happen leaves its result, so that it does happen.
static READ: AtomicU64 = AtomicU64::new(0);

impl MemoryFault {
    /// Bytes of workspace that the plan asks for.
    pub fn workspace(self) -> usize {
        match self {
            Self::Workspace { reported, .. } => reported,
            Self::BeforeWorkspace => 256,
            _ => 0,
        }
    }

    /// Does it, after the kernel has run.
    pub fn commit(self, execution: &Execution<'_>) {
        let graph = execution.graph();
        let output = graph
            .outputs()
            .next()
            .and_then(|t| Buffer::of(execution, t));
        let input = graph.inputs().next().and_then(|t| Buffer::of(execution, t));
        match self {
            Self::PastEnd(bytes) => {
                output.inspect(|b| write(b.start.wrapping_add(b.size), bytes));
            }
            Self::BeforeStart(bytes) => {
                output.inspect(|b| write(b.start.wrapping_sub(bytes), bytes));
            }
            Self::ReadPastEnd(bytes) => {
                input.inspect(|b| read(b.start.wrapping_add(b.size), bytes));
            }
            Self::ReadBeforeStart(bytes) => {
                input.inspect(|b| read(b.start.wrapping_sub(bytes), bytes));
            }
            Self::Workspace { written, .. } => write(execution.workspace().cast(), written),
            Self::BeforeWorkspace => write(execution.workspace().cast::<u8>().wrapping_sub(1), 1),
            Self::ChangesInput => {
                input.inspect(|b| write(b.start.wrapping_add(b.size - 1), 1));
            }
            Self::Gaps => {
                output.inspect(|b| b.fill_gaps());
            }
        }
    }
}

fn write(start: *mut u8, bytes: usize) {
    for i in 0..bytes {
        // SAFETY: none: the fault is that this memory is not ours. It runs in a worker process
        // whose parent put canaries and inaccessible pages there, and dies or is found out.
        unsafe { start.wrapping_add(i).write_volatile(MARK) };
    }
}

fn read(start: *const u8, bytes: usize) {
    for i in 0..bytes {
        // SAFETY: none, as in `write`.
        let byte = unsafe { start.wrapping_add(i).read_volatile() };
        READ.fetch_add(u64::from(byte), Ordering::Relaxed);
    }
}

/// A tensor's memory.
struct Buffer<'a> {
    tensor: &'a Tensor,
    start: *mut u8,
    size: usize,
}

impl<'a> Buffer<'a> {
    fn of(execution: &Execution<'_>, tensor: &'a Tensor) -> Option<Self> {
        Some(Self {
            tensor,
            start: execution.pointer(tensor.uid)?.cast(),
            size: tensor.byte_size().filter(|size| *size > 0)?,
        })
    }

    /// Byte offset of each element, in logical order.
    fn offsets(&self) -> Vec<usize> {
        let dims = extents(self.tensor);
        let width = self.width();
        (0..dims.iter().product())
            .map(|index| {
                let at = coordinates(&dims, index);
                let strides = &self.tensor.strides;
                at.iter()
                    .zip(strides)
                    .map(|(a, s)| a * *s as usize)
                    .sum::<usize>()
                    * width
            })
            .collect()
    }

    /// Byte offsets of the elements whose index does not fit in 32 bits.
    fn far(&self) -> impl Iterator<Item = usize> + use<> {
        let width = self.width();
        let offsets = self.offsets().into_iter();
        offsets.filter(move |at| u32::try_from(at / width).is_err())
    }

    fn width(&self) -> usize {
        self.tensor.data_type.size().unwrap_or(1)
    }

    /// An element's bytes.
    fn get(&self, offset: usize) -> Vec<u8> {
        // SAFETY: the host gave a buffer of the tensor's size, and an element lies within.
        unsafe { std::slice::from_raw_parts(self.start.add(offset), self.width()) }.to_vec()
    }

    fn bytes(&self) -> Vec<u8> {
        // SAFETY: the host gave a buffer of the tensor's size.
        unsafe { std::slice::from_raw_parts(self.start, self.size) }.to_vec()
    }

    fn put(&self, offset: usize, bytes: &[u8]) {
        // SAFETY: the host gave a buffer of the tensor's size, and an element lies within.
        unsafe {
            self.start
                .add(offset)
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
        };
    }

    fn fill_gaps(&self) {
        let width = self.width();
        let mut gap = vec![true; self.size];
        for offset in self.offsets() {
            gap[offset..offset + width].fill(false);
        }
        for (offset, _) in gap.iter().enumerate().filter(|(_, gap)| **gap) {
            self.put(offset, &[MARK]);
        }
    }
}

/// What the outputs held before, to put some of it back.
pub struct Before<'a> {
    buffers: Vec<(Buffer<'a>, Vec<u8>)>,
}

impl<'a> Before<'a> {
    /// Copies all outputs of a graph.
    pub fn of(execution: &Execution<'_>, graph: &'a Graph) -> Self {
        let buffers = graph.outputs().filter_map(|tensor| {
            let buffer = Buffer::of(execution, tensor)?;
            let bytes = buffer.bytes();
            Some((buffer, bytes))
        });
        Self {
            buffers: buffers.collect(),
        }
    }

    /// Makes it as if the elements for which `missing` holds had not been written.
    pub fn restore(&self, missing: fn(&Tensor, &[usize]) -> bool) {
        for (buffer, bytes) in &self.buffers {
            let dims = extents(buffer.tensor);
            let width = buffer.width();
            for (index, offset) in buffer.offsets().into_iter().enumerate() {
                if missing(buffer.tensor, &coordinates(&dims, index)) {
                    buffer.put(offset, &bytes[offset..offset + width]);
                }
            }
        }
    }
}

/// Elements of the outputs that an index of 32 bits does not reach, as they were before.
pub struct Far<'a> {
    buffers: Vec<(Buffer<'a>, Vec<Kept>)>,
}

/// An element's byte offset and what it held.
type Kept = (usize, Vec<u8>);

impl<'a> Far<'a> {
    /// Keeps them.
    pub fn of(execution: &Execution<'_>, graph: &'a Graph) -> Self {
        let buffers = graph.outputs().filter_map(|tensor| {
            let buffer = Buffer::of(execution, tensor)?;
            let far = buffer.far().map(|at| (at, buffer.get(at))).collect();
            Some((buffer, far))
        });
        Self {
            buffers: buffers.collect(),
        }
    }

    /// Makes it as if they had been written where their index, cut to 32 bits, points to.
    pub fn wrap(&self) {
        for (buffer, far) in &self.buffers {
            for (at, before) in far {
                let written = buffer.get(*at);
                buffer.put(*at, before);
                let width = buffer.width();
                buffer.put((at / width) as u32 as usize * width, &written);
            }
        }
    }
}

/// Nothing is written.
pub fn everything(_: &Tensor, _: &[usize]) -> bool {
    true
}

/// Images after the first are not written.
pub fn later_images(_: &Tensor, at: &[usize]) -> bool {
    at.first().is_some_and(|n| *n > 0)
}

/// The last element is not written.
pub fn last_element(tensor: &Tensor, at: &[usize]) -> bool {
    at.iter()
        .zip(extents(tensor))
        .all(|(at, dim)| at + 1 == dim)
}

/// The last row of every plane is not written.
pub fn last_row(tensor: &Tensor, at: &[usize]) -> bool {
    let dims = extents(tensor);
    at.len() > 2 && at[2] + 1 == dims[2]
}

/// A kernel that failed in its second half of the channels, and whose error nobody looked at.
pub fn second_half(tensor: &Tensor, at: &[usize]) -> bool {
    let dims = extents(tensor);
    at.len() > 1 && at[1] >= dims[1].div_ceil(2)
}

/// Outputs other than the first are forgotten.
pub fn side_outputs(tensor: &Tensor, _: &[usize]) -> bool {
    !matches!(tensor.name.as_str(), "y" | "dx" | "dw" | "out")
}
