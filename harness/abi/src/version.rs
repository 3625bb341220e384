//! Engine API versions: parsing as the host parses, and the floors that graph features set.

use std::fmt;

/// A `MAJOR.MINOR.PATCH` version of the engine plugin API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiVersion {
    /// Must equal [`HOST_MAJOR`] for the host to load the plugin.
    pub major: u32,
    /// Compared per graph only.
    pub minor: u32,
    /// Never compared.
    pub patch: u32,
}

/// The major version that the host accepts.
pub const HOST_MAJOR: u32 = 1;

/// What the host assumes of a plugin without `hipdnnPluginGetApiVersion`.
pub const ASSUMED: ApiVersion = ApiVersion::new(1, 0, 0);

/// `ExecuteOpGraphWithOverrides` and override-enabled graphs.
pub const OVERRIDES: ApiVersion = ApiVersion::new(1, 1, 0);
/// Tensors whose value is given at run time through a host pointer.
pub const RUNTIME_PASS_BY_VALUE: ApiVersion = ApiVersion::new(1, 2, 0);
/// Ragged tensors, and tensors with an alignment other than 16.
pub const RAGGED_OR_ALIGNED: ApiVersion = ApiVersion::new(1, 3, 0);
/// `GetEngineName`.
pub const ENGINE_NAMES: ApiVersion = ApiVersion::new(1, 4, 0);

impl ApiVersion {
    /// A version from its three numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self {
            major,
            minor,
            patch,
        }
    }

    /// Reads a version as the host's `sscanf("%d.%d.%d")` does: three decimal numbers joined by
    /// dots, leading white space allowed before each, trailing text ignored. `None` if fewer
    /// than three numbers can be read, or one is negative or beyond `u32`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text;
        let mut numbers = [0u32; 3];
        for (i, slot) in numbers.iter_mut().enumerate() {
            if i > 0 {
                rest = rest.strip_prefix('.')?;
            }
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
            rest = rest.strip_prefix('+').unwrap_or(rest);
            let end = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            *slot = rest[..end].parse().ok()?;
            rest = &rest[end..];
        }
        Some(Self::new(numbers[0], numbers[1], numbers[2]))
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_sscanf_parses() {
        assert_eq!(ApiVersion::parse("1.2.0"), Some(ApiVersion::new(1, 2, 0)));
        assert_eq!(
            ApiVersion::parse("1.2.0-rc"),
            Some(ApiVersion::new(1, 2, 0))
        );
        assert_eq!(
            ApiVersion::parse(" 1. 2.+3"),
            Some(ApiVersion::new(1, 2, 3))
        );
        for bad in [
            "",
            "1",
            "1.2",
            "1.2.",
            "v1.2.3",
            "1.-2.3",
            "1.2.99999999999",
        ] {
            assert_eq!(ApiVersion::parse(bad), None, "{bad:?}");
        }
        assert!(ApiVersion::new(1, 10, 0) > ApiVersion::new(1, 9, 9));
    }
}
