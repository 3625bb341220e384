//! The cases that did not pass, as compact JSON: every text that repeats stands once in a table,
//! and stories are told as long as there is room.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use super::super::failure::{
    engine_argument, failure_text, is_failure, named_cause, reproduction, waiver,
};
use super::super::text::{clean, one_line};
use crate::journal::{Journal, Unit};
use crate::verdict::Verdict;

/// Bytes of rows in a page, with the texts that they point into. What is beyond is counted; the rows
/// come in the order of how much they matter.
const ROW_BYTES: usize = 2_600_000;
/// Bytes of a row beside its texts: eleven numbers.
const ROW_FRAME: usize = 56;
/// Bytes of stories in a page. What fails beyond keeps its row and its reason.
const STORY_BYTES: usize = 1_600_000;
/// Bytes of a story beside its texts, and of what its texts need as JSON: generous.
const STORY_FRAME: usize = 400;
/// Wrong elements that are drawn.
const DRAWN: usize = 10;

/// The page's data.
#[derive(Default, Serialize)]
struct Data {
    /// Texts that rows point into.
    texts: Vec<String>,
    /// Operation, types, layout, shape, attributes, fill, engine, verdict, kind, reason, story + 1.
    rows: Vec<[u32; 11]>,
    /// Stories, as far as there is room.
    stories: Vec<Value>,
    /// Rows whose story found no room.
    untold: u64,
    /// Cases whose row found no room.
    unlisted: u64,
}

#[derive(Serialize)]
struct Story {
    /// The text of the terminal and of JUnit.
    text: String,
    /// The command that runs it again.
    again: String,
    /// An entry to paste.
    waiver: String,
    /// Where the wrong elements lie.
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<Picture>,
}

#[derive(Serialize)]
struct Picture {
    dims: Vec<i64>,
    low: Vec<i64>,
    high: Vec<i64>,
    first: Vec<u64>,
    worst: Vec<i64>,
}

/// Gives each text a number.
#[derive(Default)]
struct Interner<'a> {
    numbers: HashMap<std::borrow::Cow<'a, str>, u32>,
    /// Bytes of all texts.
    bytes: usize,
}

impl<'a> Interner<'a> {
    fn number(
        &mut self,
        texts: &mut Vec<String>,
        text: impl Into<std::borrow::Cow<'a, str>>,
    ) -> u32 {
        let text = text.into();
        if let Some(number) = self.numbers.get(&text) {
            return *number;
        }
        let number = u32::try_from(texts.len()).unwrap_or(u32::MAX);
        let line = one_line(&text);
        self.bytes += line.len() + 3;
        texts.push(line);
        self.numbers.insert(text, number);
        number
    }
}

/// The data of the cases that did not pass, red ones first; safe inside a script element.
pub fn data(journal: &Journal, units: &[Unit<'_>]) -> String {
    let mut data = Data::default();
    let mut interner = Interner::default();
    let mut others: Vec<&Unit<'_>> = units
        .iter()
        .filter(|u| u.verdict != Verdict::Pass)
        .collect();
    others.sort_by_key(|unit| rank(&unit.verdict));
    let mut room = STORY_BYTES;
    for unit in others {
        if interner.bytes + data.rows.len() * ROW_FRAME > ROW_BYTES {
            data.unlisted += 1;
            continue;
        }
        let mut row = row(&mut data.texts, &mut interner, journal, unit);
        if let Some(story) = story(journal, unit) {
            let (story, length) = story;
            if length <= room {
                room -= length;
                data.stories.push(story);
                row[10] = u32::try_from(data.stories.len()).unwrap_or(0);
            } else {
                data.untold += 1;
            }
        }
        data.rows.push(row);
    }
    let json = serde_json::to_string(&data).unwrap_or_else(|_| "{}".to_owned());
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

fn rank(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Fail(_) | Verdict::Crash(_) | Verdict::Timeout(_) => 0,
        Verdict::UnexpectedPass | Verdict::Flaky | Verdict::Missing => 1,
        Verdict::Weak | Verdict::ExpectedFail => 2,
        Verdict::NotRun(_) | Verdict::Skipped(_) => 3,
        Verdict::Unsupported | Verdict::Pass => 4,
    }
}

fn row<'a>(
    texts: &mut Vec<String>,
    interner: &mut Interner<'a>,
    journal: &Journal,
    unit: &'a Unit<'_>,
) -> [u32; 11] {
    let mut row = [0; 11];
    let mut fields = unit.key.case.splitn(6, '/');
    for place in &mut row[..6] {
        *place = interner.number(texts, fields.next().unwrap_or_default());
    }
    let end = unit.attempts.last();
    row[6] = interner.number(texts, engine_argument(journal, &unit.key));
    row[7] = interner.number(texts, unit.verdict.name());
    row[8] = interner.number(texts, unit.verdict.to_string());
    let reason = end.and_then(|end| end.reason.as_deref());
    let causes: Vec<String> = end.map_or_else(Vec::new, |end| {
        end.diagnosis.iter().map(|id| named_cause(id)).collect()
    });
    row[9] = match (causes.is_empty(), reason.unwrap_or_default()) {
        (true, reason) => interner.number(texts, reason),
        (false, reason) => {
            let text = format!("looks like: {}; {reason}", causes.join(", or "));
            interner.number(texts, text)
        }
    };
    row
}

/// What there is to tell of a case that failed, or that nobody can rely on, and about how many
/// bytes it takes.
fn story(journal: &Journal, unit: &Unit<'_>) -> Option<(Value, usize)> {
    let end = unit.attempts.last()?;
    let is_told =
        is_failure(&unit.verdict) || matches!(unit.verdict, Verdict::Weak | Verdict::ExpectedFail);
    if !is_told {
        return None;
    }
    let picture = end
        .geometry
        .as_ref()
        .zip(end.worst.as_ref())
        .map(|(geometry, worst)| Picture {
            dims: worst.dims.clone(),
            low: geometry.low.clone(),
            high: geometry.high.clone(),
            first: geometry.first.iter().take(DRAWN).copied().collect(),
            worst: worst.coordinates.clone(),
        });
    let story = Story {
        text: failure_text(journal, end),
        again: clean(&reproduction(journal, &unit.key, Some(end))),
        waiver: if is_failure(&unit.verdict) {
            clean(&waiver(journal, end))
        } else {
            String::new()
        },
        picture,
    };
    let length = story.text.len() + story.again.len() + story.waiver.len() + STORY_FRAME;
    serde_json::to_value(&story)
        .ok()
        .map(|value| (value, length))
}
