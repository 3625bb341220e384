//! How values that JSON has no form for are written: floats that are not finite, 64-bit ids, and
//! a verdict whose kind is there even when it has none.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::verdict::Verdict;

/// `f64` as a number when finite, else as `"nan"`, `"inf"` or `"-inf"`.
pub mod float {
    use super::*;

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    pub(super) enum Form {
        Number(f64),
        Name(String),
    }

    impl From<f64> for Form {
        fn from(value: f64) -> Self {
            if value.is_finite() {
                Self::Number(value)
            } else if value.is_nan() {
                Self::Name("nan".to_owned())
            } else if value > 0.0 {
                Self::Name("inf".to_owned())
            } else {
                Self::Name("-inf".to_owned())
            }
        }
    }

    impl Form {
        pub(super) fn value<E: serde::de::Error>(self) -> Result<f64, E> {
            match self {
                Self::Number(value) => Ok(value),
                Self::Name(name) => match name.as_str() {
                    "nan" => Ok(f64::NAN),
                    "inf" => Ok(f64::INFINITY),
                    "-inf" => Ok(f64::NEG_INFINITY),
                    other => Err(E::custom(format!("`{other}` is no number"))),
                },
            }
        }
    }

    /// For `#[serde(with)]`.
    pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        Form::from(*value).serialize(serializer)
    }

    /// For `#[serde(with)]`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Form::deserialize(deserializer)?.value()
    }
}

/// `Option<f64>` like [`float`], and `null`.
pub mod optional_float {
    use super::*;

    /// For `#[serde(with)]`.
    pub fn serialize<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        value.map(float::Form::from).serialize(serializer)
    }

    /// For `#[serde(with)]`.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<f64>, D::Error> {
        Option::<float::Form>::deserialize(deserializer)?
            .map(float::Form::value)
            .transpose()
    }
}

/// `i64` ids as `"0x0123456789abcdef"`: readers that keep numbers as doubles would lose bits.
pub mod hex_id {
    use super::*;

    /// For `#[serde(with)]`.
    pub fn serialize<S: Serializer>(value: &i64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{value:#018x}"))
    }

    /// For `#[serde(with)]`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        u64::from_str_radix(digits, 16)
            .map(u64::cast_signed)
            .map_err(|_| D::Error::custom(format!("`{text}` is no engine id")))
    }
}

/// A verdict as the two fields `verdict` and `kind`, both always there. For a flattened field.
pub mod verdict_and_kind {
    use super::*;

    #[derive(Serialize)]
    struct Fields {
        verdict: &'static str,
        kind: serde_json::Value,
    }

    /// For `#[serde(with)]`.
    pub fn serialize<S: Serializer>(value: &Verdict, serializer: S) -> Result<S::Ok, S::Error> {
        let form = serde_json::to_value(value).map_err(serde::ser::Error::custom)?;
        Fields {
            verdict: value.name(),
            kind: form.get("kind").cloned().unwrap_or_default(),
        }
        .serialize(serializer)
    }

    /// For `#[serde(with)]`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Verdict, D::Error> {
        Verdict::deserialize(deserializer)
    }
}
