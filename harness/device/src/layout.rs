//! Where the buffers of a case lie in the arena: a pure function of their specifications.
//!
//! The arena is a sequence of page-aligned regions with inaccessible guards between them:
//!
//! ```text
//! guard | canary  buffer  slack canary | guard | buffer  canary | guard | workspace region | guard
//!         `------- region (End) ------'         `region (Start)'
//! ```
//!
//! With [`Placement::End`] the buffer ends as close to the guard behind it as its alignment
//! allows; the slack is shorter than the alignment and holds a canary. With
//! [`Placement::Start`] the buffer starts right behind the guard before it.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Alignment of a tensor that declares none, in bytes.
pub const DEFAULT_ALIGNMENT: u64 = 16;
/// Alignment of a workspace, in bytes.
pub const WORKSPACE_ALIGNMENT: u64 = 256;
/// The largest alignment that a buffer may ask for: a huge page.
pub const MAX_ALIGNMENT: u64 = 2 << 20;
/// Length of one guard, in bytes: a hole in the file, address space only. Wider than a page, so
/// that an index that is off by a row or so does not jump over it.
pub const GUARD_BYTES: u64 = 64 << 10;
/// The uid under which a layout holds the workspace; no tensor of a valid graph has it.
pub const WORKSPACE_UID: i64 = i64::MIN;

/// Which end of a buffer touches inaccessible memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Placement {
    /// Accesses past the end fault (beyond the alignment slack, which holds a canary).
    #[default]
    End,
    /// Accesses before the start fault; a canary lies behind the end.
    Start,
    /// A page of canary or more on both sides: for devices whose memory has no inaccessible
    /// pages. The start is aligned as declared and, below a page, no better.
    Middle,
}

/// What a buffer is to the plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    /// Read only by contract; the parent finds changes.
    Input,
    /// To be written.
    Output,
    /// A value passed at run time through a host pointer, whatever the memory kind.
    HostScalar,
    /// Scratch memory of a plan.
    Workspace,
}

/// How much of a buffer is memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Residence {
    /// All of it.
    #[default]
    Whole,
    /// Its elements and what is watched around them; the rest is a hole in the file, which reads
    /// as zeros.
    Elements,
}

/// One buffer of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferSpec {
    /// The tensor's uid.
    pub uid: i64,
    /// Length in bytes.
    pub size: u64,
    /// Alignment of the first byte: a power of two up to [`MAX_ALIGNMENT`].
    pub align: u64,
    /// Which end is guarded by a fault.
    pub placement: Placement,
    /// What it is to the plugin.
    pub role: Role,
    /// How much of it is memory.
    pub residence: Residence,
}

impl BufferSpec {
    /// A buffer with the default alignment, guarded at its end.
    pub fn new(uid: i64, size: u64, role: Role) -> Self {
        Self {
            uid,
            size,
            align: DEFAULT_ALIGNMENT,
            placement: Placement::End,
            role,
            residence: Residence::Whole,
        }
    }
}

/// A buffer's place. Offsets are bytes from the start of the arena.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// What was asked for.
    pub spec: BufferSpec,
    /// The accessible pages: canary, buffer, canary.
    pub region: Range<u64>,
    /// The buffer itself.
    pub bytes: Range<u64>,
}

impl Slot {
    /// Accessible bytes before the buffer; they hold a canary.
    pub fn canary_before(&self) -> Range<u64> {
        self.region.start..self.bytes.start
    }

    /// Accessible bytes behind the buffer; they hold a canary.
    pub fn canary_after(&self) -> Range<u64> {
        self.bytes.end..self.region.end
    }
}

/// Why no layout can be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Not a power of two, or beyond [`MAX_ALIGNMENT`].
    #[error("buffer {uid}: alignment {align} is not a power of two up to {MAX_ALIGNMENT}")]
    Alignment {
        /// The buffer.
        uid: i64,
        /// What it asked for.
        align: u64,
    },
    /// Two buffers with one uid.
    #[error("buffer {uid} is given twice")]
    Duplicate {
        /// The uid.
        uid: i64,
    },
    /// The buffers do not fit in 2^63 bytes.
    #[error("buffer {uid}: {size} bytes do not fit in the arena")]
    TooLarge {
        /// The first buffer that does not fit.
        uid: i64,
        /// Its size.
        size: u64,
    },
}

/// The places of all buffers of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// One slot per buffer, in the order given; a workspace comes last.
    pub slots: Vec<Slot>,
    /// Inaccessible ranges, in ascending order.
    pub guards: Vec<Range<u64>>,
    /// Length of the arena in bytes, the last guard included.
    pub len: u64,
    page: u64,
}

impl Layout {
    /// Lays out `specs` with pages of `page` bytes (a power of two).
    pub fn compute(specs: &[BufferSpec], page: u64) -> Result<Self, LayoutError> {
        let guard = GUARD_BYTES.max(page);
        let mut layout = Self {
            slots: Vec::with_capacity(specs.len() + 1),
            guards: Vec::with_capacity(specs.len() + 2),
            len: guard,
            page,
        };
        layout.guards.push(0..guard);
        for spec in specs {
            layout.push(spec)?;
        }
        Ok(layout)
    }

    /// The same layout with a workspace of `size` bytes behind the last guard. Nothing that was
    /// laid out before moves.
    pub fn with_workspace(&self, size: u64, align: u64) -> Result<Self, LayoutError> {
        let mut layout = self.clone();
        layout.push(&BufferSpec {
            uid: WORKSPACE_UID,
            size,
            align,
            placement: self.workspace_placement(),
            role: Role::Workspace,
            residence: Residence::Whole,
        })?;
        Ok(layout)
    }

    /// Where the buffers have canaries on both sides, a workspace has them too.
    fn workspace_placement(&self) -> Placement {
        let middle = |slot: &Slot| slot.spec.placement == Placement::Middle;
        if self.slots.iter().any(middle) {
            Placement::Middle
        } else {
            Placement::End
        }
    }

    /// The slot of `uid`.
    pub fn slot(&self, uid: i64) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.spec.uid == uid)
    }

    fn push(&mut self, spec: &BufferSpec) -> Result<(), LayoutError> {
        let (uid, size, align) = (spec.uid, spec.size, spec.align);
        if !align.is_power_of_two() || align > MAX_ALIGNMENT {
            return Err(LayoutError::Alignment { uid, align });
        }
        if self.slot(uid).is_some() {
            return Err(LayoutError::Duplicate { uid });
        }
        let slot = self
            .place(spec)
            .ok_or(LayoutError::TooLarge { uid, size })?;
        // A large alignment leaves a hole behind the last guard: it belongs to that guard.
        if let Some(last) = self.guards.last_mut() {
            last.end = slot.region.start;
        }
        let guard = GUARD_BYTES.max(self.page);
        self.guards.push(slot.region.end..slot.region.end + guard);
        self.len = slot.region.end + guard;
        self.slots.push(slot);
        Ok(())
    }

    /// `None` if an offset would leave the range of `i64`.
    fn place(&self, spec: &BufferSpec) -> Option<Slot> {
        const LIMIT: u64 = 1 << 62;
        let (size, align, page) = (spec.size, spec.align, self.page);
        if size > LIMIT || self.len > LIMIT {
            return None;
        }
        let (region, start) = match spec.placement {
            Placement::Start => {
                let start = self.len.next_multiple_of(align.max(page));
                let end = (start + size.max(1)).next_multiple_of(page);
                (start..end, start)
            }
            Placement::Middle => {
                let shift = if align < page { align } else { 0 };
                let start = (self.len + page).next_multiple_of(align.max(page)) + shift;
                let end = (start + size.max(1)).next_multiple_of(page) + page;
                (start / page * page - page..end, start)
            }
            Placement::End => {
                // The least end (a page border) that leaves an aligned start in the region.
                let least = self.len.next_multiple_of(align);
                let end = (least + size.max(1)).next_multiple_of(page);
                let start = (end - size) / align * align;
                (start.min(end - 1) / page * page..end, start)
            }
        };
        Some(Slot {
            spec: spec.clone(),
            region,
            bytes: start..start + size,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGE: u64 = 4096;

    fn spec(uid: i64, size: u64, align: u64, placement: Placement) -> BufferSpec {
        BufferSpec {
            uid,
            size,
            align,
            placement,
            role: Role::Input,
            residence: Residence::Whole,
        }
    }

    #[test]
    fn the_end_is_flush_when_the_size_allows() {
        let layout = Layout::compute(&[spec(1, 64, 16, Placement::End)], PAGE).unwrap();
        let slot = &layout.slots[0];
        assert_eq!(slot.bytes.end, slot.region.end);
        assert_eq!(slot.region.end, layout.guards[1].start);
        assert_eq!(slot.canary_before().end - slot.canary_before().start, 4032);
    }

    #[test]
    fn slack_is_shorter_than_the_alignment() {
        let layout = Layout::compute(&[spec(1, 70, 16, Placement::End)], PAGE).unwrap();
        let slack = layout.slots[0].canary_after();
        assert_eq!(slack.end - slack.start, 10);
    }

    #[test]
    fn start_touches_the_guard_before() {
        let layout = Layout::compute(&[spec(1, 70, 16, Placement::Start)], PAGE).unwrap();
        assert_eq!(layout.slots[0].bytes.start, layout.guards[0].end);
    }

    #[test]
    fn a_workspace_moves_nothing() {
        let small = Layout::compute(&[spec(1, 70, 16, Placement::End)], PAGE).unwrap();
        let large = small.with_workspace(1000, WORKSPACE_ALIGNMENT).unwrap();
        assert_eq!(large.slots[..1], small.slots[..]);
        let slot = large.slot(WORKSPACE_UID).unwrap();
        assert_eq!(slot.bytes.start % WORKSPACE_ALIGNMENT, 0);
    }

    #[test]
    fn refusals() {
        let of = |specs: &[BufferSpec]| Layout::compute(specs, PAGE).unwrap_err();
        assert_eq!(
            of(&[spec(1, 8, 24, Placement::End)]),
            LayoutError::Alignment { uid: 1, align: 24 }
        );
        let twice = [spec(1, 8, 8, Placement::End), spec(1, 8, 8, Placement::End)];
        assert_eq!(of(&twice), LayoutError::Duplicate { uid: 1 });
        let huge = 1 << 63;
        assert_eq!(
            of(&[spec(1, huge, 8, Placement::End)]),
            LayoutError::TooLarge { uid: 1, size: huge }
        );
    }

    proptest! {
        #[test]
        fn layouts_are_sound(
            buffers in prop::collection::vec((0u64..3 * PAGE, 0u32..=21, 0u8..3), 0..6),
            workspace in 0u64..3 * PAGE,
        ) {
            let specs: Vec<_> = buffers.iter().enumerate().map(|(i, &(size, shift, which))| {
                let all = [Placement::End, Placement::Start, Placement::Middle];
                let placement = all[usize::from(which)];
                spec(i as i64, size, 1 << shift, placement)
            }).collect();
            let layout = Layout::compute(&specs, PAGE).unwrap().with_workspace(workspace, 256).unwrap();
            prop_assert_eq!(layout.guards.len(), layout.slots.len() + 1);
            for (i, slot) in layout.slots.iter().enumerate() {
                prop_assert_eq!(slot.bytes.start % slot.spec.align, 0);
                prop_assert_eq!(slot.bytes.end - slot.bytes.start, slot.spec.size);
                prop_assert!(slot.region.start <= slot.bytes.start && slot.bytes.end <= slot.region.end);
                prop_assert_eq!(layout.guards[i].end, slot.region.start);
                prop_assert_eq!(layout.guards[i + 1].start, slot.region.end);
                let slack = slot.region.end - slot.bytes.end;
                match slot.spec.placement {
                    Placement::End => prop_assert!(slack < slot.spec.align.max(2)),
                    Placement::Start => prop_assert_eq!(slot.bytes.start, slot.region.start),
                    Placement::Middle => {
                        let before = slot.bytes.start - slot.region.start;
                        prop_assert!(before >= PAGE && slack >= PAGE, "{before} {slack}");
                    }
                }
            }
            for guard in &layout.guards {
                prop_assert!(guard.end - guard.start >= GUARD_BYTES);
                prop_assert_eq!(guard.start % PAGE, 0);
            }
            prop_assert_eq!(layout.guards.last().unwrap().end, layout.len);
        }
    }
}
