//! The error of the kernels' own functions, before their result is rounded to f32, over floats of
//! every exponent; and that the two builds for the host give the same bits. The example `errors`
//! measures all floats.

mod table;

use dnn_assay_gfx942_host_kernels::function;
use table::{FUNCTIONS, error};

/// Units in the last place of f32 that the f64 result may be away from the true value: the
/// rounding that follows adds half of one.
const ALLOWED: f64 = 0.01;
/// Every so many floats are looked at.
const STEP: usize = 40_009;

#[test]
fn functions_are_right_to_a_hundredth_of_a_unit_over_a_sample() {
    if function(16, 0.0, false).is_none() {
        eprintln!("not checked: there was no C++20 compiler");
        return;
    }
    for &(name, mode, expected) in FUNCTIONS {
        for bits in (0..=u32::MAX).step_by(STEP) {
            let x = f32::from_bits(bits);
            let got = function(mode, f64::from(x), true).expect("kernels");
            let other = function(mode, f64::from(x), false).expect("kernels");
            let same = got.to_bits() == other.to_bits() || (got.is_nan() && other.is_nan());
            assert!(same, "{name}({x:e}): {got:e} and {other:e}");
            let error = error(expected(f64::from(x)), got).unwrap_or(0.0);
            assert!(
                error <= ALLOWED,
                "{name}({x:e}): {got:e}, {error} units away"
            );
        }
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
