//! One static page: no server, no network, light and dark. Passes are counted into a heat map and
//! histograms; every other case has a row, and what failed has its story. It is well-formed XML
//! too, so that a strict parser can hold it to account.

mod findings;
mod heat;
mod histogram;
mod rows;

use std::fmt::Write as _;
use std::io;

use super::Reporter;
use super::text::{clean, count, duration, figure, one_line};
use crate::exit::Exit;
use crate::journal::{Journal, Summary, Unit};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Writes the page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Html;

impl Reporter for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn write(&self, journal: &Journal, out: &mut dyn io::Write) -> io::Result<()> {
        let units = journal.units();
        let summary = journal.summary();
        let mut page = String::with_capacity(1 << 20);
        begin(&mut page, journal);
        banner(&mut page, journal, &summary);
        plugins(&mut page, journal);
        findings::section(&mut page, journal);
        cases(&mut page, &units);
        heat::section(&mut page, journal, &units);
        histogram::section(&mut page, &units);
        notes(&mut page, journal);
        foot(&mut page, journal);
        let data = rows::data(journal, &units);
        let _ = write!(
            page,
            "<script type=\"application/json\" id=\"data\">{data}</script>\n\
             <script>//<![CDATA[\n{SCRIPT}//]]></script>\n</body>\n</html>\n"
        );
        out.write_all(page.as_bytes())
    }
}

/// Text that means itself, in an element or in an attribute.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

fn line(text: &str) -> String {
    escape(&one_line(text))
}

fn exit_of(journal: &Journal) -> Option<Exit> {
    let code = journal.end.as_ref()?.exit?;
    Exit::ALL.into_iter().find(|exit| exit.code() == code)
}

fn begin(page: &mut String, journal: &Journal) {
    let name = journal.plugins.first().map_or("no plugin", |p| {
        p.path.rsplit('/').next().unwrap_or(&p.path)
    });
    let _ = write!(
        page,
        "<!DOCTYPE html>\n\
         <html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n\
         <meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>{} · DNN Assay</title>\n<style>/*<![CDATA[*/\n{STYLE}/*]]>*/</style>\n</head>\n<body>\n",
        line(name)
    );
}

/// The outcome, the counts, and the share of each verdict.
fn banner(page: &mut String, journal: &Journal, summary: &Summary) {
    let exit = exit_of(journal);
    let (class, word) = match exit {
        Some(Exit::Ok) => ("good", "As expected"),
        Some(Exit::Failed | Exit::Plugin | Exit::Usage) => ("bad", "Not right"),
        Some(_) => ("odd", "Look again"),
        None => ("odd", "The run was cut"),
    };
    let meaning = exit.map_or_else(
        || "the journal has no end".to_owned(),
        |exit| format!("exit {}: {}", exit.code(), exit.meaning()),
    );
    let start = journal.start.as_ref();
    let suites = start.map_or_else(String::new, |start| start.suites.join(", "));
    let time = start.map_or("", |start| start.time.as_str());
    let _ = write!(
        page,
        "<header class=\"{class}\">\n<p class=\"kicker\">DNN Assay · {} · {}</p>\n<h1>{word}</h1>\n\
         <p class=\"meaning\">{}</p>\n<dl class=\"figures\">\n",
        line(&suites),
        line(time.get(..16).unwrap_or(time)).replace('T', " "),
        line(&meaning)
    );
    let red: u64 = ["fail", "crash", "timeout", "unexpected-pass", "flaky"]
        .iter()
        .map(|name| summary.count_of(name))
        .sum();
    let worst = summary.worst_margin.as_ref();
    for (label, value) in [
        ("planned", count(summary.planned)),
        ("verified", count(summary.verified)),
        ("of them by samples", count(summary.sampled)),
        ("not right", count(red)),
        ("findings", count(findings::red(journal))),
        ("declined", count(summary.count_of("unsupported"))),
        (
            "worst margin",
            worst.map_or_else(|| "none".to_owned(), |w| figure(w.margin)),
        ),
        ("in plugins", duration(summary.plugin_ms)),
        ("in the reference", duration(summary.reference_ms)),
    ] {
        let _ = writeln!(page, "<div><dt>{label}</dt><dd>{value}</dd></div>");
    }
    page.push_str("</dl>\n");
    verdict_bar(page, summary);
    page.push_str("</header>\n<main>\n");
}

fn verdict_bar(page: &mut String, summary: &Summary) {
    let total: u64 = summary.by_verdict.values().sum();
    if total == 0 {
        return;
    }
    page.push_str("<div class=\"bar\" role=\"img\" aria-label=\"share of each verdict\">");
    for (name, n) in &summary.by_verdict {
        let percent = 100.0 * *n as f64 / total as f64;
        let _ = write!(
            page,
            "<i class=\"v-{name}\" style=\"flex-grow:{percent:.3}\" title=\"{} {name}\"></i>",
            count(*n)
        );
    }
    page.push_str("</div>\n<p class=\"legend\">");
    for (name, n) in &summary.by_verdict {
        let _ = write!(
            page,
            "<span><i class=\"v-{name}\"></i>{} {name}</span> ",
            count(*n)
        );
    }
    page.push_str("</p>\n");
}

fn plugins(page: &mut String, journal: &Journal) {
    page.push_str("<section>\n<h2>Plugins</h2>\n");
    for plugin in &journal.plugins {
        let _ = writeln!(
            page,
            "<div class=\"plugin\"><h3>{}</h3>",
            line(&plugin.path)
        );
        if let Some(error) = &plugin.error {
            let _ = writeln!(page, "<p class=\"error\">{}</p>", line(&error.message));
        }
        page.push_str("<dl class=\"facts\">");
        let engines: Vec<String> = plugin.engines.iter().map(|e| e.label()).collect();
        let because = |what: &Option<String>, why: &Option<String>| match (what, why) {
            (Some(what), Some(why)) => Some(format!("{what} ({why})")),
            (what, _) => what.clone(),
        };
        for (label, value) in [
            ("name", plugin.name.clone()),
            ("version", plugin.version.clone()),
            ("engine API", plugin.api_version.clone()),
            ("engines", (!engines.is_empty()).then(|| engines.join(", "))),
            ("build-id", plugin.build_id.clone()),
            ("memory", because(&plugin.memory, &plugin.memory_reason)),
            ("wire", because(&plugin.wire, &plugin.wire_reason)),
        ] {
            if let Some(value) = value {
                let _ = write!(page, "<div><dt>{label}</dt><dd>{}</dd></div>", line(&value));
            }
        }
        page.push_str("</dl>\n");
        for finding in &plugin.findings {
            let _ = writeln!(page, "<p class=\"finding\">{}</p>", line(finding));
        }
        page.push_str("</div>\n");
    }
    page.push_str("</section>\n");
}

/// The place that the script fills; without scripts it says where to look.
fn cases(page: &mut String, units: &[Unit<'_>]) {
    let others = units
        .iter()
        .filter(|unit| unit.verdict != crate::verdict::Verdict::Pass)
        .count();
    let _ = write!(
        page,
        "<section id=\"cases\">\n<h2>Cases that did not pass <small>{}</small></h2>\n\
         <noscript><p>This list needs scripts; `dnn-assay report` prints the same.</p></noscript>\n\
         <div class=\"controls\"><input type=\"search\" id=\"search\" placeholder=\"conv f16 nhwc …\" aria-label=\"search in ids and reasons\"/>\
         <select id=\"engine\" aria-label=\"engine\"><option value=\"\">all engines</option></select>\
         <div id=\"chips\"></div></div>\n<p id=\"shown\" aria-live=\"polite\"></p>\n\
         <div id=\"list\"></div>\n<button id=\"more\" type=\"button\" hidden=\"hidden\">Show more</button>\n</section>\n",
        count(others as u64)
    );
}

fn notes(page: &mut String, journal: &Journal) {
    let notes = journal.infra.iter();
    let mut notes = notes.filter(|infra| !findings::is_shown(infra)).peekable();
    if notes.peek().is_none() {
        return;
    }
    page.push_str("<section>\n<h2>Notes</h2>\n<ul class=\"notes\">\n");
    // A broken machine can say the same thing for every case.
    for infra in notes.take(200) {
        let _ = writeln!(page, "<li>{}</li>", line(&infra.message));
    }
    page.push_str("</ul>\n</section>\n");
}

fn foot(page: &mut String, journal: &Journal) {
    page.push_str("</main>\n<footer>");
    if let Some(start) = &journal.start {
        let mut parts = vec![format!("dnn-assay {}", start.version)];
        parts.extend(start.seed.map(|seed| format!("seed {seed}")));
        parts.extend(
            start
                .criterion
                .as_ref()
                .map(|name| format!("criterion {name}")),
        );
        if let Some(host) = &start.host {
            parts.extend(host.cpu.clone());
            parts.extend(host.os.clone());
        }
        parts.extend(
            start
                .git_revision
                .as_ref()
                .map(|rev| format!("revision {rev}")),
        );
        let _ = write!(page, "{}", line(&parts.join(" · ")));
    }
    page.push_str("</footer>\n");
}
