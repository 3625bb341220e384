//! Ranges of versions as people write them: `>=1.2, <2`.

use semver::{Version, VersionReq};

/// A range of versions; a version is the numbers that a text begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRange(VersionReq);

impl VersionRange {
    /// Reads comparisons separated by commas, all of which must hold. A version without an
    /// operator stands for itself, and for all versions that it begins: `1.2` holds for 1.2.9.
    ///
    /// # Errors
    /// What is wrong, in lower case.
    pub fn parse(text: &str) -> Result<Self, String> {
        let comparisons: Vec<String> = text
            .split(',')
            .map(str::trim)
            .map(
                |part| match part.starts_with(|c: char| c.is_ascii_digit()) {
                    true => format!("={part}"),
                    false => part.to_owned(),
                },
            )
            .collect();
        VersionReq::parse(&comparisons.join(","))
            .map(Self)
            .map_err(|error| format!("`{text}` is no range of versions: {error}"))
    }

    /// Whether a version lies in the range; never for a text that does not begin with a number.
    pub fn contains(&self, version: &str) -> bool {
        numbers(version).is_some_and(|version| self.0.matches(&version))
    }
}

/// The first three numbers of a version: `6.4.1-123`, `v1.2`, `2`.
fn numbers(text: &str) -> Option<Version> {
    let text = text.trim_start_matches(['v', 'V']);
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let mut parts = text[..end].split('.');
    let first = parts.next()?.parse().ok()?;
    let mut next = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
    Some(Version::new(first, next(), next()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(">=1.2, <2", "1.9.9", true)]
    #[case(">=1.2, <2", "2.0.0", false)]
    #[case("1.2", "1.2.7", true)]
    #[case("1.2", "1.3", false)]
    #[case("<7.2", "7.1.1-38", true)]
    #[case("*", "v0.1", true)]
    #[case("*", "unknown", false)]
    fn versions_in_ranges(#[case] range: &str, #[case] version: &str, #[case] expected: bool) {
        let range = VersionRange::parse(range).expect("a range");
        assert_eq!(range.contains(version), expected, "{version}");
    }

    #[test]
    fn what_is_no_range_is_said() {
        assert!(VersionRange::parse(">=soon").is_err_and(|text| text.contains("`>=soon`")));
        assert!(VersionRange::parse("").is_err());
    }
}
