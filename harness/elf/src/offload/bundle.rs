//! The bundles of a `.hip_fatbin` section ("Clang Offload Bundler", bundled binary file layout).

use super::compressed::{self, COMPRESSED_MAGIC};
use super::{DeviceCode, DeviceImage};
use crate::view::{ElfView, slice};
use memchr::memmem;

pub(super) const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
/// Bundles start at a page, so that code objects can be mapped in place.
const PAGE: usize = 4096;

/// Reads the bundles of `.hip_fatbin`.
#[must_use]
pub fn device_code(view: &ElfView<'_>) -> DeviceCode {
    let mut code = DeviceCode::default();
    let section = view.section(".hip_fatbin");
    if let Some(bytes) = section.and_then(|section| view.section_bytes(section)) {
        read_bundles(bytes, &mut code);
    }
    code
}

/// A section holds one bundle per translation unit. Code objects may hold a magic too, so that a
/// bundle begins only at a page and after the one before it has ended.
fn read_bundles(bytes: &[u8], code: &mut DeviceCode) {
    let of = |magic| memmem::find_iter(bytes, magic).filter(|at| at.is_multiple_of(PAGE));
    let mut starts: Vec<usize> = of(MAGIC).chain(of(COMPRESSED_MAGIC)).collect();
    starts.sort_unstable();
    let mut end = 0;
    for start in starts {
        if start < end {
            continue;
        }
        let bundle = &bytes[start..];
        let outcome = if bundle.starts_with(MAGIC) {
            read_plain(bundle, code).ok_or_else(|| "it is cut short".to_owned())
        } else {
            code.compressed += 1;
            read_compressed(bundle, code)
        };
        match outcome {
            Ok(length) => end = start.saturating_add(length),
            Err(problem) => {
                let place = format!("the bundle at byte {start} of .hip_fatbin: {problem}");
                code.problems.push(place);
            }
        }
    }
}

/// Reads one bundle and gives its length.
fn read_plain(bytes: &[u8], code: &mut DeviceCode) -> Option<usize> {
    let table = read_table(bytes)?;
    let mut end = table.length as u64;
    for entry in table.entries {
        let content = slice(bytes, entry.offset, entry.size)?;
        end = end.max(entry.offset + entry.size);
        if let Some(target) = device_target(&entry.id) {
            code.images.push(DeviceImage {
                target: target.to_owned(),
                size: entry.size,
                kernels: kernels(content),
            });
        }
    }
    usize::try_from(end).ok()
}

/// Reads the table of one compressed bundle and gives the bundle's length in the file.
fn read_compressed(bytes: &[u8], code: &mut DeviceCode) -> Result<usize, String> {
    let head = compressed::head(bytes)?;
    let table = read_table(&head.bytes).ok_or("its table of targets is cut short")?;
    for entry in table.entries {
        let end = entry.offset.checked_add(entry.size);
        if end.is_none_or(|end| end > head.uncompressed_size) {
            return Err(format!("{} lies outside of it", entry.id));
        }
        if let Some(target) = device_target(&entry.id) {
            code.images.push(DeviceImage {
                target: target.to_owned(),
                size: entry.size,
                kernels: Vec::new(),
            });
        }
    }
    Ok(head.length)
}

struct Entry {
    id: String,
    offset: u64,
    size: u64,
}

struct Table {
    entries: Vec<Entry>,
    /// Bytes of the table with the magic before it.
    length: usize,
}

fn read_table(bytes: &[u8]) -> Option<Table> {
    if !bytes.starts_with(MAGIC) {
        return None;
    }
    let count = quad(bytes, MAGIC.len())?;
    let mut at = MAGIC.len() + 8;
    let mut entries = Vec::new();
    for _ in 0..count {
        let (offset, size) = (quad(bytes, at)?, quad(bytes, at + 8)?);
        let id_size = usize::try_from(quad(bytes, at + 16)?).ok()?;
        let id = bytes.get(at + 24..(at + 24).checked_add(id_size)?)?;
        at += 24 + id_size;
        entries.push(Entry {
            id: String::from_utf8_lossy(id).into_owned(),
            offset,
            size,
        });
    }
    Some(Table {
        entries,
        length: at,
    })
}

/// The target id of a bundle entry such as `hipv4-amdgcn-amd-amdhsa--gfx942:xnack-`; `None` for
/// the host's entry.
fn device_target(id: &str) -> Option<&str> {
    let (kind, _) = id.split_once('-')?;
    if kind == "host" {
        return None;
    }
    // Kind, architecture, vendor, system, environment, which may be empty, and the target.
    let target = id.rsplit_once("--").map(|(_, target)| target);
    target.or_else(|| id.splitn(6, '-').nth(5))
}

/// The kernels of a code object: each has a descriptor called `NAME.kd`.
fn kernels(bytes: &[u8]) -> Vec<String> {
    let Ok(object) = ElfView::parse_code_object(bytes) else {
        return Vec::new();
    };
    object
        .exports()
        .filter_map(|symbol| symbol.name.strip_suffix(".kd"))
        .map(str::to_owned)
        .collect()
}

fn quad(bytes: &[u8], offset: usize) -> Option<u64> {
    let found = bytes.get(offset..offset.checked_add(8)?)?;
    Some(u64::from_le_bytes(found.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(
        "hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-",
        Some("gfx942:sramecc+:xnack-")
    )]
    #[case("hip-amdgcn-amd-amdhsa--gfx9-4-generic", Some("gfx9-4-generic"))]
    #[case("hip-amdgcn-amd-amdhsa-unknown-gfx90a", Some("gfx90a"))]
    #[case("host-x86_64-unknown-linux--", None)]
    #[case("host-x86_64-unknown-linux-gnu-", None)]
    fn entry_ids_give_targets(#[case] id: &str, #[case] target: Option<&str>) {
        assert_eq!(device_target(id), target);
    }

    /// A bundle with these entries.
    fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let head: usize = 32 + entries.iter().map(|(id, _)| 24 + id.len()).sum::<usize>();
        let mut bytes = MAGIC.to_vec();
        bytes.extend((entries.len() as u64).to_le_bytes());
        let mut offset = head;
        for (id, content) in entries {
            for word in [offset, content.len(), id.len()] {
                bytes.extend((word as u64).to_le_bytes());
            }
            bytes.extend(id.bytes());
            offset += content.len();
        }
        entries
            .iter()
            .for_each(|(_, content)| bytes.extend(*content));
        bytes
    }

    fn targets(code: &DeviceCode) -> Vec<(&str, u64)> {
        code.images.iter().map(|i| (&*i.target, i.size)).collect()
    }

    #[test]
    fn every_bundle_of_a_section_is_read() {
        let entries: [(&str, &[u8]); 2] = [
            ("host-x86_64-unknown-linux--", b""),
            (
                "hipv4-amdgcn-amd-amdhsa--gfx942",
                b"__CLANG_OFFLOAD_BUNDLE__ quoted",
            ),
        ];
        let mut bytes = bundle(&entries);
        bytes.resize(PAGE, 0);
        bytes.extend(bundle(&[(
            "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+",
            b"code",
        )]));
        bytes.resize(2 * PAGE, 0);
        bytes.extend(b"CCOB....");
        let mut code = DeviceCode::default();
        read_bundles(&bytes, &mut code);
        assert_eq!(targets(&code), [("gfx942", 31), ("gfx90a:xnack+", 4)]);
        assert_eq!(code.compressed, 1);
        assert_eq!(code.problems.len(), 1, "{:?}", code.problems);
    }

    #[test]
    fn compressed_bundles_say_their_targets() {
        let content = vec![7; 300_000];
        let entries: [(&str, &[u8]); 2] = [
            ("hipv4-amdgcn-amd-amdhsa--gfx942:xnack-", &content),
            ("hipv4-amdgcn-amd-amdhsa--gfx12-generic", b"code"),
        ];
        for version in 1..=3 {
            for method in [compressed::ZLIB, compressed::ZSTD] {
                let mut bytes = compressed::tests::compress(&bundle(&entries), version, method);
                bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
                bytes.extend(bundle(&[("hip-amdgcn-amd-amdhsa--gfx906", b"x")]));
                let mut code = DeviceCode::default();
                read_bundles(&bytes, &mut code);
                assert_eq!(code.problems, [""; 0], "version {version}, method {method}");
                let expected = [
                    ("gfx942:xnack-", 300_000),
                    ("gfx12-generic", 4),
                    ("gfx906", 1),
                ];
                assert_eq!(targets(&code), expected);
            }
        }
    }

    #[test]
    fn a_cut_bundle_is_a_problem_and_no_panic() {
        let whole = bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx942", b"code")]);
        let pressed = compressed::tests::compress(&whole, 3, compressed::ZSTD);
        for (bytes, shortest) in [(whole, MAGIC.len()), (pressed, COMPRESSED_MAGIC.len())] {
            for end in shortest..bytes.len() {
                let mut code = DeviceCode::default();
                read_bundles(&bytes[..end], &mut code);
                assert_eq!(code.problems.len(), 1, "cut at {end} of {}", bytes.len());
            }
        }
    }
}
