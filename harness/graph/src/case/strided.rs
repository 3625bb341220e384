//! The non-packed part of a layout: `nchw~s4096x64x8x1`.

use super::error::{CaseError, Fault, Part};
use super::number::{self, Piece};
use super::op::Op;

/// Which tensor a set of strides is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StridedTensor {
    /// `~s`: x or dx of a convolution; every tensor of full shape of the others.
    X,
    /// `~y`: y or dy of a convolution.
    Y,
    /// `~w`: w or dw of a convolution.
    W,
}

impl StridedTensor {
    const ALL: [Self; 3] = [Self::X, Self::Y, Self::W];

    const fn letter(self) -> char {
        match self {
            Self::X => 's',
            Self::Y => 'y',
            Self::W => 'w',
        }
    }
}

/// Strides that replace the packed ones of the layout, in elements and logical order (N, C,
/// spatial…).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Strided {
    sets: Vec<(StridedTensor, Vec<i64>)>,
}

impl Strided {
    /// The strides given for a tensor; `None` if it is packed.
    pub fn get(&self, tensor: StridedTensor) -> Option<&[i64]> {
        self.sets
            .iter()
            .find(|(which, _)| *which == tensor)
            .map(|(_, strides)| strides.as_slice())
    }

    /// Whether every tensor is packed.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Drops the strides of a tensor, which are the packed ones.
    pub(super) fn forget(&mut self, tensor: StridedTensor) {
        self.sets.retain(|(which, _)| *which != tensor);
    }

    pub(super) fn print(&self, out: &mut String) {
        for (tensor, strides) in &self.sets {
            out.push('~');
            out.push(tensor.letter());
            number::print_dims(out, strides);
        }
    }

    /// Reads what follows the layout's name, one piece per `~`.
    pub(super) fn parse<'a>(
        op: Op,
        pieces: impl Iterator<Item = Piece<'a>>,
    ) -> Result<Self, CaseError> {
        let mut sets: Vec<(StridedTensor, Vec<i64>)> = Vec::new();
        for piece in pieces {
            let known = StridedTensor::ALL
                .into_iter()
                .filter(|tensor| op.is_conv() || *tensor == StridedTensor::X)
                .find(|tensor| piece.text.starts_with(tensor.letter()));
            let Some(tensor) = known else {
                let expected = if op.is_conv() { "s, y or w" } else { "s" };
                return Err(piece.error(format!(
                    "`~` is followed by {expected} and strides, as in nchw~s1024x64x8x1"
                )));
            };
            let strides = number::dims(piece.from(1))?;
            if sets.iter().any(|(which, _)| *which == tensor) {
                return Err(piece.error(format!("`~{}` is given twice", tensor.letter())));
            }
            sets.push((tensor, strides));
        }
        sets.sort_by_key(|(tensor, _)| *tensor);
        Ok(Self { sets })
    }
}

/// Whether strides fit the extents: as many, positive, and no two elements at one place.
pub(super) fn check(dims: &[i64], strides: &[i64]) -> Result<(), Fault> {
    let fault = |message| Err(Fault::new(Part::Layout, message));
    if strides.len() != dims.len() {
        return fault(format!("{} strides for {} axes", strides.len(), dims.len()));
    }
    if strides.contains(&0) {
        return fault("a stride must be at least 1".to_owned());
    }
    match crate::validate::overlap(dims, strides) {
        Some(axis) => fault(format!(
            "stride {} of axis {axis} makes elements share a place; extents are {dims:?}",
            strides[axis]
        )),
        None => Ok(()),
    }
}
