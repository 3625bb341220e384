//! What is wrong with a case id, and where.

use std::ops::Range;

/// Why a text is no case, with the place to underline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CaseError {
    /// What is wrong, what was expected, what to write instead.
    pub message: String,
    /// Byte range of the text, on character borders.
    pub at: Range<usize>,
}

impl CaseError {
    pub(super) fn new(message: impl Into<String>, at: Range<usize>) -> Self {
        Self {
            message: message.into(),
            at,
        }
    }
}

/// The part of an id that a problem lies in; turned into a byte range where the text is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Dtypes,
    Layout,
    Shape,
    Attributes,
    Fill,
}

/// A problem found after the text has been taken apart.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub part: Part,
    pub message: String,
}

impl Fault {
    pub(super) fn new(part: Part, message: impl Into<String>) -> Self {
        Self {
            part,
            message: message.into(),
        }
    }

    /// An extent, stride or size that does not fit.
    pub(super) fn overflow(what: &str) -> Self {
        Self::new(
            Part::Shape,
            format!("shape overflows i64: {what}; make it smaller"),
        )
    }
}

/// `; did you mean …?` with the nearest of the candidates, or nothing if none is near.
pub(super) fn suggestion<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    if word.is_empty() || word.len() > 80 {
        return String::new();
    }
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= (word.len() / 3).max(1))
        .map_or_else(String::new, |(_, near)| format!("; did you mean `{near}`?"))
}
