//! Buffers that are mostly gap: only their elements and what lies around them are memory, the rest
//! is a hole in the file. A write into a hole makes it data, which the file system tells.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::arena::CHUNK;
use crate::layout::Slot;
use crate::poison::{Pattern, Run};
use crate::snapshot::{Damage, Differences};
use crate::view::ElementView;

/// Whether the system tells holes of an empty `file` from data. One that does not says that all of
/// it is data.
pub(crate) fn tells_holes(file: &File) -> bool {
    matches!(rustix::fs::seek(file, SeekFrom::Data(0)), Err(Errno::NXIO))
}

/// Writes the elements of a buffer: `bytes` holds them without gaps, in the order of memory.
pub(crate) fn write_elements(
    file: &File,
    slot: &Slot,
    view: &ElementView,
    bytes: &[u8],
) -> io::Result<()> {
    let mut rest = bytes;
    for stretch in view.stretches() {
        let (now, later) = rest.split_at(length(&stretch));
        file.write_all_at(now, slot.bytes.start + stretch.start)?;
        rest = later;
    }
    Ok(())
}

/// Poisons the elements of a buffer and what is watched around them.
pub(crate) fn poison(file: &File, slot: &Slot, view: &ElementView, run: Run) -> io::Result<()> {
    let pattern = view.element.poison(run);
    for range in view.watched(slot.spec.size) {
        for part in parts(range) {
            let mut chunk = vec![0; length(&part)];
            fill_from(pattern, part.start, &mut chunk);
            file.write_all_at(&chunk, slot.bytes.start + part.start)?;
        }
    }
    Ok(())
}

/// The elements of a buffer without gaps, in the order of memory.
pub(crate) fn elements(file: &File, slot: &Slot, view: &ElementView) -> io::Result<Vec<u8>> {
    let stretches = view.stretches();
    let total: u64 = stretches.iter().map(|s| s.end - s.start).sum();
    let mut bytes = vec![0; total as usize];
    let mut rest = &mut bytes[..];
    for stretch in &stretches {
        let (now, later) = rest.split_at_mut(length(stretch));
        file.read_exact_at(now, slot.bytes.start + stretch.start)?;
        rest = later;
    }
    Ok(bytes)
}

/// What was written between the elements of a poisoned buffer.
pub(crate) fn gaps(
    file: &File,
    slot: &Slot,
    view: &ElementView,
    run: Run,
) -> io::Result<Option<Damage>> {
    let watched = view.watched(slot.spec.size);
    let pattern = view.element.poison(run);
    let poisoned = |part: &Range<u64>, expected: &mut [u8], _: &[u8]| {
        for range in overlapping(&watched, part) {
            fill_from(pattern, range.start, &mut expected[inside(part, &range)]);
        }
    };
    // Whatever the elements hold is none of a gap.
    let stretches = view.stretches();
    let as_found = |part: &Range<u64>, expected: &mut [u8], found: &[u8]| {
        poisoned(part, expected, found);
        for range in overlapping(&stretches, part) {
            let range = inside(part, &range);
            expected[range.clone()].copy_from_slice(&found[range]);
        }
    };
    differences(file, slot, &watched, as_found)
}

/// What was changed in a buffer whose elements are `written`, its gaps included.
pub(crate) fn changed(
    file: &File,
    slot: &Slot,
    view: &ElementView,
    written: &[u8],
) -> io::Result<Option<Damage>> {
    let stretches = view.stretches();
    // Where each stretch begins among the elements.
    let begins: Vec<u64> = stretches
        .iter()
        .scan(0, |sum, stretch| {
            let begin = *sum;
            *sum += stretch.end - stretch.start;
            Some(begin)
        })
        .collect();
    let as_written = |part: &Range<u64>, expected: &mut [u8], _: &[u8]| {
        let first = stretches.partition_point(|stretch| stretch.end <= part.start);
        for (stretch, begin) in stretches[first..].iter().zip(&begins[first..]) {
            if stretch.start >= part.end {
                break;
            }
            let range = stretch.start.max(part.start)..stretch.end.min(part.end);
            let from = (begin + range.start - stretch.start) as usize;
            let elements = &written[from..from + length(&range)];
            expected[inside(part, &range)].copy_from_slice(elements);
        }
    };
    differences(file, slot, &stretches, as_written)
}

/// Compares `known` and everything else in the buffer that is data with what is expected there:
/// zeros, over which `expect` puts the rest, given the range and what was found in it.
fn differences(
    file: &File,
    slot: &Slot,
    known: &[Range<u64>],
    expect: impl Fn(&Range<u64>, &mut [u8], &[u8]),
) -> io::Result<Option<Damage>> {
    let mut all = data(file, slot)?;
    all.extend_from_slice(known);
    let mut differences = Differences::new(slot);
    for range in united(all) {
        for part in parts(range) {
            let (mut found, mut expected) = (vec![0; length(&part)], vec![0; length(&part)]);
            let at = slot.bytes.start + part.start;
            file.read_exact_at(&mut found, at)?;
            expect(&part, &mut expected, &found);
            differences.compare(at, &found, &expected);
        }
    }
    Ok(differences.damage)
}

/// The ranges of a buffer that are data, in bytes from its first.
fn data(file: &File, slot: &Slot) -> io::Result<Vec<Range<u64>>> {
    let (first, end) = (slot.bytes.start, slot.bytes.end);
    let mut ranges = Vec::new();
    let mut at = first;
    while at < end {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) => start.max(first),
            // Nothing but hole from here on.
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        if start >= end {
            break;
        }
        let hole = rustix::fs::seek(file, SeekFrom::Hole(start))?.min(end);
        if hole <= start {
            // The file was changed meanwhile.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        ranges.push(start - first..hole - first);
        at = hole;
    }
    Ok(ranges)
}

/// The same bytes in ascending ranges that are apart from each other.
fn united(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut united: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match united.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => united.push(range),
        }
    }
    united
}

/// A range in pieces that can be held.
fn parts(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    range
        .step_by(CHUNK)
        .map(move |start| start..end.min(start + CHUNK as u64))
}

/// The parts of ascending `ranges` that lie in `part`.
fn overlapping<'a>(
    ranges: &'a [Range<u64>],
    part: &'a Range<u64>,
) -> impl Iterator<Item = Range<u64>> + 'a {
    let first = ranges.partition_point(|range| range.end <= part.start);
    ranges[first..]
        .iter()
        .take_while(|range| range.start < part.end)
        .map(|range| range.start.max(part.start)..range.end.min(part.end))
}

/// Where a range lies in the bytes of the part that holds it.
fn inside(part: &Range<u64>, range: &Range<u64>) -> Range<usize> {
    (range.start - part.start) as usize..(range.end - part.start) as usize
}

fn length(range: &Range<u64>) -> usize {
    (range.end - range.start) as usize
}

/// Fills `target`, which lies `at` bytes behind the start of an element, with its poison.
fn fill_from(pattern: Pattern, at: u64, target: &mut [u8]) {
    let phase = (at % pattern.bytes().len() as u64) as usize;
    pattern.fill(target);
    if phase > 0 {
        let period = pattern.bytes().iter().cycle().skip(phase);
        target
            .iter_mut()
            .zip(period)
            .for_each(|(byte, p)| *byte = *p);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{Arena, ArenaError};
    use crate::layout::{BufferSpec, Placement, Residence, Role};
    use crate::poison::Element;

    const X: i64 = 1;
    const Y: i64 = 2;
    /// Elements from one image to the next: a little more than an index of 32 bits can hold.
    const FAR: i64 = (1 << 32) + 512;

    fn view() -> ElementView {
        ElementView {
            element: Element::F16,
            dims: vec![2, 3, 5],
            strides: vec![FAR, 5, 1],
        }
    }

    /// An arena with a sparse input of 1, 2, … and a poisoned sparse output, 8 GiB each.
    fn arena(placement: Placement) -> Arena {
        let mut arena = Arena::new().unwrap();
        arena.prepare(&specs(placement)).unwrap();
        arena.write_elements(X, view(), (1..=60).collect()).unwrap();
        arena.poison(Y, view(), Run::First).unwrap();
        arena
    }

    fn specs(placement: Placement) -> [BufferSpec; 2] {
        let size = (FAR as u64 + 15) * 2;
        [(X, Role::Input), (Y, Role::Output)].map(|(uid, role)| BufferSpec {
            placement,
            residence: Residence::Elements,
            ..BufferSpec::new(uid, size, role)
        })
    }

    fn poke(arena: &Arena, uid: i64, offset: u64, bytes: &[u8]) {
        let start = arena.layout().slot(uid).unwrap().bytes.start;
        file(arena).write_all_at(bytes, start + offset).unwrap();
    }

    fn file(arena: &Arena) -> File {
        File::from(arena.descriptor().try_clone_to_owned().unwrap())
    }

    fn resident(arena: &Arena) -> u64 {
        rustix::fs::fstat(arena.descriptor()).unwrap().st_blocks as u64 * 512
    }

    #[test]
    fn only_elements_are_memory_and_an_untouched_case_is_intact() {
        for placement in [Placement::End, Placement::Start, Placement::Middle] {
            let arena = arena(placement);
            assert!(resident(&arena) < 1 << 20, "{} bytes", resident(&arena));
            let snapshot = arena.snapshot(None).unwrap();
            assert!(snapshot.is_intact());
            let output = snapshot.buffer(Y).unwrap();
            assert_eq!((output.unwritten, output.first_unwritten), (30, Some(0)));
            assert_eq!(output.bytes.len(), 60);
        }
    }

    #[test]
    fn written_elements_come_back_without_gaps() {
        let arena = arena(Placement::End);
        poke(&arena, Y, 0, &[7; 30]);
        poke(&arena, Y, FAR as u64 * 2, &[8; 28]);
        let output = arena.snapshot(None).unwrap().buffers.pop().unwrap();
        assert!(output.is_intact());
        assert_eq!(output.bytes[..30], [7; 30]);
        assert_eq!(output.bytes[30..58], [8; 28]);
        assert_eq!((output.unwritten, output.first_unwritten), (1, Some(29)));
    }

    #[test]
    fn a_write_into_a_hole_or_beside_the_elements_is_damage() {
        // Far from any element; beside the first image; right before the second.
        for at in [1u64 << 31, 30, FAR as u64 * 2 - 2, 5 << 30] {
            let arena = arena(Placement::Start);
            poke(&arena, Y, at, &[9, 9]);
            let output = arena.snapshot(None).unwrap().buffers.pop().unwrap();
            let gaps = output.gaps.unwrap();
            assert_eq!((gaps.first, gaps.count), (at as i64, 2));
            assert_eq!(gaps.found[..2], [9, 9]);
        }
    }

    #[test]
    fn a_changed_input_is_found_in_elements_and_holes() {
        for (at, count) in [(0u64, 1), (29, 1), (FAR as u64 * 2 + 29, 1), (3 << 30, 2)] {
            let arena = arena(Placement::End);
            poke(&arena, X, at, &[200, 201][..count]);
            let snapshot = arena.snapshot(None).unwrap();
            let changed = snapshot.buffer(X).unwrap().changed.clone().unwrap();
            assert_eq!((changed.first, changed.count), (at as i64, count as u64));
            assert!(snapshot.buffer(Y).unwrap().is_intact());
        }
    }

    #[test]
    fn poison_that_was_given_back_to_the_system_is_damage() {
        let arena = arena(Placement::Start);
        let start = arena.layout().slot(Y).unwrap().bytes.start;
        let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(arena.descriptor(), flags, start, 4096).unwrap();
        let output = arena.snapshot(None).unwrap().buffers.pop().unwrap();
        assert_eq!(output.gaps.unwrap().first, 30);
    }

    #[test]
    fn the_next_case_finds_no_trace_of_the_last() {
        let mut arena = arena(Placement::End);
        poke(&arena, Y, 1 << 31, &[9; 100]);
        arena.prepare(&specs(Placement::End)).unwrap();
        arena.write_elements(X, view(), (1..=60).collect()).unwrap();
        arena.poison(Y, view(), Run::Second).unwrap();
        assert!(arena.snapshot(None).unwrap().is_intact());
    }

    #[test]
    fn bad_views_and_contents_are_refused() {
        let mut arena = arena(Placement::End);
        let overlapping = ElementView {
            strides: vec![FAR, 4, 1],
            ..view()
        };
        let error = arena
            .poison(Y, overlapping.clone(), Run::First)
            .unwrap_err();
        assert!(matches!(error, ArenaError::Overlap { uid: Y }), "{error}");
        let error = arena
            .write_elements(X, overlapping, vec![0; 60])
            .unwrap_err();
        assert!(matches!(error, ArenaError::Overlap { uid: X }), "{error}");
        let beyond = ElementView {
            strides: vec![FAR + 1, 5, 1],
            ..view()
        };
        let error = arena.poison(Y, beyond, Run::First).unwrap_err();
        assert!(matches!(error, ArenaError::View { uid: Y, .. }), "{error}");
        let error = arena.write_elements(X, view(), vec![0; 59]).unwrap_err();
        assert!(
            matches!(
                error,
                ArenaError::Length {
                    expected: 60,
                    given: 59,
                    ..
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn a_truncated_file_is_an_error() {
        let arena = arena(Placement::End);
        file(&arena).set_len(1 << 20).unwrap();
        assert!(matches!(arena.snapshot(None), Err(ArenaError::Io(_))));
    }

    #[test]
    fn a_file_that_is_all_data_tells_no_holes() {
        let zeros = File::open("/dev/zero").unwrap();
        assert!(!tells_holes(&zeros));
        let empty = Arena::new().unwrap();
        file(&empty).set_len(1 << 40).unwrap();
        assert!(tells_holes(&file(&empty)));
        file(&empty).write_all_at(&[1], 0).unwrap();
        assert!(!tells_holes(&file(&empty)));
    }

    #[test]
    fn poison_goes_on_in_the_middle_of_an_element() {
        let mut bytes = [0; 5];
        fill_from(Element::F32.poison(Run::First), 6, &mut bytes);
        assert_eq!(bytes, [0xE5, 0x7F, 0xA1, 0xA5, 0xE5]);
    }
}
