//! The HTML page: well-formed, small, quickly written, and painted by a browser.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use dnn_assay::journal::{
    CaseEnd, EngineRecord, Journal, MismatchGeometry, PluginRecord, Record, RunEnd, RunStart,
    UnitKey, Worst,
};
use dnn_assay::report::{Html, Reporter};
use dnn_assay::verdict::{Depth, FailKind, Verdict};

use crate::support::{clean, finish, has};

const OPS: [&str; 6] = [
    "conv.fprop",
    "conv.dgrad",
    "conv.wgrad",
    "conv.fprop+bias+relu_fwd",
    "batchnorm.training",
    "pointwise.gelu_fwd",
];
const TYPES: [&str; 3] = ["f32", "f16", "bf16"];
const LAYOUTS: [&str; 4] = ["nchw", "nhwc", "ncdhw", "ndhwc"];

/// A run of so many cases; every 20th fails, every third is declined.
fn synthetic(cases: u32) -> Journal {
    let mut journal = Journal::default();
    journal.push(Record::RunStart(Box::new(RunStart {
        schema: 1,
        time: "2026-11-30T04:05:06Z".to_owned(),
        version: "0.1.0".to_owned(),
        suites: vec!["full".to_owned()],
        seed: Some(1),
        criterion: Some("bound".to_owned()),
        ..RunStart::default()
    })));
    journal.push(Record::Plugin(Box::new(PluginRecord {
        path: "build/libmy_plugin.so".to_owned(),
        name: Some("my plugin".to_owned()),
        version: Some("1.2.3".to_owned()),
        build_id: Some("5f3a1c9d0e".to_owned()),
        memory: Some("hip".to_owned()),
        memory_reason: Some("it needs libamdhip64.so.7".to_owned()),
        wire: Some("current".to_owned()),
        engines: vec![EngineRecord {
            id: 7,
            name: Some("MY_ENGINE".to_owned()),
            traits: Vec::new(),
        }],
        planned: Some(u64::from(cases)),
        ..PluginRecord::default()
    })));
    for index in 0..cases {
        journal.push(Record::CaseEnd(Box::new(case(index))));
    }
    journal.push(Record::RunEnd(RunEnd {
        seconds: Some(12.0),
        exit: Some(1),
        ..RunEnd::default()
    }));
    journal
}

fn case(index: u32) -> CaseEnd {
    let pick = |list: &[&'static str], by: u32| list[((index / by) as usize) % list.len()];
    let id = format!(
        "{}/{}/{}/n{}-c8-k16-i6x10-f3x3/pre1x1-post1x1-str1x1-dil1x1-g1/uni",
        pick(&OPS, 1),
        pick(&TYPES, 6),
        pick(&LAYOUTS, 18),
        index
    );
    let key = UnitKey {
        plugin: 0,
        engine_id: 7,
        case: id,
    };
    let verdict = match index {
        n if n % 20 == 7 => Verdict::Fail(FailKind::Numeric),
        n if n % 3 == 0 => Verdict::Unsupported,
        _ => Verdict::Pass,
    };
    let mut end = CaseEnd::new(key, 1, verdict);
    end.engine = Some("MY_ENGINE".to_owned());
    end.depth = if end.verdict == Verdict::Unsupported {
        Depth::Loaded
    } else {
        Depth::Judged
    };
    end.margin = (end.depth == Depth::Judged).then(|| 2.0_f64.powi(-((index % 9) as i32)) * 0.9);
    if end.verdict.is_red() {
        end.reason = Some("64 of 1920 elements lie outside the bound".to_owned());
        end.criterion = Some("bound".to_owned());
        end.margin = Some(37.25);
        (end.compared, end.mismatched) = (Some(1920), Some(64));
        end.worst = Some(Worst {
            tensor: "y".to_owned(),
            uid: 3,
            dims: vec![2, 16, 6, 10],
            dtype: "f16".to_owned(),
            index: 1019,
            coordinates: vec![1, 0, 5, 9],
            expected: -1.375,
            got: 2.5,
            bound: 0.0009765625,
            ulps: Some(3967.0),
        });
        end.geometry = Some(MismatchGeometry {
            text: "all 64 wrong elements have w = 9: the last column".to_owned(),
            first: vec![9, 19, 29, 39],
            low: vec![0, 0, 0, 9],
            high: vec![1, 15, 5, 9],
        });
        end.diagnosis = vec!["last-column".to_owned()];
    }
    end
}

fn page(journal: &Journal) -> String {
    let mut out = Vec::new();
    Html.write(journal, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

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

#[test]
fn a_browser_paints_it_at_three_widths() {
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|b| has(b))
    else {
        println!("skipped: no Chromium is here");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let journal = synthetic(2_000);
    fs::write(folder.path().join("report.html"), page(&journal)).unwrap();
    // Of all that did not pass, the declined ones wait until they are asked for.
    let told = journal
        .ends
        .iter()
        .filter(|end| end.verdict != Verdict::Pass);
    let told = format!("100 of {} cases", told.count());
    let url = format!("file://{}/report.html", folder.path().display());
    let flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--virtual-time-budget=2000",
    ];
    for width in [390, 820, 1400] {
        let name = format!("{width}.png");
        finish(
            clean(browser, folder.path())
                .args(flags)
                .arg(format!("--window-size={width},1200"))
                .arg(format!("--screenshot={name}"))
                .arg(&url),
        );
        let image = fs::read(folder.path().join(&name)).unwrap();
        assert_eq!(&image[1..4], b"PNG");
        // A blank page compresses to next to nothing.
        assert!(image.len() > 20_000, "{width}: {} bytes", image.len());
    }
    let dom = |fragment: &str| {
        let ran = finish(
            clean(browser, folder.path())
                .args(flags)
                .arg("--dump-dom")
                .arg(format!("{url}{fragment}")),
        );
        ran.text
    };
    let all = dom("");
    assert!(
        all.contains(&told),
        "declined cases wait until they are asked for: {}",
        shown(&all)
    );
    let filtered = dom("#q=conv.dgrad%20f16&open");
    assert!(
        !filtered.contains("<b>conv.wgrad</b>"),
        "{}",
        shown(&filtered)
    );
    assert!(
        filtered.contains("See it again") && filtered.contains("p-worst"),
        "the story is open"
    );
    keep(folder.path());
}

/// The line that counts what is shown.
fn shown(dom: &str) -> &str {
    dom.split("id=\"shown\"")
        .nth(1)
        .and_then(|rest| rest.get(..120))
        .unwrap_or("no such line")
}

/// Screenshots go where `DNN_ASSAY_SCREENSHOTS` says, for the documentation.
fn keep(folder: &Path) {
    if let Some(target) = std::env::var_os("DNN_ASSAY_SCREENSHOTS") {
        for name in ["390.png", "820.png", "1400.png", "report.html"] {
            fs::copy(folder.join(name), Path::new(&target).join(name)).unwrap();
        }
    }
}
