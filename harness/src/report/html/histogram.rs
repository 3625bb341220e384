//! Histograms of margins: how near to its bound each judged case came, by element types.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::super::matrix::RowKey;
use super::{count, line};
use crate::journal::Unit;

/// Bins below the bound, a factor of 2 each, and beyond it, a factor of 8 each; the outermost take
/// the rest.
const BELOW: usize = 12;
const BEYOND: usize = 3;
const BINS: usize = BELOW + BEYOND;

#[derive(Clone, Default)]
struct Histogram {
    bins: [u64; BINS],
    total: u64,
}

impl Histogram {
    fn add(&mut self, margin: f64) {
        self.bins[bin(margin)] += 1;
        self.total += 1;
    }
}

/// The bin of a margin; what is no number lies beyond everything.
fn bin(margin: f64) -> usize {
    if margin.is_nan() {
        return BINS - 1;
    }
    if margin <= 1.0 {
        let halvings = (-margin.max(f64::MIN_POSITIVE).log2()).floor();
        let halvings = (halvings as usize).min(BELOW - 1);
        return BELOW - 1 - halvings;
    }
    let octaves = (margin.log2() / 3.0).floor() as usize;
    BELOW + octaves.min(BEYOND - 1)
}

/// The section; one picture for each combination of types.
pub fn section(page: &mut String, units: &[Unit<'_>]) {
    let mut by_types: BTreeMap<String, Histogram> = BTreeMap::new();
    for unit in units {
        let Some(margin) = unit.attempts.last().and_then(|end| end.margin) else {
            continue;
        };
        by_types
            .entry(RowKey::of(&unit.key.case).dtype)
            .or_default()
            .add(margin);
    }
    if by_types.is_empty() {
        return;
    }
    let mut all: Vec<_> = by_types.into_iter().collect();
    all.sort_by(|a, b| b.1.total.cmp(&a.1.total).then(a.0.cmp(&b.0)));
    page.push_str(
        "<section>\n<h2>Margins</h2>\n<p class=\"about\">The largest error of each judged case over \
         its bound, one bar for each halving. At the dashed line the bound is used up; what lies \
         beyond is wrong.</p>\n<div class=\"histograms\">\n",
    );
    for (types, histogram) in all.iter().take(24) {
        picture(page, types, histogram);
    }
    page.push_str("</div>\n</section>\n");
}

fn picture(page: &mut String, types: &str, histogram: &Histogram) {
    const WIDTH: usize = 14;
    const HEIGHT: f64 = 72.0;
    let most = histogram.bins.iter().copied().max().unwrap_or(1).max(1) as f64;
    let _ = write!(
        page,
        "<figure><figcaption>{} <small>{}</small></figcaption>\
         <svg viewBox=\"0 0 {} 92\" role=\"img\" aria-label=\"margins of {}\">",
        line(types),
        count(histogram.total),
        BINS * WIDTH,
        line(types)
    );
    for (index, n) in histogram.bins.iter().enumerate() {
        // A square root shows the few beside the many.
        let height = if *n == 0 {
            0.0
        } else {
            (HEIGHT * (*n as f64 / most).sqrt()).max(2.0)
        };
        let class = if index < BELOW { "ok" } else { "beyond" };
        let _ = write!(
            page,
            "<rect class=\"{class}\" x=\"{}\" y=\"{:.1}\" width=\"{}\" height=\"{height:.1}\" rx=\"1.5\"><title>{}: {}</title></rect>",
            index * WIDTH + 1,
            HEIGHT + 4.0 - height,
            WIDTH - 2,
            range(index),
            count(*n)
        );
    }
    let bound = BELOW * WIDTH;
    let _ = writeln!(
        page,
        "<line class=\"bound\" x1=\"{bound}\" x2=\"{bound}\" y1=\"0\" y2=\"{0}\"/>\
         <line class=\"base\" x1=\"0\" x2=\"{1}\" y1=\"{0}\" y2=\"{0}\"/>\
         <text x=\"1\" y=\"89\">≤ 2⁻¹¹</text><text x=\"{bound}\" y=\"89\" text-anchor=\"middle\">1</text>\
         <text x=\"{1}\" y=\"89\" text-anchor=\"end\">64+</text></svg></figure>",
        HEIGHT + 4.0,
        BINS * WIDTH
    );
}

fn range(index: usize) -> String {
    if index < BELOW {
        let low = BELOW - index;
        return match index {
            0 => format!("up to 2^-{}", low - 1),
            _ => format!("2^-{low} to 2^-{}", low - 1),
        };
    }
    match index - BELOW {
        0 => "1 to 8 times the bound".to_owned(),
        1 => "8 to 64 times the bound".to_owned(),
        _ => "more than 64 times the bound".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_fall_into_their_bins() {
        for (margin, expected) in [
            (0.0, 0),
            (1.0, BELOW - 1),
            (0.51, BELOW - 1),
            (0.49, BELOW - 2),
            (1.01, BELOW),
            (7.9, BELOW),
            (9.0, BELOW + 1),
            (1e30, BINS - 1),
            (f64::INFINITY, BINS - 1),
            (f64::NAN, BINS - 1),
        ] {
            assert_eq!(bin(margin), expected, "{margin}");
        }
    }
}
