//! Device code inside a host library: offload bundles, their targets, and whether a target runs
//! on an architecture.

mod bundle;
mod compressed;
mod target;

pub use bundle::device_code;
pub use target::{Feature, Match, Target};

use serde::Serialize;

/// One piece of device code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceImage {
    /// The target id of the bundle entry, such as `gfx942:sramecc+:xnack-`.
    pub target: String,
    /// Bytes of code object.
    pub size: u64,
    /// The kernels inside, where the code object can be read: not in a compressed bundle.
    pub kernels: Vec<String>,
}

/// All device code of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeviceCode {
    /// The images in the order of the file.
    pub images: Vec<DeviceImage>,
    /// How many of the bundles are compressed.
    pub compressed: usize,
    /// What did not parse.
    pub problems: Vec<String>,
}

impl DeviceCode {
    /// Whether the file holds any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.images.is_empty() && self.compressed == 0 && self.problems.is_empty()
    }

    /// Whether any image has a kernel of this name.
    #[must_use]
    pub fn has_kernel(&self, name: &str) -> bool {
        let mut kernels = self.images.iter().flat_map(|image| &image.kernels);
        kernels.any(|kernel| kernel == name)
    }
}
