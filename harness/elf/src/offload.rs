//! Device code inside a host library: offload bundles, their targets, and whether a target runs
//! on an architecture.
//!
//! Formats: "Clang Offload Bundler" and "User Guide for AMDGPU Backend" of the LLVM project.

use crate::view::{ElfView, slice};
use memchr::memmem;
use serde::Serialize;

/// One piece of device code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceImage {
    /// The target id of the bundle entry, such as `gfx942:sramecc+:xnack-`.
    pub target: String,
    /// Bytes of code object.
    pub size: u64,
    /// The kernels inside, where the code object can be read.
    pub kernels: Vec<String>,
}

/// All device code of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeviceCode {
    /// The images in the order of the file.
    pub images: Vec<DeviceImage>,
    /// Compressed bundles, whose targets are not read.
    pub compressed: usize,
    /// What did not parse.
    pub problems: Vec<String>,
}

impl DeviceCode {
    /// Whether the file holds any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.images.is_empty() && self.compressed == 0 && self.problems.is_empty()
    }

    /// Whether any image has a kernel of this name.
    #[must_use]
    pub fn has_kernel(&self, name: &str) -> bool {
        let mut kernels = self.images.iter().flat_map(|image| &image.kernels);
        kernels.any(|kernel| kernel == name)
    }
}

const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
const COMPRESSED_MAGIC: &[u8] = b"CCOB";

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

/// A section holds one bundle per translation unit, each at the start of a page.
fn read_bundles(bytes: &[u8], code: &mut DeviceCode) {
    let plain = memmem::find_iter(bytes, MAGIC);
    let mut end = 0;
    for start in plain {
        // Code objects may quote the magic; a bundle begins after the one before it ended.
        if start < end {
            continue;
        }
        match read_bundle(&bytes[start..], code) {
            Some(length) => end = start.saturating_add(length),
            None => code.problems.push(format!(
                "the bundle at byte {start} of .hip_fatbin is cut short"
            )),
        }
    }
    let page_starts = |start: &usize| start.is_multiple_of(PAGE);
    code.compressed = memmem::find_iter(bytes, COMPRESSED_MAGIC)
        .filter(page_starts)
        .count();
}

const PAGE: usize = 4096;

/// Reads one bundle and gives its length.
fn read_bundle(bytes: &[u8], code: &mut DeviceCode) -> Option<usize> {
    let count = quad(bytes, MAGIC.len())?;
    let mut at = MAGIC.len() + 8;
    let mut end = at as u64;
    for _ in 0..count {
        let (offset, size) = (quad(bytes, at)?, quad(bytes, at + 8)?);
        let id_size = usize::try_from(quad(bytes, at + 16)?).ok()?;
        let id = bytes.get(at + 24..(at + 24).checked_add(id_size)?)?;
        at += 24 + id_size;
        let content = slice(bytes, offset, size)?;
        end = end.max(offset + size);
        let id = String::from_utf8_lossy(id);
        if let Some(target) = device_target(&id) {
            code.images.push(DeviceImage {
                target: target.to_owned(),
                size,
                kernels: kernels(content),
            });
        }
    }
    usize::try_from(end.max(at as u64)).ok()
}

/// The target id of a bundle entry such as `hipv4-amdgcn-amd-amdhsa--gfx942:xnack-`; `None` for
/// the host's entry.
fn device_target(id: &str) -> Option<&str> {
    let (kind, _) = id.split_once('-')?;
    if kind == "host" {
        return None;
    }
    id.rsplit_once("--").map(|(_, target)| target).or_else(|| {
        // Older bundlers write three dashes' worth of triple and then the target.
        id.splitn(6, '-').nth(5)
    })
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

/// A feature of a target id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feature {
    /// Not mentioned: code that runs with it on or off, or a device that did not say.
    Any,
    /// `+`
    On,
    /// `-`
    Off,
}

/// A parsed target id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    /// The processor, such as `gfx942` or `gfx9-4-generic`.
    pub processor: String,
    /// Whether page faults can be replayed.
    pub xnack: Feature,
    /// Whether on-chip memory has error correction.
    pub sramecc: Feature,
}

/// Whether code for one target runs on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Match {
    /// It does not.
    No,
    /// It does if the device is set up so; the architecture asked for does not say.
    IfFeaturesAgree,
    /// It does.
    Yes,
}

impl Target {
    /// Parses `gfx942:sramecc+:xnack-`. `None` for text that is no target id.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let processor = parts.next().filter(|name| is_processor(name))?;
        let mut target = Self {
            processor: processor.to_owned(),
            xnack: Feature::Any,
            sramecc: Feature::Any,
        };
        for part in parts {
            let (name, feature) = match part.strip_suffix('+') {
                Some(name) => (name, Feature::On),
                None => (part.strip_suffix('-')?, Feature::Off),
            };
            match name {
                "xnack" => target.xnack = feature,
                "sramecc" => target.sramecc = feature,
                _ => return None,
            }
        }
        Some(target)
    }

    /// Whether code built for `self` runs on the device `on`.
    #[must_use]
    pub fn runs_on(&self, on: &Self) -> Match {
        if !processor_runs_on(&self.processor, &on.processor) {
            return Match::No;
        }
        feature_runs_on(self.xnack, on.xnack).min(feature_runs_on(self.sramecc, on.sramecc))
    }
}

fn is_processor(name: &str) -> bool {
    let rest = name.strip_prefix("gfx");
    let generic = rest.map(|rest| rest.strip_suffix("-generic").unwrap_or(rest));
    let digits = |rest: &str| {
        rest.starts_with(|c: char| c.is_ascii_digit())
            && rest.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
    };
    generic.is_some_and(digits) || name == SPIRV
}

/// Portable device code, which the runtime compiles for any device.
const SPIRV: &str = "amdgcnspirv";

/// Generic targets and the processors that run them.
const GENERIC: [(&str, &[&str]); 6] = [
    (
        "gfx9-generic",
        &["gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"],
    ),
    ("gfx9-4-generic", &["gfx940", "gfx941", "gfx942", "gfx950"]),
    (
        "gfx10-1-generic",
        &["gfx1010", "gfx1011", "gfx1012", "gfx1013"],
    ),
    (
        "gfx10-3-generic",
        &[
            "gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036",
        ],
    ),
    (
        "gfx11-generic",
        &[
            "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153",
        ],
    ),
    ("gfx12-generic", &["gfx1200", "gfx1201"]),
];

fn processor_runs_on(code: &str, device: &str) -> bool {
    let generic = GENERIC.iter().find(|(name, _)| *name == code);
    code == device || code == SPIRV || generic.is_some_and(|(_, members)| members.contains(&device))
}

fn feature_runs_on(code: Feature, device: Feature) -> Match {
    match (code, device) {
        (Feature::Any, _) => Match::Yes,
        (_, Feature::Any) => Match::IfFeaturesAgree,
        (code, device) if code == device => Match::Yes,
        _ => Match::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("gfx942", "gfx942:sramecc+:xnack-", Match::Yes)]
    #[case("gfx942:xnack-", "gfx942:sramecc+:xnack-", Match::Yes)]
    #[case("gfx942:xnack+", "gfx942:sramecc+:xnack-", Match::No)]
    #[case("gfx942:sramecc-:xnack-", "gfx942:sramecc+:xnack-", Match::No)]
    #[case("gfx942:xnack+", "gfx942", Match::IfFeaturesAgree)]
    #[case("gfx90a", "gfx942", Match::No)]
    #[case("gfx9-4-generic", "gfx942", Match::Yes)]
    #[case("gfx9-4-generic:xnack+", "gfx942:xnack-", Match::No)]
    #[case("gfx9-generic", "gfx942", Match::No)]
    #[case("amdgcnspirv", "gfx1201", Match::Yes)]
    fn code_runs_where_it_should(#[case] code: &str, #[case] on: &str, #[case] expected: Match) {
        let parse = |text| Target::parse(text).unwrap();
        assert_eq!(parse(code).runs_on(&parse(on)), expected);
    }

    #[rstest]
    #[case("")]
    #[case("mi300")]
    #[case("gfx")]
    #[case("gfx942:xnack")]
    #[case("gfx942:tgsplit+")]
    fn what_is_no_target_is_refused(#[case] text: &str) {
        assert_eq!(Target::parse(text), None);
    }

    #[rstest]
    #[case(
        "hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-",
        Some("gfx942:sramecc+:xnack-")
    )]
    #[case("hip-amdgcn-amd-amdhsa--gfx9-4-generic", Some("gfx9-4-generic"))]
    #[case("host-x86_64-unknown-linux--", None)]
    #[case("host-x86_64-unknown-linux-gnu-", None)]
    fn entry_ids_give_targets(#[case] id: &str, #[case] target: Option<&str>) {
        assert_eq!(device_target(id), target);
    }

    /// A bundle with these entries, each content padded to 8 bytes.
    pub(crate) fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
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
        let targets: Vec<_> = code.images.iter().map(|i| (&*i.target, i.size)).collect();
        assert_eq!(targets, [("gfx942", 31), ("gfx90a:xnack+", 4)]);
        assert_eq!(code.compressed, 1);
        assert!(code.problems.is_empty());
    }

    #[test]
    fn a_cut_bundle_is_a_problem_and_no_panic() {
        let whole = bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx942", b"code")]);
        for end in MAGIC.len()..whole.len() {
            let mut code = DeviceCode::default();
            read_bundles(&whole[..end], &mut code);
            assert_eq!(code.problems.len(), 1, "cut at {end}");
        }
    }
}
