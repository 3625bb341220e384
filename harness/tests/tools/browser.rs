//! The HTML page in a browser: painted at three widths, filtered, a story opened, in light and
//! dark, and the time to the first paint of a hundred thousand cases.

use std::fs;
use std::path::{Path, PathBuf};

use dnn_assay::journal::JournalWriter;
use dnn_assay::verdict::Verdict;
use libtest_mimic::Trial;

use crate::support::{clean, finish, has};
use crate::synthetic::{page, records, synthetic};

pub fn trials() -> Vec<Trial> {
    let browser = NAMES.into_iter().find(|name| has(name)).unwrap_or(NAMES[0]);
    vec![
        crate::trial(
            "browser::paints_at_three_widths",
            &[browser],
            paints_at_three_widths,
        ),
        crate::trial("browser::filters_and_tells", &[browser], filters_and_tells),
        crate::trial(
            "browser::a_hundred_thousand_cases",
            &[browser],
            a_hundred_thousand_cases,
        ),
    ]
}

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Runs the browser on the page with more flags; gives what it printed.
fn browse(page: &Path, fragment: &str, more: &[&str]) -> String {
    let browser = NAMES.into_iter().find(|name| has(name)).unwrap();
    let profile = tempfile::tempdir().unwrap();
    let ran = finish(
        clean(browser, page.parent().unwrap())
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(more)
            .arg(format!("file://{}{fragment}", page.display())),
    );
    ran.text
}

fn written(folder: &Path, cases: u32) -> PathBuf {
    let path = folder.join("report.html");
    fs::write(&path, page(&synthetic(cases))).unwrap();
    path
}

fn paints_at_three_widths() {
    let folder = tempfile::tempdir().unwrap();
    let page = written(folder.path(), 2_000);
    for width in [390, 820, 1400] {
        let name = format!("{width}.png");
        let size = format!("--window-size={width},1200");
        browse(
            &page,
            "",
            &[
                "--virtual-time-budget=2000",
                &size,
                &format!("--screenshot={name}"),
            ],
        );
        let image = fs::read(folder.path().join(&name)).unwrap();
        assert_eq!(&image[1..4], b"PNG");
        let wide = u32::from_be_bytes(image[16..20].try_into().unwrap());
        assert_eq!(wide, width, "the picture has the window's width");
        // A blank page compresses to next to nothing.
        assert!(image.len() > 20_000, "{width}: {} bytes", image.len());
    }
    // Nothing sticks out at the side, however narrow the window is.
    let dom = browse(
        &page,
        "#measure",
        &[
            "--virtual-time-budget=2000",
            "--window-size=390,1200",
            "--dump-dom",
        ],
    );
    assert!(
        dom.contains("data-overflow=\"0\""),
        "{}",
        attribute(&dom, "data-overflow")
    );
    keep(
        folder.path(),
        &["390.png", "820.png", "1400.png", "report.html"],
    );
}

fn filters_and_tells() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), 2_000);
    let dump = ["--virtual-time-budget=2000", "--dump-dom"];
    let journal = synthetic(2_000);
    let count = |wanted: &dyn Fn(&str, &Verdict) -> bool| {
        let ends = journal.ends.iter();
        ends.filter(|end| end.verdict != Verdict::Pass && wanted(&end.case, &end.verdict))
            .count()
    };
    let all = browse(&path, "", &dump);
    // Of all that did not pass, the declined ones wait until they are asked for.
    let red = count(&|_, verdict| verdict.is_red());
    assert!(
        all.contains(&format!("{red} of {} cases", count(&|_, _| true))),
        "{}",
        shown(&all)
    );
    let filtered = browse(&path, "#q=conv.dgrad%20f16&open", &dump);
    let meant = count(&|case, verdict| {
        verdict.is_red() && case.contains("conv.dgrad") && case.contains("f16")
    });
    assert!(
        filtered.contains(&format!("{meant} of ")),
        "{meant}, {}",
        shown(&filtered)
    );
    assert!(
        !filtered.contains("<b>conv.wgrad</b>"),
        "{}",
        shown(&filtered)
    );
    for part in [
        "See it again",
        "p-worst",
        "A waiver, to complete and paste",
        "37.2",
    ] {
        assert!(
            filtered.contains(part),
            "the story is open and has `{part}`"
        );
    }
}

/// Milliseconds from the start of the navigation to the first contentful paint.
fn a_hundred_thousand_cases() {
    let folder = tempfile::tempdir().unwrap();
    let page = written(folder.path(), 100_000);
    // For the figures of a release: `dnn-assay report JOURNAL --html FILE`.
    let journal = folder.path().join("journal.jsonl");
    let mut writer = JournalWriter::create(&journal).unwrap();
    records(100_000)
        .iter()
        .for_each(|record| writer.append(record).unwrap());
    keep(folder.path(), &["journal.jsonl"]);
    // Virtual time would hide the time that is asked for.
    let dom = browse(&page, "#measure", &["--timeout=20000", "--dump-dom"]);
    let paint = attribute(&dom, "data-paint");
    let ms: f64 = paint
        .parse()
        .unwrap_or_else(|_| panic!("no time of a paint: {paint}"));
    println!("first contentful paint after {ms} ms");
    // One second on a machine of its own; tests share theirs.
    assert!(ms < 5_000.0, "{ms} ms");
}

/// The value of an attribute of the page's root.
fn attribute<'a>(dom: &'a str, name: &str) -> &'a str {
    let rest = dom
        .split_once(&format!("{name}=\""))
        .map_or("", |(_, rest)| rest);
    rest.split('"').next().unwrap_or_default()
}

/// The line that counts what is shown.
fn shown(dom: &str) -> &str {
    dom.split("id=\"shown\"")
        .nth(1)
        .and_then(|rest| rest.get(..120))
        .unwrap_or("no such line")
}

/// Screenshots go where `DNN_ASSAY_SCREENSHOTS` says, for the documentation.
fn keep(folder: &Path, names: &[&str]) {
    if let Some(target) = std::env::var_os("DNN_ASSAY_SCREENSHOTS") {
        for name in names {
            fs::copy(folder.join(name), Path::new(&target).join(name)).unwrap();
        }
    }
}
