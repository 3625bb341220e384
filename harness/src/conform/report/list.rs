//! The checks themselves: what there is, and why.

use std::io::{self, Write};

use serde_json::json;

use crate::conform::check::Level;
use crate::conform::{checks, heuristic, pairs};

/// Id, level, reason, link of every check.
fn rows() -> impl Iterator<Item = (&'static str, Level, &'static str, &'static str)> {
    let single = checks::all().map(|c| (c.id, c.level, c.why, c.link));
    let of_pairs = pairs::CHECKS.iter();
    let of_pairs = of_pairs.map(|c| (c.id, c.level, c.why, c.link));
    let of_files = heuristic::CHECKS.iter();
    let of_files = of_files.map(|c| (c.id, c.level, c.why, c.link));
    single.chain(of_pairs).chain(of_files)
}

/// One line per check.
///
/// # Errors
/// What `out` says.
pub fn list_text(out: &mut dyn Write) -> io::Result<()> {
    for (id, level, why, _) in rows() {
        writeln!(out, "{id:<46} {:<13} {why}", level.name())?;
    }
    Ok(())
}

/// A JSON array.
///
/// # Errors
/// What `out` says.
pub fn list_json(out: &mut dyn Write) -> io::Result<()> {
    let list: Vec<_> = rows()
        .map(|(id, level, why, link)| json!({"id": id, "level": level, "why": why, "link": link}))
        .collect();
    serde_json::to_writer_pretty(&mut *out, &list)?;
    writeln!(out)
}

const PREFACE: &str = "\
# What conformance means

`dnn-assay conform PLUGIN…` makes these checks, each in worker processes of its own: a crash or a hang
is the finding of the check that caused it. With two or more plugins, each pair is checked too.

* **required**: the host does it or relies on it.
* **recommended**: a sentence of the headers that the host never exercises.
* **informational**: ours; worth knowing.

`--level` (default `required`) says which findings end with exit code 1; a plugin that cannot be loaded
ends with 3. The summary's last word is the mildest level up to which a plugin has no finding. `--check
GLOB` takes some of the checks, `--knob-sweep` judges results at several values of each knob, `--format
json` and `--junit FILE` are for pipelines.

A result is compared with the same engine's result in a process of its own: bit for bit, if five fresh
processes give the same bits, else within the bound of the reference, which is then said. What an engine
computes is judged by `dnn-assay run`. An engine that writes no output has only its statuses checked.

A leak is what grows in nine of ten rounds after 20 rounds of warm-up, with the growth of idle rounds
taken off, and on a device the growth of a process that only initialised the same GPU library and moved
the same buffers. A heuristic plugin is named, its symbols are checked, and nothing of it is executed.

On the built-in CPU plugin all checks take half a second of processor time and one to two seconds on a
machine with two busy cores; ten seconds are allowed (`time dnn-assay conform --builtin`).

This page is made by `dnn-assay conform --list --format markdown`; a test holds it to the checks.

| check | level | what must hold, and why |
| --- | --- | --- |
";

/// The page of the documentation.
///
/// # Errors
/// What `out` says.
pub fn list_markdown(out: &mut dyn Write) -> io::Result<()> {
    out.write_all(PREFACE.as_bytes())?;
    for (id, level, why, link) in rows() {
        let why = why.replace('|', "\\|");
        writeln!(
            out,
            "| `{id}` | {} | {why} ([source]({link})) |",
            level.name()
        )?;
    }
    Ok(())
}
