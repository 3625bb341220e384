//! What loading the file does to the process.

use super::{Checks, Context, Rule};
use crate::finding::Severity;
use crate::links;
use crate::view::{Binding, ElfView};
use goblin::elf::dynamic::{
    self, DF_1_NODELETE, DF_1_NOOPEN, DF_1_NOW, DF_BIND_NOW, DF_STATIC_TLS, DF_SYMBOLIC, DF_TEXTREL,
};
use goblin::elf::header::{EI_ABIVERSION, EI_OSABI, ELFOSABI_GNU, ELFOSABI_NONE};
use goblin::elf::program_header::{
    PF_W, PF_X, PT_GNU_RELRO, PT_GNU_STACK, PT_LOAD, PT_TLS, ProgramHeader,
};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "load/refused",
        severity: Severity::Error,
        demand: "the loader accepts the file's headers",
        reason: "dlopen fails before it looks at any symbol",
        fix: "link again as an ordinary shared library; look at tools that edit the file afterwards",
        link: links::DLOPEN,
        command: "readelf -hldW {file}",
    },
    Rule {
        id: "load/textrel",
        severity: Severity::Error,
        demand: "code is not relocated",
        reason: "the loader makes code writable, which hardened systems refuse and which no process can share",
        fix: "compile everything with -fPIC; -Wl,-z,text finds this at link time",
        link: links::DSO_HOWTO,
        command: "readelf -d {file} | grep TEXTREL",
    },
    Rule {
        id: "load/execstack",
        severity: Severity::Error,
        demand: "the file says that its stack is not executable",
        reason: "one file with an executable or unstated stack makes it so for the whole process; dlopen refuses it from glibc 2.41",
        fix: "link with -Wl,-z,noexecstack; give assembler sources a .note.GNU-stack section; avoid nested functions",
        link: links::GLIBC_2_41,
        command: "readelf -lW {file} | grep GNU_STACK",
    },
    Rule {
        id: "load/wx-segment",
        severity: Severity::Error,
        demand: "no memory is writable and executable",
        reason: "a write through a wrong pointer becomes code, and hardened systems refuse it",
        fix: "remove linker options such as -N or --omagic and sections with flags awx",
        link: links::LD_OPTIONS,
        command: "readelf -lW {file} | grep RWE",
    },
    Rule {
        id: "load/preinit",
        severity: Severity::Error,
        demand: "there is no PREINIT_ARRAY",
        reason: "the loader ignores it in a shared library, so its functions never run",
        fix: "use __attribute__((constructor))",
        link: links::GABI_DYNAMIC,
        command: "readelf -d {file} | grep PREINIT",
    },
    Rule {
        id: "load/static-tls",
        severity: Severity::Warning,
        demand: "thread-local data is not in the static block",
        reason: "a library opened late competes for a reserve of about 1.6 kB, and dlopen fails when that is used up",
        fix: "remove -ftls-model=initial-exec and local-exec",
        link: links::GCC_CODE_GEN,
        command: "readelf -d {file} | grep STATIC_TLS",
    },
    Rule {
        id: "load/nodelete",
        severity: Severity::Warning,
        demand: "the file can be unloaded",
        reason: "dlclose does nothing, so loading it again does not start afresh",
        fix: "remove -Wl,-z,nodelete; unique symbols are hidden by a version script, as for export/unique",
        link: links::DLOPEN,
        command: "readelf -d {file} | grep NODELETE",
    },
    Rule {
        id: "load/relro",
        severity: Severity::Warning,
        demand: "relocated data is read-only after loading",
        reason: "function tables stay writable, and a stray write redirects calls",
        fix: "link with -Wl,-z,relro",
        link: links::LD_OPTIONS,
        command: "readelf -lW {file} | grep GNU_RELRO",
    },
    Rule {
        id: "load/no-gnu-hash",
        severity: Severity::Warning,
        demand: "the file has a DT_GNU_HASH table",
        reason: "with DT_HASH alone every lookup in the process is slower; without both no symbol is found at all",
        fix: "link with -Wl,--hash-style=gnu or both",
        link: links::ELF_HASH,
        command: "readelf -d {file} | grep HASH",
    },
    Rule {
        id: "load/bindnow",
        severity: Severity::Info,
        demand: "symbols are bound at load time",
        reason: "the host binds at once anyway; without it another host meets a missing symbol only at the first call",
        fix: "link with -Wl,-z,now",
        link: links::LD_OPTIONS,
        command: "readelf -d {file} | grep -E 'BIND_NOW|FLAGS'",
    },
    Rule {
        id: "load/symbolic",
        severity: Severity::Info,
        demand: "the file looks its own symbols up like any other",
        reason: "with -Bsymbolic addresses of the same function differ between files",
        fix: "nothing to do if the file exports entry points only",
        link: links::LD_OPTIONS,
        command: "readelf -d {file} | grep SYMBOLIC",
    },
    Rule {
        id: "load/constructors",
        severity: Severity::Info,
        demand: "nothing but the compiler's own runs at load time",
        reason: "a constructor runs inside dlopen, under the loader's lock, before the host has set anything up",
        fix: "initialise in hipdnnEnginePluginCreate",
        link: links::GABI_DYNAMIC,
        command: "readelf -dW {file} | grep -E 'INIT'",
    },
    Rule {
        id: "load/debug-sections",
        severity: Severity::Info,
        demand: "debug information is kept apart",
        reason: "it makes the file larger; the loader does not map it",
        fix: "objcopy --only-keep-debug, then strip -g",
        link: links::LD_OPTIONS,
        command: "readelf -SW {file} | grep debug",
    },
];

pub(super) fn check(context: &Context<'_>) -> Checks {
    let mut checks = Checks::default();
    check_headers(context.view, &mut checks);
    check_segments(context.view, &mut checks);
    check_flags(context.view, &mut checks);
    check_tables(context.view, &mut checks);
    check_constructors(context.view, &mut checks);
    checks
}

/// The conditions under which `_dl_map_object_from_fd` and `open_verify` of glibc give up.
fn check_headers(view: &ElfView<'_>, checks: &mut Checks) {
    const PAGE: u64 = 4096;
    let header = view.header();
    let mut refused = |detail: String| checks.file("load/refused", detail);
    if !matches!(header.e_ident[EI_OSABI], ELFOSABI_NONE | ELFOSABI_GNU) {
        refused(format!(
            "ELF file OS ABI invalid: {}",
            header.e_ident[EI_OSABI]
        ));
    }
    if header.e_ident[EI_ABIVERSION] > 3 {
        refused("ELF file ABI version invalid".into());
    }
    if header.e_version != 1 || header.e_ident[6] != 1 {
        refused("ELF file version does not match current one".into());
    }
    if header.e_phentsize != 56 {
        refused("ELF file's phentsize not the expected size".into());
    }
    let loads = || view.segments().iter().filter(|s| s.p_type == PT_LOAD);
    if loads().next().is_none() {
        refused("object file has no loadable segments".into());
    }
    for segment in loads() {
        if segment.p_align % PAGE != 0 {
            refused("ELF load command alignment not page-aligned".into());
        } else if segment.p_align != 0
            && segment.p_vaddr.wrapping_sub(segment.p_offset) & (segment.p_align - 1) != 0
        {
            refused("ELF load command address/offset not page-aligned".into());
        }
    }
    if view.flags_1() & DF_1_NOOPEN != 0 {
        refused("shared object cannot be dlopen()ed (DF_1_NOOPEN)".into());
    }
    for (tag, name) in [
        (dynamic::DT_STRTAB, "STRTAB"),
        (dynamic::DT_SYMTAB, "SYMTAB"),
    ] {
        if view.dynamic_value(tag).is_none() {
            refused(format!("no DT_{name}"));
        }
    }
}

fn check_segments(view: &ElfView<'_>, checks: &mut Checks) {
    let of = |kind: u32| view.segments().iter().filter(move |s| s.p_type == kind);
    match of(PT_GNU_STACK).next() {
        None => checks.file(
            "load/execstack",
            "no PT_GNU_STACK, so the default holds: executable",
        ),
        Some(stack) if stack.p_flags & PF_X != 0 => {
            checks.file("load/execstack", "PT_GNU_STACK is executable");
        }
        Some(_) => {}
    }
    let both = |s: &&ProgramHeader| s.p_flags & (PF_W | PF_X) == PF_W | PF_X;
    for segment in of(PT_LOAD).filter(both) {
        let place = format!("{:#x}", segment.p_vaddr);
        checks.found(
            "load/wx-segment",
            place,
            format!("{} bytes", segment.p_memsz),
        );
    }
    if of(PT_GNU_RELRO).next().is_none() {
        checks.file("load/relro", "no PT_GNU_RELRO");
    }
}

fn check_flags(view: &ElfView<'_>, checks: &mut Checks) {
    let (flags, flags_1) = (view.flags(), view.flags_1());
    let has = |tag: u64| view.dynamic_value(tag).is_some();
    if flags & DF_TEXTREL != 0 || has(dynamic::DT_TEXTREL) {
        checks.file("load/textrel", "the dynamic section says TEXTREL");
    }
    if flags & DF_STATIC_TLS != 0 {
        let tls = view.segments().iter().find(|s| s.p_type == PT_TLS);
        let size = tls.map_or(0, |segment| segment.p_memsz);
        let detail = format!("the dynamic section says STATIC_TLS; its own data has {size} bytes");
        checks.file("load/static-tls", detail);
    }
    if flags_1 & DF_1_NODELETE != 0 {
        checks.file("load/nodelete", "the dynamic section says NODELETE");
    } else if view
        .exports()
        .any(|symbol| symbol.binding == Binding::Unique)
    {
        checks.file(
            "load/nodelete",
            "a unique symbol pins the file once it is bound",
        );
    }
    if flags & DF_SYMBOLIC != 0 || has(dynamic::DT_SYMBOLIC) {
        checks.file("load/symbolic", "the dynamic section says SYMBOLIC");
    }
    if flags & DF_BIND_NOW == 0 && flags_1 & DF_1_NOW == 0 && !has(dynamic::DT_BIND_NOW) {
        checks.file("load/bindnow", "symbols are bound at their first call");
    }
}

fn check_tables(view: &ElfView<'_>, checks: &mut Checks) {
    if view.dynamic_value(dynamic::DT_GNU_HASH).is_none() {
        let detail = match view.dynamic_value(dynamic::DT_HASH) {
            Some(_) => "only DT_HASH",
            None => "no hash table: dlsym finds nothing here",
        };
        checks.file("load/no-gnu-hash", detail);
    }
    let debug = view.sections().iter().filter(|section| {
        let name = view.section_name(section);
        name.starts_with(".debug_") || name.starts_with(".zdebug_")
    });
    // The sizes are the file's word, so that their sum may be more than there is.
    let size = debug.fold(0_u64, |sum, section| sum.saturating_add(section.sh_size));
    if size > 0 {
        checks.file(
            "load/debug-sections",
            format!("{size} bytes of debug information"),
        );
    }
}

/// Constructors that every shared library of gcc or clang has.
const COMPILERS_OWN: [&str; 3] = ["_init", "frame_dummy", "register_tm_clones"];

fn check_constructors(view: &ElfView<'_>, checks: &mut Checks) {
    if view.dynamic_value(dynamic::DT_PREINIT_ARRAY).is_some() {
        checks.file("load/preinit", "the dynamic section has a PREINIT_ARRAY");
    }
    // A stripped library does not name them; the compiler's own is then the first.
    let listed = view.constructors();
    let array = listed.iter().filter(|c| c.listed_in == "INIT_ARRAY");
    for (index, constructor) in array.enumerate() {
        match &constructor.name {
            Some(name) if COMPILERS_OWN.contains(&name.as_str()) => {}
            Some(name) => checks.found("load/constructors", name, "runs at load time"),
            None if index == 0 => {}
            None => {
                let place = format!("{:#x}", constructor.address);
                checks.found("load/constructors", place, "runs at load time");
            }
        }
    }
}
