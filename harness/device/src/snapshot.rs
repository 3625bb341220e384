//! What a case left behind, checked on a copy taken when it ended.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

use crate::arena::{ArenaError, CHUNK, Contents};
use crate::layout::{Residence, Role, Slot};
use crate::poison::{Run, canary_byte};
use crate::sparse;
use crate::view::ElementView;

/// What a buffer holds before the plugin gets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fill {
    /// What the arena holds.
    Bytes,
    /// Poison, in and between the elements of a view.
    Poison(ElementView, Run),
    /// `0xFF` in every byte: a workspace.
    Scratch,
}

/// Bytes that a device found touched, relative to a buffer's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The first.
    pub first: i64,
    /// The last.
    pub last: i64,
    /// How many.
    pub count: u64,
}

/// What a device saw of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputCheck {
    /// Elements that still hold their poison.
    pub unwritten: u64,
    /// The first of them, as a logical row-major index.
    pub first_unwritten: Option<u64>,
    /// Touched bytes between the elements.
    pub gaps: Option<Span>,
}

/// What a device saw of one buffer when the case had ended, before anything was copied back. Where
/// it saw damage, the whole region was copied back after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCheck {
    /// The buffer.
    pub uid: i64,
    /// The canary before it.
    pub before: Option<Span>,
    /// The canary behind it.
    pub after: Option<Span>,
    /// An input that is not what was copied in.
    pub changed: bool,
    /// An output; `None` where the device cannot tell elements from gaps.
    pub output: Option<OutputCheck>,
}

impl DeviceCheck {
    /// Nothing was touched that must not be.
    pub fn is_intact(&self) -> bool {
        self.before.is_none()
            && self.after.is_none()
            && !self.changed
            && self.output.is_none_or(|output| output.gaps.is_none())
    }
}

/// Bytes that changed although nobody may change them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The first changed byte, relative to the buffer's first byte: negative before it, at
    /// least the buffer's size behind it.
    pub first: i64,
    /// The last changed byte, in the same measure.
    pub last: i64,
    /// How many bytes changed.
    pub count: u64,
    /// Up to 16 bytes from `first` on, as found.
    pub found: Vec<u8>,
}

impl Damage {
    /// Damage of which no bytes are at hand.
    fn of(span: Span) -> Self {
        Self {
            first: span.first,
            last: span.last,
            count: span.count,
            found: Vec::new(),
        }
    }
}

/// The state of one buffer after a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferCheck {
    /// The buffer.
    pub uid: i64,
    /// What it is to the plugin.
    pub role: Role,
    /// Damage to the canary before the buffer.
    pub canary_before: Option<Damage>,
    /// Damage to the canary behind the buffer.
    pub canary_after: Option<Damage>,
    /// Changed bytes of an input or a host scalar.
    pub changed: Option<Damage>,
    /// Written bytes between the elements of an output.
    pub gaps: Option<Damage>,
    /// Elements of an output that still hold their poison.
    pub unwritten: u64,
    /// The first such element, as a logical row-major index.
    pub first_unwritten: Option<u64>,
    /// A copy of an output's bytes, gaps included, but for a sparse one: its elements alone, in the
    /// order of memory. Empty for other roles.
    pub bytes: Vec<u8>,
}

impl BufferCheck {
    /// A buffer that nothing happened to, with a copy of its bytes.
    pub fn intact(uid: i64, role: Role, bytes: Vec<u8>) -> Self {
        Self {
            uid,
            role,
            canary_before: None,
            canary_after: None,
            changed: None,
            gaps: None,
            unwritten: 0,
            first_unwritten: None,
            bytes,
        }
    }

    /// Nothing was touched that must not be. Unwritten elements do not count: they may hold
    /// their poison by chance.
    pub fn is_intact(&self) -> bool {
        self.canary_before.is_none()
            && self.canary_after.is_none()
            && self.changed.is_none()
            && self.gaps.is_none()
    }
}

impl BufferCheck {
    /// Adds what the device saw of this buffer; returns what differs from the copy.
    fn add(&mut self, seen: &DeviceCheck) -> Vec<String> {
        let mut notes = Vec::new();
        let uid = self.uid;
        let mut differ = |what: &str, device: u64, copy: u64| {
            if device != copy {
                notes.push(format!(
                    "tensor {uid}: {device} {what} on the device when its stream was idle, {copy} \
                     in the copy: something wrote in between"
                ));
            }
        };
        let touched = |damage: &Option<Damage>| damage.as_ref().map_or(0, |d| d.count);
        let gaps = seen.output.map(|output| output.gaps);
        for (what, here, there) in [
            (
                "touched bytes before it",
                &mut self.canary_before,
                Some(seen.before),
            ),
            (
                "touched bytes behind it",
                &mut self.canary_after,
                Some(seen.after),
            ),
            ("touched bytes in its gaps", &mut self.gaps, gaps),
        ] {
            let Some(there) = there else { continue };
            differ(what, there.map_or(0, |span| span.count), touched(here));
            if here.is_none() {
                *here = there.map(Damage::of);
            }
        }
        if let Some(output) = seen.output {
            differ("unwritten elements", output.unwritten, self.unwritten);
        }
        if seen.changed && self.changed.is_none() {
            notes.push(format!(
                "tensor {uid}: an input that differed from what was copied in when its stream was \
                 idle, and did not in the copy: something wrote in between"
            ));
        }
        notes
    }
}

/// All buffers after a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// One check per prepared buffer, in order.
    pub buffers: Vec<BufferCheck>,
    /// The workspace's canaries, where a plan had one.
    pub workspace: Option<BufferCheck>,
    /// Where a device and the copies from it disagree: something wrote between the two.
    pub notes: Vec<String>,
}

impl Snapshot {
    /// The check of buffer `uid`.
    pub fn buffer(&self, uid: i64) -> Option<&BufferCheck> {
        self.buffers.iter().find(|check| check.uid == uid)
    }

    /// Adds what a device saw. The bytes that came back decide; damage that only the device saw
    /// is damage too, and whatever differs is noted.
    pub fn add(&mut self, checks: &[DeviceCheck]) {
        for seen in checks {
            let buffers = self.buffers.iter_mut().chain(&mut self.workspace);
            if let Some(buffer) = buffers.into_iter().find(|b| b.uid == seen.uid) {
                self.notes.extend(buffer.add(seen));
            }
        }
    }

    /// Nothing was touched that must not be.
    pub fn is_intact(&self) -> bool {
        self.buffers
            .iter()
            .chain(&self.workspace)
            .all(BufferCheck::is_intact)
    }
}

/// Collects changed bytes into one [`Damage`].
pub(crate) struct Differences {
    origin: u64,
    pub(crate) damage: Option<Damage>,
}

impl Differences {
    pub(crate) fn new(slot: &Slot) -> Self {
        Self {
            origin: slot.bytes.start,
            damage: None,
        }
    }

    fn add(&mut self, offset: u64, rest: &[u8]) {
        let at = offset.wrapping_sub(self.origin) as i64;
        let damage = self.damage.get_or_insert_with(|| Damage {
            first: at,
            last: at,
            count: 0,
            found: rest[..rest.len().min(16)].to_vec(),
        });
        damage.last = at;
        damage.count += 1;
    }

    /// Adds the bytes of `found`, which lie at `offset`, that differ from `expected`.
    pub(crate) fn compare(&mut self, offset: u64, found: &[u8], expected: &[u8]) {
        if found == expected {
            return;
        }
        for (i, (byte, want)) in found.iter().zip(expected).enumerate() {
            if byte != want {
                self.add(offset + i as u64, &found[i..]);
            }
        }
    }
}

pub(crate) fn check(
    file: &File,
    slot: &Slot,
    contents: &Contents,
) -> Result<BufferCheck, ArenaError> {
    let mut result = BufferCheck {
        uid: slot.spec.uid,
        role: slot.spec.role,
        canary_before: canary(file, slot, slot.canary_before())?,
        canary_after: canary(file, slot, slot.canary_after())?,
        changed: None,
        gaps: None,
        unwritten: 0,
        first_unwritten: None,
        bytes: Vec::new(),
    };
    match contents {
        Contents::Written(bytes) => result.changed = changed(file, slot, bytes)?,
        Contents::Elements(view, bytes) => {
            result.changed = sparse::changed(file, slot, view, bytes)?;
        }
        Contents::Poisoned(view, run) if slot.spec.residence == Residence::Elements => {
            let bytes = sparse::elements(file, slot, view)?;
            count_unwritten(&mut result, &bytes, &view.without_gaps(), *run);
            result.gaps = sparse::gaps(file, slot, view, *run)?;
            result.bytes = bytes;
        }
        Contents::Poisoned(view, run) => {
            let mut bytes = vec![0; slot.spec.size as usize];
            file.read_exact_at(&mut bytes, slot.bytes.start)?;
            check_output(&mut result, slot, &bytes, view, *run);
            result.bytes = bytes;
        }
        Contents::Nothing => {}
    }
    Ok(result)
}

fn canary(file: &File, slot: &Slot, range: std::ops::Range<u64>) -> io::Result<Option<Damage>> {
    let mut found = vec![0; (range.end - range.start) as usize];
    file.read_exact_at(&mut found, range.start)?;
    let mut differences = Differences::new(slot);
    for (i, byte) in found.iter().enumerate() {
        let at = range.start + i as u64;
        if *byte != canary_byte(at) {
            differences.add(at, &found[i..]);
        }
    }
    Ok(differences.damage)
}

fn changed(file: &File, slot: &Slot, written: &[u8]) -> io::Result<Option<Damage>> {
    let mut found = vec![0; CHUNK.min(written.len())];
    let mut differences = Differences::new(slot);
    for (i, expected) in written.chunks(CHUNK).enumerate() {
        let at = slot.bytes.start + (i * CHUNK) as u64;
        let found = &mut found[..expected.len()];
        file.read_exact_at(found, at)?;
        differences.compare(at, found, expected);
    }
    Ok(differences.damage)
}

fn check_output(result: &mut BufferCheck, slot: &Slot, bytes: &[u8], view: &ElementView, run: Run) {
    count_unwritten(result, bytes, view, run);
    let own = view.has_places_of_its_own();
    if own && view.is_dense(slot.spec.size) {
        return;
    }
    let pattern = view.element.poison(run);
    let gaps = Gaps {
        slot,
        bytes,
        poison: pattern.bytes(),
        found: Differences::new(slot),
    };
    result.gaps = if own {
        gaps.between(view)
    } else {
        gaps.beside(view)
    };
}

/// The search for what was written between the elements of a view.
struct Gaps<'a> {
    slot: &'a Slot,
    bytes: &'a [u8],
    poison: &'a [u8],
    found: Differences,
}

impl Gaps<'_> {
    /// Of elements with places of their own: one pass in the order of memory.
    fn between(mut self, view: &ElementView) -> Option<Damage> {
        let mut end = 0;
        view.for_each_in_memory(|at, _| {
            self.compare(end..at as usize);
            end = at as usize + self.poison.len();
        });
        self.compare(end..self.bytes.len());
        self.found.damage
    }

    /// Of elements that may share places: they are marked first.
    fn beside(mut self, view: &ElementView) -> Option<Damage> {
        let size = self.poison.len();
        let mut covered = vec![false; self.bytes.len().div_ceil(size)];
        view.for_each_in_memory(|at, _| covered[at as usize / size] = true);
        for (i, _) in covered.iter().enumerate().filter(|(_, covered)| !**covered) {
            self.compare(i * size..((i + 1) * size).min(self.bytes.len()));
        }
        self.found.damage
    }

    /// Compares the elements of a gap, which starts at a multiple of their size, with the poison.
    fn compare(&mut self, gap: std::ops::Range<usize>) {
        for start in gap.clone().step_by(self.poison.len()) {
            let found = &self.bytes[start..gap.end.min(start + self.poison.len())];
            let at = self.slot.bytes.start + start as u64;
            self.found.compare(at, found, &self.poison[..found.len()]);
        }
    }
}

/// Elements that hold their poison; the first by its logical index.
fn count_unwritten(result: &mut BufferCheck, bytes: &[u8], view: &ElementView, run: Run) {
    let pattern = view.element.poison(run);
    let poison = pattern.bytes();
    if view.is_dense(bytes.len() as u64) && view.has_places_of_its_own() {
        let (count, first) = count_packed(bytes, poison);
        if count == 0 || view.is_row_major() {
            (result.unwritten, result.first_unwritten) = (count, first);
            return;
        }
    }
    let mut first = None;
    view.for_each_in_memory(|at, index| {
        if bytes[at as usize..].starts_with(poison) {
            result.unwritten += 1;
            first = Some(first.map_or(index, |first: u64| first.min(index)));
        }
    });
    result.first_unwritten = first;
}

/// How many elements of a packed buffer equal `poison`, and the first of them.
fn count_packed(bytes: &[u8], poison: &[u8]) -> (u64, Option<u64>) {
    /// A fixed size, so that the comparison is one instruction and the loop vectorises.
    fn count<const N: usize>(bytes: &[u8], poison: &[u8]) -> (u64, Option<u64>) {
        let Some(&poison) = poison.first_chunk::<N>() else {
            return (0, None);
        };
        let (elements, _) = bytes.as_chunks::<N>();
        match elements
            .iter()
            .filter(|element| **element == poison)
            .count()
        {
            0 => (0, None),
            count => {
                let first = elements.iter().position(|element| *element == poison);
                (count as u64, first.map(|index| index as u64))
            }
        }
    }
    match poison.len() {
        1 => count::<1>(bytes, poison),
        2 => count::<2>(bytes, poison),
        4 => count::<4>(bytes, poison),
        _ => count::<8>(bytes, poison),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use crate::layout::{BufferSpec, Placement};
    use crate::poison::Element;

    const X: i64 = 1;
    const Y: i64 = 2;

    fn strided() -> ElementView {
        ElementView {
            element: Element::F32,
            dims: vec![2, 3],
            strides: vec![4, 1],
        }
    }

    /// An arena with a written input of 60 bytes and a poisoned strided output of 28 bytes.
    fn arena(placement: Placement) -> Arena {
        let mut arena = Arena::new().unwrap();
        let mut specs = [
            BufferSpec::new(X, 60, Role::Input),
            BufferSpec::new(Y, 28, Role::Output),
        ];
        for spec in &mut specs {
            spec.placement = placement;
        }
        arena.prepare(&specs).unwrap();
        arena.write(X, (0..60).collect()).unwrap();
        arena.poison(Y, strided(), Run::First).unwrap();
        arena
    }

    fn poke(arena: &Arena, uid: i64, offset: i64, bytes: &[u8]) {
        let start = arena.layout().slot(uid).unwrap().bytes.start as i64;
        let file = File::from(arena.descriptor().try_clone_to_owned().unwrap());
        file.write_all_at(bytes, (start + offset) as u64).unwrap();
    }

    #[test]
    fn an_untouched_output_is_unwritten_and_intact() {
        let snapshot = arena(Placement::End).snapshot(None).unwrap();
        assert!(snapshot.is_intact());
        let output = snapshot.buffer(Y).unwrap();
        assert_eq!((output.unwritten, output.first_unwritten), (6, Some(0)));
        assert_eq!(output.bytes.len(), 28);
    }

    #[test]
    fn written_elements_are_not_gaps() {
        let arena = arena(Placement::Start);
        poke(&arena, Y, 0, &[0; 12]);
        poke(&arena, Y, 16, &[0; 8]);
        let snapshot = arena.snapshot(None).unwrap();
        let output = snapshot.buffer(Y).unwrap();
        assert!(output.is_intact());
        assert_eq!((output.unwritten, output.first_unwritten), (1, Some(5)));
    }

    #[test]
    fn a_written_gap_is_damage() {
        let arena = arena(Placement::End);
        poke(&arena, Y, 12, &[7; 4]);
        let snapshot = arena.snapshot(None).unwrap();
        let gaps = snapshot.buffer(Y).unwrap().gaps.clone().unwrap();
        assert_eq!((gaps.first, gaps.last, gaps.count), (12, 15, 4));
        assert_eq!(
            gaps.found,
            [vec![7; 4], [0xA1, 0xA5, 0xE5, 0x7F].repeat(3)].concat()[..gaps.found.len()]
        );
    }

    #[test]
    fn changed_inputs_and_canaries_are_placed() {
        for placement in [Placement::End, Placement::Start] {
            let arena = arena(placement);
            poke(&arena, X, 59, &[0xEE, 0xFF]);
            let snapshot = arena.snapshot(None).unwrap();
            let input = snapshot.buffer(X).unwrap();
            let changed = input.changed.as_ref().unwrap();
            assert_eq!((changed.first, changed.count), (59, 1));
            let after = input.canary_after.as_ref().unwrap();
            assert_eq!((after.first, after.found[0]), (60, 0xFF));
            assert!(input.canary_before.is_none());
        }
        let arena = arena(Placement::End);
        poke(&arena, Y, -1, &[0]);
        let snapshot = arena.snapshot(None).unwrap();
        let before = snapshot.buffer(Y).unwrap().canary_before.clone().unwrap();
        assert_eq!((before.first, before.count), (-1, 1));
    }

    #[test]
    fn a_truncated_file_is_an_error() {
        let arena = arena(Placement::End);
        let file = File::from(arena.descriptor().try_clone_to_owned().unwrap());
        file.set_len(4096).unwrap();
        assert!(matches!(arena.snapshot(None), Err(ArenaError::Io(_))));
    }

    #[test]
    fn views_are_checked() {
        let mut arena = arena(Placement::End);
        let mut view = strided();
        view.strides[0] = 5;
        let error = arena.poison(Y, view, Run::First).unwrap_err();
        assert!(matches!(error, ArenaError::View { uid: Y, size: 28 }));
        assert!(matches!(
            arena.write(X, vec![0]),
            Err(ArenaError::Length { .. })
        ));
        assert!(matches!(
            arena.write(9, vec![0]),
            Err(ArenaError::UnknownUid(9))
        ));
    }

    #[test]
    fn permuted_dense_views_have_no_gaps_and_logical_indices() {
        let mut arena = Arena::new().unwrap();
        arena
            .prepare(&[BufferSpec::new(Y, 24, Role::Output)])
            .unwrap();
        let view = ElementView {
            element: Element::F32,
            dims: vec![2, 3],
            strides: vec![1, 2],
        };
        arena.poison(Y, view, Run::Second).unwrap();
        poke(&arena, Y, 0, &[0; 4]);
        let snapshot = arena.snapshot(None).unwrap();
        let output = snapshot.buffer(Y).unwrap();
        assert!(output.gaps.is_none());
        assert_eq!((output.unwritten, output.first_unwritten), (5, Some(1)));
    }
}
