//! The suites, tolerance tables and allowances that come with DNN Assay, embedded so that an
//! installed binary needs no repository. Data only: what they mean is the harness's business.
//!
//! A file is named by its path in this folder: `smoke/suite.yaml`, `tolerances/conv.yaml`. A suite
//! is a folder with a `suite.yaml`.

use include_dir::{Dir, include_dir};

/// The folders, each with the name that its files begin with.
static FOLDERS: [(&str, Dir<'static>); 7] = [
    ("smoke", include_dir!("$CARGO_MANIFEST_DIR/smoke")),
    ("full", include_dir!("$CARGO_MANIFEST_DIR/full")),
    ("giant", include_dir!("$CARGO_MANIFEST_DIR/giant")),
    (
        "regressions",
        include_dir!("$CARGO_MANIFEST_DIR/regressions"),
    ),
    ("claims", include_dir!("$CARGO_MANIFEST_DIR/claims")),
    ("schemas", include_dir!("$CARGO_MANIFEST_DIR/schemas")),
    ("tolerances", include_dir!("$CARGO_MANIFEST_DIR/tolerances")),
];

/// The file of a suite that names the others.
pub const ROOT_FILE: &str = "suite.yaml";

/// The text of an embedded file; `None` if there is none of that name.
pub fn file(name: &str) -> Option<&'static str> {
    let (folder, rest) = name.split_once('/')?;
    let (_, dir) = FOLDERS.iter().find(|(known, _)| *known == folder)?;
    dir.get_file(rest)?.contents_utf8()
}

/// The names of all embedded YAML files, sorted.
pub fn files() -> Vec<String> {
    let mut names: Vec<String> = FOLDERS
        .iter()
        .flat_map(|(folder, dir)| {
            dir.files()
                .map(move |file| format!("{folder}/{}", file.path().display()))
        })
        .filter(|name| name.ends_with(".yaml"))
        .collect();
    names.sort();
    names
}

/// The names of the embedded suites, sorted.
pub fn suites() -> Vec<&'static str> {
    let mut names: Vec<&str> = FOLDERS
        .iter()
        .filter(|(_, dir)| dir.get_file(ROOT_FILE).is_some())
        .map(|(folder, _)| *folder)
        .collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_file_opens() {
        assert!(!files().is_empty());
        for name in files() {
            assert!(file(&name).is_some_and(|text| !text.is_empty()), "{name}");
        }
        assert_eq!(suites(), ["full", "giant", "regressions", "smoke"]);
        for missing in [
            "",
            "smoke",
            "smoke/none.yaml",
            "../Cargo.toml",
            "none/suite.yaml",
        ] {
            assert_eq!(file(missing), None, "{missing}");
        }
    }
}
