//! The table of `dnn-assay dev calibrate`, as Markdown: it stands in the documentation.

use std::io::{self, Write};

use dnn_assay_reference::calibrate::{Row, THRESHOLDS};

/// Writes the table, the row with the heaviest tail, and what it says of `factor`.
///
/// # Errors
/// What `out` says.
pub fn write(rows: &[Row], factor: f64, seed: u64, out: &mut dyn Write) -> io::Result<()> {
    let checks: u64 = rows.iter().map(|row| row.checks).sum();
    writeln!(
        out,
        "{checks} sums, seed {seed}. Ratio: |f32 sum − f64 sum| / (u·√K·(|y| + Q)); the bound allows {factor}.\n"
    )?;
    write!(out, "| order | data | K | sums | largest ratio |")?;
    for threshold in THRESHOLDS {
        write!(out, " > {threshold} |")?;
    }
    writeln!(out, " at {factor}, extrapolated |")?;
    writeln!(
        out,
        "| --- | --- | ---: | ---: | ---: |{} ---: |",
        " ---: |".repeat(THRESHOLDS.len())
    )?;
    for row in rows {
        write_row(row, factor, out)?;
    }
    let worst = rows
        .iter()
        .filter_map(|row| row.extrapolated(factor))
        .fold(0.0, f64::max);
    let largest = rows.iter().map(|row| row.largest).fold(0.0, f64::max);
    writeln!(
        out,
        "\nThe largest ratio seen is {largest:.3}. The heaviest tail, continued to {factor}, gives {worst:.1e} per element."
    )
}

fn write_row(row: &Row, factor: f64, out: &mut dyn Write) -> io::Result<()> {
    let words = |debug: String| debug.to_lowercase();
    write!(
        out,
        "| {} | {} | {} | {:.1e} | {:.3} |",
        words(format!("{:?}", row.order)),
        words(format!("{:?}", row.distribution)),
        row.terms,
        row.checks as f64,
        row.largest
    )?;
    for count in row.exceeding {
        write!(out, " {count} |")?;
    }
    match row.extrapolated(factor) {
        Some(rate) => writeln!(out, " {rate:.1e} |"),
        None => writeln!(out, " |"),
    }
}
