use super::*;
use crate::enums::{DataType, PointwiseMode};
use crate::schema::PointwiseAttributes;
use rstest::rstest;

#[test]
fn every_mode_has_its_own_row_under_its_own_name() {
    for &mode in PointwiseMode::ALL {
        let row = pointwise(mode);
        assert_eq!(row.mode, mode);
        let expected = mode.name().to_lowercase();
        assert_eq!(row.name, expected.strip_suffix("_op").unwrap_or(&expected));
    }
    assert_eq!(pointwise_modes().count(), 47);
    let by_arity = |n| pointwise_modes().filter(|row| row.arity() == n).count();
    assert_eq!((by_arity(1), by_arity(2), by_arity(3)), (23, 23, 1));
}

#[test]
fn backward_modes_take_dy_first_and_pair_with_a_forward_mode() {
    for row in pointwise_modes() {
        let backward = row.name.ends_with("_bwd");
        assert_eq!(
            row.direction == Direction::Backward,
            backward,
            "{}",
            row.name
        );
        if backward {
            assert_eq!(row.operands, ["dy", "x"], "{}", row.name);
            let forward = pointwise_by_name(&row.name.replace("_bwd", "_fwd")).unwrap();
            assert_eq!(forward.direction, Direction::Forward);
            assert_eq!(forward.parameters, row.parameters);
        }
    }
}

#[test]
fn places_and_domains_name_operands_that_exist() {
    for row in pointwise_modes() {
        for place in row.kinks.iter().chain(row.steps).chain(row.poles) {
            assert!(place.operand < row.arity(), "{}", row.name);
            if let Where::EqualToOperand(other) = place.at {
                assert!(other < row.arity() && other != place.operand);
            }
        }
        for domain in row.domain {
            let (Domain::NonZero(i) | Domain::NonNegative(i) | Domain::Positive(i)) = *domain;
            assert!(i < row.arity(), "{}", row.name);
        }
    }
}

#[rstest]
#[case(PointwiseMode::ReluFwd, &[0.0])]
#[case(PointwiseMode::Abs, &[0.0])]
#[case(PointwiseMode::EluFwd, &[])]
#[case(PointwiseMode::TanhFwd, &[])]
fn kinks_under_defaults(#[case] mode: PointwiseMode, #[case] expected: &[f64]) {
    let defaults = Parameters::default();
    let kinks: Vec<f64> = pointwise(mode)
        .kinks
        .iter()
        .filter_map(|place| place.at.value(&defaults))
        .collect();
    assert_eq!(kinks, expected);
}

#[test]
fn parameters_take_the_place_of_defaults() {
    let set = Parameters::of(&PointwiseAttributes {
        relu_lower_clip: Some(0.5),
        relu_upper_clip: Some(6.0),
        elu_alpha: Some(2.0),
        ..Default::default()
    });
    assert_eq!(
        (set.relu_lower, set.relu_upper, set.relu_slope),
        (0.5, 6.0, 0.0)
    );
    assert_eq!(Where::UpperClip.value(&set), Some(6.0));
    assert_eq!(Where::UpperClip.value(&Parameters::default()), None);
    assert_eq!(Where::ZeroUnlessAlphaIsOne.value(&set), Some(0.0));
    assert_eq!(Parameters::default().swish_beta, 1.0);
}

#[test]
fn transcendental_modes_are_for_floats_and_a_mask_is_of_any_type() {
    assert!(!pointwise(PointwiseMode::Exp).inputs.allows(DataType::Int32));
    assert!(pointwise(PointwiseMode::Add).inputs.allows(DataType::Int32));
    assert!(
        !pointwise(PointwiseMode::Add)
            .inputs
            .allows(DataType::Fp4E2m1)
    );
    let select = pointwise(PointwiseMode::BinarySelect);
    assert_eq!(select.mask(), Some(2));
    assert!(select.operand_dtypes(2).allows(DataType::Uint8));
}
