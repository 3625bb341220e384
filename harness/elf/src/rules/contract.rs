//! The entry points that the host resolves.

use super::{Checks, Context, Rule};
use crate::finding::Severity;
use crate::identify::PluginRole;
use crate::links;
use crate::policy::Contract;
use crate::view::{Binding, DynSymbol, SymbolKind, Visibility};
use dnn_assay_abi::symbols::{ENGINE_PLUGIN, Group, HEURISTIC_PLUGIN, mandatory_symbols};
use std::collections::HashMap;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "abi/entry-missing",
        severity: Severity::Error,
        demand: "every mandatory entry point is exported",
        reason: "the host refuses the library at the first name that dlsym does not find",
        fix: "define the function with extern \"C\" and default visibility, and keep it in the version script's global list",
        link: links::ENGINE_API,
        command: "nm -D --defined-only {file} | grep -w {subject}",
    },
    Rule {
        id: "abi/entry-kind",
        severity: Severity::Error,
        demand: "every entry point is a function with code",
        reason: "the host calls the address as a function",
        fix: "export a function, not data, an absolute symbol or an empty label",
        link: links::ENGINE_API,
        command: "readelf -W --dyn-syms {file} | grep -w {subject}",
    },
    Rule {
        id: "abi/entry-ifunc",
        severity: Severity::Error,
        demand: "no entry point is an IFUNC",
        reason: "its resolver runs inside dlsym, before the plugin is ready and where it may call nothing",
        fix: "choose the implementation inside an ordinary function",
        link: links::GCC_CODE_GEN,
        command: "readelf -W --dyn-syms {file} | grep IFUNC",
    },
    Rule {
        id: "abi/entry-weak",
        severity: Severity::Warning,
        demand: "every entry point is GLOBAL",
        reason: "a weak definition gives way to any other at link time, so the wrong one may be inside",
        fix: "define the entry point once, not inline and not __attribute__((weak))",
        link: links::DSO_HOWTO,
        command: "nm -D --defined-only {file} | grep ' [VW] '",
    },
    Rule {
        id: "abi/optional-group",
        severity: Severity::Warning,
        demand: "optional entry points that belong together are all there or none is",
        reason: "the host uses serialization only with all three functions and ignores a part of them in silence",
        fix: "export the missing functions of the group, or none of it",
        link: links::ENGINE_API,
        command: "nm -D --defined-only {file} | grep Serialize",
    },
    Rule {
        id: "abi/heuristic",
        severity: Severity::Info,
        demand: "the file is an engine plugin",
        reason: "heuristic plugins are held to their own entry points and not executed by DNN Assay",
        fix: "nothing to do; the policy's contract: heuristic-plugin says that it is meant",
        link: links::HIPDNN_PLUGINS,
        command: "nm -D --defined-only {file} | grep hipdnnHeuristic",
    },
    Rule {
        id: "abi/soname-mismatch",
        severity: Severity::Warning,
        demand: "the SONAME is the file's name, up to a version",
        reason: "whoever needs the SONAME later gets this file, whatever it was meant to be",
        fix: "link with -Wl,-soname,NAME of the file",
        link: links::GABI_DYNAMIC,
        command: "readelf -d {file} | grep SONAME",
    },
    Rule {
        id: "abi/no-soname",
        severity: Severity::Info,
        demand: "the file has a SONAME",
        reason: "a plugin opened by path needs none, but without it tools name it by path only",
        fix: "link with -Wl,-soname,NAME of the file",
        link: links::GABI_DYNAMIC,
        command: "readelf -d {file} | grep SONAME",
    },
    Rule {
        id: "abi/build-id",
        severity: Severity::Info,
        demand: "the file has a build id",
        reason: "a report without it cannot tell which build it is about",
        fix: "link with -Wl,--build-id",
        link: links::LD_OPTIONS,
        command: "readelf -n {file} | grep 'Build ID'",
    },
];

pub(super) fn check(context: &Context<'_>) -> Checks {
    let mut checks = Checks::default();
    let contract = contract_of(context);
    if contract == Contract::Library {
        for rule in RULES.iter().filter(|rule| {
            rule.id.starts_with("abi/entry")
                || matches!(rule.id, "abi/optional-group" | "abi/heuristic")
        }) {
            checks.skip(rule.id, "the policy expects no entry points");
        }
    } else {
        let symbols = by_name(context);
        for name in mandatory(contract) {
            check_entry(name, &symbols, &mut checks);
        }
        check_groups(context, &symbols, &mut checks);
        let asked = context.policy.policy.contract;
        if asked == Contract::EnginePlugin && context.file.looks_heuristic() {
            checks.file("abi/heuristic", "it exports a heuristic plugin's functions");
        }
    }
    check_identity(context, &mut checks);
    checks
}

/// What the policy asks for; a file with a heuristic plugin's functions and none of an engine's is
/// held to its own contract and named.
fn contract_of(context: &Context<'_>) -> Contract {
    match (context.policy.policy.contract, context.file.role) {
        (Contract::EnginePlugin, PluginRole::Heuristic) => Contract::HeuristicPlugin,
        (asked, _) => asked,
    }
}

/// A heuristic plugin's function that the host does without: its policies have no names then.
const POLICY_NAME: &str = "hipdnnHeuristicPluginGetPolicyName";

/// The mandatory entry points of a contract in the host's order.
fn mandatory(contract: Contract) -> Vec<&'static str> {
    let engine = mandatory_symbols().map(|symbol| symbol.name);
    match contract {
        Contract::EnginePlugin => engine.collect(),
        Contract::HeuristicPlugin => {
            let common = engine.filter(|name| name.starts_with("hipdnnPlugin"));
            let policies = HEURISTIC_PLUGIN.iter().copied();
            common
                .chain(policies.filter(|name| *name != POLICY_NAME))
                .collect()
        }
        Contract::Library => Vec::new(),
    }
}

type Symbols<'a> = HashMap<&'a str, &'a DynSymbol<'a>>;

/// The defined symbols of the plugin interface.
fn by_name<'a>(context: &'a Context<'_>) -> Symbols<'a> {
    let symbols = context.view.symbols().iter();
    symbols
        .filter(|symbol| symbol.name.starts_with("hipdnn") && symbol.is_defined())
        .map(|symbol| (&*symbol.name, symbol))
        .collect()
}

fn check_entry(name: &'static str, symbols: &Symbols<'_>, checks: &mut Checks) {
    let Some(symbol) = symbols.get(name) else {
        return checks.found("abi/entry-missing", name, "not exported");
    };
    if matches!(symbol.visibility, Visibility::Hidden | Visibility::Internal) {
        return checks.found("abi/entry-missing", name, "defined, but hidden");
    }
    if symbol.binding == Binding::Local {
        return checks.found("abi/entry-missing", name, "defined, but local");
    }
    match symbol.kind {
        SymbolKind::Function if symbol.size > 0 && symbol.value != 0 => {}
        SymbolKind::Ifunc => checks.found("abi/entry-ifunc", name, "an IFUNC"),
        SymbolKind::Function => checks.found("abi/entry-kind", name, "a function of size 0"),
        other => checks.found("abi/entry-kind", name, format!("no function: {other:?}")),
    }
    match symbol.binding {
        Binding::Weak => checks.found("abi/entry-weak", name, "weak"),
        Binding::Unique => checks.found("abi/entry-weak", name, "unique"),
        _ => {}
    }
}

fn check_groups(context: &Context<'_>, symbols: &Symbols<'_>, checks: &mut Checks) {
    let group: Vec<&str> = ENGINE_PLUGIN
        .iter()
        .filter(|symbol| symbol.group == Group::Serialization)
        .map(|symbol| symbol.name)
        .collect();
    let exported = |name: &&&str| symbols.get(**name).is_some_and(|s| s.is_exported());
    let present: Vec<&str> = group.iter().filter(exported).copied().collect();
    // Of two generations of the save hook, the older one completes the group for older hosts.
    let old_hook = context
        .file
        .exports("hipdnnEnginePluginSerializeExecutionContext");
    if present.is_empty() || present.len() == group.len() {
        return;
    }
    for name in group.iter().filter(|name| !present.contains(name)) {
        let detail = if old_hook && name.ends_with("WithEngineId") {
            "only its predecessor, which the newest host no longer calls, is exported".to_owned()
        } else {
            format!("missing beside {}", present.join(", "))
        };
        checks.found("abi/optional-group", *name, detail);
    }
}

fn check_identity(context: &Context<'_>, checks: &mut Checks) {
    match &context.file.soname {
        None => checks.file("abi/no-soname", "no SONAME"),
        Some(soname) if !same_library(soname, context.file_name) => {
            let detail = format!("the file is called {}", context.file_name);
            checks.found("abi/soname-mismatch", soname, detail);
        }
        Some(_) => {}
    }
    if context.file.build_id.is_none() {
        checks.file("abi/build-id", "no build id");
    }
}

/// Whether two names are one library, apart from the version after `.so`.
fn same_library(soname: &str, file_name: &str) -> bool {
    let stem = |name: &str| match name.find(".so") {
        Some(at) => name[..at].to_owned(),
        None => name.to_owned(),
    };
    // `libm-2.31.so` with SONAME `libm.so.6` is how glibc names its files.
    let (soname, file) = (stem(soname), stem(file_name));
    file == soname
        || file
            .strip_prefix(&soname)
            .is_some_and(|rest| rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::same_library;

    #[test]
    fn versions_do_not_make_another_library() {
        assert!(same_library("libx.so.1", "libx.so"));
        assert!(same_library("libx.so", "libx.so.1.2.3"));
        assert!(same_library("libm.so.6", "libm-2.31.so"));
        assert!(!same_library("libx.so", "liby.so"));
        assert!(!same_library("libx.so", "libxy.so"));
    }
}
