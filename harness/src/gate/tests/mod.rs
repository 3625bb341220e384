//! Waivers, claims and hipDNN's configuration, against verdicts.

mod claims;
mod findings;
mod upstream;
mod waivers;

use jiff::civil::date;

use super::*;
use crate::journal::samples::{key, plugin};
use crate::verdict::Depth;
use crate::yaml::Source;

const CASE: &str = "pointwise.add/f16/nchw/n1-c2-i3x4/none/uni";
const KNOWN: &str = "reason: r\n    owner: o\n    link: l\n    expires: 2027-06-30\n";
const NUMERIC: Verdict = Verdict::Fail(FailKind::Numeric);
const BEFORE: Date = date(2027, 6, 30);
const AFTER: Date = date(2027, 7, 1);

fn waivers(entry: &str) -> Waivers {
    let source = Source::new(
        "w.yaml",
        format!("schema: 1\nwaive:\n  - {entry}\n    {KNOWN}"),
    );
    read_waivers(&source)
        .map_err(|p| p.to_string())
        .expect("waivers")
        .waivers
}

fn gate(waivers: Waivers, claims: Claims, nightly: bool, day: Date) -> Gate {
    let mut gate = Gate::new(waivers, claims, nightly, day);
    gate.on_device(
        Some("gfx942:sramecc+:xnack-".to_owned()),
        Some("7.1.0-38".to_owned()),
    );
    let mut record = plugin(1);
    record.version = Some("1.4.2".to_owned());
    record.memory = Some("hip".to_owned());
    gate.see_plugin(&record);
    gate
}

fn end(verdict: Verdict) -> CaseEnd {
    let mut end = CaseEnd::new(key(CASE), 1, verdict);
    end.engine = Some("MY_ENGINE".to_owned());
    end.tags = vec!["slow".to_owned()];
    end.depth = Depth::Judged;
    end
}

fn applied(gate: &Gate, verdict: Verdict) -> CaseEnd {
    let mut end = end(verdict);
    gate.apply(&mut end);
    end
}
