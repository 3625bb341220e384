//! Runs of elements of one channel, computed in vectors.

use crate::estimate::{Estimate, above};
use crate::ops::operand::Operand;
use crate::parallel;

/// Values of neighbours, and their errors where those are wanted.
pub(super) struct Row<'a> {
    value: &'a mut [f64],
    error: Option<&'a mut [f32]>,
}

impl<'a> Row<'a> {
    /// All of an estimate, which has either an error for each value or none.
    pub fn of(estimate: &'a mut Estimate) -> Self {
        let error = Some(&mut estimate.error[..]);
        Self {
            value: &mut estimate.value,
            error: error.filter(|error| !error.is_empty()),
        }
    }

    /// Rows of `len` elements, one after another; none of an empty one.
    pub fn chunks(self, len: usize) -> impl Iterator<Item = Row<'a>> {
        let mut errors = self.error.map(|error| error.chunks_mut(len.max(1)));
        let values = self.value.chunks_mut(len.max(1));
        values.map(move |value| Row {
            value,
            error: errors.as_mut().and_then(Iterator::next),
        })
    }
}

/// Elements that are computed at once: a loop of a fixed count over arrays of its own becomes vectors,
/// whatever `element` is.
const RUN: usize = 64;

/// Computes the row whose first element is `start`. `element` is the function of an element's values
/// in `tensors` and their errors.
pub(super) fn fill_row<const ROWS: usize>(
    tensors: [&Operand<'_>; ROWS],
    start: usize,
    row: Row<'_>,
    element: &impl Fn([f64; ROWS], [f64; ROWS]) -> (f64, f64),
) {
    let range = start..start + row.value.len();
    let operands = Operands {
        values: tensors.map(|tensor| &tensor.value[range.clone()]),
        errors: tensors.map(|tensor| tensor.error.get(range.clone()).unwrap_or(&[])),
        is_exact: tensors.iter().all(|tensor| tensor.error.is_empty()),
    };
    let Row { value, error } = row;
    match error {
        Some(error) => fill_both(&operands, value, error, element),
        None => fill_values(&operands, value, element),
    }
}

/// What a row is computed from.
struct Operands<'a, const ROWS: usize> {
    values: [&'a [f64]; ROWS],
    errors: [&'a [f32]; ROWS],
    is_exact: bool,
}

fn fill_both<const ROWS: usize>(
    operands: &Operands<'_, ROWS>,
    value: &mut [f64],
    error: &mut [f32],
    element: &impl Fn([f64; ROWS], [f64; ROWS]) -> (f64, f64),
) {
    parallel::vectorised(
        #[inline(always)]
        || {
            let runs = value.chunks_mut(RUN).zip(error.chunks_mut(RUN));
            for (run, (value, error)) in runs.enumerate() {
                let from = run * RUN;
                if let (true, Some(y), Some(e)) = (
                    operands.is_exact,
                    value.first_chunk_mut(),
                    error.first_chunk_mut(),
                ) {
                    let x = operands.values.map(|row| whole(row, from));
                    fill_run(x, [&[0.0; RUN]; ROWS], (y, e), element);
                    continue;
                }
                let x = operands.values.map(|row| taken(row, from));
                let doubt = operands.errors.map(|row| taken(row, from));
                let (mut y, mut e) = ([0.0; RUN], [0.0; RUN]);
                fill_run(x.each_ref(), doubt.each_ref(), (&mut y, &mut e), element);
                value.copy_from_slice(&y[..value.len()]);
                error.copy_from_slice(&e[..error.len()]);
            }
        },
    );
}

fn fill_values<const ROWS: usize>(
    operands: &Operands<'_, ROWS>,
    value: &mut [f64],
    element: &impl Fn([f64; ROWS], [f64; ROWS]) -> (f64, f64),
) {
    parallel::vectorised(
        #[inline(always)]
        || {
            for (run, value) in value.chunks_mut(RUN).enumerate() {
                let from = run * RUN;
                if let Some(y) = value.first_chunk_mut() {
                    fill_value_run(operands.values.map(|row| whole(row, from)), y, element);
                    continue;
                }
                let x = operands.values.map(|row| taken(row, from));
                let mut y = [0.0; RUN];
                fill_value_run(x.each_ref(), &mut y, element);
                value.copy_from_slice(&y[..value.len()]);
            }
        },
    );
}

/// A whole run, which lies ahead.
#[inline(always)]
fn whole(row: &[f64], from: usize) -> &[f64; RUN] {
    row[from..]
        .first_chunk()
        .expect("the operand is as long as the result")
}

/// The numbers from `from` on, followed by zeros where there are too few.
#[inline(always)]
fn taken<T: Copy + Into<f64>>(row: &[T], from: usize) -> [f64; RUN] {
    let mut taken = [0.0; RUN];
    let row = row.get(from..).unwrap_or_default();
    if let Some(row) = row.first_chunk::<RUN>() {
        for (taken, &own) in taken.iter_mut().zip(row) {
            *taken = own.into();
        }
    } else {
        for (taken, &own) in taken.iter_mut().zip(row) {
            *taken = own.into();
        }
    }
    taken
}

#[inline(always)]
fn fill_run<const ROWS: usize>(
    values: [&[f64; RUN]; ROWS],
    errors: [&[f64; RUN]; ROWS],
    (y, e): (&mut [f64; RUN], &mut [f32; RUN]),
    element: &impl Fn([f64; ROWS], [f64; ROWS]) -> (f64, f64),
) {
    for i in 0..RUN {
        let (value, error) = element(
            std::array::from_fn(|row| values[row][i]),
            std::array::from_fn(|row| errors[row][i]),
        );
        y[i] = value;
        e[i] = above(error);
    }
}

#[inline(always)]
fn fill_value_run<const ROWS: usize>(
    values: [&[f64; RUN]; ROWS],
    y: &mut [f64; RUN],
    element: &impl Fn([f64; ROWS], [f64; ROWS]) -> (f64, f64),
) {
    for i in 0..RUN {
        (y[i], _) = element(std::array::from_fn(|row| values[row][i]), [0.0; ROWS]);
    }
}
