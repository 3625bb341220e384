//! The HTML page: well-formed, small, quickly written.

use std::time::{Duration, Instant};

use dnn_assay::journal::Journal;
use dnn_assay::verdict::{FailKind, Verdict};

use crate::synthetic::{LAYOUTS, OPS, TYPES, page, synthetic};

fn parsed(text: &str) -> roxmltree::Document<'_> {
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    roxmltree::Document::parse_with_options(text, options).unwrap()
}

#[test]
fn the_page_is_well_formed_and_asks_nothing_of_a_network() {
    let mut journal = synthetic(240);
    journal.ends[7].reason =
        Some("</script><script>alert(1)</script> & \u{1b}[31m ]]> <b>".to_owned());
    journal.plugins[0].path = "a\"<&>.so".to_owned();
    let text = page(&journal);
    let xml = parsed(&text);
    let named = |tag: &'static str| {
        xml.descendants()
            .filter(move |n| n.tag_name().name() == tag)
    };
    assert_eq!(named("script").count(), 2);
    assert_eq!(named("h1").next().and_then(|n| n.text()), Some("Not right"));
    assert_eq!(
        named("svg").count(),
        TYPES.len(),
        "a histogram for each type"
    );
    let tiles = named("i")
        .filter(|n| n.attribute("data-q").is_some())
        .count();
    assert_eq!(tiles, OPS.len() * TYPES.len() * LAYOUTS.len());
    for node in xml.descendants() {
        for name in ["src", "href"] {
            assert_eq!(node.attribute(name), None, "{node:?}");
        }
    }
    assert!(!text.contains("@import") && !text.contains("url("));
    let data = xml
        .descendants()
        .find(|n| n.attribute("id") == Some("data"))
        .and_then(|n| n.text());
    let data: serde_json::Value = serde_json::from_str(data.unwrap()).unwrap();
    let others = journal
        .ends
        .iter()
        .filter(|end| end.verdict != Verdict::Pass)
        .count();
    assert_eq!(data["rows"].as_array().unwrap().len(), others);
    assert_eq!(data["stories"].as_array().unwrap().len(), 12);
    assert!(
        data["stories"][0]["again"]
            .as_str()
            .unwrap()
            .starts_with("dnn-assay run")
    );
}

#[test]
fn an_empty_journal_gives_a_page() {
    let text = page(&Journal::default());
    assert!(
        parsed(&text)
            .descendants()
            .any(|n| n.text() == Some("The run was cut"))
    );
}

#[test]
fn a_page_stays_small_whatever_fails() {
    let mut journal = synthetic(100_000);
    for (index, end) in journal.ends.iter_mut().enumerate() {
        end.verdict = Verdict::Fail(FailKind::Numeric);
        end.reason = Some(format!(
            "{index} of 123456 elements lie outside the bound <&>"
        ));
    }
    let text = page(&journal);
    assert!(text.len() < 5_000_000, "{} bytes", text.len());
    let xml = parsed(&text);
    let data = xml
        .descendants()
        .find(|n| n.attribute("id") == Some("data"));
    let data: serde_json::Value = serde_json::from_str(data.unwrap().text().unwrap()).unwrap();
    let listed = data["rows"].as_array().unwrap().len() as u64;
    let unlisted = data["unlisted"].as_u64().unwrap();
    assert!(
        listed > 10_000 && listed + unlisted == 100_000,
        "{listed} and {unlisted}"
    );
}

#[test]
fn a_hundred_thousand_cases_stay_small_and_quick() {
    let journal = synthetic(100_000);
    let start = Instant::now();
    let text = page(&journal);
    let time = start.elapsed();
    println!("{} bytes in {time:?}", text.len());
    assert!(text.len() < 5_000_000, "{} bytes", text.len());
    // Three seconds for a release build on a machine of its own.
    assert!(time < Duration::from_secs(12), "{time:?}");
    parsed(&text);
}
