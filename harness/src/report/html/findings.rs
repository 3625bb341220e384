//! What inspection and conformance found, each with its waiver.

use std::fmt::Write as _;

use super::super::failure::finding_waiver;
use super::{count, escape, line};
use crate::journal::{Infra, InfraKind, Journal};

/// Findings that are shown; a broken file can have thousands.
const SHOWN: usize = 200;

/// The section; none where nothing was found.
pub fn section(page: &mut String, journal: &Journal) {
    let found = journal.infra.iter().filter(|infra| sort(infra).is_some());
    let number = found.clone().count();
    if number == 0 {
        return;
    }
    let _ = write!(
        page,
        "<section id=\"findings\">\n<h2>Findings <small>{}</small></h2>\n\
         <p class=\"about\">Of the plugin's file and of the contracts of its ABI.</p>\n",
        count(number as u64)
    );
    for infra in found.take(SHOWN) {
        entry(page, infra);
    }
    if number > SHOWN {
        let _ = writeln!(page, "<p class=\"about\">The first {SHOWN} are shown.</p>");
    }
    page.push_str("</section>\n");
}

/// Whether a record is shown here and not among the notes.
pub fn is_shown(infra: &Infra) -> bool {
    sort(infra).is_some()
}

/// How many findings are red.
pub fn red(journal: &Journal) -> u64 {
    let infra = journal.infra.iter();
    infra
        .filter(|infra| infra.kind == InfraKind::Finding)
        .count() as u64
}

/// Class and word of a record that is shown here.
fn sort(infra: &Infra) -> Option<(&'static str, &'static str)> {
    match infra.kind {
        InfraKind::Finding => Some(("v-fail", "finding")),
        InfraKind::WaivedFinding => Some(("v-expected-fail", "waived")),
        InfraKind::Unchecked => Some(("v-not-run", "unchecked")),
        _ => None,
    }
}

fn entry(page: &mut String, infra: &Infra) {
    let Some((class, word)) = sort(infra) else {
        return;
    };
    let rule = infra.rule.as_deref().unwrap_or_default();
    let _ = write!(
        page,
        "<details><summary><span class=\"verdict\"><i class=\"{class}\"></i>{word}</span>\
         <span class=\"id\"><b>{}</b></span><span class=\"why\">{}</span></summary>\
         <div class=\"story\"><pre>{}</pre>",
        line(rule),
        line(&infra.message),
        escape(&infra.message)
    );
    if let Some(waiver) = finding_waiver(infra).filter(|_| infra.kind == InfraKind::Finding) {
        let _ = write!(
            page,
            "<div><h4>A waiver, to complete and paste<button type=\"button\" data-copy=\"\">Copy</button></h4>\
             <pre>{}</pre></div>",
            escape(&waiver)
        );
    }
    page.push_str("</div></details>\n");
}
