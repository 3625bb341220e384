//! Two plugins in one process: what goes wrong when they meet, as far as the files tell.

use crate::closure::{FileBytes, FileSource};
use crate::demangle::{Origin, origin};
use crate::finding::{Finding, RuleOutcome, Severity};
use crate::identify::PluginFile;
use crate::inspect::{Judged, judge};
use crate::links;
use crate::not_a_plugin::NotAPlugin;
use crate::offload::{DeviceCode, device_code};
use crate::policy::ReadyPolicy;
use crate::rules::{Checks, Rule, VERSION_SCRIPT, contract_names, is_generated_handle};
use crate::view::{Binding, ElfView, check_shared_object};
use jiff::civil::Date;
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The rules for two files.
pub const RULES: &[Rule] = &[
    Rule {
        id: "pair/same-file",
        severity: Severity::Error,
        demand: "the two files are two builds",
        reason: "under two paths the same plugin is loaded twice or dropped in silence, and its engines collide with themselves",
        fix: "keep one of them",
        link: links::HIPDNN_PLUGINS,
        command: "readelf -n {file} | grep 'Build ID'",
    },
    Rule {
        id: "pair/export-collision",
        severity: Severity::Error,
        demand: "no name is exported by both, entry points aside",
        reason: "one may run the other's code; the host then reports two handles that collide; both have to hide it",
        fix: VERSION_SCRIPT,
        link: links::LD_VERSION,
        command: "nm -DC --defined-only {file} | grep -w {subject}",
    },
    Rule {
        id: "pair/unique-collision",
        severity: Severity::Error,
        demand: "no unique symbol is exported by both",
        reason: "the process has one of it for both, RTLD_LOCAL or not: they share its state",
        fix: VERSION_SCRIPT,
        link: links::GCC_CODE_GEN,
        command: "nm -DC --defined-only {file} | grep ' u '",
    },
    Rule {
        id: "pair/same-soname",
        severity: Severity::Warning,
        demand: "the two have different SONAMEs",
        reason: "a library that needs the SONAME gets whichever was loaded first",
        fix: "link each with a SONAME of its own",
        link: links::LD_SO,
        command: "readelf -d {file} | grep SONAME",
    },
    Rule {
        id: "pair/duplicate-kernel",
        severity: Severity::Info,
        demand: "no device kernel is in both",
        reason: "harmless to run, and confusing in a trace",
        fix: "put kernels into a namespace of the plugin's own",
        link: links::BUNDLER,
        command: "",
    },
];

/// What two files do to each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairInspection {
    /// The file given first.
    pub first: PathBuf,
    /// The build id of the first, shown so that nobody compares a file with itself unnoticed.
    pub first_build_id: Option<String>,
    /// The file given second.
    pub second: PathBuf,
    /// The build id of the second.
    pub second_build_id: Option<String>,
    /// One outcome per rule, in the order of [`RULES`].
    pub outcomes: Vec<RuleOutcome>,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// A file that takes part in pairs.
struct Member<'a> {
    path: &'a Path,
    bytes: &'a FileBytes,
    view: ElfView<'a>,
    file: PluginFile,
    device: DeviceCode,
}

/// Inspects every pair of the files.
///
/// # Errors
/// The first file that is no shared object for this machine, with its path.
pub fn inspect_pairs(
    files: &[(PathBuf, FileBytes)],
    source: &dyn FileSource,
    policy: &ReadyPolicy,
    today: Date,
) -> Result<Vec<PairInspection>, (PathBuf, NotAPlugin)> {
    let members = files
        .iter()
        .map(|(path, bytes)| member(path, bytes).map_err(|error| (path.clone(), error)))
        .collect::<Result<Vec<_>, _>>()?;
    let mut pairs = Vec::new();
    for (index, second) in members.iter().enumerate() {
        for first in &members[..index] {
            let checks = check(first, second, source);
            let Judged { outcomes, findings } =
                judge(checks, RULES.iter(), first.path, policy, today);
            pairs.push(PairInspection {
                first: first.path.to_path_buf(),
                first_build_id: first.file.build_id.clone(),
                second: second.path.to_path_buf(),
                second_build_id: second.file.build_id.clone(),
                outcomes,
                findings,
            });
        }
    }
    Ok(pairs)
}

fn member<'a>(path: &'a Path, bytes: &'a FileBytes) -> Result<Member<'a>, NotAPlugin> {
    let view = ElfView::parse(bytes)?;
    check_shared_object(&view).map_err(NotAPlugin::new)?;
    Ok(Member {
        path,
        bytes,
        file: PluginFile::of(&view),
        device: device_code(&view),
        view,
    })
}

fn check(first: &Member<'_>, second: &Member<'_>, source: &dyn FileSource) -> Checks {
    let mut checks = Checks::default();
    if let Some(detail) = same_file(first, second, source) {
        checks.file("pair/same-file", detail);
        for rule in RULES.iter().filter(|rule| rule.id != "pair/same-file") {
            checks.skip(rule.id, "the two are the same file");
        }
        return checks;
    }
    check_exports(first, second, &mut checks);
    if let (Some(one), Some(other)) = (&first.file.soname, &second.file.soname)
        && one == other
    {
        checks.found("pair/same-soname", one, "both");
    }
    let kernels = |member: &Member<'_>| -> HashSet<String> {
        let images = member.device.images.iter();
        images.flat_map(|image| image.kernels.clone()).collect()
    };
    let mut shared: Vec<String> = kernels(first)
        .intersection(&kernels(second))
        .cloned()
        .collect();
    shared.sort();
    for kernel in shared {
        checks.found("pair/duplicate-kernel", kernel, "in both");
    }
    checks
}

fn same_file(first: &Member<'_>, second: &Member<'_>, source: &dyn FileSource) -> Option<String> {
    let paths = format!("{} and {}", first.path.display(), second.path.display());
    if source.canonical(first.path) == source.canonical(second.path) {
        return Some(format!("{paths} lead to one file"));
    }
    if first.bytes == second.bytes {
        return Some(format!("{paths} have the same content"));
    }
    match (&first.file.build_id, &second.file.build_id) {
        (Some(one), Some(other)) if one == other => {
            Some(format!("{paths} have the build id {one}"))
        }
        _ => None,
    }
}

fn check_exports(first: &Member<'_>, second: &Member<'_>, checks: &mut Checks) {
    let interface: HashSet<&str> = contract_names().collect();
    let mut theirs = HashMap::new();
    for symbol in second.view.exports() {
        theirs.insert(&*symbol.name, symbol);
    }
    for own in first.view.exports() {
        let name = &*own.name;
        let Some(other) = theirs.get(name) else {
            continue;
        };
        let handle = is_generated_handle(&first.file, &first.device, own)
            && is_generated_handle(&second.file, &second.device, other);
        if interface.contains(name) || origin(name) == Origin::Linker || handle {
            continue;
        }
        let unique = own.binding == Binding::Unique && other.binding == Binding::Unique;
        let rule = if unique {
            "pair/unique-collision"
        } else {
            "pair/export-collision"
        };
        let detail = format!(
            "{:?} of {} bytes in the first, {:?} of {} bytes in the second",
            own.binding, own.size, other.binding, other.size
        );
        checks.found(rule, name, detail.to_lowercase());
    }
}
