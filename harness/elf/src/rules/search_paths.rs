//! Where the file makes the loader look.

use super::{Checks, Context, Rule};
use crate::finding::Severity;
use crate::links;
use std::path::Path;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "load/rpath-absolute",
        severity: Severity::Warning,
        demand: "search paths are relative to the file",
        reason: "on another machine the directory holds something else or nothing",
        fix: "link with -Wl,-rpath,'$ORIGIN' or $ORIGIN/../lib",
        link: links::LD_SO,
        command: "readelf -d {file} | grep -E 'RPATH|RUNPATH'",
    },
    Rule {
        id: "load/rpath-relative",
        severity: Severity::Error,
        demand: "search paths do not depend on the working directory",
        reason: "an empty or relative element makes whoever chooses the working directory choose the libraries",
        fix: "remove the element; look for a stray colon; write $ORIGIN for the file's own directory",
        link: links::LD_SO,
        command: "readelf -d {file} | grep -E 'RPATH|RUNPATH'",
    },
    Rule {
        id: "load/rpath-writable",
        severity: Severity::Error,
        demand: "no search path may be written by everyone",
        reason: "any user of the machine can put a library there and run code in the process",
        fix: "remove the element",
        link: links::LD_SO,
        command: "readelf -d {file} | grep -E 'RPATH|RUNPATH'",
    },
    Rule {
        id: "load/rpath-deprecated",
        severity: Severity::Warning,
        demand: "search paths are in RUNPATH, not RPATH",
        reason: "RPATH comes before LD_LIBRARY_PATH and is inherited by all libraries below",
        fix: "link with -Wl,--enable-new-dtags",
        link: links::LD_SO,
        command: "readelf -d {file} | grep RPATH",
    },
];

/// Directories that everyone may write on any machine.
const SHARED: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

pub(super) fn check(context: &Context<'_>) -> Checks {
    let mut checks = Checks::default();
    let file = context.file;
    let lists = [("RPATH", &file.rpath), ("RUNPATH", &file.runpath)];
    for (tag, element) in lists
        .into_iter()
        .flat_map(|(tag, list)| list.iter().map(move |element| (tag, element)))
    {
        check_element(context, tag, element, &mut checks);
    }
    if !file.rpath.is_empty() {
        let detail = if file.runpath.is_empty() {
            "RPATH"
        } else {
            "RPATH beside RUNPATH: the loader ignores it"
        };
        checks.found("load/rpath-deprecated", file.rpath.join(":"), detail);
    }
    checks
}

fn check_element(context: &Context<'_>, tag: &str, element: &str, checks: &mut Checks) {
    const TOKENS: [&str; 2] = ["$ORIGIN", "${ORIGIN}"];
    let relative_to_file = TOKENS.iter().any(|token| element.starts_with(token));
    if element.is_empty() {
        return checks.found("load/rpath-relative", tag, "an empty element");
    }
    if relative_to_file {
        return;
    }
    if !element.starts_with('/') {
        let detail = format!("{tag} counts from the working directory");
        return checks.found("load/rpath-relative", element, detail);
    }
    checks.found("load/rpath-absolute", element, tag);
    let shared = SHARED
        .iter()
        .any(|directory| Path::new(element).starts_with(directory));
    let open = nearest_directory(context, Path::new(element));
    if shared || open {
        let detail = format!("{tag}: everyone may write there");
        checks.found("load/rpath-writable", element, detail);
    }
}

/// Whether the directory, or the nearest one above that exists, is open to everyone.
fn nearest_directory(context: &Context<'_>, path: &Path) -> bool {
    path.ancestors()
        .find_map(|directory| context.source.directory(directory))
        .is_some_and(|directory| directory.world_writable)
}
