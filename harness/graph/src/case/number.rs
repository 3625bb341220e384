//! Numbers in case ids.

use super::error::CaseError;
use std::fmt::Write;
use std::ops::Range;

/// A piece of the text with the place where it starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub text: &'a str,
    pub start: usize,
}

impl<'a> Piece<'a> {
    pub(super) fn range(self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    /// The piece from a byte of it on.
    pub(super) fn from(self, at: usize) -> Self {
        Self {
            text: &self.text[at..],
            start: self.start + at,
        }
    }

    /// The piece up to a byte of it.
    pub(super) fn until(self, at: usize) -> Self {
        Self {
            text: &self.text[..at],
            start: self.start,
        }
    }

    /// The pieces between the separators.
    pub(super) fn split(self, separator: char) -> impl Iterator<Item = Self> + use<'a> {
        let mut start = self.start;
        self.text.split(separator).map(move |text| {
            let piece = Self { text, start };
            start += text.len() + 1;
            piece
        })
    }

    pub(super) fn error(self, message: impl Into<String>) -> CaseError {
        CaseError::new(message, self.range())
    }
}

/// A whole number that is not negative.
pub(super) fn int(piece: Piece<'_>) -> Result<i64, CaseError> {
    if piece.text.is_empty() || !piece.text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(piece.error(format!("expected a whole number, found `{}`", piece.text)));
    }
    piece
        .text
        .parse()
        .map_err(|_| piece.error(format!("`{}` overflows i64", piece.text)))
}

/// Whole numbers joined by `x`.
pub(super) fn dims(piece: Piece<'_>) -> Result<Vec<i64>, CaseError> {
    piece.split('x').map(int).collect()
}

/// A finite number: `6`, `0.5`, `-1`, `1e-5`.
pub(super) fn float(piece: Piece<'_>) -> Result<f32, CaseError> {
    let starts_well = piece
        .text
        .trim_start_matches('-')
        .starts_with(|c: char| c.is_ascii_digit());
    piece
        .text
        .parse::<f32>()
        .ok()
        .filter(|value| starts_well && value.is_finite())
        .ok_or_else(|| {
            piece.error(format!(
                "expected a number that f32 can hold, such as 0.5 or 1e-5, found `{}`",
                piece.text
            ))
        })
}

/// The shortest text that reads back as the same f32, without `.0`.
pub(super) fn print_float(value: f32) -> String {
    let text = format!("{value:?}");
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => text.replace(".0e", "e"),
    }
}

/// Appends `1x2x3`.
pub(super) fn print_dims(out: &mut String, dims: &[i64]) {
    for (i, dim) in dims.iter().enumerate() {
        let separator = if i == 0 { "" } else { "x" };
        write!(out, "{separator}{dim}").expect("a String takes any text");
    }
}
