//! What the file lets the rest of the process see.

use super::{Checks, Context, Rule};
use crate::demangle::{Origin, demangle, origin};
use crate::finding::Severity;
use crate::identify::PluginFile;
use crate::links;
use crate::offload::DeviceCode;
use crate::policy::Contract;
use crate::view::{Binding, DynSymbol, ElfView, SymbolKind, VersionUse, Visibility};
use dnn_assay_abi::symbols::{ENGINE_PLUGIN, HEURISTIC_PLUGIN};
use goblin::elf::program_header::{PF_W, PT_GNU_RELRO, PT_LOAD};
use goblin::elf::section_header::SHN_ABS;
use std::collections::{HashMap, HashSet};

/// What helps against every unwanted export.
pub(crate) const VERSION_SCRIPT: &str = "write a file exports.map with { global: hipdnn*; local: *; }; and link with -Wl,--version-script=exports.map (-fvisibility=hidden alone is not enough: libstdc++ marks its templates visible)";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "export/unlisted",
        severity: Severity::Error,
        demand: "only the entry points are exported",
        reason: "plugins share a process: an exported helper can be taken by, or take over, another's of the same name",
        fix: VERSION_SCRIPT,
        link: links::LD_VERSION,
        command: "nm -DC --defined-only {file}",
    },
    Rule {
        id: "export/expected",
        severity: Severity::Error,
        demand: "every export of the policy's list is there",
        reason: "someone relies on it",
        fix: "export it again, or take it off the policy's list",
        link: links::DSO_HOWTO,
        command: "nm -D --defined-only {file} | grep -w {subject}",
    },
    Rule {
        id: "export/std",
        severity: Severity::Error,
        demand: "nothing of the C++ standard library is exported",
        reason: "the system's libstdc++ and other plugins bind to this copy, also under RTLD_LOCAL, and crash once it is unloaded",
        fix: VERSION_SCRIPT,
        link: links::GCC_VISIBILITY,
        command: "nm -DC --defined-only {file} | grep -E 'std::|__gnu_cxx'",
    },
    Rule {
        id: "export/allocator",
        severity: Severity::Error,
        demand: "no allocation function is exported",
        reason: "memory from one allocator gets freed by another",
        fix: VERSION_SCRIPT,
        link: links::LD_VERSION,
        command: "nm -DC --defined-only {file} | grep -E 'operator (new|delete)|malloc|free'",
    },
    Rule {
        id: "export/unwinder",
        severity: Severity::Error,
        demand: "no exception handling function is exported",
        reason: "two unwinders in one process do not see each other's frames, and a throw ends in terminate",
        fix: "link libgcc_s and libstdc++ dynamically, or hide the static copies with -Wl,--exclude-libs,ALL",
        link: links::LD_OPTIONS,
        command: "nm -D --defined-only {file} | grep -E '_Unwind_|__cxa_'",
    },
    Rule {
        id: "export/third-party",
        severity: Severity::Error,
        demand: "no copy of another library is exported",
        reason: "two plugins built with different versions of it meet here, and one runs the other's code",
        fix: VERSION_SCRIPT,
        link: links::LD_VERSION,
        command: "nm -DC --defined-only {file} | grep -w {subject}",
    },
    Rule {
        id: "export/unique",
        severity: Severity::Error,
        demand: "no symbol is STB_GNU_UNIQUE",
        reason: "the process has one of it for all plugins, RTLD_LOCAL or not, and the file can never be unloaded; -fno-gnu-unique alone leaves it exported",
        fix: VERSION_SCRIPT,
        link: links::GCC_CODE_GEN,
        command: "nm -DC --defined-only {file} | grep ' u '",
    },
    Rule {
        id: "export/hip-generated",
        severity: Severity::Info,
        demand: "HIP's kernel handles and module ids are hidden",
        reason: "clang exports them even with hidden visibility; a kernel of the same name in two plugins is harmless today",
        fix: VERSION_SCRIPT,
        link: links::LD_VERSION,
        command: "nm -DC --defined-only {file} | grep -w {subject}",
    },
    Rule {
        id: "export/ifunc",
        severity: Severity::Warning,
        demand: "no exported symbol is an IFUNC",
        reason: "its resolver runs while the file is still being relocated",
        fix: "choose the implementation inside an ordinary function",
        link: links::GCC_CODE_GEN,
        command: "readelf -W --dyn-syms {file} | grep IFUNC",
    },
    Rule {
        id: "export/data-writable",
        severity: Severity::Warning,
        demand: "no writable data is exported",
        reason: "another file with a variable of this name shares it",
        fix: VERSION_SCRIPT,
        link: links::DSO_HOWTO,
        command: "nm -D --defined-only {file} | grep -E ' [BD] '",
    },
    Rule {
        id: "export/common",
        severity: Severity::Warning,
        demand: "no common block is exported",
        reason: "common blocks of the same name are merged whatever their types are",
        fix: "compile with -fno-common and initialise the variable",
        link: links::GCC_CODE_GEN,
        command: "readelf -W --dyn-syms {file} | grep COMMON",
    },
    Rule {
        id: "export/tls",
        severity: Severity::Warning,
        demand: "no thread-local variable is exported",
        reason: "another file with a variable of this name shares it, thread by thread",
        fix: VERSION_SCRIPT,
        link: links::DSO_HOWTO,
        command: "readelf -W --dyn-syms {file} | grep TLS",
    },
    Rule {
        id: "export/interposable",
        severity: Severity::Info,
        demand: "the file calls its own entry points directly",
        reason: "a call through the symbol table to an own default-visible symbol can be taken over by a preloaded or global one",
        fix: "mark it protected or hidden, or link with -Wl,-Bsymbolic-functions",
        link: links::DSO_HOWTO,
        command: "readelf -rW {file} | grep -w {subject}",
    },
    Rule {
        id: "export/host-collision",
        severity: Severity::Error,
        demand: "no name is exported that a library of the process exports too",
        reason: "lookups find the library's symbol first, so the file runs the library's code or the other way round",
        fix: VERSION_SCRIPT,
        link: links::LD_SO,
        command: "nm -D --defined-only {file} | grep -w {subject}",
    },
    Rule {
        id: "export/captured",
        severity: Severity::Error,
        demand: "no library takes its own symbol from the file",
        reason: "the library calls this copy instead of its own, and crashes once the file is unloaded",
        fix: VERSION_SCRIPT,
        link: links::LD_SO,
        command: "LD_DEBUG=bindings LD_BIND_NOW=1 ld.so --preload {file} /bin/true 2>&1 | grep -w {subject}",
    },
];

pub(super) fn check(context: &Context<'_>) -> Checks {
    let mut checks = Checks::default();
    let policy = &context.policy.policy;
    let listed = listed(context);
    let anything = policy.contract == Contract::Library
        && context.policy.allow.is_empty()
        && policy.exports.expect.is_empty();
    for symbol in context.view.exports() {
        if listed.contains(&*symbol.name) || is_allowed(context, symbol) {
            check_own(context, symbol, true, &mut checks);
            continue;
        }
        check_origin(context, symbol, anything, &mut checks);
        check_own(context, symbol, false, &mut checks);
    }
    if anything {
        checks.skip("export/unlisted", "the policy lists no exports");
    }
    let present: HashSet<&str> = context.view.exports().map(|s| &*s.name).collect();
    for name in &policy.exports.expect {
        if !present.contains(name.as_str()) {
            checks.found("export/expected", name, "not exported");
        }
    }
    if policy.exports.expect.is_empty() {
        checks.skip("export/expected", "the policy lists no expected exports");
    }
    check_captured(context, &mut checks);
    check_host(context, &listed, &mut checks);
    checks
}

/// The names that the contract and the reviewed list put among the exports.
fn listed<'a>(context: &'a Context<'_>) -> HashSet<&'a str> {
    let policy = &context.policy.policy;
    let contract: Vec<&str> = match policy.contract {
        Contract::Library => Vec::new(),
        Contract::EnginePlugin | Contract::HeuristicPlugin => contract_names().collect(),
    };
    let expected = policy.exports.expect.iter().map(String::as_str);
    contract.into_iter().chain(expected).collect()
}

/// Every name of the plugin interfaces.
pub(crate) fn contract_names() -> impl Iterator<Item = &'static str> {
    let engine = ENGINE_PLUGIN.iter().map(|symbol| symbol.name);
    engine.chain(HEURISTIC_PLUGIN.iter().copied())
}

fn is_allowed(context: &Context<'_>, symbol: &DynSymbol<'_>) -> bool {
    let allow = &context.policy.allow;
    !allow.is_empty()
        && (allow.matches(&symbol.name)
            || demangle(&symbol.name).is_some_and(|readable| allow.matches(&readable)))
}

/// Files an unlisted export under the rule for where it comes from.
fn check_origin(
    context: &Context<'_>,
    symbol: &DynSymbol<'_>,
    anything: bool,
    checks: &mut Checks,
) {
    if is_version_name(context, symbol) {
        return;
    }
    let detail = || describe(symbol);
    if is_hip_generated(context, symbol) {
        return checks.found("export/hip-generated", &*symbol.name, detail());
    }
    let rule = match origin(&symbol.name) {
        Origin::Linker => return,
        Origin::Std => "export/std",
        Origin::Allocator => "export/allocator",
        Origin::Unwinder => "export/unwinder",
        Origin::ThirdParty(library) => {
            let detail = format!("{library}: {}", detail());
            return checks.found("export/third-party", &*symbol.name, detail);
        }
        Origin::Other if anything => return,
        Origin::Other => "export/unlisted",
    };
    checks.found(rule, &*symbol.name, detail());
}

/// Checks what is wrong with an export whatever it is called.
fn check_own(context: &Context<'_>, symbol: &DynSymbol<'_>, listed: bool, checks: &mut Checks) {
    let name = &*symbol.name;
    if symbol.binding == Binding::Unique {
        checks.found("export/unique", name, describe(symbol));
    }
    match symbol.kind {
        // An entry point that is one has its own rule.
        SymbolKind::Ifunc if !listed => checks.found("export/ifunc", name, "an IFUNC"),
        SymbolKind::Common => checks.found("export/common", name, describe(symbol)),
        SymbolKind::Tls => checks.found("export/tls", name, describe(symbol)),
        SymbolKind::Object
            if symbol.binding != Binding::Unique
                && is_writable(context, symbol)
                && !is_hip_generated(context, symbol) =>
        {
            checks.found("export/data-writable", name, describe(symbol));
        }
        _ => {}
    }
    // What should not be exported at all has its own rule.
    let through_table =
        symbol.visibility == Visibility::Default && context.view.is_referenced(symbol);
    if listed && through_table {
        checks.found("export/interposable", name, describe(symbol));
    }
}

fn check_captured(context: &Context<'_>, checks: &mut Checks) {
    let mut by_symbol: HashMap<&str, Vec<String>> = HashMap::new();
    let mut order = Vec::new();
    for captured in &context.bindings.captured {
        let libraries = by_symbol.entry(&captured.symbol).or_insert_with(|| {
            order.push(&*captured.symbol);
            Vec::new()
        });
        libraries.push(context.closure.objects[captured.object].display_name());
    }
    for symbol in order {
        let libraries = by_symbol[symbol].join(", ");
        checks.found("export/captured", symbol, format!("taken by {libraries}"));
    }
}

/// Compares with the libraries of the host and of the closure. What comes from the standard
/// library, an allocator or an unwinder has its own rule.
fn check_host(context: &Context<'_>, listed: &HashSet<&str>, checks: &mut Checks) {
    let closure = context.closure;
    let own: HashSet<&str> = context
        .view
        .exports()
        .filter(|symbol| !listed.contains(&*symbol.name) && !is_hip_generated(context, symbol))
        .map(|symbol| &*symbol.name)
        .filter(|name| matches!(origin(name), Origin::Other | Origin::ThirdParty(_)))
        .collect();
    if own.is_empty() {
        return;
    }
    for object in closure.host().iter().chain(closure.dependencies()) {
        let Ok(view) = ElfView::parse(&object.bytes) else {
            continue;
        };
        let shared = view.exports().filter(|symbol| own.contains(&*symbol.name));
        for symbol in shared {
            let detail = format!("also exported by {}", object.path.display());
            checks.found("export/host-collision", &*symbol.name, detail);
        }
    }
}

/// The symbol that a version script makes of a version's own name.
fn is_version_name(context: &Context<'_>, symbol: &DynSymbol<'_>) -> bool {
    let absolute = u32::from(symbol.section) == SHN_ABS;
    let version = symbol
        .version
        .map(|entry| context.view.versions().of(entry));
    absolute && version == Some(VersionUse::Defined(symbol.name.clone().into_owned()))
}

fn is_hip_generated(context: &Context<'_>, symbol: &DynSymbol<'_>) -> bool {
    is_generated_handle(context.file, context.device, symbol)
}

/// Whether clang's HIP mode made the symbol: the id of a module, or the handle of a kernel, which
/// is a pointer-sized object with the kernel's own name.
pub(crate) fn is_generated_handle(
    file: &PluginFile,
    device: &DeviceCode,
    symbol: &DynSymbol<'_>,
) -> bool {
    const HANDLE_SIZE: u64 = 8;
    let name = &*symbol.name;
    if name.starts_with("__hip_cuid_") || name.starts_with("__hip_gpubin_handle") {
        return true;
    }
    let handle = symbol.kind == SymbolKind::Object && symbol.size == HANDLE_SIZE;
    if !file.has_hip_fatbin || !handle {
        return false;
    }
    // Where no kernel list can be read, a data symbol with the name of a function is a handle.
    let unread = device.images.iter().all(|image| image.kernels.is_empty());
    device.has_kernel(name)
        || (unread && demangle(name).is_some_and(|readable| readable.ends_with(')')))
}

/// Whether the symbol lies in memory that stays writable after loading.
fn is_writable(context: &Context<'_>, symbol: &DynSymbol<'_>) -> bool {
    let holds = |kind: u32, flags: u32| {
        context.view.segments().iter().any(|segment| {
            let inside = symbol.value.checked_sub(segment.p_vaddr);
            segment.p_type == kind
                && segment.p_flags & flags == flags
                && inside.is_some_and(|offset| offset < segment.p_memsz)
        })
    };
    holds(PT_LOAD, PF_W) && !holds(PT_GNU_RELRO, 0)
}

fn describe(symbol: &DynSymbol<'_>) -> String {
    let name = &*symbol.name;
    let what = if name.starts_with("_ZTV") || name.starts_with("_ZTT") {
        "vtable"
    } else if name.starts_with("_ZTI") || name.starts_with("_ZTS") {
        "type info"
    } else if name.starts_with("_ZGV") {
        "guard variable"
    } else {
        match (symbol.kind, symbol.binding) {
            (SymbolKind::Function, Binding::Weak) => "inline function",
            (SymbolKind::Function, _) => "function",
            (SymbolKind::Object, _) => "data",
            (SymbolKind::Tls, _) => "thread-local data",
            (SymbolKind::Ifunc, _) => "IFUNC",
            (SymbolKind::Common, _) => "common block",
            _ => "symbol without a type",
        }
    };
    let binding = match symbol.binding {
        Binding::Weak => "weak",
        Binding::Unique => "unique",
        _ => "global",
    };
    format!("{what}, {binding}, {} bytes", symbol.size)
}
