//! The heat map: a row for each operation, a column for each combination of types, and in each
//! cell one tile for each layout.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::super::matrix::{Cell, Matrix};
use super::{count, figure, line};
use crate::journal::{Journal, Unit};

/// The section; one table for each engine.
pub fn section(page: &mut String, journal: &Journal, units: &[Unit<'_>]) {
    if units.is_empty() {
        return;
    }
    let matrix = Matrix::of(journal);
    page.push_str(
        "<section>\n<h2>Coverage</h2>\n<p class=\"legend\"><span><i class=\"t-right\"></i>all right</span> \
         <span><i class=\"t-some\"></i>some right, none wrong</span> <span><i class=\"t-red\"></i>wrong</span> \
         <span><i class=\"t-waived\"></i>waived</span> <span><i class=\"t-declined\"></i>declined</span> \
         <span><i class=\"t-none\"></i>not judged</span> — one tile per layout</p>\n",
    );
    for engine in &matrix.engines {
        table(page, &matrix, engine);
    }
    page.push_str("</section>\n");
}

/// Cells of one engine: operation, then types, then layout.
type ByOperation<'a> = BTreeMap<&'a str, Row<'a>>;
type Row<'a> = BTreeMap<&'a str, Vec<(&'a str, &'a Cell)>>;

fn table(page: &mut String, matrix: &Matrix, engine: &str) {
    let mut rows: ByOperation<'_> = BTreeMap::new();
    let mut types = BTreeSet::new();
    for (key, cells) in &matrix.rows {
        if let Some(cell) = cells.get(engine) {
            types.insert(key.dtype.as_str());
            let row = rows.entry(key.op.as_str()).or_default();
            row.entry(key.dtype.as_str())
                .or_default()
                .push((&key.layout, cell));
        }
    }
    let mut types: Vec<&str> = types.into_iter().collect();
    types.sort_by_key(|name| (name.matches('+').count(), name.len(), *name));
    let _ = write!(
        page,
        "<h3>{}</h3>\n<div class=\"scroll\"><table class=\"heat\"><thead><tr><th scope=\"col\">operation</th>",
        line(engine)
    );
    for name in &types {
        let _ = write!(page, "<th scope=\"col\">{}</th>", line(name));
    }
    page.push_str("</tr></thead>\n");
    let is_declined = |cells: &Row<'_>| {
        let mut cells = cells.values().flatten();
        cells.all(|(_, cell)| cell.declined == cell.cases)
    };
    let (declined, taken): (Vec<_>, Vec<_>) = rows.iter().partition(|(_, row)| is_declined(row));
    body(page, &types, &taken, "");
    if !declined.is_empty() {
        // The rows are one click away: a plugin that takes three operations is told in three rows.
        let what = match declined.len() {
            1 => "1 operation that is declined".to_owned(),
            n => format!("{n} operations that are declined"),
        };
        let _ = writeln!(
            page,
            "<tbody><tr><td colspan=\"{}\"><button type=\"button\" class=\"fold\" data-fold=\"\">{what}</button></td></tr></tbody>",
            types.len() + 1
        );
        body(page, &types, &declined, " hidden=\"hidden\"");
    }
    page.push_str("</table></div>\n");
}

fn body(page: &mut String, types: &[&str], rows: &[(&&str, &Row<'_>)], attribute: &str) {
    let _ = writeln!(page, "<tbody{attribute}>");
    for (op, cells) in rows {
        let _ = write!(page, "<tr><th scope=\"row\">{}</th>", line(op));
        for name in types {
            page.push_str("<td>");
            for (layout, cell) in cells.get(name).into_iter().flatten() {
                tile(page, (op, name, layout), cell);
            }
            page.push_str("</td>");
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n");
}

fn tile(page: &mut String, (op, dtype, layout): (&str, &str, &str), cell: &Cell) {
    let class = match cell {
        cell if cell.red > 0 => "t-red",
        cell if cell.waived > 0 => "t-waived",
        cell if cell.declined == cell.cases => "t-declined",
        cell if cell.passed == cell.cases => "t-right",
        cell if cell.passed > 0 => "t-some",
        _ => "t-none",
    };
    let margin = cell
        .margin
        .map_or_else(String::new, |m| format!(", worst margin {}", figure(m)));
    let text = format!(
        "{op} {dtype} {layout}: {} of {}{margin}",
        cell.text(),
        count(cell.cases)
    );
    let text = line(&text);
    let _ = write!(
        page,
        "<i class=\"{class}\" role=\"img\" title=\"{text}\" aria-label=\"{text}\" data-q=\"{} {} {}\"></i>",
        line(&format!("{op}/")),
        line(&format!("/{dtype}/")),
        line(&format!("/{layout}")),
    );
}
