//! The kill table: for people, for programs, for the documentation.

use std::io::{self, Write};

use serde_json::json;

use super::result::{Fate, Power, Tried};
use super::table::Kind;

/// `numeric ×5, crash ×1`.
fn by(tried: &Tried) -> String {
    let checks = tried.by.iter().map(|(check, n)| match n {
        1 => check.to_string(),
        n => format!("{check} ×{n}"),
    });
    checks.collect::<Vec<_>>().join(", ")
}

/// The checks alone: counts may depend on the machine.
fn checks(tried: &Tried) -> String {
    let checks: Vec<_> = tried.by.keys().map(ToString::to_string).collect();
    checks.join(", ")
}

fn intended(tried: &Tried) -> String {
    let checks: Vec<_> = tried.mutant.catch.iter().map(ToString::to_string).collect();
    checks.join(" or ")
}

fn fate(tried: &Tried) -> String {
    match tried.fate() {
        Fate::Caught => "caught".to_owned(),
        Fate::CaughtByAnother => format!("CAUGHT BY ANOTHER CHECK than {}", intended(tried)),
        Fate::Survived => format!("SURVIVES {}", intended(tried)),
        Fate::Waits => format!("waits for {}", tried.note),
    }
}

fn mark(caught: Option<bool>) -> &'static str {
    match caught {
        Some(true) => "caught",
        Some(false) => "missed",
        None => "",
    }
}

/// One line per mutant, then the sums.
///
/// # Errors
/// What `out` says.
pub fn write_text(power: &Power, out: &mut dyn Write) -> io::Result<()> {
    for kind in Kind::ALL {
        let of_kind: Vec<_> = power
            .tried
            .iter()
            .filter(|t| t.mutant.kind == kind)
            .collect();
        if of_kind.is_empty() {
            continue;
        }
        writeln!(out, "{}", kind.name())?;
        for tried in of_kind {
            let name = &tried.mutant.name;
            let naming = match tried.naming() {
                super::Naming::Unnamed => String::new(),
                other => format!("  named {}: {}", other.name(), tried.named.join(", ")),
            };
            writeln!(out, "  {name:<36} {:<8} {}{naming}", fate(tried), by(tried))?;
            if matches!(tried.fate(), Fate::Survived | Fate::CaughtByAnother) {
                writeln!(out, "  {:<36} {}", "", tried.note)?;
            }
        }
    }
    writeln!(out, "\n{}", sums(power))?;
    if let Some(names) = named(power) {
        writeln!(out, "{names}")?;
    }
    for (name, missed) in [
        (
            "table (hipDNN's tolerances)",
            power.missed(|tried| tried.table),
        ),
        ("rms (MIOpenDriver's)", power.missed(|tried| tried.rms)),
    ] {
        let (asked, missed) = missed;
        if asked > 0 {
            let names = missed.join(", ");
            writeln!(
                out,
                "judged by {name}, {} of {asked} are missed: {names}",
                missed.len()
            )?;
        }
    }
    writeln!(
        out,
        "without a fault: {} units pass, {} findings",
        power.clean_passed,
        power.clean_findings.len()
    )?;
    for finding in &power.clean_findings {
        writeln!(out, "  {finding}")?;
    }
    writeln!(out, "{:.0} s", power.time.as_secs_f64())
}

fn sums(power: &Power) -> String {
    let count = |fate| power.count(fate, None);
    format!(
        "{} mutants: {} caught by the check that must, {} only by another, {} survive, {} wait",
        power.tried.len(),
        count(Fate::Caught),
        count(Fate::CaughtByAnother),
        count(Fate::Survived),
        count(Fate::Waits),
    )
}

/// How the faults of numbers were named; `None` where there was none.
fn named(power: &Power) -> Option<String> {
    let names = power.names();
    let listed = |list: &[String]| match list {
        [] => String::new(),
        list => format!(" ({})", list.join(", ")),
    };
    (names.count() > 0).then(|| {
        format!(
            "of {} faults of numbers in graphs of one or two nodes, {} ({:.0} %) are named rightly, \
             {} wrongly{}, {} not at all{}",
            names.count(),
            names.right.len(),
            names.share() * 100.0,
            names.wrong.len(),
            listed(&names.wrong),
            names.unnamed.len(),
            listed(&names.unnamed),
        )
    })
}

/// One JSON document: `mutants` with what became of each, `clean_findings`, and under `details`
/// everything else that is known of a mutant, by its name.
///
/// `by` are the checks that noticed it, the most frequent first; `diagnosis` the ids that the run
/// named, and `named` whether they name the fault: `right`, `wrong` or `unnamed`. `naming` counts
/// that over the faults of numbers in graphs of one or two nodes.
///
/// # Errors
/// What `out` says.
pub fn write_json(power: &Power, out: &mut dyn Write) -> io::Result<()> {
    let mutants: Vec<_> = power.tried.iter().map(mutant_json).collect();
    let details: serde_json::Map<_, _> = power
        .tried
        .iter()
        .map(|tried| (tried.mutant.name.clone(), details_json(tried)))
        .collect();
    let names = power.names();
    let document = json!({
        "schema": 2,
        "naming": {
            "right": names.right.len(),
            "wrong": names.wrong.len(),
            "unnamed": names.unnamed.len(),
            "share_right": names.share(),
        },
        "mutants": mutants,
        "clean_findings": power.clean_findings,
        "clean_passed": power.clean_passed,
        "upstream": power.upstream,
        "seconds": power.time.as_secs_f64(),
        "details": details,
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn mutant_json(tried: &Tried) -> serde_json::Value {
    let mut by: Vec<_> = tried.by.iter().collect();
    by.sort_by_key(|(_, units)| std::cmp::Reverse(**units));
    let by: Vec<_> = by.iter().map(|(check, _)| check.to_string()).collect();
    json!({
        "name": tried.mutant.name,
        "kind": tried.mutant.kind,
        "caught": tried.fate() == Fate::Caught,
        "by": by,
        "named": tried.naming().name(),
        "diagnosis": tried.named,
    })
}

fn details_json(tried: &Tried) -> serde_json::Value {
    let mutant = &tried.mutant;
    let by: serde_json::Map<_, _> = tried
        .by
        .iter()
        .map(|(check, n)| (check.to_string(), json!(n)))
        .collect();
    let must: Vec<_> = mutant.catch.iter().map(ToString::to_string).collect();
    json!({
        "about": mutant.about,
        "operations": mutant.ops,
        "waits_for": mutant.requires,
        "must": must,
        "by": by,
        "units": tried.units,
        "right": mutant.diagnosis,
        "table": tried.table,
        "rms": tried.rms,
        "note": tried.note,
    })
}

/// A page of the documentation. It holds nothing that differs from run to run.
///
/// # Errors
/// What `out` says.
pub fn write_markdown(power: &Power, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# Kill table\n")?;
    writeln!(
        out,
        "Generated by `dnn-assay dev power --format markdown` from `mocks/mutants/mutants.yaml`. Every\n\
         row is a plugin with one known fault. *Must* is the check that has to notice it, *by* what\n\
         did. `table` and `rms` are the same outputs judged by hipDNN's tolerances and by\n\
         MIOpenDriver's root mean square; a blank is an operation for which they have no number.\n\n\
         One mutant for each check runs with every change (`harness/tests/power.rs`); `.ci/nightly`\n\
         makes the whole table, which takes about a minute and a half on two busy cores (five minutes\n\
         are allowed), and fails where it is not this page.\n"
    )?;
    writeln!(out, "{}.\n", sums(power))?;
    if let Some(names) = named(power) {
        writeln!(
            out,
            "Named: {names}. Rightly is a set of at most three ids with a right one.\n"
        )?;
    }
    writeln!(
        out,
        "| kind | mutants | caught | by another | survive | wait |"
    )?;
    writeln!(out, "| --- | ---: | ---: | ---: | ---: | ---: |")?;
    for kind in Kind::ALL {
        let all = power.tried.iter().filter(|t| t.mutant.kind == kind).count();
        let count = |fate| power.count(fate, Some(kind));
        writeln!(
            out,
            "| {} | {all} | {} | {} | {} | {} |",
            kind.name(),
            count(Fate::Caught),
            count(Fate::CaughtByAnother),
            count(Fate::Survived),
            count(Fate::Waits)
        )?;
    }
    for (name, (asked, missed)) in [
        ("hipDNN's table", power.missed(|tried| tried.table)),
        (
            "MIOpenDriver's root mean square",
            power.missed(|tried| tried.rms),
        ),
    ] {
        writeln!(
            out,
            "\nJudged by {name}, {} of {asked} faults of numbers pass.",
            missed.len()
        )?;
    }
    writeln!(
        out,
        "\nWithout a fault the same libraries pass on the union of the cases, with {} findings.",
        power.clean_findings.len()
    )?;
    for kind in Kind::ALL {
        write_kind(power, kind, out)?;
    }
    write_upstream(power, out)
}

fn write_upstream(power: &Power, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n## hipDNN's own test plugins\n")?;
    writeln!(out, "| plugin | what it is like | mutants |")?;
    writeln!(out, "| --- | --- | --- |")?;
    for row in &power.upstream {
        let mutants: Vec<_> = row.mutants.iter().map(|name| format!("`{name}`")).collect();
        let stands = match &row.why {
            Some(why) => format!("none: {why}"),
            None => mutants.join(", "),
        };
        writeln!(out, "| {} | {} | {stands} |", row.plugin, row.about)?;
    }
    Ok(())
}

fn write_kind(power: &Power, kind: Kind, out: &mut dyn Write) -> io::Result<()> {
    let of_kind: Vec<_> = power
        .tried
        .iter()
        .filter(|t| t.mutant.kind == kind)
        .collect();
    if of_kind.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## {}\n", kind.name())?;
    let numerics = kind == Kind::Numerics;
    let more = if numerics {
        " table | rms | right diagnosis | named |"
    } else {
        ""
    };
    writeln!(out, "| mutant | fault | must | by |{more}")?;
    writeln!(
        out,
        "| --- | --- | --- | --- |{}",
        if numerics {
            " --- | --- | --- | --- |"
        } else {
            ""
        }
    )?;
    for tried in of_kind {
        let mutant = &tried.mutant;
        let by = match tried.fate() {
            Fate::Waits => format!("waits for {}", tried.note),
            Fate::Survived => "**survives**".to_owned(),
            Fate::CaughtByAnother => format!("**{}**", checks(tried)),
            Fate::Caught => checks(tried),
        };
        write!(
            out,
            "| `{}` | {} | {} | {by} |",
            mutant.name,
            mutant.about,
            intended(tried)
        )?;
        if numerics {
            let right = mutant.diagnosis.join(", ");
            write!(
                out,
                " {} | {} | {right} | {} |",
                mark(tried.table),
                mark(tried.rms),
                tried.named.join(", ")
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::result::samples::tried;
    use super::super::table::Upstream;
    use super::*;
    use std::time::Duration;

    fn power() -> Power {
        Power {
            tried: vec![tried(&[("numeric", 3)]), tried(&[("crash", 1)]), tried(&[])],
            clean_findings: vec!["the clean one: fail(numeric)".to_owned()],
            clean_passed: 7,
            upstream: vec![Upstream {
                plugin: "TestPlugin".to_owned(),
                about: "is there".to_owned(),
                mutants: Vec::new(),
                why: Some("no reason".to_owned()),
            }],
            time: Duration::from_secs(2),
        }
    }

    fn text(write: fn(&Power, &mut dyn Write) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&power(), &mut out).expect("memory can be written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn survivors_stand_out_in_every_form() {
        let page = text(write_text);
        assert!(page.contains("SURVIVES numeric") && page.contains("CAUGHT BY ANOTHER CHECK"));
        assert!(page.contains("1 survive") && page.contains("the clean one"));
        let page = text(write_markdown);
        assert!(page.contains("**survives**") && page.contains("**crash**"));
        assert!(page.contains("| TestPlugin | is there | none: no reason |"));
        assert!(
            !page.contains("2 s"),
            "times do not belong into a page that is compared"
        );
        let document: serde_json::Value =
            serde_json::from_str(&text(write_json)).expect("a JSON document");
        assert_eq!(document["mutants"][0]["caught"], true);
        assert_eq!(document["mutants"][0]["by"][0], "numeric");
        assert_eq!(document["mutants"][0]["named"], "unnamed");
        assert_eq!(document["details"]["m"]["must"][0], "numeric");
        assert_eq!(document["naming"]["unnamed"], 3);
        assert_eq!(document["naming"]["share_right"], 0.0);
        for page in [text(write_text), text(write_markdown)] {
            assert!(page.contains("3 not at all (m, m, m)"), "{page}");
        }
        assert_eq!(document["mutants"][2]["caught"], false);
        assert_eq!(document["clean_findings"].as_array().map(Vec::len), Some(1));
    }
}
