//! Whether the file's tables agree with themselves.

use super::{Checks, Context, Rule};
use crate::finding::Severity;
use crate::links;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "elf/forgiven",
        severity: Severity::Warning,
        demand: "every table of the file parses",
        reason: "a table that tools cannot read hides what the loader will do with it",
        fix: "link again; look at tools that edit the file afterwards (strip, patchelf, objcopy)",
        link: links::GABI_DYNAMIC,
        command: "readelf -aW {file} > /dev/null",
    },
    Rule {
        id: "elf/symbol-count",
        severity: Severity::Warning,
        demand: "section header, DT_HASH and DT_GNU_HASH count the same symbols",
        reason: "a symbol that one table lacks is found by some lookups and not by others",
        fix: "link again; look at tools that edit the file afterwards (strip, patchelf, objcopy)",
        link: links::ELF_HASH,
        command: "readelf -W --dyn-syms --histogram {file}",
    },
];

pub(super) fn check(context: &Context<'_>) -> Checks {
    let mut checks = Checks::default();
    for forgiven in context.view.forgiven() {
        checks.found("elf/forgiven", forgiven.part, &*forgiven.problem);
    }
    let counts = context.view.symbol_counts();
    let said = [
        ("section header", counts.section),
        ("DT_HASH", counts.hash),
        ("DT_GNU_HASH", counts.gnu_hash),
    ];
    let said: Vec<String> = said
        .iter()
        .filter_map(|(table, count)| count.map(|count| format!("{table} {count}")))
        .collect();
    if said.len() < 2 {
        checks.skip("elf/symbol-count", "fewer than two tables say a count");
    } else if !counts.agree() {
        checks.file("elf/symbol-count", said.join(", "));
    }
    checks
}
