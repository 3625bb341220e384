//! What the file wants from the rest of the process, and whether it gets it.

use super::{Checks, Context, Rule};
use crate::closure::{ClosureObject, Failure};
use crate::finding::{Severity, VersionDemand};
use crate::links;
use crate::policy::version_numbers;
use crate::view::{ElfView, VersionUse};
use std::collections::BTreeMap;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "import/missing-library",
        severity: Severity::Error,
        demand: "every needed library is found",
        reason: "dlopen fails without it",
        fix: "install it, set an $ORIGIN-relative RUNPATH, or do not link to it",
        link: links::LD_SO,
        command: "readelf -d {file} | grep -E 'NEEDED|R.*PATH'",
    },
    Rule {
        id: "import/missing-version",
        severity: Severity::Error,
        demand: "every needed symbol version is defined by its library",
        reason: "dlopen fails: the library here is older than the one at link time",
        fix: "build against the oldest system that is to be supported",
        link: links::LD_SO,
        command: "readelf -VW {file} | grep -w {subject}",
    },
    Rule {
        id: "import/unresolved",
        severity: Severity::Error,
        demand: "every import is defined by some library of the process",
        reason: "the host opens plugins with RTLD_NOW, so one undefined symbol makes dlopen fail",
        fix: "link with the library that defines it; -Wl,-z,defs finds this at link time",
        link: links::DLOPEN,
        command: "nm -DC --undefined-only {file} | grep -w {subject}",
    },
    Rule {
        id: "import/missing-needed",
        severity: Severity::Error,
        demand: "every import is defined by a library that the file itself needs",
        reason: "it works because the host happens to have the library, and fails in another host",
        fix: "link with the library that defines it; -Wl,-z,defs finds this at link time",
        link: links::LD_OPTIONS,
        command: "readelf -d {file} | grep NEEDED",
    },
    Rule {
        id: "import/weak-undefined",
        severity: Severity::Info,
        demand: "weak imports are defined",
        reason: "the loader leaves them 0, and a call that does not check jumps to 0",
        fix: "nothing to do if the code checks the address first",
        link: links::DSO_HOWTO,
        command: "nm -D {file} | grep ' [wv] '",
    },
    Rule {
        id: "import/unused-needed",
        severity: Severity::Info,
        demand: "every needed library is used",
        reason: "an unused library costs load time and can be missing",
        fix: "link with -Wl,--as-needed",
        link: links::LD_OPTIONS,
        command: "ldd -u {file}",
    },
    Rule {
        id: "import/forbidden",
        severity: Severity::Error,
        demand: "the file needs only libraries that the policy allows",
        reason: "the policy says so",
        fix: "do not link to it, or change the policy",
        link: links::LD_SO,
        command: "readelf -d {file} | grep NEEDED",
    },
    Rule {
        id: "import/max-version",
        severity: Severity::Error,
        demand: "no symbol version above the policy's ceiling is demanded",
        reason: "the file does not load on the oldest system that the policy names",
        fix: "build on that system or in its container",
        link: links::LD_VERSION,
        command: "nm -D --with-symbol-versions {file} | grep {subject}",
    },
    Rule {
        id: "import/dual-runtime",
        severity: Severity::Warning,
        demand: "the process has one copy of each runtime library",
        reason: "two copies have two sets of global state: exceptions, streams, threads or devices of one mean nothing to the other",
        fix: "link everything against the same version",
        link: links::LD_SO,
        command: "readelf -d {file} | grep NEEDED",
    },
];

pub(super) fn check(context: &Context<'_>) -> Checks {
    let mut checks = Checks::default();
    for failure in &context.bindings.failures {
        check_failure(failure, &mut checks);
    }
    check_bindings(context, &mut checks);
    check_needed(context, &mut checks);
    check_ceilings(context, &mut checks);
    check_runtimes(context, &mut checks);
    checks
}

fn check_failure(failure: &Failure, checks: &mut Checks) {
    match failure {
        Failure::Library {
            name,
            needed_by,
            refused,
        } => {
            let refused = refused.as_ref().map(|why| format!("; {why}"));
            let detail = format!("needed by {needed_by}{}", refused.unwrap_or_default());
            checks.found("import/missing-library", name, detail);
        }
        Failure::Version {
            library,
            version,
            needed_by,
        } => {
            let detail = format!("not defined by {library}, needed by {needed_by}");
            checks.found("import/missing-version", version, detail);
        }
        Failure::Symbol {
            symbol,
            version,
            needed_by,
        } => {
            let version = version.as_ref().map(|v| format!(" in version {v}"));
            let detail = format!("wanted by {needed_by}{}", version.unwrap_or_default());
            checks.found("import/unresolved", symbol, detail);
        }
    }
}

fn check_bindings(context: &Context<'_>, checks: &mut Checks) {
    for import in &context.bindings.imports {
        match &import.provider {
            None if import.weak && !COMPILERS_OWN.contains(&&*import.symbol) => {
                checks.found("import/weak-undefined", &*import.symbol, "no definition");
            }
            Some(provider) if !provider.needed => {
                let object = &context.closure.objects[provider.object];
                // Every process has the C library and its loader.
                if !is_always_there(object) {
                    let detail = format!("only because the host has {}", object.display_name());
                    checks.found("import/missing-needed", &*import.symbol, detail);
                }
            }
            _ => {}
        }
    }
}

/// Weak imports that the compiler's start files make and check.
const COMPILERS_OWN: [&str; 3] = [
    "__gmon_start__",
    "_ITM_deregisterTMCloneTable",
    "_ITM_registerTMCloneTable",
];

fn is_always_there(object: &ClosureObject) -> bool {
    let name = object.display_name();
    name == "libc.so.6" || name.starts_with("ld-linux")
}

fn check_needed(context: &Context<'_>, checks: &mut Checks) {
    let policy = context.policy;
    let needed = &context.closure.subject().needed;
    let used = &context.bindings.used_needed;
    for ((name, _), used) in needed.iter().zip(used) {
        if !used {
            checks.found("import/unused-needed", name, "nothing binds to it");
        }
        if !policy.needed_allow.is_empty() && !policy.needed_allow.matches(name) {
            checks.found("import/forbidden", name, "not on the policy's list");
        }
    }
    for object in context.closure.dependencies() {
        let name = object.display_name();
        if policy.needed_forbid.matches(&name) {
            checks.found("import/forbidden", name, "forbidden by the policy");
        }
    }
    for missing in &context.closure.missing {
        if policy.needed_forbid.matches(&missing.name) {
            checks.found(
                "import/forbidden",
                &*missing.name,
                "forbidden by the policy",
            );
        }
    }
}

/// The symbol versions that a file demands, each with the symbols that do, in ascending order.
pub(crate) fn version_demands(view: &ElfView<'_>) -> Vec<VersionDemand> {
    const NAMED: usize = 8;
    let mut demands: BTreeMap<(String, String, Vec<u64>, String), VersionDemand> = BTreeMap::new();
    let mut add = |library: &str, version: &str, symbol: Option<&str>| {
        let (family, numbers) = split_version(version);
        let key = (library.into(), family.into(), numbers, version.into());
        let demand = demands.entry(key).or_insert_with(|| VersionDemand {
            library: library.to_owned(),
            version: version.to_owned(),
            symbols: Vec::new(),
            count: 0,
        });
        if let Some(symbol) = symbol {
            demand.count += 1;
            if demand.symbols.len() < NAMED {
                demand.symbols.push(symbol.to_owned());
            }
        }
    };
    for need in view.versions().needed.values() {
        add(&need.file, &need.version, None);
    }
    for symbol in view.imports() {
        let version = symbol.version.map(|entry| view.versions().of(entry));
        if let Some(VersionUse::Needed(need)) = version {
            add(&need.file, &need.version, Some(&symbol.name));
        }
    }
    demands.into_values().collect()
}

/// `GLIBCXX_3.4.29` is the family `GLIBCXX` with the numbers 3, 4, 29.
fn split_version(version: &str) -> (&str, Vec<u64>) {
    match version.rsplit_once('_') {
        Some((family, numbers)) => match version_numbers(numbers) {
            Some(numbers) => (family, numbers),
            None => (version, Vec::new()),
        },
        None => (version, Vec::new()),
    }
}

fn check_ceilings(context: &Context<'_>, checks: &mut Checks) {
    let ceilings = &context.policy.ceilings;
    if ceilings.is_empty() {
        return checks.skip("import/max-version", "the policy names no ceiling");
    }
    for demand in context.demands {
        let (family, numbers) = split_version(&demand.version);
        let above = ceilings
            .get(family)
            .is_some_and(|ceiling| numbers > *ceiling);
        if above {
            let ceiling = &context.policy.policy.max_versions[family];
            let detail = format!(
                "above {family}_{ceiling}, demanded from {} by {}",
                demand.library,
                symbols_text(demand)
            );
            checks.found("import/max-version", &*demand.version, detail);
        }
    }
}

fn symbols_text(demand: &VersionDemand) -> String {
    if demand.count == 0 {
        return "no symbol, the version itself".into();
    }
    let more = demand.count - demand.symbols.len();
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("{}{more}", demand.symbols.join(", "))
}

/// Runtime libraries of which a process needs exactly one, by the stems of their names.
const RUNTIMES: &[(&str, &[&str])] = &[
    ("C++ standard library", &["libstdc++.so", "libc++.so"]),
    ("HIP runtime", &["libamdhip64.so"]),
    ("ROCm system runtime", &["libhsa-runtime64.so"]),
    ("CUDA runtime", &["libcudart.so"]),
    (
        "OpenMP runtime",
        &["libgomp.so", "libomp.so", "libiomp5.so"],
    ),
    ("MIOpen", &["libMIOpen.so"]),
    ("rocBLAS", &["librocblas.so"]),
    ("hipDNN backend", &["libhipdnn_backend.so"]),
];

fn check_runtimes(context: &Context<'_>, checks: &mut Checks) {
    let closure = context.closure;
    let present: Vec<&ClosureObject> = closure
        .host()
        .iter()
        .chain(closure.dependencies())
        .collect();
    for (runtime, stems) in RUNTIMES {
        let mut copies: Vec<String> = present
            .iter()
            .filter(|object| {
                let name = object.display_name();
                stems.iter().any(|stem| name.starts_with(stem))
            })
            .map(|object| object.path.display().to_string())
            .collect();
        copies.sort();
        copies.dedup();
        if copies.len() > 1 {
            checks.found("import/dual-runtime", *runtime, copies.join(", "));
        }
    }
}
