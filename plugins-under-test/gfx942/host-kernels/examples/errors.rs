//! Measures the kernels' functions over all 2^32 values of f32, on all processors, and prints for
//! each the largest error before the result is rounded to f32, in units in the last place:
//!
//! ```text
//! cargo run --release -p dnn-assay-gfx942-host-kernels --example errors
//! ```

#[path = "../tests/table/mod.rs"]
mod table;

use std::sync::atomic::{AtomicU64, Ordering};

use dnn_assay_gfx942_host_kernels::function;
use table::{FUNCTIONS, error};

/// Floats that a thread takes at a time.
const CHUNK: u64 = 1 << 20;

fn main() {
    if function(16, 0.0, true).is_none() {
        eprintln!("there was no C++20 compiler, so there are no kernels");
        std::process::exit(1);
    }
    for f in FUNCTIONS {
        let (worst, at) = worst(f.mode, f.expected);
        println!("{:6} {worst:.6} units, at {at:e}", f.name);
    }
}

fn worst(mode: u32, expected: fn(f64) -> f64) -> (f64, f32) {
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let search = || {
        let mut worst = (0.0, 0.0f32);
        loop {
            let start = next.fetch_add(CHUNK, Ordering::Relaxed);
            if start >= 1 << 32 {
                return worst;
            }
            for bits in start..start + CHUNK {
                let x = f32::from_bits(bits as u32);
                let got = function(mode, f64::from(x), true).unwrap_or(f64::NAN);
                let error = error(expected(f64::from(x)), got).unwrap_or(0.0);
                if error > worst.0 || error.is_nan() {
                    worst = (error, x);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(search)).collect();
        let all = all.into_iter().filter_map(|thread| thread.join().ok());
        all.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default()
    })
}
