//! A value in a JSON text together with its path, so that every error can name the place.

use super::error::{JsonError, nearest};
use super::style::{OP_SUFFIX, REDUCTION_MODE};
use crate::enums::WireEnum;
use serde_json::{Map, Value};

/// A value and where it stands.
#[derive(Clone)]
pub(super) struct Cursor<'v> {
    value: &'v Value,
    path: String,
}

impl<'v> Cursor<'v> {
    /// The whole text.
    pub(super) fn root(value: &'v Value) -> Self {
        Self {
            value,
            path: "graph".to_owned(),
        }
    }

    /// The path, for errors.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// An error about this value.
    pub(super) fn wrong(&self, expected: impl Into<String>) -> JsonError {
        JsonError::Value {
            path: self.path.clone(),
            expected: expected.into(),
            seen: shorten(self.value),
        }
    }

    fn object(&self) -> Result<&'v Map<String, Value>, JsonError> {
        self.value
            .as_object()
            .ok_or_else(|| self.wrong("an object"))
    }

    /// The value of a key; absent and `null` are the same.
    pub(super) fn get(&self, key: &str) -> Result<Option<Self>, JsonError> {
        let value = self.object()?.get(key).filter(|value| !value.is_null());
        Ok(value.map(|value| Self {
            value,
            path: format!("{}.{key}", self.path),
        }))
    }

    /// The value of a key that must be there.
    pub(super) fn require(&self, key: &str) -> Result<Self, JsonError> {
        match self.get(key)? {
            Some(value) => Ok(value),
            None => Err(self.missing(key)?),
        }
    }

    /// The error for an absent key.
    pub(super) fn missing(&self, key: &str) -> Result<JsonError, JsonError> {
        let keys = self.object()?.keys().map(String::as_str);
        Ok(JsonError::MissingKey {
            path: self.path.clone(),
            key: key.to_owned(),
            nearest: nearest(key, keys.filter(|candidate| *candidate != key)),
        })
    }

    /// Refuses unknown keys that would change the graph unseen: names of tensors, and slips of
    /// the pen.
    pub(super) fn check_keys(&self, known: &[&str]) -> Result<(), JsonError> {
        for (key, value) in self.object()? {
            if value.is_null() || known.contains(&key.as_str()) {
                continue;
            }
            let slip = known
                .iter()
                .filter(|candidate| {
                    !self
                        .value
                        .as_object()
                        .is_some_and(|o| o.contains_key(**candidate))
                })
                .find(|candidate| is_slip(key, candidate));
            let names_tensor = key.ends_with("_tensor_uid") || key.ends_with("_tensor_uids");
            if slip.is_some() || names_tensor {
                return Err(JsonError::UnknownKey {
                    path: self.path.clone(),
                    key: key.clone(),
                    nearest: slip
                        .map(|name| (*name).to_owned())
                        .or_else(|| nearest(key, known.iter().copied())),
                });
            }
        }
        Ok(())
    }

    /// The elements of an array.
    pub(super) fn items(&self) -> Result<Vec<Self>, JsonError> {
        let items = self
            .value
            .as_array()
            .ok_or_else(|| self.wrong("an array"))?;
        Ok(items
            .iter()
            .enumerate()
            .map(|(index, value)| Self {
                value,
                path: format!("{}[{index}]", self.path),
            })
            .collect())
    }

    /// An integer that fits `T`, called `name` in errors.
    pub(super) fn integer<T: TryFrom<i64>>(&self, name: &str) -> Result<T, JsonError> {
        self.value
            .as_i64()
            .and_then(|value| T::try_from(value).ok())
            .ok_or_else(|| self.wrong(name))
    }

    pub(super) fn i64(&self) -> Result<i64, JsonError> {
        self.integer("a 64-bit integer")
    }

    pub(super) fn i32(&self) -> Result<i32, JsonError> {
        self.integer("a 32-bit integer")
    }

    pub(super) fn u32(&self) -> Result<u32, JsonError> {
        self.integer("an unsigned 32-bit integer")
    }

    pub(super) fn u8(&self) -> Result<u8, JsonError> {
        self.integer("an integer from 0 to 255")
    }

    pub(super) fn i64s(&self) -> Result<Vec<i64>, JsonError> {
        self.items()?.iter().map(Self::i64).collect()
    }

    pub(super) fn i32s(&self) -> Result<Vec<i32>, JsonError> {
        self.items()?.iter().map(Self::i32).collect()
    }

    pub(super) fn bytes(&self) -> Result<Vec<u8>, JsonError> {
        self.items()?.iter().map(Self::u8).collect()
    }

    /// A number, or one of the strings that stand for what JSON has no numbers for.
    pub(super) fn f64(&self) -> Result<f64, JsonError> {
        match self.value.as_str() {
            Some("inf") => Ok(f64::INFINITY),
            Some("-inf") => Ok(f64::NEG_INFINITY),
            Some("nan") => Ok(f64::NAN),
            _ => self
                .value
                .as_f64()
                .ok_or_else(|| self.wrong("a number, \"inf\", \"-inf\" or \"nan\"")),
        }
    }

    /// As [`Self::f64`], in the range of f32.
    pub(super) fn f32(&self) -> Result<f32, JsonError> {
        let wide = self.f64()?;
        let value = wide as f32;
        if value.is_infinite() && wide.is_finite() {
            return Err(self.wrong("a number in the range of a 32-bit float"));
        }
        Ok(value)
    }

    pub(super) fn bool(&self) -> Result<bool, JsonError> {
        self.value
            .as_bool()
            .ok_or_else(|| self.wrong("true or false"))
    }

    pub(super) fn text(&self) -> Result<&'v str, JsonError> {
        self.value.as_str().ok_or_else(|| self.wrong("a string"))
    }

    /// Sets an enum from its name, in any case, or from its number.
    pub(super) fn enumeration(&self, into: &mut dyn WireEnum) -> Result<(), JsonError> {
        if let Some(name) = self.value.as_str() {
            let reduction = into.enum_name() == REDUCTION_MODE;
            if into.set_name(name) || (reduction && into.set_name(&format!("{name}{OP_SUFFIX}"))) {
                return Ok(());
            }
            return Err(self.unknown_name(into.enum_name(), &names(into)));
        }
        let number = self
            .value
            .as_i64()
            .and_then(|number| i8::try_from(number).ok());
        match number {
            Some(number) if into.set_number(number) => Ok(()),
            _ => Err(self.wrong(format!("a name or number of {}", into.enum_name()))),
        }
    }

    /// The error for a string that is none of the names.
    pub(super) fn unknown_name(&self, what: &str, names: &[&str]) -> JsonError {
        let seen = self.value.as_str().unwrap_or_default();
        let lower: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        let nearest = nearest(&seen.to_lowercase(), lower.iter().map(String::as_str));
        let original = nearest
            .and_then(|found| lower.iter().position(|name| *name == found))
            .map(|index| names[index].to_owned());
        JsonError::UnknownName {
            path: self.path.clone(),
            what: what.to_owned(),
            seen: shorten(self.value).trim_matches('"').to_owned(),
            nearest: original,
        }
    }
}

/// Whether a key was meant to be the other: two edits at most, and fewer than half its letters.
fn is_slip(key: &str, known: &str) -> bool {
    let edits = strsim::osa_distance(key, known);
    edits <= 2 && 2 * edits < known.len()
}

/// Every name of an enum.
fn names(value: &mut dyn WireEnum) -> Vec<&'static str> {
    (0..i8::MAX)
        .take_while(|&number| value.set_number(number))
        .collect::<Vec<_>>()
        .into_iter()
        .map(|number| {
            value.set_number(number);
            value.name()
        })
        .collect()
}

/// Characters of a value that a message shows.
const SHOWN: usize = 48;

fn shorten(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
