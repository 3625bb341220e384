//! What inspection and conformance found, by rule, each with its waiver.

use std::fmt::Write as _;

use super::super::failure::finding_waiver;
use super::{count, escape, line};
use crate::journal::{Infra, InfraKind, Journal};

/// Findings of a rule that are shown; a broken file can have thousands.
const SHOWN: usize = 50;

/// The findings of one rule that ended alike.
struct Group<'a> {
    first: &'a Infra,
    texts: Vec<&'a str>,
}

/// The section; none where nothing was found.
pub fn section(page: &mut String, journal: &Journal) {
    let groups = groups(journal);
    if groups.is_empty() {
        return;
    }
    let number: usize = groups.iter().map(|group| group.texts.len()).sum();
    let _ = write!(
        page,
        "<section id=\"findings\">\n<h2>Findings <small>{}</small></h2>\n\
         <p class=\"about\">In the plugin's file, and in the contracts of its ABI.</p>\n",
        count(number as u64)
    );
    for group in &groups {
        entry(page, group);
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

fn groups(journal: &Journal) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for infra in journal.infra.iter().filter(|infra| is_shown(infra)) {
        let of = |group: &&mut Group<'_>| {
            group.first.kind == infra.kind && group.first.rule == infra.rule
        };
        match groups.iter_mut().find(of) {
            Some(group) => group.texts.push(&infra.message),
            None => groups.push(Group {
                first: infra,
                texts: vec![&infra.message],
            }),
        }
    }
    groups
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

fn entry(page: &mut String, group: &Group<'_>) {
    let Some((class, word)) = sort(group.first) else {
        return;
    };
    let more = match group.texts.len() {
        1 => String::new(),
        n => format!(" <em>{} times</em>", count(n as u64)),
    };
    let _ = write!(
        page,
        "<details><summary><span class=\"verdict\"><i class=\"{class}\"></i>{word}</span>\
         <span class=\"id\"><b>{}</b>{more}</span><span class=\"why\">{}</span></summary>\
         <div class=\"story\"><pre>",
        line(group.first.rule.as_deref().unwrap_or_default()),
        line(&group.first.message),
    );
    for text in group.texts.iter().take(SHOWN) {
        let _ = writeln!(page, "{}", escape(text));
    }
    if group.texts.len() > SHOWN {
        let _ = writeln!(page, "and {} more", group.texts.len() - SHOWN);
    }
    page.push_str("</pre>");
    let is_red = group.first.kind == InfraKind::Finding;
    if let Some(waiver) = finding_waiver(group.first).filter(|_| is_red) {
        let _ = write!(
            page,
            "<div><h4>A waiver, to complete and paste<button type=\"button\" data-copy=\"\">Copy</button></h4>\
             <pre>{}</pre></div>",
            escape(&waiver)
        );
    }
    page.push_str("</div></details>\n");
}
