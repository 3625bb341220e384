//! A journal reads back as it was written, also when it was cut.

use std::io::{self, Write};
use std::path::Path;

use super::samples::{bytes, journal, records};
use super::{Journal, JournalError, JournalWriter, Record, read, read_bytes};

#[test]
fn what_was_written_is_read() {
    let mut expected = Journal::default();
    for record in records() {
        expected.push(record);
    }
    // NaN is not equal to itself, so the forms are compared.
    assert_eq!(format!("{:?}", journal()), format!("{expected:?}"));
}

#[test]
fn a_journal_cut_at_any_byte_is_read_up_to_its_last_whole_record() {
    let bytes = bytes(&records());
    let mut whole = 0;
    let mut expected = Journal::default();
    let mut ends = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(at, _)| at + 1)
        .zip(records());
    let mut next = ends.next();
    for cut in 0..=bytes.len() {
        if let Some((end, record)) = next.take_if(|(end, _)| *end == cut) {
            (whole, next) = (end, ends.next());
            expected.push(record);
        }
        let mut read = read_bytes(&bytes[..cut]).expect("a cut journal is readable");
        assert_eq!(read.truncated, whole < cut, "cut at {cut}");
        read.truncated = false;
        assert_eq!(counts(&read), counts(&expected), "cut at {cut}");
    }
}

fn counts(journal: &Journal) -> [usize; 6] {
    [
        usize::from(journal.start.is_some()),
        journal.plugins.len(),
        journal.starts.len(),
        journal.ends.len(),
        journal.infra.len(),
        usize::from(journal.end.is_some()),
    ]
}

#[test]
fn every_field_is_there_from_the_first_version() {
    let bytes = bytes(&records());
    let text = String::from_utf8(bytes).expect("JSON is UTF-8");
    let line = |record: &str| {
        text.lines()
            .find(|line| line.starts_with(&format!("{{\"record\":\"{record}\"")))
            .expect("a record of each type")
    };
    for (record, fields) in [
        (
            "run-start",
            "schema host device git_revision config_hash plan_hash seed shard",
        ),
        (
            "plugin",
            "plugin path sha256 build_id memory memory_reason wire wire_reason engines planned",
        ),
        ("case-start", "plugin engine_id case attempt"),
        (
            "case-end",
            "verdict kind reason depth knobs criterion traits margin rms_margin bias_z compared worst \
             geometry diagnosis determinism_hash times attempts log_tail",
        ),
        ("infra", "kind message"),
        ("run-end", "counts exit"),
    ] {
        let value: serde_json::Value = serde_json::from_str(line(record)).expect("JSON");
        for field in fields.split_whitespace() {
            assert!(value.get(field).is_some(), "{record} lacks {field}");
        }
    }
    let passed = text
        .lines()
        .find(|l| l.contains(r#""verdict":"pass""#))
        .expect("a pass");
    assert!(passed.contains(r#""kind":null"#), "{passed}");
    assert!(
        text.contains(r#""engine_id":"0xedcba98765432110""#),
        "ids are hexadecimal text"
    );
}

#[test]
fn unknown_fields_and_records_are_passed_over() {
    let text = "{\"record\":\"run-start\",\"schema\":1,\"later\":{\"a\":[1]}}\n\
                {\"record\":\"weather\",\"sun\":true}\n\
                {\"record\":\"case-end\",\"plugin\":0,\"engine_id\":\"0x1\",\"case\":\"x\",\"attempt\":1,\
                 \"verdict\":\"crash\",\"kind\":{\"signal\":11},\"colour\":\"red\"}\n";
    let journal = read_bytes(text.as_bytes()).expect("a journal of a later minor version");
    assert_eq!(journal.unknown_records, 1);
    assert_eq!(journal.ends[0].verdict.to_string(), "crash(SIGSEGV)");
}

#[test]
fn a_bad_line_and_a_later_schema_are_errors() {
    let error =
        read_bytes(b"{\"record\":\"run-start\",\"schema\":1}\nnonsense\n").expect_err("nonsense");
    assert!(
        matches!(error, JournalError::Line { line: 2, .. }),
        "{error}"
    );
    let error = read_bytes(b"{\"record\":\"case-end\",\"plugin\":0}\n").expect_err("too little");
    assert!(
        matches!(error, JournalError::Line { line: 1, .. }),
        "{error}"
    );
    let error =
        read_bytes(b"{\"record\":\"run-start\",\"schema\":2,\"seed\":\"x\"}\n").expect_err("later");
    assert!(
        matches!(error, JournalError::Schema { found: 2 }),
        "{error}"
    );
    let error = read(Path::new("none/journal.jsonl")).expect_err("no file");
    assert!(error.to_string().contains("none/journal.jsonl"), "{error}");
}

/// Counts calls of `write`.
#[derive(Default)]
struct Calls(Vec<usize>);

impl Write for &mut Calls {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        assert_eq!(bytes.last(), Some(&b'\n'));
        self.0.push(bytes.len());
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_record_is_one_write() {
    let mut calls = Calls::default();
    let records = records();
    let mut writer = JournalWriter::new(&mut calls, Path::new("x"));
    for record in &records {
        writer.append(record).expect("it takes everything");
    }
    assert_eq!(calls.0.len(), records.len());
}

#[test]
fn the_summary_counts_every_planned_unit_once() {
    let summary = journal().summary();
    assert_eq!(summary.planned, 13);
    assert_eq!(summary.reported, 10);
    assert_eq!(
        summary.missing, 3,
        "one begun without an end, two never begun"
    );
    assert_eq!(summary.by_verdict.values().sum::<u64>(), summary.planned);
    assert_eq!(summary.verified, 2);
    assert_eq!(summary.by_skip_reason["no-device"], 1);
    assert_eq!(summary.by_fail_kind["numeric"], 1);
    assert_eq!(summary.plugin_errors, 1);
    let worst = summary.worst_margin.expect("a pass has a margin");
    assert!(worst.key.case.starts_with("pointwise.add/") && worst.margin == 0.125);
    let slowest: Vec<f64> = summary.slowest.iter().map(|slow| slow.ms).collect();
    assert_eq!(slowest, [8.25, 7.25, 6.25, 5.25, 5.0]);
}

#[test]
fn the_last_attempt_decides() {
    let mut records = records();
    let Some(Record::CaseEnd(first)) = records.iter().find(|r| matches!(r, Record::CaseEnd(_)))
    else {
        panic!("the sample has a case-end");
    };
    let mut second = first.clone();
    second.attempt = 2;
    second.verdict = crate::verdict::Verdict::Flaky;
    records.push(Record::CaseEnd(second));
    let journal = read_bytes(&bytes(&records)).expect("a journal");
    assert_eq!(journal.units()[0].attempts.len(), 2);
    assert_eq!(journal.summary().count_of("flaky"), 2);
    assert_eq!(journal.summary().count_of("fail"), 0);
}
