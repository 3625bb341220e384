//! A journal for tests: two plugins, one of them unloadable, and a case of every verdict.

use std::path::Path;

use super::{
    CaseEnd, CaseStart, DeviceIdentity, EngineRecord, Host, Infra, InfraKind, Journal,
    JournalWriter, MismatchGeometry, PluginError, PluginRecord, Record, RunEnd, RunStart, SCHEMA,
    Times, UnitKey, Worst, read_bytes,
};
use crate::verdict::{Death, Depth, FailKind, NotRunReason, Phase, SkipReason, Verdict};

/// The engine of the sample.
pub const ENGINE: i64 = -0x1234_5678_9abc_def0;

const CONV: &str = "conv.fprop/f16/nhwc/n2-c8-k16-i6x10-f3x3/pre1x1-post1x1-str1x1-dil1x1-g1/uni";

/// The key of the nth sample case.
pub fn key(case: &str) -> UnitKey {
    UnitKey {
        plugin: 0,
        engine_id: ENGINE,
        case: case.to_owned(),
    }
}

/// The first record.
pub fn start() -> RunStart {
    RunStart {
        schema: SCHEMA,
        time: "2026-11-30T04:05:06Z".to_owned(),
        version: "0.1.0".to_owned(),
        arguments: vec!["run".to_owned(), "libplugin.so".to_owned()],
        suites: vec!["smoke".to_owned()],
        out: Some("dnn-assay-out".to_owned()),
        host: Some(Host {
            name: Some("builder".to_owned()),
            cores: Some(2),
            ..Host::default()
        }),
        device: Some(DeviceIdentity {
            kind: Some("hip".to_owned()),
            arch: Some("gfx942:sramecc+:xnack-".to_owned()),
            ..DeviceIdentity::default()
        }),
        seed: Some(1),
        criterion: Some("bound".to_owned()),
        ..RunStart::default()
    }
}

/// The plugin that loads.
pub fn plugin(planned: u64) -> PluginRecord {
    PluginRecord {
        plugin: 0,
        path: "build/my plugin.so".to_owned(),
        source: Some("named on the command line".to_owned()),
        build_id: Some("5f3a1c".to_owned()),
        memory: Some("host".to_owned()),
        memory_reason: Some("no GPU library is needed; --device changes it".to_owned()),
        wire: Some("current".to_owned()),
        wire_reason: Some("it exports GetApiVersion".to_owned()),
        engines: vec![EngineRecord {
            id: ENGINE,
            name: Some("MY_ENGINE".to_owned()),
            traits: vec!["rn".to_owned()],
        }],
        planned: Some(planned),
        load_ms: Some(12.5),
        ..PluginRecord::default()
    }
}

/// The plugin that does not.
pub fn broken_plugin() -> PluginRecord {
    PluginRecord {
        plugin: 1,
        path: "build/libbroken.so".to_owned(),
        error: Some(PluginError {
            kind: "missing-symbols".to_owned(),
            message: "hipdnnPluginGetName is missing, and 15 more of 16".to_owned(),
        }),
        ..PluginRecord::default()
    }
}

/// A case that was judged wrong.
pub fn failed() -> CaseEnd {
    let mut end = CaseEnd::new(key(CONV), 1, Verdict::Fail(FailKind::Numeric));
    end.engine = Some("MY_ENGINE".to_owned());
    end.reason = Some("64 of 1920 elements lie outside the bound".to_owned());
    end.depth = Depth::Judged;
    end.criterion = Some("bound".to_owned());
    end.margin = Some(37.25);
    end.rms_margin = Some(6.5);
    end.compared = Some(1920);
    end.mismatched = Some(64);
    end.worst = Some(Worst {
        tensor: "y".to_owned(),
        uid: 3,
        dims: vec![2, 16, 6, 10],
        dtype: "f16".to_owned(),
        index: 1019,
        coordinates: vec![1, 0, 5, 9],
        expected: -1.375,
        naive: None,
        got: f64::NAN,
        bound: 0.0009765625,
        ulps: None,
    });
    end.geometry = Some(MismatchGeometry {
        text: "all 64 wrong elements have w = 9: the last column".to_owned(),
        first: vec![9, 19, 29],
        low: vec![0, 0, 0, 9],
        high: vec![1, 15, 5, 9],
    });
    end.diagnosis = vec!["last-column-unwritten".to_owned()];
    end.workspace = Some(4096);
    end.times = Times {
        plan_ms: Some(0.5),
        first_ms: Some(2.0),
        later_ms: vec![1.5],
        reference_ms: Some(0.75),
        comparison_ms: Some(0.1),
        total_ms: Some(5.0),
    };
    end.log_tail = vec!["\u{1b}[31mkernel\u{1b}[0m launched with grid 1x1".to_owned()];
    end.file = Some("smoke/core.yaml".to_owned());
    end.line = Some(17);
    end
}

/// Verdicts of the sample's other cases, with the depth each came to.
fn others() -> Vec<(&'static str, Verdict, Depth)> {
    use Depth::{Applicable, Executed, Judged, Loaded, Planned};
    vec![
        (
            "pointwise.add/f32/nchw/n1-c2-i3x4/none/uni",
            Verdict::Pass,
            Judged,
        ),
        (
            "pointwise.sub/f32/nchw/n1-c2-i3x4/none/uni",
            Verdict::Weak,
            Judged,
        ),
        (
            "pointwise.mul/f32/nchw/n1-c2-i3x4/none/uni",
            Verdict::Unsupported,
            Loaded,
        ),
        (
            "pointwise.exp/f32/nchw/n1-c2-i3x4/none/uni",
            Verdict::Crash(Death::Signal(11)),
            Planned,
        ),
        (
            "pointwise.log/f32/nchw/n1-c2-i3x4/none/uni",
            Verdict::Timeout(Phase::Execute),
            Planned,
        ),
        (
            "pointwise.erf/f32/nchw/n1-c2-i3x4/none/uni",
            Verdict::Skipped(SkipReason::NoDevice),
            Applicable,
        ),
        (
            "pointwise.neg/f32/nchw/n1-c2-i3x4/none/uni",
            Verdict::ExpectedFail,
            Judged,
        ),
        (
            "pointwise.abs/f32/nchw/n1-c2-i3x4/none/uni",
            Verdict::NotRun(NotRunReason::Budget),
            Depth::None,
        ),
        (
            "pointwise.sin/f32/nchw/n1-c2-i3x4/none/uni",
            Verdict::Flaky,
            Executed,
        ),
    ]
}

/// Every record of the sample run, in order. One case begins and never ends, two never begin.
pub fn records() -> Vec<Record> {
    let mut records = vec![
        Record::RunStart(Box::new(start())),
        Record::Plugin(Box::new(plugin(13))),
        Record::Plugin(Box::new(broken_plugin())),
    ];
    let begin = |case: &str, attempt| {
        Record::CaseStart(CaseStart {
            plugin: 0,
            engine_id: ENGINE,
            case: case.to_owned(),
            attempt,
            ..CaseStart::default()
        })
    };
    records.push(begin(CONV, 1));
    records.push(Record::CaseEnd(Box::new(failed())));
    for (index, (case, verdict, depth)) in others().into_iter().enumerate() {
        records.push(begin(case, 1));
        let mut end = CaseEnd::new(key(case), 1, verdict);
        end.depth = depth;
        end.times.total_ms = Some(index as f64 + 0.25);
        if end.verdict == Verdict::Pass {
            end.margin = Some(0.125);
            end.compared = Some(24);
            end.criterion = Some("bound".to_owned());
        }
        records.push(Record::CaseEnd(Box::new(end)));
    }
    records.push(begin("pointwise.tan/f32/nchw/n1-c2-i3x4/none/uni", 1));
    records.push(Record::Infra(Infra {
        time: None,
        kind: InfraKind::Worker,
        message: "a worker ended between cases and was replaced".to_owned(),
        rule: None,
        plugin: Some(0),
        case: None,
    }));
    records.push(Record::RunEnd(RunEnd {
        seconds: Some(1.5),
        exit: Some(3),
        ..RunEnd::default()
    }));
    records
}

/// The records as the writer puts them into a file.
pub fn bytes(records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = JournalWriter::new(&mut bytes, Path::new("journal.jsonl"));
    for record in records {
        writer.append(record).expect("a vector takes every byte");
    }
    bytes
}

/// The sample as it reads back.
pub fn journal() -> Journal {
    read_bytes(&bytes(&records())).expect("what was written is read")
}
