//! Each comparator test reads as a table of elements and the text that comes of it.

use super::*;
use crate::criterion::{Criterion, ZeroSign};
use crate::dtype::{encode, round};
use crate::estimate::{Alternative, Estimate};
use dnn_assay_graph::{DataType, Tensor};
use proptest::prelude::*;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// Rows of value, uncertainty, got.
fn run(data_type: DataType, criterion: Criterion, rows: &[(f64, f32, f64)]) -> Comparison {
    let tensor = Tensor::packed(1, "y", data_type, &[rows.len() as i64]);
    let estimate = Estimate::new(
        rows.iter().map(|row| row.0).collect(),
        rows.iter().map(|row| row.1).collect(),
    );
    let got: Vec<f64> = rows.iter().map(|row| row.2).collect();
    let mut bytes = vec![0; tensor.byte_size().unwrap()];
    encode(&tensor, &got, &mut bytes).unwrap();
    compare(&tensor, &estimate, &bytes, &criterion).unwrap()
}

fn text(comparison: &Comparison) -> String {
    let Comparison {
        compared,
        mismatched,
        margin,
        ulps,
        ..
    } = comparison;
    let verdict = comparison
        .kind
        .map_or("pass".to_owned(), |kind| format!("fail({kind})"));
    let mut text = format!("{verdict} {mismatched}/{compared} margin {margin:.3} ulps {ulps}\n");
    for element in &comparison.first {
        text += &format!("  {element}\n");
    }
    for note in &comparison.notes {
        text += &format!("  note {note}\n");
    }
    text
}

#[track_caller]
fn check(data_type: DataType, criterion: Criterion, rows: &[(f64, f32, f64)], expected: &str) {
    let seen = text(&run(data_type, criterion, rows));
    let expected: String = expected
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .enumerate()
        .map(|(i, line)| {
            if i == 0 {
                format!("{line}\n")
            } else {
                format!("  {line}\n")
            }
        })
        .collect();
    assert_eq!(seen, expected);
}

#[test]
fn bound_on_numbers() {
    check(
        DataType::Half,
        Criterion::Bound,
        &[
            (1.0, 0.0, 1.0),
            (1.0 + 1.0 / 2048.0, 0.0, 1.0),
            (-3.0, 0.01, -3.01),
        ],
        "pass 0/3 margin 0.999 ulps 0:2 4:1",
    );
    check(
        DataType::Half,
        Criterion::Bound,
        &[(1.0, 0.0, 1.0), (2.0, 0.0, 2.001953125), (4.0, 1e-3, -4.0)],
        "fail(numeric) 2/3 margin 2708.519 ulps 0:1 1:1 ≥16384:1
           [1] expected 2, got 2.001953125, margin 2.000, 1 ulp
           [2] expected 4, got -4, margin 2708.519, 34816 ulp",
    );
}

#[test]
fn nan_and_infinity_in_both_directions() {
    check(
        DataType::Float,
        Criterion::Bound,
        &[(NAN, 0.0, NAN), (INF, 0.0, INF), (-INF, 0.0, -INF)],
        "pass 0/3 margin 0.000 ulps 0:2 ≥16384:1",
    );
    check(
        DataType::Float,
        Criterion::Bound,
        &[
            (1.0, 0.0, NAN),
            (NAN, 0.0, 1.0),
            (INF, 0.0, -INF),
            (INF, 0.0, 1.0),
            (1.0, 0.0, INF),
            (NAN, 0.0, INF),
            (INF, 0.0, NAN),
            (1.0, f32::INFINITY, NAN),
        ],
        "fail(not-finite) 8/8 margin inf ulps ≥16384:8
           [0] expected 1, got NaN, margin inf
           [1] expected NaN, got 1, margin inf
           [2] expected inf, got -inf, margin inf, 4278190080 ulp
           [3] expected inf, got 1, margin inf, 1073741824 ulp
           [4] expected 1, got inf, margin inf, 1073741824 ulp
           [5] expected NaN, got inf, margin inf
           [6] expected inf, got NaN, margin inf
           [7] expected 1, got NaN, margin inf
           note without a bound: 1",
    );
}

#[test]
fn overflow_is_accepted_where_the_reference_comes_near_it() {
    check(
        DataType::Half,
        Criterion::Bound,
        &[
            (65510.0, 20.0, INF),
            (65510.0, 20.0, 65504.0),
            (-70000.0, 0.0, -INF),
            (-1e9, 0.0, -65504.0),
        ],
        "pass 0/4 margin 0.115 ulps 0:2 1:2
           note accepted at overflow: 3",
    );
    check(
        DataType::Half,
        Criterion::Bound,
        &[
            (65510.0, 1.0, INF),
            (70000.0, 0.0, -INF),
            (70000.0, 0.0, 65472.0),
        ],
        "fail(not-finite) 3/3 margin inf ulps 1:1 2:1 ≥16384:1
           [0] expected 65510, got inf, margin inf, 1 ulp
           [1] expected 70000, got -inf, margin inf, 63488 ulp
           [2] expected 70000, got 65472, margin 132.476, 2 ulp",
    );
}

/// A fraction may be dropped or rounded away; what has none must be met; beyond the type's range an
/// engine may saturate or wrap.
#[test]
fn integers_may_be_truncated_or_rounded_and_nothing_else() {
    use DataType::{Int8, Int32, Int64, Uint8};
    let accepts = |data_type, value, error, got| {
        let comparison = run(data_type, Criterion::Bound, &[(value, error, got)]);
        let exact = run(
            data_type,
            Criterion::Exact(ZeroSign::Ignored),
            &[(value, error, got)],
        );
        assert_eq!(comparison.passed, exact.passed, "{value} ± {error}: {got}");
        assert_eq!(
            comparison.passed,
            comparison.margin <= 1.0,
            "{value} ± {error}: {got}"
        );
        comparison.passed
    };
    for (value, error, right, wrong) in [
        (3.0, 0.0, &[3.0][..], &[2.0, 4.0][..]),
        (2.7, 0.0, &[2.0, 3.0], &[1.0, 4.0]),
        (2.3, 0.0, &[2.0], &[1.0, 3.0]),
        (2.5, 0.0, &[2.0, 3.0], &[1.0, 4.0]),
        (-0.83, 0.0, &[-1.0, 0.0], &[1.0, -2.0]),
        (3.0, 1e-6, &[2.0, 3.0], &[1.0, 4.0]),
        (2.1, 0.2, &[1.0, 2.0], &[0.0, 3.0]),
    ] {
        for data_type in [Int8, Int32, Int64] {
            assert!(
                right
                    .iter()
                    .all(|&got| accepts(data_type, value, error, got)),
                "{value}"
            );
            assert!(
                !wrong
                    .iter()
                    .any(|&got| accepts(data_type, value, error, got)),
                "{value}"
            );
        }
    }
    for (data_type, value, right, wrong) in [
        (Uint8, -8.0, [0.0, 248.0], [8.0, 247.0]),
        (Uint8, 300.0, [255.0, 44.0], [0.0, 45.0]),
        (Int8, -130.0, [-128.0, 126.0], [127.0, 0.0]),
        (Int8, 128.0, [127.0, -128.0], [0.0, -127.0]),
        (
            Int32,
            2f64.powi(31),
            [2147483647.0, -2147483648.0],
            [0.0, -2147483647.0],
        ),
    ] {
        assert!(
            right.iter().all(|&got| accepts(data_type, value, 0.0, got)),
            "{value}"
        );
        assert!(
            !wrong.iter().any(|&got| accepts(data_type, value, 0.0, got)),
            "{value}"
        );
    }
    assert!(!accepts(Int8, f64::NAN, 0.0, 5.0));
}

#[test]
fn zeros_of_both_signs() {
    check(
        DataType::Float,
        Criterion::Exact(ZeroSign::Ignored),
        &[(0.0, 0.0, -0.0), (-0.0, 0.0, -0.0)],
        "pass 0/2 margin 0.000 ulps 0:2
           note zeros of the other sign: 1",
    );
    check(
        DataType::Float,
        Criterion::Exact(ZeroSign::Significant),
        &[(0.0, 0.0, -0.0)],
        "fail(inexact) 1/1 margin 0.000 ulps 0:1
           [0] expected 0, got -0, margin 0.000, 0 ulp
           note zeros of the other sign: 1",
    );
}

#[test]
fn exact_tells_inexact_from_numeric() {
    let truncated = (4099.0, 4.0, 4096.0);
    let exact = Criterion::Exact(ZeroSign::Ignored);
    check(
        DataType::Half,
        exact,
        &[truncated, (5.0, 0.0, 5.0)],
        "fail(inexact) 1/2 margin 0.500 ulps 0:1 1:1
           [0] expected 4099, got 4096, margin 0.500, 1 ulp",
    );
    let undeclared = run(DataType::Half, exact, &[truncated, (5.0, 0.0, 5.0)]).allow_inexact();
    assert_eq!(
        text(&undeclared).lines().last(),
        Some("  note not integer-exact: 1")
    );
    assert!(undeclared.passed && undeclared.mismatched == 1);
    let wrong = run(DataType::Half, exact, &[truncated, (5.0, 0.0, 6.0)]).allow_inexact();
    assert_eq!((wrong.passed, wrong.kind), (false, Some(Mismatch::Numeric)));
}

#[test]
fn table_fails_on_anything_that_is_not_finite() {
    let table = Criterion::Table {
        atol: 0.1,
        rtol: 0.01,
    };
    check(
        DataType::Float,
        table,
        &[(10.0, 0.0, 10.1875), (0.0, 0.0, 0.0625)],
        "pass 0/2 margin 0.938 ulps ≥16384:2",
    );
    check(
        DataType::Float,
        table,
        &[(NAN, 0.0, NAN), (INF, 0.0, INF), (10.0, 0.0, 10.25)],
        "fail(not-finite) 3/3 margin inf ulps 0:1 ≥16384:2
           [0] expected NaN, got NaN, margin inf
           [1] expected inf, got inf, margin inf, 0 ulp
           [2] expected 10, got 10.25, margin 1.250, 262144 ulp",
    );
    check(
        DataType::Int32,
        table,
        &[(10.0, 0.0, 10.0), (10.0, 0.0, 11.0)],
        "fail(numeric) 1/2 margin inf ulps 0:1 1:1
           [1] expected 10, got 11, margin inf, 1 ulp",
    );
}

#[test]
fn rms_sees_the_tensor_only() {
    let rows: Vec<_> = (0..100)
        .map(|i| {
            (
                f64::from(i),
                0.0,
                f64::from(i) + if i == 50 { 5.0 } else { 0.0 },
            )
        })
        .collect();
    let miopen = Criterion::Rms { threshold: 8.2e-3 };
    let comparison = run(DataType::Float, miopen, &rows);
    assert!(
        comparison.passed && comparison.outside_bound == 1,
        "a wrong element passes"
    );
    assert!((comparison.margin - 0.5 / 99.0 / 8.2e-3).abs() < 1e-12);
    let tight = run(DataType::Float, Criterion::Rms { threshold: 1.5e-6 }, &rows);
    assert_eq!(tight.kind, Some(Mismatch::Numeric));
    let nan = run(DataType::Float, miopen, &[(1.0, 0.0, NAN)]);
    assert_eq!((nan.kind, nan.margin), (Some(Mismatch::NotFinite), INF));
}

#[test]
fn ulp_counts_from_the_rounded_reference() {
    check(
        DataType::Bfloat16,
        Criterion::Ulp { limit: 2 },
        &[(1.0, 0.0, 1.015625), (NAN, 0.0, NAN), (1e39, 0.0, INF)],
        "pass 0/3 margin 1.000 ulps 0:1 2:1 ≥16384:1",
    );
    check(
        DataType::Bfloat16,
        Criterion::Ulp { limit: 2 },
        &[(1.0, 0.0, 1.0234375), (f64::from(f32::MAX), 0.0, 1.0)],
        "fail(not-finite) 2/2 margin inf ulps 2:1 ≥16384:1
           [0] expected 1, got 1.0234375, margin 1.500, 3 ulp
           [1] expected 3.4028234663852886e38, got 1, margin inf, 16384 ulp",
    );
}

#[test]
fn alternatives_of_the_estimate() {
    let tensor = Tensor::packed(1, "y", DataType::Float, &[2]);
    let estimate = Estimate {
        also: vec![Alternative {
            index: 1,
            value: INF,
        }],
        ..Estimate::exact(vec![1.0, 2.0])
    };
    let mut bytes = [0; 8];
    encode(&tensor, &[1.0, INF], &mut bytes).unwrap();
    let comparison = compare(&tensor, &estimate, &bytes, &Criterion::Bound).unwrap();
    assert!(comparison.passed);
    assert_eq!(comparison.notes, [Note::Alternative(1)]);
    encode(&tensor, &[INF, 2.0], &mut bytes).unwrap();
    assert!(
        !compare(&tensor, &estimate, &bytes, &Criterion::Bound)
            .unwrap()
            .passed
    );
}

#[test]
fn strided_buffers_and_coordinates() {
    let tensor = Tensor {
        strides: vec![20, 1, 4],
        ..Tensor::packed(7, "y", DataType::Float, &[2, 3, 2])
    };
    let value: Vec<f64> = (0..12).map(f64::from).collect();
    let estimate = Estimate::exact(value.clone());
    let mut got = value;
    got[9] = -9.0;
    let mut bytes = vec![0xff; tensor.byte_size().unwrap()];
    encode(&tensor, &got, &mut bytes).unwrap();
    let comparison = compare(&tensor, &estimate, &bytes, &Criterion::Bound).unwrap();
    assert_eq!((comparison.mismatched, comparison.compared), (1, 12));
    assert_eq!(comparison.worst.unwrap().coordinates, [1, 1, 1]);
    let short = compare(&tensor, &estimate, &bytes[1..], &Criterion::Bound).unwrap_err();
    assert_eq!(
        short.to_string(),
        "tensor 7: buffer of 107 bytes, 108 needed"
    );
    let wrong = compare(&tensor, &Estimate::default(), &bytes, &Criterion::Bound).unwrap_err();
    assert_eq!(wrong.to_string(), "tensor 7: 0 values for 12 elements");
}

#[test]
fn empty_and_long_tensors() {
    let empty = run(DataType::Half, Criterion::Bound, &[]);
    assert_eq!((empty.passed, empty.compared, empty.worst), (true, 0, None));
    let rows: Vec<_> = (0..30)
        .map(|i| (f64::from(i), 0.0, f64::from(i) + 1.0))
        .collect();
    let wrong = run(DataType::Float, Criterion::Bound, &rows);
    let first: Vec<usize> = wrong.first.iter().map(|element| element.index).collect();
    assert_eq!((wrong.mismatched, first), (30, (0..10).collect()));
}

#[test]
fn drift_shows_in_the_bias() {
    // Truncation of 4096 + i/8 to f16, whose spacing is 4 there: always towards zero.
    let rows: Vec<_> = (0..4096)
        .map(|i| {
            let y = 4096.0 + f64::from(i) / 8.0;
            (y, 0.0, (y / 4.0).floor() * 4.0)
        })
        .collect();
    let truncated = run(DataType::Half, Criterion::Bound, &rows);
    assert!(truncated.bias_z < -40.0 && truncated.bias_mean < -0.5);
    let rounded: Vec<_> = rows
        .iter()
        .map(|&(y, e, _)| (y, e, round(DataType::Half, y)))
        .collect();
    assert!(run(DataType::Half, Criterion::Bound, &rounded).bias_z.abs() < 8.0);
}

fn floats() -> impl Strategy<Value = DataType> {
    use DataType::*;
    prop::sample::select(vec![Float, Half, Bfloat16, Double])
}

fn criteria() -> impl Strategy<Value = Criterion> {
    prop::sample::select(vec![
        Criterion::Bound,
        Criterion::Exact(ZeroSign::Ignored),
        Criterion::Table {
            atol: 1e30,
            rtol: 1e30,
        },
        Criterion::Rms { threshold: 1e30 },
        Criterion::Ulp { limit: u64::MAX },
    ])
}

proptest! {
    /// The reference, rounded, passes; and no worse than at the bound.
    #[test]
    fn the_rounded_reference_passes(
        data_type in floats(),
        values in prop::collection::vec(any::<f64>(), 1..50),
        scale in -140f64..140.0,
    ) {
        let rows: Vec<_> = values
            .iter()
            .map(|v| v % 1.0 * scale.exp2())
            .map(|v| (v, 0.0, v))
            .collect();
        for criterion in [Criterion::Bound, Criterion::Exact(ZeroSign::Ignored)] {
            let comparison = run(data_type, criterion, &rows);
            prop_assert!(comparison.passed && comparison.margin <= 1.0, "{comparison:?}");
        }
    }

    /// Beyond the bound it fails, within it passes.
    #[test]
    fn the_bound_is_where_it_says(
        y in -1000f64..1000.0,
        e in 0f32..10.0,
        factor in prop::sample::select(vec![-1.001, -0.999, 0.999, 1.001]),
    ) {
        let u = (-24f64).exp2();
        let bound = f64::from(e) + u * (y.abs() + f64::from(e)) + 0.7e-45;
        // Keep the rounding of the perturbed value itself out of the way.
        let got = y + factor * bound;
        let slack = u * got.abs();
        let comparison = run(DataType::Float, Criterion::Bound, &[(y, e, got)]);
        if slack < 0.0005 * bound {
            prop_assert_eq!(comparison.passed, factor.abs() < 1.0, "{:?}", comparison);
        }
        let worst = comparison.worst.unwrap();
        prop_assert!((worst.bound / bound - 1.0).abs() < 1e-12);
    }

    /// A NaN for a number never passes, whatever the rule and the uncertainty.
    #[test]
    fn nan_never_passes_silently(
        data_type in floats(),
        criterion in criteria(),
        len in 1usize..40,
        at in any::<prop::sample::Index>(),
        e in prop::sample::select(vec![0.0, 1.0, f32::MAX, f32::INFINITY]),
    ) {
        let at = at.index(len);
        let mut rows: Vec<_> = (0..len).map(|i| (i as f64, e, i as f64)).collect();
        rows[at].2 = NAN;
        let comparison = run(data_type, criterion, &rows);
        prop_assert!(!comparison.passed);
        prop_assert_eq!(comparison.kind, Some(Mismatch::NotFinite));
        prop_assert_eq!(comparison.worst.unwrap().index, at);
    }
}

/// Every figure has the same bits for any number of threads and any layout.
#[test]
fn threads_and_layout_change_nothing() {
    let dims = [3, 8, 50, 60];
    let packed = Tensor::packed(1, "y", DataType::Bfloat16, &dims);
    let channels_last = Tensor {
        strides: vec![24000, 1, 480, 8],
        ..packed.clone()
    };
    let count = packed.element_count().unwrap();
    let value: Vec<f64> = (0..count)
        .map(|i| ((i * 7919) % 1009) as f64 / 13.0 - 30.0)
        .collect();
    let estimate = Estimate::new(value.clone().into(), vec![0.01; count].into());
    let got: Vec<f64> = value
        .iter()
        .enumerate()
        .map(|(i, v)| v + (i % 17) as f64 / 99.0)
        .collect();
    let mut results = Vec::new();
    for tensor in [packed, channels_last] {
        let mut bytes = vec![0; tensor.byte_size().unwrap()];
        encode(&tensor, &got, &mut bytes).unwrap();
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            results.push(
                pool.install(|| compare(&tensor, &estimate, &bytes, &Criterion::Bound))
                    .unwrap(),
            );
        }
    }
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    assert!(results[0].mismatched > 0);
}
