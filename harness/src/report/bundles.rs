//! What is said of bundles.

use std::io;

use super::text::{count, figure, one_line, plural};
use crate::bundle::{Checked, Imported, Outcome};

/// A line for each bundle that does not agree, then the counts.
///
/// # Errors
/// What `out` says.
pub fn checked(all: &[Checked], out: &mut dyn io::Write) -> io::Result<()> {
    let (mut agree, mut elements, mut worst) = (0u64, 0u64, (0.0f64, ""));
    let [mut differ, mut unverified, mut broken] = [0u64; 3];
    for Checked { name, outcome } in all {
        let (counter, label, text) = match outcome {
            Outcome::Agrees { compared, margin } => {
                agree += 1;
                elements += compared;
                if *margin >= worst.0 {
                    worst = (*margin, name);
                }
                continue;
            }
            Outcome::Differs(text) => (&mut differ, "differs", text),
            Outcome::NoGolden(text) => (&mut unverified, "unverified", text),
            Outcome::NotComputed(text) => (&mut unverified, "unverified", text),
            Outcome::Broken(text) => (&mut broken, "broken", text),
        };
        *counter += 1;
        writeln!(out, "{label:<11} {}: {}", one_line(name), one_line(text))?;
    }
    writeln!(
        out,
        "{}: {} agree, {} differ, {} unverified, {} broken",
        plural(all.len() as u64, "bundle"),
        count(agree),
        count(differ),
        count(unverified),
        count(broken),
    )?;
    if agree > 0 {
        writeln!(
            out,
            "{} compared; worst margin {} of the bound, {}",
            plural(elements, "element"),
            figure(worst.0),
            one_line(worst.1)
        )?;
    }
    Ok(())
}

/// A line for each bundle that became no case, then the counts.
///
/// # Errors
/// What `out` says.
pub fn imported(imported: &Imported, out: &mut dyn io::Write) -> io::Result<()> {
    for (label, problems) in [("broken", &imported.broken), ("left out", &imported.left)] {
        for problem in problems {
            let (name, text) = (one_line(&problem.name), one_line(&problem.text));
            writeln!(out, "{label:<11} {name}: {text}")?;
        }
    }
    let all = imported.taken + imported.left.len() + imported.broken.len();
    writeln!(
        out,
        "{}: {} became {}, {} left out, {} broken; {}",
        plural(all as u64, "bundle"),
        count(imported.taken as u64),
        plural(imported.cases.len() as u64, "case"),
        count(imported.left.len() as u64),
        count(imported.broken.len() as u64),
        plural(imported.claims.len() as u64, "claim"),
    )
}
