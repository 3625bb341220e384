//! The error of the kernels' own functions over floats of every exponent; and that the two builds
//! for the host give the same bits. The example `errors` measures all floats.

mod table;

use dnn_assay_gfx942_host_kernels::function;
use table::{FUNCTIONS, error};

/// Every so many floats are looked at.
const STEP: usize = 40_009;

#[test]
fn functions_are_as_right_as_stated_over_a_sample() {
    if function(16, 0.0, false).is_none() {
        eprintln!("not checked: there was no C++20 compiler");
        return;
    }
    for f in FUNCTIONS {
        let (name, mode) = (f.name, f.mode);
        for bits in (0..=u32::MAX).step_by(STEP) {
            let x = f32::from_bits(bits);
            let got = function(mode, f64::from(x), true).expect("kernels");
            let other = function(mode, f64::from(x), false).expect("kernels");
            let same = got.to_bits() == other.to_bits() || (got.is_nan() && other.is_nan());
            assert!(same, "{name}({x:e}): {got:e} and {other:e}");
            let error = error((f.expected)(f64::from(x)), got).unwrap_or(0.0);
            assert!(
                error <= f.allowed,
                "{name}({x:e}): {got:e}, {error} units away"
            );
        }
    }
}

/// GELU in f32 errs no more than the textbook form 0.5 x (1 + erf(x / sqrt(2))) may in f32
/// arithmetic: an erf of two units (`suites/tolerances/pointwise.yaml`), then a sum and a product.
#[test]
fn gelu_in_single_precision_errs_no_more_than_the_textbook_form() {
    if function(21, 0.0, true).is_none() {
        eprintln!("not checked: there was no C++20 compiler");
        return;
    }
    let u = f64::from(f32::EPSILON) / 2.0;
    for bits in (0..=u32::MAX).step_by(STEP) {
        let x = f64::from(f32::from_bits(bits));
        if !x.is_finite() {
            continue;
        }
        let erf = libm::erf(x * std::f64::consts::FRAC_1_SQRT_2);
        let want = 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
        let allowed = 0.5 * x.abs() * u * (4.0 * erf.abs() + (1.0 + erf)) + want.abs() * u;
        let got = function(21, x, true).expect("kernels");
        let least = f64::from(f32::from_bits(1));
        assert!(
            (got - want).abs() <= allowed + least,
            "gelu({x:e}): {got:e} for {want:e}, allowed {allowed:e}"
        );
    }
}

#[test]
fn an_error_is_counted_in_units_of_f32() {
    let unit = f64::from(f32::EPSILON);
    assert_eq!(error(1.0, 1.0 + unit), Some(1.0));
    assert_eq!(error(0.0, f64::from(f32::MIN_POSITIVE) * unit), Some(1.0));
    assert_eq!(error(f64::INFINITY, 1e300), None, "both round to infinity");
    assert_eq!(error(f64::NAN, 1.0), Some(f64::INFINITY));
}
