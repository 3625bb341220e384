//! The error of the kernels' own functions, before their result is rounded to f32, over floats of
//! every exponent; and that the two builds for the host give the same bits.

use dnn_assay_gfx942_host_kernels::function;

/// Name, number in the kernels, and the function in f64.
type Function = (&'static str, u32, fn(f64) -> f64);

/// Pointwise modes with hipDNN's numbers, and what they should be.
const FUNCTIONS: &[Function] = &[
    ("erf", 15, libm::erf),
    ("exp", 16, libm::exp),
    ("log", 24, libm::log),
    ("sin", 38, libm::sin),
    ("tan", 45, libm::tan),
    ("tanh", 47, libm::tanh),
];

/// Units in the last place of f32 that the f64 result may be away from the true value: the
/// rounding that follows adds half of one.
const ALLOWED: f64 = 0.01;

/// One unit in the last place of the f32 nearest to `value`.
fn unit(value: f64) -> f64 {
    let exponent = value.abs().max(f64::from(f32::MIN_POSITIVE)).log2().floor();
    (exponent - 23.0).exp2()
}

fn check(step: usize) {
    if function(16, 0.0, false).is_none() {
        eprintln!("not checked: there was no C++20 compiler");
        return;
    }
    for &(name, mode, expected) in FUNCTIONS {
        let mut worst = (0.0, 0.0f32);
        for bits in (0..=u32::MAX).step_by(step) {
            let x = f32::from_bits(bits);
            let got = function(mode, f64::from(x), true).expect("kernels");
            let other = function(mode, f64::from(x), false).expect("kernels");
            let same = got.to_bits() == other.to_bits() || (got.is_nan() && other.is_nan());
            assert!(same, "{name}({x:e}): {got:e} and {other:e}");
            let want = expected(f64::from(x));
            if !want.is_finite() || want.abs() > f64::from(f32::MAX) {
                let agree =
                    want.is_nan() == got.is_nan() && (want as f32 == got as f32 || want.is_nan());
                assert!(agree, "{name}({x:e}): {got:e}, not {want:e}");
                continue;
            }
            let error = (got - want).abs() / unit(want);
            if error > worst.0 || error.is_nan() {
                worst = (error, x);
            }
        }
        eprintln!("{name}: {:.2e} units of f32 at {:e}", worst.0, worst.1);
        assert!(
            worst.0 <= ALLOWED,
            "{name}: {} units at {:e}",
            worst.0,
            worst.1
        );
    }
}

#[test]
fn functions_are_right_to_a_hundredth_of_a_unit_over_a_sample() {
    check(40_009);
}

#[test]
#[ignore = "all 2^32 floats: minutes on a core"]
fn functions_are_right_to_a_hundredth_of_a_unit_over_all_floats() {
    check(1);
}
