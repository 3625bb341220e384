//! `dnn-assay dev calibrate`: the evidence behind the constant of the bound.

use std::io::Write;

use clap::Args;
use dnn_assay_reference::calibrate::transforms::{self, Transform};
use dnn_assay_reference::calibrate::{Distribution, Order, Row, measure};
use dnn_assay_reference::{Arithmetic, FFT, WINOGRAD};

use super::{Error, stdout};
use crate::exit::Exit;
use crate::report::calibration;

/// Arguments of `dev calibrate`.
#[derive(Args, Debug)]
pub struct CalibrateArgs {
    /// Sums of the longest row; 2000000000 takes minutes
    #[arg(long, value_name = "N", default_value_t = 20_000_000, value_parser = clap::value_parser!(u64).range(1000..))]
    checks: u64,
    /// Seed of the operands
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Lengths of sums in the grid over orders and distributions.
const LENGTHS: [usize; 8] = [1, 2, 8, 64, 256, 4608, 36_864, 100_000];
/// The grid does this fraction of the longest row's products for each of its rows.
const GRID_SHARE: u64 = 100;

/// Channels of the convolutions by transforms, and output planes for each.
const CHANNELS: [usize; 4] = [1, 8, 64, 512];
const PLANES: u64 = 40;

fn transforms(seed: u64) -> Vec<transforms::Row> {
    let mut rows = Vec::new();
    for transform in Transform::ALL {
        for narrow in [false, true] {
            for distribution in Distribution::ALL {
                rows.extend(CHANNELS.map(|channels| {
                    transforms::measure(transform, narrow, distribution, channels, PLANES, seed)
                }));
            }
        }
    }
    rows
}

/// The constant that a row supports.
fn allowed(row: &transforms::Row) -> f64 {
    match row.transform {
        Transform::WinogradTwo | Transform::WinogradFour => WINOGRAD,
        Transform::Fourier => FFT,
    }
}

/// Prints the tables as Markdown; exit code 1 where a ratio exceeds the constant.
///
/// # Errors
/// Where standard output is closed.
pub fn calibrate(args: &CalibrateArgs) -> Result<Exit, Error> {
    let factor = Arithmetic::default().sum_factor;
    // As many products each.
    let mut rows: Vec<Row> = [64, 256, 4608]
        .into_iter()
        .map(|terms| (terms, args.checks / (terms as u64 / 64)))
        .map(|(terms, checks)| {
            let symmetric = Distribution::Symmetric;
            measure(Order::Sequential, symmetric, terms, checks, args.seed)
        })
        .collect();
    for order in Order::ALL {
        for distribution in Distribution::ALL {
            rows.extend(LENGTHS.iter().map(|&terms| {
                let checks = args.checks * 64 / GRID_SHARE / terms as u64;
                measure(
                    order,
                    distribution,
                    terms,
                    checks.clamp(1000, args.checks / 10 + 1000),
                    args.seed,
                )
            }));
        }
    }
    let mut out = stdout();
    let transforms = transforms(args.seed);
    calibration::write_page(&rows, &transforms, factor, args.seed, &mut out)?;
    out.flush()?;
    let holds = rows.iter().all(|row| row.largest <= factor)
        && transforms.iter().all(|row| row.largest <= allowed(row));
    Ok(if holds { Exit::Ok } else { Exit::Failed })
}
