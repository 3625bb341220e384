//! `dnn-assay dev calibrate`: the evidence behind the constant of the bound.

use std::io::Write;

use clap::Args;
use dnn_assay_reference::Arithmetic;
use dnn_assay_reference::calibrate::{Distribution, Order, Row, measure};

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

/// Prints the table as Markdown; exit code 1 where a ratio exceeds the constant.
///
/// # Errors
/// Where standard output is closed.
pub fn calibrate(args: &CalibrateArgs) -> Result<Exit, Error> {
    let factor = Arithmetic::default().sum_factor;
    let mut rows: Vec<Row> = [(64, args.checks), (256, args.checks / 4)]
        .into_iter()
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
    calibration::write(&rows, factor, args.seed, &mut out)?;
    out.flush()?;
    let holds = rows.iter().all(|row| row.largest <= factor);
    Ok(if holds { Exit::Ok } else { Exit::Failed })
}
