//! Settings of knobs as they are typed, and the values that a constraint allows and excludes.

use dnn_assay_graph::wire::{Knob, KnobConstraint, KnobSetting, KnobValue};

/// Reads `name=value`: an integer where it is one, else a number, else a text.
///
/// # Errors
/// What is missing.
pub fn parse(text: &str) -> Result<KnobSetting, String> {
    let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        return Err(format!("expected KNOB=VALUE, got '{text}'"));
    };
    let value = match (value.parse::<i64>(), value.parse::<f64>()) {
        (Ok(value), _) => KnobValue::Int(value),
        (_, Ok(value)) => KnobValue::Float(value),
        _ => KnobValue::Text(value.to_owned()),
    };
    Ok(KnobSetting {
        knob_id: name.to_owned(),
        value,
    })
}

/// A value as it is typed.
pub fn show(value: &KnobValue) -> String {
    match value {
        KnobValue::Int(value) => value.to_string(),
        KnobValue::Float(value) => value.to_string(),
        KnobValue::Text(value) => value.clone(),
    }
}

/// Values of a list that are tried.
const MAX_VALUES: usize = 8;

/// Why a value breaks a knob's constraint.
pub(crate) fn breach(value: &KnobValue, constraint: &KnobConstraint) -> Option<String> {
    match (value, constraint) {
        (
            KnobValue::Int(value),
            KnobConstraint::Int {
                min,
                max,
                step,
                valid_values,
            },
        ) => {
            if !valid_values.is_empty() {
                return (!valid_values.contains(value)).then(|| "it is not in the list".to_owned());
            }
            if value < min || value > max {
                return Some(format!("it lies outside {min} to {max}"));
            }
            let off = *step > 1 && (i128::from(*value) - i128::from(*min)) % i128::from(*step) != 0;
            off.then(|| format!("it is no step of {step} from {min}"))
        }
        (KnobValue::Float(value), KnobConstraint::Float { min, max }) => {
            let inside = value >= min && value <= max;
            (!inside).then(|| format!("it lies outside {min} to {max}"))
        }
        (
            KnobValue::Text(value),
            KnobConstraint::Text {
                max_length,
                valid_values,
            },
        ) => {
            if !valid_values.is_empty() {
                return (!valid_values.contains(value)).then(|| "it is not in the list".to_owned());
            }
            let limit = usize::try_from(*max_length).unwrap_or(0);
            (limit > 0 && value.len() > limit).then(|| format!("it is longer than {limit}"))
        }
        _ => Some("its type is not the constraint's".to_owned()),
    }
}

/// Values that must be taken.
pub(crate) fn inside(knob: &Knob) -> Vec<KnobValue> {
    let mut values = vec![knob.default_value.clone()];
    match &knob.constraint {
        Some(KnobConstraint::Int {
            min,
            max,
            step,
            valid_values,
        }) if valid_values.is_empty() => {
            let step = (*step).max(1);
            let near = [
                Some(*min),
                Some(*max)
                    .filter(|max| (i128::from(*max) - i128::from(*min)) % i128::from(step) == 0),
                min.checked_add(step).filter(|value| value <= max),
            ];
            values.extend(near.into_iter().flatten().map(KnobValue::Int));
        }
        Some(KnobConstraint::Int { valid_values, .. }) => {
            values.extend(
                valid_values
                    .iter()
                    .take(MAX_VALUES)
                    .map(|v| KnobValue::Int(*v)),
            );
        }
        Some(KnobConstraint::Float { min, max }) => {
            values.extend([*min, *max, min / 2.0 + max / 2.0].map(KnobValue::Float));
        }
        Some(KnobConstraint::Text { valid_values, .. }) => {
            values.extend(
                valid_values
                    .iter()
                    .take(MAX_VALUES)
                    .cloned()
                    .map(KnobValue::Text),
            );
        }
        None => {}
    }
    values.dedup();
    values
}

/// Values that must be refused.
pub(crate) fn outside(knob: &Knob) -> Vec<KnobValue> {
    let candidates = match &knob.constraint {
        Some(KnobConstraint::Int {
            min,
            max,
            step,
            valid_values,
        }) => {
            let (low, high) = match (valid_values.iter().min(), valid_values.iter().max()) {
                (Some(low), Some(high)) => (*low, *high),
                _ => (*min, *max),
            };
            let mut values = vec![low.checked_sub(1), high.checked_add(1)];
            if *step > 1 {
                values.push(min.checked_add(1));
            }
            let mut values: Vec<_> = values.into_iter().flatten().map(KnobValue::Int).collect();
            values.push(KnobValue::Text("not a number".to_owned()));
            values
        }
        Some(KnobConstraint::Float { min, max }) => vec![
            KnobValue::Float(min - min.abs() - 1.0),
            KnobValue::Float(max + max.abs() + 1.0),
        ],
        Some(KnobConstraint::Text { max_length, .. }) => {
            let long = usize::try_from(*max_length).unwrap_or(0).min(1 << 16) + 1;
            vec![KnobValue::Text("x".repeat(long))]
        }
        None => Vec::new(),
    };
    let breaks = |value: &KnobValue| {
        knob.constraint
            .as_ref()
            .is_some_and(|c| breach(value, c).is_some())
    };
    candidates.into_iter().filter(breaks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_type_they_look_like() {
        let value = |text| parse(text).map(|setting| setting.value);
        assert_eq!(value("global.benchmarking=1"), Ok(KnobValue::Int(1)));
        assert_eq!(value("a=-0.5"), Ok(KnobValue::Float(-0.5)));
        assert_eq!(value("a=b=c"), Ok(KnobValue::Text("b=c".to_owned())));
        assert!(parse("=1").is_err() && parse("a").is_err());
    }

    fn knob(default: i64, min: i64, max: i64, step: i64) -> Knob {
        Knob {
            knob_id: "k".to_owned(),
            description: String::new(),
            default_value: KnobValue::Int(default),
            constraint: Some(KnobConstraint::Int {
                min,
                max,
                step,
                valid_values: Vec::new(),
            }),
            deprecated: false,
        }
    }

    #[test]
    fn values_inside_are_inside_and_values_outside_are_not() {
        for knob in [
            knob(0, 0, 1, 1),
            knob(4, 0, 10, 4),
            knob(i64::MAX, 0, i64::MAX, 1),
        ] {
            let constraint = knob.constraint.as_ref().unwrap();
            assert!(
                inside(&knob)
                    .iter()
                    .all(|value| breach(value, constraint).is_none())
            );
            assert!(
                outside(&knob)
                    .iter()
                    .all(|value| breach(value, constraint).is_some())
            );
            assert!(!outside(&knob).is_empty());
        }
        let off = knob(5, 0, 10, 4);
        let constraint = off.constraint.as_ref().unwrap();
        assert_eq!(
            breach(&off.default_value, constraint).as_deref(),
            Some("it is no step of 4 from 0")
        );
    }
}
