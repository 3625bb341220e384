//! Settings of knobs as they are typed.

use dnn_assay_graph::wire::{KnobSetting, KnobValue};

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
}
