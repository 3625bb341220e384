//! What the machine can do, measured beside the figures.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::sync::LazyLock;
use std::time::Duration;

/// The clock of all figures: the wall's, or, where `DNN_ASSAY_CLOCK` is `cpu`, the processor time of
/// the process. On one thread the latter leaves out the time that other processes had, so that a
/// shared machine gives figures too.
pub fn now() -> Duration {
    static CPU: LazyLock<bool> =
        LazyLock::new(|| std::env::var("DNN_ASSAY_CLOCK").is_ok_and(|clock| clock == "cpu"));
    let clock = if *CPU {
        ClockId::ProcessCPUTime
    } else {
        ClockId::Monotonic
    };
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// The shortest of several rounds.
pub fn best(mut work: impl FnMut(), rounds: usize) -> Duration {
    let round = |_| {
        let start = now();
        work();
        now().saturating_sub(start)
    };
    (0..rounds).map(round).min().unwrap_or_default()
}

/// Rounds that fit in about `seconds` when one takes `once`.
pub fn rounds(once: Duration, seconds: f64) -> usize {
    ((seconds / once.as_secs_f64().max(1e-9)) as usize).clamp(3, 2000)
}

/// Twelve chains of fused steps in registers.
struct Chains;

/// Steps of each chain.
const STEPS: usize = 1 << 20;

impl WithSimd for Chains {
    /// Floating-point operations.
    type Output = f64;
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let factor = simd.splat_f64s(black_box(0.999));
        let addend = simd.splat_f64s(black_box(1e-3));
        let mut sums = [simd.splat_f64s(0.0); 12];
        for _ in 0..STEPS {
            for sum in &mut sums {
                *sum = simd.mul_add_f64s(*sum, factor, addend);
            }
        }
        black_box(sums);
        2.0 * (STEPS * sums.len() * S::F64_LANES) as f64
    }
}

/// f64 operations per second of fused steps in registers, on all threads.
pub fn peak() -> f64 {
    let all = || rayon::broadcast(|_| Arch::new().dispatch(Chains));
    let work: f64 = all().iter().sum();
    work / best(|| drop(black_box(all())), 12).as_secs_f64()
}

/// Elements of an array for copies: many times the last cache.
const COPIED: usize = 1 << 25;

/// Bytes per second, read and written, of a copy on all threads: over memory that is there, and
/// into memory that is new, as every result's is.
pub fn copies() -> (f64, f64) {
    let source: Vec<f64> = (0..COPIED).map(|i| i as f64).collect();
    let mut target = vec![1.0f64; COPIED];
    let copy = |target: &mut [f64]| {
        let pieces = target
            .par_chunks_mut(1 << 16)
            .zip(source.par_chunks(1 << 16));
        pieces.for_each(|(target, source)| target.copy_from_slice(source));
    };
    let bytes = (2 * COPIED * size_of::<f64>()) as f64;
    let there = best(|| copy(black_box(&mut target)), 8);
    let new = best(
        || {
            let mut target = vec![0.0f64; COPIED];
            copy(black_box(&mut target));
        },
        8,
    );
    (bytes / there.as_secs_f64(), bytes / new.as_secs_f64())
}

/// Vectors, cores and load, for the heading.
pub fn describe() -> String {
    struct Lanes;
    impl WithSimd for Lanes {
        type Output = usize;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> usize {
            S::F64_LANES
        }
    }
    let vectors = match Arch::new().dispatch(Lanes) {
        8 => "512-bit vectors",
        4 => "256-bit vectors",
        2 => "128-bit vectors",
        _ => "no vectors",
    };
    let field = |path: &str, name: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name));
        line.map_or_else(String::new, |line| {
            line.rsplit(':')
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned()
        })
    };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("unknown").to_owned();
    format!(
        "{}, family {} model {}, {vectors}, {} threads, {} clock, load average {load} at the start",
        field("/proc/cpuinfo", "model name"),
        field("/proc/cpuinfo", "cpu family"),
        field("/proc/cpuinfo", "model\t"),
        rayon::current_num_threads(),
        if std::env::var("DNN_ASSAY_CLOCK").is_ok_and(|clock| clock == "cpu") {
            "processor's"
        } else {
            "wall"
        },
    )
}
