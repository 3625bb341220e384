//! Guards and poison on the device: kernels of the harness's own fill them before a case and look
//! at them after it (`kernels/guards.cpp`), so that canaries and inputs need not come back.
//!
//! The kernels are built with the harness. Where there is no compiler, or a device that they are
//! not for, whole regions travel and the parent looks at the copies.

use std::ffi::c_void;
use std::ptr;

use dnn_assay_abi::gpu::{Address, Flavor, Opaque};

use super::driver::{Driver, call};
use super::probe::arch_of;
use crate::backend::DeviceError;
use crate::layout::Slot;
use crate::snapshot::{DeviceCheck, Fill, OutputCheck, Span};
use crate::view::ElementView;

pub(super) static GFX942: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guards.hsaco"));
/// Ends with NUL, as the CUDA driver wants text.
pub(super) static SM_90: &str =
    concat!(include_str!(concat!(env!("OUT_DIR"), "/guards.ptx")), "\0");
/// What made them; empty where nothing could.
const COMPILER: &str = env!("DNN_ASSAY_KERNELS_BY");
/// `host`: whole regions travel although the device could look.
const OVERRIDE: &str = "DNN_ASSAY_DEVICE_GUARDS";

/// Threads of a block, fixed in the kernels.
const THREADS: u32 = 256;
/// Elements or words that a thread treats before another block is worth its start.
const EACH: u64 = 4;
/// Blocks of one job; beyond, each does more.
const MOST_BLOCKS: u64 = 512;
/// Axes of a view that the kernels know.
const RANK: usize = 8;

const CANARY: u32 = 0;
const PATTERN: u32 = 1;
const SUM: u32 = 2;
const SCRATCH: u32 = 3;

/// An axis of a view as the kernels have it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Axis {
    extent: u64,
    stride: u64,
    weight: u64,
}

/// One stretch of memory as the kernels have it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Job {
    address: u64,
    bytes: u64,
    origin: u64,
    pattern: u64,
    kind: u32,
    element: u32,
    rank: u32,
    gaps: u32,
    blocks: u32,
    result: u32,
    axes: [Axis; RANK],
}

/// What a block saw.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    count: u64,
    first: u64,
    last: u64,
    gap_count: u64,
    gap_first: u64,
    gap_last: u64,
}

impl Seen {
    /// What a result holds before the kernel has written it: no count of gaps is so large.
    const UNSEEN: Self = Self {
        count: u64::MAX,
        first: u64::MAX,
        last: u64::MAX,
        gap_count: u64::MAX,
        gap_first: u64::MAX,
        gap_last: u64::MAX,
    };

    fn add(self, other: Self) -> Self {
        Self {
            count: self.count.wrapping_add(other.count),
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            gap_count: self.gap_count + other.gap_count,
            gap_first: self.gap_first.min(other.gap_first),
            gap_last: self.gap_last.max(other.gap_last),
        }
    }

    fn span(count: u64, first: u64, last: u64, origin: i64) -> Option<Span> {
        (count > 0).then(|| Span {
            first: first as i64 + origin,
            last: last as i64 + origin,
            count,
        })
    }
}

/// The kernels, loaded into the current device.
#[derive(Debug)]
pub(super) struct Guards {
    fill: Opaque,
    check: Opaque,
}

/// Which kernels there are for a device.
///
/// # Errors
/// Why there are none.
fn image(flavor: Flavor, arch: Option<&str>) -> Result<&'static [u8], String> {
    if let Some(value) = std::env::var_os(OVERRIDE).filter(|value| value == "host") {
        return Err(format!("{OVERRIDE}={}", value.display()));
    }
    if COMPILER.is_empty() || GFX942.is_empty() || SM_90.len() < 2 {
        let text = "the harness was built without a clang for AMDGPU and NVPTX";
        return Err(text.to_owned());
    }
    let arch = arch.ok_or("the device's architecture is not known")?;
    let capability: Option<u32> = arch.strip_prefix("sm_").and_then(|n| n.parse().ok());
    match flavor {
        Flavor::Hip if arch.starts_with("gfx942") => Ok(GFX942),
        Flavor::Cuda if capability.is_some_and(|n| n >= 90) => Ok(SM_90.as_bytes()),
        _ => Err(format!(
            "the harness has kernels for gfx942 and sm_90, not for {arch}"
        )),
    }
}

/// What `dnn-assay device` says about a device's guards.
pub(super) fn described(flavor: Flavor, arch: Option<&str>) -> String {
    match image(flavor, arch) {
        Ok(_) => format!("checked on the device, by kernels of {COMPILER}"),
        Err(why) => format!("checked on copies in host memory: {why}"),
    }
}

impl Guards {
    /// Loads the kernels into device `device`, which is current.
    ///
    /// # Errors
    /// Why guards are checked on the host instead.
    pub(super) fn load(driver: &Driver, device: i32) -> Result<Self, String> {
        let (arch, _) = arch_of(driver, device);
        let image = image(driver.api.flavor, arch.as_deref())?;
        let mut module = ptr::null_mut();
        let words = |error: DeviceError| error.to_string();
        call!(
            driver,
            module_load(&raw mut module, image.as_ptr().cast::<c_void>())
        )
        .map_err(words)?;
        let mut guards = Self {
            fill: ptr::null_mut(),
            check: ptr::null_mut(),
        };
        for (function, name) in [
            (&mut guards.fill, c"dnn_guard_fill"),
            (&mut guards.check, c"dnn_guard_check"),
        ] {
            call!(driver, module_function(function, module, name.as_ptr())).map_err(words)?;
        }
        Ok(guards)
    }
}

/// The jobs of a case, and the device memory that holds them and what was seen.
#[derive(Debug)]
pub(super) struct Table {
    jobs: Vec<Job>,
    results: u32,
    /// What was allocated, and how much.
    pub(super) allocation: Address,
    pub(super) bytes: usize,
}

impl Table {
    /// Lays a table out; it needs as much memory as [`bytes`](Self::bytes) says.
    pub(super) fn new<'a>(placed: impl Iterator<Item = (&'a Slot, &'a Fill, Address)>) -> Self {
        let mut table = Self {
            jobs: Vec::new(),
            results: 0,
            allocation: 0,
            bytes: 0,
        };
        for (slot, fill, region) in placed {
            for mut job in jobs_of(slot, fill, region) {
                job.result = table.results;
                job.blocks = blocks(&job);
                table.results += job.blocks;
                table.jobs.push(job);
            }
        }
        // A power of two, so that cases of about the same size share it.
        table.bytes = (table.jobs_bytes() + table.seen_bytes())
            .max(4096)
            .next_power_of_two();
        table
    }

    fn jobs_bytes(&self) -> usize {
        self.jobs.len() * size_of::<Job>()
    }

    fn seen_bytes(&self) -> usize {
        self.results as usize * size_of::<Seen>()
    }

    fn seen_at(&self) -> Address {
        self.allocation + self.jobs_bytes() as u64
    }

    /// Copies the jobs to the device and has what is to be filled filled, in the order of a stream.
    pub(super) fn fill(
        &self,
        driver: &Driver,
        guards: &Guards,
        stream: Opaque,
    ) -> Result<(), DeviceError> {
        let from = self.jobs.as_ptr().cast();
        let bytes = self.jobs_bytes();
        call!(driver, copy_in(self.allocation, from, bytes, stream))?;
        self.launch(driver, guards.fill, stream)
    }

    /// Looks at everything and waits for the answer: one per job.
    pub(super) fn check(
        &self,
        driver: &Driver,
        guards: &Guards,
        stream: Opaque,
    ) -> Result<Vec<Seen>, DeviceError> {
        let mut seen = vec![Seen::UNSEEN; self.results as usize];
        if let Err(error) = self.ask(driver, guards, stream, &mut seen) {
            // No copy on its way may outlive what it copies.
            let _ = call!(driver, stream_synchronize(stream));
            return Err(error);
        }
        if seen.iter().any(|seen| seen.gap_count == u64::MAX) {
            return Err(DeviceError {
                call: "the check of guards on the device".to_owned(),
                text: "a block left no result".to_owned(),
                status: None,
            });
        }
        let all = self.jobs.iter().map(|job| {
            let blocks = &seen[job.result as usize..][..job.blocks as usize];
            let nothing = Seen {
                first: u64::MAX,
                gap_first: u64::MAX,
                ..Seen::default()
            };
            blocks.iter().copied().fold(nothing, Seen::add)
        });
        Ok(all.collect())
    }

    fn ask(
        &self,
        driver: &Driver,
        guards: &Guards,
        stream: Opaque,
        seen: &mut [Seen],
    ) -> Result<(), DeviceError> {
        let (at, bytes) = (self.seen_at(), self.seen_bytes());
        call!(driver, copy_in(at, seen.as_ptr().cast(), bytes, stream))?;
        self.launch(driver, guards.check, stream)?;
        call!(
            driver,
            copy_out(seen.as_mut_ptr().cast(), at, bytes, stream)
        )?;
        call!(driver, stream_synchronize(stream))
    }

    fn launch(&self, driver: &Driver, kernel: Opaque, stream: Opaque) -> Result<(), DeviceError> {
        let across = self.jobs.iter().map(|job| job.blocks).max().unwrap_or(0);
        if across == 0 {
            return Ok(());
        }
        let mut parameters = [self.allocation, self.seen_at()];
        let mut arguments = [parameters.as_mut_ptr().cast::<c_void>()];
        let jobs = self.jobs.len() as u32;
        let (all, none) = (arguments.as_mut_ptr(), ptr::null_mut());
        call!(
            driver,
            launch(kernel, across, jobs, 1, THREADS, 1, 1, 0, stream, all, none)
        )
    }
}

fn blocks(job: &Job) -> u32 {
    let each = if job.kind == CANARY || job.kind == SUM {
        8
    } else {
        u64::from(job.element)
    };
    let threads = job.bytes.div_ceil(each * EACH);
    threads.div_ceil(u64::from(THREADS)).clamp(1, MOST_BLOCKS) as u32
}

/// Canary, buffer, canary; what is empty has no job.
fn jobs_of(slot: &Slot, fill: &Fill, region: Address) -> Vec<Job> {
    let at = |offset: u64| region + (offset - slot.region.start);
    let canary = |range: std::ops::Range<u64>| Job {
        address: at(range.start),
        bytes: range.end - range.start,
        origin: range.start,
        kind: CANARY,
        ..Job::default()
    };
    let body = Job {
        address: at(slot.bytes.start),
        bytes: slot.spec.size,
        ..body(fill, slot.spec.size)
    };
    [
        canary(slot.canary_before()),
        body,
        canary(slot.canary_after()),
    ]
    .into_iter()
    .filter(|job| job.bytes > 0)
    .collect()
}

fn body(fill: &Fill, size: u64) -> Job {
    match fill {
        Fill::Bytes => Job {
            kind: SUM,
            ..Job::default()
        },
        Fill::Scratch => Job {
            kind: SCRATCH,
            pattern: u64::MAX,
            element: 8,
            ..Job::default()
        },
        Fill::Poison(view, run) => {
            let mut pattern = [0; 8];
            view.element.poison(*run).fill(&mut pattern);
            let planned = axes(view, size).unwrap_or_default();
            let mut job = Job {
                kind: PATTERN,
                pattern: u64::from_le_bytes(pattern),
                element: u32::from(view.element.size()),
                rank: planned.axes.len() as u32,
                gaps: u32::from(planned.gaps),
                ..Job::default()
            };
            job.axes[..planned.axes.len()].copy_from_slice(&planned.axes);
            job
        }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Axes {
    axes: Vec<Axis>,
    gaps: bool,
}

/// The axes of a view from the longest stride down, none where its elements lie in the order of
/// their indices. `None` where the kernels cannot find an element's index from its place: places
/// that several elements share, or more axes than they know.
fn axes(view: &ElementView, size: u64) -> Option<Axes> {
    let gaps = !view.is_dense(size);
    if !gaps && view.is_row_major() {
        return Some(Axes::default());
    }
    let mut weight = 1;
    let mut axes = Vec::new();
    for (&extent, &stride) in view.dims.iter().zip(&view.strides).rev() {
        let (extent, stride) = (u64::try_from(extent).ok()?, u64::try_from(stride).ok()?);
        if extent == 0 || (extent > 1 && stride == 0) {
            return None;
        }
        if extent > 1 {
            axes.push(Axis {
                extent,
                stride,
                weight,
            });
        }
        weight = weight.checked_mul(extent)?;
    }
    axes.sort_by_key(|axis| std::cmp::Reverse(axis.stride));
    let mut span = 1u64;
    for axis in axes.iter().rev() {
        if axis.stride < span {
            return None;
        }
        span = (axis.extent - 1)
            .checked_mul(axis.stride)?
            .checked_add(span)?;
    }
    if axes.is_empty() {
        axes.push(Axis {
            extent: 1,
            stride: 1,
            weight: 1,
        });
    }
    (axes.len() <= RANK).then_some(Axes { axes, gaps })
}

/// Whether the kernels can tell elements from gaps in a buffer that was filled so.
pub(super) fn is_counted(fill: &Fill, size: u64) -> bool {
    match fill {
        Fill::Poison(view, _) => axes(view, size).is_some(),
        Fill::Bytes | Fill::Scratch => true,
    }
}

/// The sum by which the kernels tell changed bytes.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0xD6E8_FEB8_6659_FD93;
    let mixed = |word: u64, at: u64| {
        let v = word.wrapping_add(at.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let v = (v ^ (v >> 32)).wrapping_mul(MULTIPLIER);
        let v = (v ^ (v >> 32)).wrapping_mul(MULTIPLIER);
        v ^ (v >> 32)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let whole = words.iter().map(|word| u64::from_le_bytes(*word));
    let rest = (!rest.is_empty()).then(|| u64::from_le_bytes(last));
    whole
        .chain(rest)
        .zip(1..)
        .fold(0, |sum, (word, at)| sum.wrapping_add(mixed(word, at)))
}

/// What was seen of each buffer, in the order in which the table was laid out. `sums` are those of
/// the bytes that were copied in.
pub(super) fn checks<'a>(
    placed: impl Iterator<Item = (&'a Slot, &'a Fill, Option<u64>)>,
    seen: &[Seen],
) -> Vec<DeviceCheck> {
    let mut seen = seen.iter();
    let mut next = |is_there: bool| is_there.then(|| seen.next().copied()).flatten();
    placed
        .map(|(slot, fill, sum)| {
            let (before, after) = (slot.canary_before(), slot.canary_after());
            let length = (before.end - before.start) as i64;
            let size = slot.spec.size;
            let hurt = |seen: Option<Seen>, origin| {
                seen.and_then(|s| Seen::span(s.count, s.first, s.last, origin))
            };
            let before = hurt(next(!before.is_empty()), -length);
            let body = next(size > 0).unwrap_or_default();
            let after = hurt(next(!after.is_empty()), size as i64);
            let is_output = matches!(fill, Fill::Poison(..)) && is_counted(fill, size);
            DeviceCheck {
                uid: slot.spec.uid,
                before,
                after,
                changed: size > 0 && sum.is_some_and(|sum| sum != body.count),
                output: is_output.then(|| OutputCheck {
                    unwritten: body.count,
                    first_unwritten: (body.count > 0).then_some(body.first),
                    gaps: Seen::span(body.gap_count, body.gap_first, body.gap_last, 0),
                }),
            }
        })
        .collect()
}
