//! What is said of a judgement by samples: the same in the terminal, in JUnit and in Markdown.

use super::text::{count, figure, plural};
use crate::journal::{CaseEnd, SampledRecord};

/// How many of how many elements were compared, what the sums touched, and what may be missed;
/// `None` for a case that was judged as a whole.
pub fn sampled_text(end: &CaseEnd) -> Option<String> {
    let sampled = end.sampled.as_ref()?;
    let compared = count(end.compared.unwrap_or(0));
    let elements = count(sampled.elements);
    Some(format!(
        "{compared} of {elements} elements compared, {} at random{}; {}; {}",
        count(sampled.random),
        left_out(sampled),
        sums(sampled),
        misses(sampled)
    ))
}

fn left_out(sampled: &SampledRecord) -> String {
    match sampled.left_out {
        0 => String::new(),
        some => format!(" ({} more could not be computed alone)", count(some)),
    }
}

fn sums(sampled: &SampledRecord) -> String {
    let Some(sums) = &sampled.sums else {
        let why = sampled.no_sums.as_deref().unwrap_or("not asked for");
        return format!("no sums over channels ({why})");
    };
    let mut text = format!(
        "{} of {} touch every element, the worst {} of its bound",
        plural(sums.sums, "sum"),
        plural(sums.channels, "channel"),
        figure(sums.margin)
    );
    if sums.outside > 0 {
        text.push_str(&format!(", {} beyond it", count(sums.outside)));
    }
    if sums.unsummed > 0 {
        text.push_str(&format!(", {} say nothing", count(sums.unsummed)));
    }
    text
}

fn misses(sampled: &SampledRecord) -> String {
    let told = sampled.misses.iter().map(|miss| {
        let share = format!("{} %", trimmed(100.0 * miss.share));
        format!("{share} with probability {}", probability(miss.probability))
    });
    let told: Vec<String> = told.collect();
    format!(
        "the draws miss a fault in this share of the elements: {}",
        told.join(", ")
    )
}

fn trimmed(percent: f64) -> String {
    let text = format!("{percent:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn probability(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value < 0.01 => format!("{value:.0e}"),
        value => format!("{value:.2}"),
    }
}
