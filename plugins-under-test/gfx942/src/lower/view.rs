//! A tensor as a kernel sees it.

use dnn_assay_plugin_sdk::Error;

use crate::parameters::{AXES, ChannelValues};

/// An address with extents and strides in elements, or a constant.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub address: u64,
    pub kind: u32,
    pub dims: Vec<i64>,
    pub strides: Vec<i64>,
    pub constant: f64,
}

impl View {
    /// Elements; the kernels count them in 32 bits.
    pub(super) fn count(&self) -> Result<usize, Error> {
        let count = self.dims.iter().try_fold(1i64, |product, &dim| {
            product
                .checked_mul(dim)
                .filter(|&n| n <= i64::from(i32::MAX))
        });
        count
            .map(|count| count as usize)
            .ok_or_else(|| Error::not_applicable("a tensor has 2^31 elements or more"))
    }

    /// Strides along the axes of `dims`, aligned at the last one; 0 where the tensor is broadcast.
    pub(super) fn broadcast(&self, rank: usize) -> Vec<i64> {
        let mut strides = vec![0; rank];
        let missing = rank.saturating_sub(self.dims.len());
        for (axis, (&dim, &stride)) in self.dims.iter().zip(&self.strides).enumerate() {
            if dim != 1 {
                strides[missing + axis] = stride;
            }
        }
        strides
    }

    /// Elements of a kernel's parameters.
    pub(super) fn of<const N: usize>(
        address: u64,
        kind: u32,
        dims: [i64; N],
        strides: [i64; N],
    ) -> Self {
        Self {
            address,
            kind,
            dims: dims.to_vec(),
            strides: strides.to_vec(),
            constant: 0.0,
        }
    }

    /// One value per channel.
    pub(super) fn channels(&self) -> ChannelValues {
        let axis = self.dims.iter().position(|&dim| dim != 1);
        ChannelValues {
            base: self.address,
            step: axis.map_or(0, |axis| self.strides[axis]),
            kind: self.kind,
            unused: 0,
        }
    }

    /// Extents of the spatial axes, aligned at the last one.
    pub(super) fn spatial_dims(&self) -> [i64; AXES] {
        aligned(&self.dims[2..], 1)
    }

    /// Strides of the spatial axes, aligned at the last one.
    pub(super) fn spatial_strides(&self) -> [i64; AXES] {
        aligned(&self.strides[2..], 0)
    }
}

/// `values`, after `fill` for the axes in front.
pub(super) fn aligned(values: &[i64], fill: i64) -> [i64; AXES] {
    let mut all = [fill; AXES];
    for (to, &from) in all.iter_mut().rev().zip(values.iter().rev()) {
        *to = from;
    }
    all
}
