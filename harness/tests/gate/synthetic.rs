//! A journal of as many cases as are asked for, for the HTML page.

use dnn_assay::journal::{
    CaseEnd, EngineRecord, Infra, InfraKind, Journal, MismatchGeometry, PluginRecord, Record,
    RunEnd, RunStart, UnitKey, Worst,
};
use dnn_assay::report::{Html, Reporter};
use dnn_assay::verdict::{Depth, FailKind, Verdict};

pub const OPS: [&str; 6] = [
    "conv.fprop",
    "conv.dgrad",
    "conv.wgrad",
    "conv.fprop+bias+relu_fwd",
    "batchnorm.training",
    "pointwise.gelu_fwd",
];
pub const TYPES: [&str; 3] = ["f32", "f16", "bf16"];
pub const LAYOUTS: [&str; 4] = ["nchw", "nhwc", "ncdhw", "ndhwc"];

/// A run of so many cases.
pub fn synthetic(cases: u32) -> Journal {
    let mut journal = Journal::default();
    for record in records(cases) {
        journal.push(record);
    }
    journal
}

/// Its records; every 20th case fails, every third is declined.
pub fn records(cases: u32) -> Vec<Record> {
    let mut journal = Vec::new();
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
    let finding = "inspect export/std: std::vector<int>::push_back is exported; another plugin's may \
                   be taken in its place; see it: nm -DC --defined-only build/libmy_plugin.so";
    journal.push(Record::Infra(Infra {
        rule: Some("inspect/export/std".to_owned()),
        plugin: Some(0),
        ..Infra::now(InfraKind::Finding, finding)
    }));
    let note = "inspect build/libmy_plugin.so: 47 rules, 1 errors, 0 warnings";
    journal.push(Record::Infra(Infra::now(InfraKind::Configuration, note)));
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
            naive: None,
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

/// The page of a journal.
pub fn page(journal: &Journal) -> String {
    let mut out = Vec::new();
    Html.write(journal, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}
