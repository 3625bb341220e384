//! Device code: which targets are inside.

use super::{Checks, Context, Rule};
use crate::finding::Severity;
use crate::links;
use crate::offload::{Match, Target};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "device/arch-missing",
        severity: Severity::Error,
        demand: "there is device code for the architecture asked for",
        reason: "without it the first launch fails with hipErrorNoBinaryForGpu",
        fix: "add --offload-arch=ARCH to the compiler's flags",
        link: links::AMDGPU,
        command: "clang-offload-bundler --list --type=o --input={file}",
    },
    Rule {
        id: "device/arch-features",
        severity: Severity::Warning,
        demand: "the device code runs whatever the device's xnack and sramecc settings are",
        reason: "code built for one setting does not load on a device with the other",
        fix: "build without :xnack and :sramecc suffixes, or for both settings; or ask for the full target id",
        link: links::AMDGPU,
        command: "clang-offload-bundler --list --type=o --input={file}",
    },
    Rule {
        id: "device/bundle",
        severity: Severity::Warning,
        demand: "every offload bundle parses",
        reason: "the runtime registers the bundle as a whole and drops it when it is damaged",
        fix: "link again; look at tools that edit the file afterwards (strip, objcopy)",
        link: links::BUNDLER,
        command: "readelf -x .hip_fatbin {file} | head",
    },
    Rule {
        id: "device/targets",
        severity: Severity::Info,
        demand: "the targets of the device code are known",
        reason: "they say on which devices the file can work at all",
        fix: "nothing to do",
        link: links::BUNDLER,
        command: "clang-offload-bundler --list --type=o --input={file}",
    },
];

pub(super) fn check(context: &Context<'_>) -> Checks {
    let mut checks = Checks::default();
    if context.device.is_empty() {
        for rule in RULES {
            checks.skip(rule.id, "no device code in the file");
        }
        return checks;
    }
    for problem in &context.device.problems {
        checks.found("device/bundle", ".hip_fatbin", &**problem);
    }
    list_targets(context, &mut checks);
    match &context.policy.arch {
        None => {
            for rule in ["device/arch-missing", "device/arch-features"] {
                checks.skip(rule, "no architecture is asked for");
            }
        }
        Some(arch) => check_arch(context, arch, &mut checks),
    }
    checks
}

/// One line per target: how many images, how many bytes.
fn list_targets(context: &Context<'_>, checks: &mut Checks) {
    let mut targets: Vec<&str> = Vec::new();
    for image in &context.device.images {
        if !targets.contains(&&*image.target) {
            targets.push(&image.target);
        }
    }
    for target in targets {
        let images = context.device.images.iter().filter(|i| i.target == target);
        let (count, size) = images.fold((0, 0_u64), |(n, size), image| {
            (n + 1, size.saturating_add(image.size))
        });
        let detail = format!("{count} images, {size} bytes");
        checks.found("device/targets", target, detail);
    }
}

fn check_arch(context: &Context<'_>, arch: &Target, checks: &mut Checks) {
    let asked = context.policy.policy.arch.clone().unwrap_or_default();
    let inside: Vec<&str> = context.device.images.iter().map(|i| &*i.target).collect();
    let matches = inside.iter().filter_map(|text| Target::parse(text));
    let best = matches.map(|target| target.runs_on(arch)).max();
    match best.unwrap_or(Match::No) {
        Match::Yes => {}
        Match::IfFeaturesAgree => checks.found(
            "device/arch-features",
            asked,
            format!("inside: {}", inside.join(", ")),
        ),
        Match::No => checks.found(
            "device/arch-missing",
            asked,
            format!("inside: {}", inside.join(", ")),
        ),
    }
}
