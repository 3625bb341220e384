//! The parent's side of the shared memory: a memfd, accessed by position and never mapped.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};

use crate::layout::{BufferSpec, Layout, LayoutError, Residence, Slot};
use crate::poison::{Run, fill_canary};
use crate::snapshot::{Fill, Snapshot, check};
use crate::sparse;
use crate::view::ElementView;

/// Bytes moved per system call where a whole buffer need not be held.
pub(crate) const CHUNK: usize = 256 << 10;
/// Memory beyond this is given back between cases when the next case needs a quarter of it.
const KEEP: u64 = 64 << 20;

/// Why the arena cannot be prepared or read.
#[derive(Debug, thiserror::Error)]
pub enum ArenaError {
    /// The buffers cannot be laid out.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// No buffer with that uid was prepared.
    #[error("no buffer with uid {0} was prepared")]
    UnknownUid(i64),
    /// The contents do not have the buffer's length.
    #[error("buffer {uid} has {expected} bytes, {given} were given")]
    Length {
        /// The buffer.
        uid: i64,
        /// Its length in bytes.
        expected: u64,
        /// The length of the contents in bytes.
        given: u64,
    },
    /// A view reaches beyond its buffer, or has ranks that differ.
    #[error("the view of buffer {uid} does not fit in its {size} bytes")]
    View {
        /// The buffer.
        uid: i64,
        /// Its length in bytes.
        size: u64,
    },
    /// Two elements of a sparse buffer's view share a place.
    #[error("buffer {uid}: elements of a sparse view may not share a place")]
    Overlap {
        /// The buffer.
        uid: i64,
    },
    /// The system does not say where a file has data, so that no buffer can be sparse.
    #[error(
        "buffer {uid} of {size} bytes is mostly gap, and the system does not tell the holes of a memory file from data (SEEK_DATA)"
    )]
    NoHoles {
        /// The buffer.
        uid: i64,
        /// Its length in bytes.
        size: u64,
    },
    /// The file cannot be grown, written or read. The worker may have truncated it.
    #[error("shared memory: {0}")]
    Io(#[from] io::Error),
}

impl ArenaError {
    /// Whether it is the case that cannot be had here, and not memory that fails.
    pub fn is_of_the_case(&self) -> bool {
        matches!(self, Self::Layout(_) | Self::NoHoles { .. })
    }
}

impl From<rustix::io::Errno> for ArenaError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Io(error.into())
    }
}

/// What the parent put into a buffer, for the checks at the end.
#[derive(Debug)]
pub(crate) enum Contents {
    /// These bytes; the plugin must not change them.
    Written(Vec<u8>),
    /// These elements, without their gaps.
    Elements(ElementView, Vec<u8>),
    /// Poison.
    Poisoned(ElementView, Run),
    /// Nothing yet.
    Nothing,
}

/// Shared memory of one worker: inputs, outputs and canaries of the current case.
///
/// [`prepare`](Self::prepare), then [`write`](Self::write) or [`poison`](Self::poison) each
/// buffer, let the worker run, then [`snapshot`](Self::snapshot).
#[derive(Debug)]
pub struct Arena {
    file: File,
    len: u64,
    page: u64,
    layout: Layout,
    contents: Vec<Contents>,
}

impl Arena {
    /// An empty arena: a sealed-against-sealing memfd, close-on-exec.
    pub fn new() -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(rustix::fs::memfd_create("dnn-assay-arena", flags)?);
        rustix::fs::fcntl_add_seals(&file, SealFlags::SEAL)?;
        let page = rustix::param::page_size() as u64;
        let layout = Layout::compute(&[], page).map_err(io::Error::other)?;
        Ok(Self {
            file,
            len: 0,
            page,
            layout,
            contents: Vec::new(),
        })
    }

    /// The memfd, to be passed to the worker.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The layout of the current case.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The specifications of the current case, in order.
    pub fn specs(&self) -> Vec<BufferSpec> {
        self.layout.slots.iter().map(|s| s.spec.clone()).collect()
    }

    /// What the buffers of the current case hold, in order.
    pub fn fills(&self) -> Vec<Fill> {
        let of = |contents: &Contents| match contents {
            Contents::Poisoned(view, run) => Fill::Poison(view.clone(), *run),
            Contents::Written(_) | Contents::Elements(..) | Contents::Nothing => Fill::Bytes,
        };
        self.contents.iter().map(of).collect()
    }

    /// Lays out a case and writes all canaries. Buffers hold nothing defined until they are
    /// written or poisoned.
    pub fn prepare(&mut self, specs: &[BufferSpec]) -> Result<&Layout, ArenaError> {
        let layout = Layout::compute(specs, self.page)?;
        let sparse = layout.slots.iter().find(|slot| is_sparse(slot));
        let held = rustix::fs::fstat(&self.file)?.st_size as u64;
        // What is not written must be a hole.
        if sparse.is_some() || held > KEEP && held / 4 > layout.len {
            self.file.set_len(0)?;
        }
        // The worker grows the file for workspaces; never rely on an earlier length.
        let held = rustix::fs::fstat(&self.file)?.st_size as u64;
        if held < layout.len {
            self.file.set_len(layout.len)?;
        }
        if let Some(slot) = sparse
            && !sparse::tells_holes(&self.file)
        {
            let (uid, size) = (slot.spec.uid, slot.spec.size);
            return Err(ArenaError::NoHoles { uid, size });
        }
        self.len = layout.len;
        for slot in &layout.slots {
            write_canary(&self.file, slot.canary_before())?;
            write_canary(&self.file, slot.canary_after())?;
        }
        self.contents = layout.slots.iter().map(|_| Contents::Nothing).collect();
        self.layout = layout;
        Ok(&self.layout)
    }

    /// Writes all of an input. The bytes are kept: the snapshot compares them.
    pub fn write(&mut self, uid: i64, bytes: Vec<u8>) -> Result<(), ArenaError> {
        let index = self.index(uid)?;
        let slot = &self.layout.slots[index];
        let (expected, given) = (slot.spec.size, bytes.len() as u64);
        if expected != given {
            return Err(ArenaError::Length {
                uid,
                expected,
                given,
            });
        }
        self.file.write_all_at(&bytes, slot.bytes.start)?;
        self.contents[index] = Contents::Written(bytes);
        Ok(())
    }

    /// Writes the elements of a sparse input, given without gaps and in the order of memory; its
    /// gaps are holes, which read as zeros. The bytes are kept: the snapshot compares them.
    pub fn write_elements(
        &mut self,
        uid: i64,
        view: ElementView,
        bytes: Vec<u8>,
    ) -> Result<(), ArenaError> {
        let index = self.index(uid)?;
        let slot = &self.layout.slots[index];
        fits(slot, &view)?;
        let stretches = view.stretches();
        let expected = stretches
            .iter()
            .map(|stretch| stretch.end - stretch.start)
            .sum();
        if stretches.is_empty() {
            return Err(ArenaError::Overlap { uid });
        }
        let given = bytes.len() as u64;
        if expected != given {
            return Err(ArenaError::Length {
                uid,
                expected,
                given,
            });
        }
        sparse::write_elements(&self.file, slot, &view, &bytes)?;
        self.contents[index] = Contents::Elements(view, bytes);
        Ok(())
    }

    /// Poisons all of an output, gaps included; of a sparse one its elements and what is watched
    /// around them. `view` says where its elements lie.
    pub fn poison(&mut self, uid: i64, view: ElementView, run: Run) -> Result<(), ArenaError> {
        let index = self.index(uid)?;
        let slot = &self.layout.slots[index];
        let size = slot.spec.size;
        fits(slot, &view)?;
        if is_sparse(slot) {
            if view.stretches().is_empty() {
                return Err(ArenaError::Overlap { uid });
            }
            sparse::poison(&self.file, slot, &view, run)?;
            self.contents[index] = Contents::Poisoned(view, run);
            return Ok(());
        }
        let mut chunk = vec![0; CHUNK.min(size as usize)];
        view.element.poison(run).fill(&mut chunk);
        let mut at = 0;
        while at < size {
            let n = (size - at).min(CHUNK as u64);
            self.file
                .write_all_at(&chunk[..n as usize], slot.bytes.start + at)?;
            at += n;
        }
        self.contents[index] = Contents::Poisoned(view, run);
        Ok(())
    }

    /// Copies the outputs and checks everything the plugin must not have touched.
    /// `workspace` is `(size, alignment)` as the plan reported and the case asked for.
    pub fn snapshot(&self, workspace: Option<(u64, u64)>) -> Result<Snapshot, ArenaError> {
        let with;
        let layout = match workspace {
            Some((size, align)) => {
                with = self.layout.with_workspace(size, align)?;
                &with
            }
            None => &self.layout,
        };
        let mut buffers = Vec::with_capacity(layout.slots.len());
        for (i, slot) in layout.slots.iter().enumerate() {
            let contents = self.contents.get(i).unwrap_or(&Contents::Nothing);
            buffers.push(check(&self.file, slot, contents)?);
        }
        let workspace = workspace.and_then(|_| buffers.pop());
        Ok(Snapshot {
            buffers,
            workspace,
            notes: Vec::new(),
        })
    }

    /// Gives all memory back to the system; the next case prepares anew.
    pub fn discard(&mut self) -> io::Result<()> {
        let len = rustix::fs::fstat(&self.file)?.st_size as u64;
        if len > 0 {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            rustix::fs::fallocate(&self.file, flags, 0, len)?;
        }
        self.contents.fill_with(|| Contents::Nothing);
        Ok(())
    }

    fn index(&self, uid: i64) -> Result<usize, ArenaError> {
        let slots = &self.layout.slots;
        slots
            .iter()
            .position(|slot| slot.spec.uid == uid)
            .ok_or(ArenaError::UnknownUid(uid))
    }
}

fn is_sparse(slot: &Slot) -> bool {
    slot.spec.residence == Residence::Elements
}

fn fits(slot: &Slot, view: &ElementView) -> Result<(), ArenaError> {
    let (uid, size) = (slot.spec.uid, slot.spec.size);
    match view.fits(size) {
        true => Ok(()),
        false => Err(ArenaError::View { uid, size }),
    }
}

fn write_canary(file: &File, range: std::ops::Range<u64>) -> io::Result<()> {
    let mut chunk = [0; 4096];
    let mut at = range.start;
    while at < range.end {
        let n = (range.end - at).min(chunk.len() as u64) as usize;
        fill_canary(at, &mut chunk[..n]);
        file.write_all_at(&chunk[..n], at)?;
        at += n as u64;
    }
    Ok(())
}
