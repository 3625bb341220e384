//! The shape part: `n2-c64-k64-i56x56-f3x3`.

use super::error::{CaseError, suggestion};
use super::number::{self, Piece};
use super::op::Op;

/// Extents of a case. For convolutions `c` and `k` count all groups, `i` is the extent of x and
/// `f` that of the filter; y follows. For the others `n`, `c`, `i` is the extent of the output.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Batch.
    pub n: i64,
    /// Channels of x.
    pub c: i64,
    /// Channels of y; convolutions only.
    pub k: Option<i64>,
    /// Spatial extents of x, one to three.
    pub i: Vec<i64>,
    /// Spatial extents of the filter, as many; empty but for convolutions.
    pub f: Vec<i64>,
}

impl Shape {
    /// The extents of x: N, C, spatial….
    pub fn x_dims(&self) -> Vec<i64> {
        [self.n, self.c]
            .into_iter()
            .chain(self.i.iter().copied())
            .collect()
    }

    /// Spatial axes.
    pub fn spatial(&self) -> usize {
        self.i.len()
    }

    pub(super) fn print(&self, out: &mut String) {
        out.push('n');
        number::print_dims(out, &[self.n]);
        out.push_str("-c");
        number::print_dims(out, &[self.c]);
        if let Some(k) = self.k {
            out.push_str("-k");
            number::print_dims(out, &[k]);
        }
        out.push_str("-i");
        number::print_dims(out, &self.i);
        if !self.f.is_empty() {
            out.push_str("-f");
            number::print_dims(out, &self.f);
        }
    }

    /// Reads the part; `n` may be left out and is 1 then.
    pub(super) fn parse(op: Op, part: Piece<'_>) -> Result<Self, CaseError> {
        let keys: &[&str] = if op.is_conv() {
            &["n", "c", "k", "i", "f"]
        } else {
            &["n", "c", "i"]
        };
        let mut found: [Option<Vec<i64>>; 5] = Default::default();
        for field in part.split('-') {
            let end = field.text.find(|c: char| !c.is_ascii_lowercase());
            let (key, value) = field.text.split_at(end.unwrap_or(field.text.len()));
            let Some(index) = keys.iter().position(|known| *known == key) else {
                let hint = suggestion(key, keys.iter().copied());
                let known = keys.join(", ");
                return Err(field.error(format!(
                    "no extent `{key}` in a shape of {op}, which has {known}{hint}"
                )));
            };
            let dims = number::dims(field.from(field.text.len() - value.len()))?;
            if dims.contains(&0) {
                return Err(field.error("an extent must be at least 1"));
            }
            if found[index].replace(dims).is_some() {
                return Err(field.error(format!("`{key}` is given twice")));
            }
        }
        let mut take = |key: &str| {
            let index = keys.iter().position(|known| *known == key);
            index.and_then(|index| found[index].take())
        };
        let one = |key: &str, dims: Option<Vec<i64>>, default: Option<i64>| match dims.as_deref() {
            Some(&[extent]) => Ok(extent),
            Some(_) => Err(part.error(format!("`{key}` takes one number"))),
            None => default.ok_or_else(|| missing(op, part, key)),
        };
        let shape = Self {
            n: one("n", take("n"), Some(1))?,
            c: one("c", take("c"), None)?,
            k: op
                .is_conv()
                .then(|| one("k", take("k"), None))
                .transpose()?,
            i: take("i").ok_or_else(|| missing(op, part, "i"))?,
            f: match op.is_conv() {
                true => take("f").ok_or_else(|| missing(op, part, "f"))?,
                false => Vec::new(),
            },
        };
        shape.check_spatial(op, part)?;
        Ok(shape)
    }

    fn check_spatial(&self, op: Op, part: Piece<'_>) -> Result<(), CaseError> {
        if self.i.len() > 3 {
            return Err(part.error("`i` takes one to three extents"));
        }
        if op.is_conv() && self.f.len() != self.i.len() {
            return Err(part.error(format!(
                "`i` has {} spatial extents and `f` has {}; they must agree",
                self.i.len(),
                self.f.len()
            )));
        }
        Ok(())
    }
}

fn missing(op: Op, part: Piece<'_>, key: &str) -> CaseError {
    part.error(format!("the shape of {op} lacks `{key}`"))
}
