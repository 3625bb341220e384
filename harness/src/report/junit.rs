//! JUnit XML, for the readers that pipelines have. The only module that names the JUnit library.
//!
//! Readers identify a case by class and name, reject a whole file for one forbidden character,
//! and show the body rather than the message: so names are unique, every string is cleaned, and
//! the story stands in the body. A case that is not verified and not red is skipped, with its
//! reason.

use std::collections::HashMap;
use std::io;

use dnn_assay_graph::case::Case;
use junit_report::{Duration, OffsetDateTime, ReportBuilder, TestCase, TestCaseBuilder};
use junit_report::{TestResult, TestSuite, TestSuiteBuilder};

use super::Reporter;
use super::failure::{
    engine_argument, failure_text, finding_waiver, headline, is_failure, reproduction, type_name,
    waiver,
};
use super::sampled::sampled_text;
use super::text::{clean, one_line};
use crate::journal::{Infra, InfraKind, Journal, PluginRecord, Unit};
use crate::verdict::Verdict;

/// Writes JUnit XML: a suite for each plugin.
#[derive(Clone, Copy, Debug, Default)]
pub struct Junit;

impl Reporter for Junit {
    fn name(&self) -> &'static str {
        "junit"
    }

    fn write(&self, journal: &Journal, out: &mut dyn io::Write) -> io::Result<()> {
        let mut report = ReportBuilder::new();
        let units = journal.units();
        for plugin in &journal.plugins {
            report.add_testsuite(suite(journal, plugin, &units));
        }
        if let Some(suite) = run_suite(journal, &units) {
            report.add_testsuite(suite);
        }
        report
            .build()
            .write_xml(out)
            .map_err(|error| io::Error::other(format!("JUnit: {error}")))
    }
}

/// The cases of one plugin.
fn suite(journal: &Journal, plugin: &PluginRecord, units: &[Unit<'_>]) -> TestSuite {
    let mut suite = new_suite(journal, &one_line(&plugin.path));
    suite.set_system_out(&xml_text(&properties(journal, plugin, units)));
    if let Some(error) = &plugin.error {
        let mut case = TestCaseBuilder::error(
            "load",
            Duration::ZERO,
            &attribute(&error.kind),
            &attribute(&error.message),
        );
        case.set_classname("plugin");
        case.set_trace(&xml_text(&error.message));
        suite.add_testcase(case.build());
    }
    let several = plugin.engines.len() > 1;
    let mut names = Names::default();
    for unit in units.iter().filter(|unit| unit.key.plugin == plugin.plugin) {
        suite.add_testcase(case(journal, unit, several, &mut names));
    }
    let missing = journal.unnamed_missing(plugin);
    if missing > 0 {
        suite.add_testcase(never_begun(missing));
    }
    suite.build()
}

/// What happened outside plugins: infrastructure, units of plugins without a record, and a run
/// that was cut before any plugin.
fn run_suite(journal: &Journal, units: &[Unit<'_>]) -> Option<TestSuite> {
    let mut suite = new_suite(journal, "run");
    let mut names = Names::default();
    let mut empty = true;
    for unit in units {
        if journal.plugin(unit.key.plugin).is_none() {
            suite.add_testcase(case(journal, unit, true, &mut names));
            empty = false;
        }
    }
    if journal.end.is_none() {
        let text = "the journal has no run-end: the run was cut, and cases may be missing";
        let mut cut = TestCaseBuilder::error("run-end", Duration::ZERO, "incomplete", text);
        cut.set_classname("run");
        cut.set_trace(text);
        suite.add_testcase(cut.build());
        empty = false;
    }
    for infra in &journal.infra {
        if let Some(case) = stage_case(infra, &mut names) {
            suite.add_testcase(case);
            empty = false;
        }
    }
    if !journal.infra.is_empty() {
        let lines: Vec<String> = journal.infra.iter().map(|i| clean(&i.message)).collect();
        suite.set_system_err(&xml_text(&lines.join("\n")));
        empty = false;
    }
    (!empty).then(|| suite.build())
}

/// A finding of inspection or conformance; `None` for every other record.
fn stage_case(infra: &Infra, names: &mut Names) -> Option<TestCase> {
    let message = attribute(&infra.message);
    let name = infra
        .rule
        .as_deref()
        .or_else(|| infra.message.split(':').next());
    let name = attribute(name.unwrap_or_default());
    let mut case = match infra.kind {
        InfraKind::Finding => {
            TestCaseBuilder::failure(&names.unique(&name), Duration::ZERO, "finding", &message)
        }
        InfraKind::WaivedFinding => {
            TestCaseBuilder::skipped_with_cause(&names.unique(&name), "expected-fail", &message)
        }
        InfraKind::Unchecked => {
            TestCaseBuilder::error(&names.unique(&name), Duration::ZERO, "unchecked", &message)
        }
        _ => return None,
    };
    case.set_classname("check");
    let text = match (infra.kind, finding_waiver(infra)) {
        (InfraKind::Finding, Some(waiver)) => {
            format!(
                "{}\na waiver, to complete and paste:\n{waiver}",
                infra.message
            )
        }
        _ => infra.message.clone(),
    };
    case.set_trace(&xml_text(&text));
    if let TestResult::SkippedWithCause { cause, .. } = &mut case.testcase.result {
        *cause = Some(xml_text(&text));
    }
    Some(case.build())
}

fn new_suite(journal: &Journal, name: &str) -> TestSuiteBuilder {
    let mut suite = TestSuiteBuilder::new(&attribute(name));
    suite.set_timestamp(started(journal));
    let host = journal.start.as_ref().and_then(|start| start.host.as_ref());
    if let Some(host) = host.and_then(|host| host.name.as_deref()) {
        suite.testsuite.hostname = attribute(host);
    }
    suite
}

fn case(journal: &Journal, unit: &Unit<'_>, several: bool, names: &mut Names) -> TestCase {
    let key = &unit.key;
    let engine = engine_argument(journal, key);
    let wanted = if several {
        format!("{}@{engine}", key.case)
    } else {
        key.case.clone()
    };
    let class = Case::parse(&key.case).map_or_else(|_| class_of(&key.case), |c| c.class_name());
    let name = names.unique(&attribute(&wanted));
    let seconds: f64 = unit
        .attempts
        .iter()
        .filter_map(|end| end.times.total_ms)
        .map(|ms| ms / 1000.0)
        .sum();
    let time = duration(seconds);
    let kind = attribute(&type_name(&unit.verdict));
    let story = story(journal, unit);
    let message = attribute(&message(unit));
    let mut case = match outcome(&unit.verdict) {
        Outcome::Success => TestCaseBuilder::success(&name, time),
        Outcome::Skipped => TestCaseBuilder::skipped_with_cause(&name, &kind, &message),
        Outcome::Failure => TestCaseBuilder::failure(&name, time, &kind, &message),
        Outcome::Error => TestCaseBuilder::error(&name, time, &kind, &message),
    };
    case.set_classname(&attribute(&class));
    case.set_trace(&xml_text(&story));
    // The library's setter leaves skips without a body, and some readers show nothing else.
    if let TestResult::SkippedWithCause { cause, .. } = &mut case.testcase.result {
        *cause = Some(xml_text(&self::message(unit)));
    }
    if let Some(end) = unit.attempts.last()
        && let (Some(file), Outcome::Failure | Outcome::Error) = (&end.file, outcome(&unit.verdict))
    {
        case.set_filepath(&attribute(file));
    }
    case.build()
}

/// What JUnit calls it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Success,
    Skipped,
    Failure,
    Error,
}

fn outcome(verdict: &Verdict) -> Outcome {
    match verdict {
        Verdict::Pass => Outcome::Success,
        Verdict::Weak | Verdict::Unsupported | Verdict::Skipped(_) | Verdict::ExpectedFail => {
            Outcome::Skipped
        }
        Verdict::Fail(_) | Verdict::UnexpectedPass | Verdict::Flaky => Outcome::Failure,
        Verdict::Crash(_) | Verdict::Timeout(_) | Verdict::NotRun(_) | Verdict::Missing => {
            Outcome::Error
        }
    }
}

fn message(unit: &Unit<'_>) -> String {
    match unit.attempts.last() {
        Some(end) => headline(end),
        None => "missing: the case was begun, and no record says what became of it".to_owned(),
    }
}

/// The stories of all attempts, last first: the last is the outcome.
fn story(journal: &Journal, unit: &Unit<'_>) -> String {
    if unit.attempts.is_empty() {
        let again = reproduction(journal, &unit.key, None);
        return format!("{}\nreproduce      {again}\n", message(unit));
    }
    let stories: Vec<String> = unit
        .attempts
        .iter()
        .rev()
        .map(|end| failure_text(journal, end))
        .collect();
    let mut story = stories.join("\nan earlier attempt:\n");
    if let Some(end) = unit.attempts.last().filter(|_| is_failure(&unit.verdict)) {
        story.push_str("\na waiver, to complete and paste:\n");
        story.push_str(&waiver(journal, end));
    }
    story
}

fn never_begun(missing: u64) -> TestCase {
    let text = format!("{missing} planned cases were never begun, and no record says why");
    let mut case = TestCaseBuilder::error("missing cases", Duration::ZERO, "missing", &text);
    case.set_classname("run");
    case.set_trace(&text);
    case.build()
}

/// `key=value` lines: the library has no properties.
fn properties(journal: &Journal, plugin: &PluginRecord, units: &[Unit<'_>]) -> String {
    let mut lines = Vec::new();
    let mut add = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            lines.push(format!("{key}={}", one_line(&value)));
        }
    };
    let start = journal.start.as_ref();
    add(
        "seed",
        start.and_then(|s| s.seed).map(|seed| seed.to_string()),
    );
    add("plugin", Some(plugin.path.clone()));
    add("build-id", plugin.build_id.clone());
    add("sha256", plugin.sha256.clone());
    for engine in &plugin.engines {
        add(
            "engine",
            Some(format!("{} ({:#018x})", engine.label(), engine.id)),
        );
    }
    add("memory", plugin.memory.clone());
    add("wire", plugin.wire.clone());
    let device = start.and_then(|s| s.device.as_ref());
    add(
        "device",
        device.and_then(|d| d.arch.clone().or_else(|| d.kind.clone())),
    );
    add("criterion", start.and_then(|s| s.criterion.clone()));
    add("suites", start.map(|s| s.suites.join(" ")));
    add(
        "shard",
        start.and_then(|s| s.shard).map(|shard| shard.to_string()),
    );
    add("dnn-assay", start.map(|s| s.version.clone()));
    add("git-revision", start.and_then(|s| s.git_revision.clone()));
    // A test case that passed has no text of its own.
    let of_plugin = units.iter().filter(|unit| unit.key.plugin == plugin.plugin);
    for end in of_plugin.filter_map(|unit| unit.attempts.last()) {
        let text = sampled_text(end).map(|text| format!("{}: {text}", end.case));
        add("by samples", text);
    }
    lines.join("\n") + "\n"
}

/// Names that were given, so that none is given twice.
#[derive(Default)]
struct Names {
    given: HashMap<String, u32>,
}

impl Names {
    fn unique(&mut self, name: &str) -> String {
        let mut candidate = name.to_owned();
        loop {
            let uses = self.given.entry(name.to_owned()).or_insert(0);
            *uses += 1;
            if *uses > 1 {
                candidate = format!("{name} ({uses})");
            }
            if candidate == name || !self.given.contains_key(&candidate) {
                self.given.entry(candidate.clone()).or_insert(1);
                return candidate;
            }
        }
    }
}

/// `op.direction.dtype.layout` of an id that this version cannot parse.
fn class_of(id: &str) -> String {
    id.split('/').take(3).collect::<Vec<_>>().join(".")
}

fn started(journal: &Journal) -> OffsetDateTime {
    journal
        .start
        .as_ref()
        .and_then(|start| start.time.parse::<jiff::Timestamp>().ok())
        .and_then(|time| OffsetDateTime::from_unix_timestamp(time.as_second()).ok())
        .filter(|time| (0..=9999).contains(&time.year()))
        .unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

fn duration(seconds: f64) -> Duration {
    let seconds = if seconds.is_finite() {
        seconds.clamp(0.0, 1e9)
    } else {
        0.0
    };
    Duration::seconds_f64(seconds)
}

/// Text for the body of an element: clean, and without the end of a CDATA section.
fn xml_text(text: &str) -> String {
    clean(text).replace("]]>", "]] >")
}

/// Text for an attribute: clean, and on one line.
fn attribute(text: &str) -> String {
    one_line(text)
}

/// A suite of cases that are no units of a journal.
#[derive(Clone, Debug)]
pub struct PlainSuite {
    /// Its name.
    pub name: String,
    /// Its cases, with unique names per class.
    pub cases: Vec<PlainCase>,
}

/// A case of a [`PlainSuite`].
#[derive(Clone, Debug)]
pub struct PlainCase {
    /// Its class.
    pub class: String,
    /// Its name.
    pub name: String,
    /// How long it took.
    pub seconds: f64,
    /// How it ended.
    pub outcome: PlainOutcome,
    /// The type of a failure.
    pub kind: String,
    /// The story; may be empty.
    pub text: String,
}

/// How a [`PlainCase`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainOutcome {
    /// As it must.
    Success,
    /// There was nothing to test.
    Skipped,
    /// Not as it must.
    Failure,
    /// It could not be tested.
    Error,
}

/// Writes suites that do not come from a journal.
///
/// # Errors
/// What `out` says.
pub fn write_plain(suites: &[PlainSuite], out: &mut dyn io::Write) -> io::Result<()> {
    let mut report = ReportBuilder::new();
    for suite in suites {
        let mut builder = TestSuiteBuilder::new(&attribute(&suite.name));
        for case in &suite.cases {
            builder.add_testcase(plain_case(case));
        }
        report.add_testsuite(builder.build());
    }
    report
        .build()
        .write_xml(out)
        .map_err(|error| io::Error::other(format!("JUnit: {error}")))
}

fn plain_case(case: &PlainCase) -> TestCase {
    let (name, time) = (attribute(&case.name), duration(case.seconds));
    let (kind, message) = (attribute(&case.kind), attribute(&case.text));
    let mut builder = match case.outcome {
        PlainOutcome::Success => TestCaseBuilder::success(&name, time),
        PlainOutcome::Skipped => TestCaseBuilder::skipped_with_cause(&name, &kind, &message),
        PlainOutcome::Failure => TestCaseBuilder::failure(&name, time, &kind, &message),
        PlainOutcome::Error => TestCaseBuilder::error(&name, time, &kind, &message),
    };
    builder.set_classname(&attribute(&case.class));
    builder.set_trace(&xml_text(&case.text));
    if case.outcome == PlainOutcome::Success && !case.text.is_empty() {
        builder.set_system_out(&xml_text(&case.text));
    }
    builder.build()
}
