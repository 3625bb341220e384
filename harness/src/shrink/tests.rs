//! The search on faults that are known, without a plugin.

use std::convert::Infallible;
use std::time::Duration;

use dnn_assay_graph::case::{AttributeKey as Key, Case};

use super::search::{Limits, Shrunk, Way, shrink};
use crate::journal::{CaseEnd, UnitKey};
use crate::suite::of_ids;
use crate::verdict::{Death, FailKind, Verdict};

const LIMITS: Limits = Limits {
    tries: 2000,
    time: Duration::from_secs(60),
};

fn end(id: &str, verdict: Verdict) -> CaseEnd {
    let key = UnitKey {
        plugin: 0,
        engine_id: 1,
        case: id.to_owned(),
    };
    CaseEnd::new(key, 1, verdict)
}

/// Shrinks `id` on an engine that gives each case this verdict.
#[track_caller]
fn shrunk(id: &str, verdict: impl Fn(&Case) -> Verdict) -> Shrunk {
    let case = of_ids(&[id]).expect("a case").cases.remove(0);
    let first = verdict(&case.case);
    assert!(first.is_red(), "{first}");
    let way = Way::of(&end(id, first.clone()));
    let shrunk = shrink(&case, &way, LIMITS, &mut |case| {
        Ok::<_, Infallible>(Some(end(&case.id, verdict(&case.case))))
    })
    .expect("the probe has no errors");
    assert_eq!(
        verdict(&shrunk.case.case),
        first,
        "it still fails in the same way"
    );
    assert!(shrunk.is_smallest);
    // The end that comes with it is its own; without a step there is none but the first.
    let ended = shrunk.end.as_ref();
    assert_eq!(ended.is_some(), shrunk.steps > 0);
    let own = |end: &CaseEnd| end.case == shrunk.case.id && end.verdict == first;
    assert!(ended.is_none_or(own), "{ended:?}");
    shrunk
}

/// An engine that is wrong where `is_wrong`.
fn wrong(is_wrong: impl Fn(&Case) -> bool) -> impl Fn(&Case) -> Verdict {
    move |case| match is_wrong(case) {
        true => Verdict::Fail(FailKind::Numeric),
        false => Verdict::Pass,
    }
}

#[test]
fn a_fault_of_every_case_leaves_the_smallest_case() {
    for (from, to) in [
        (
            "conv.fprop+bias+relu_fwd/bf16+f32/ndhwc/n3-c12-k18-i9x11x7-f3x2x3/pre2x1x0-post1x0x1-str2x1x1-dil1x2x1-g6-vio-lo0.5/uni",
            "conv.fprop/f32/ncl/n1-c1-k1-i1-f1/pre0-post0-str1-dil1-g1/uni",
        ),
        (
            "batchnorm.training+relu_fwd/f16+f32/nhwc~s4000x1x200x20/n3-c17-i9x10/eps0.1-mom0.5-stats-run/uni",
            "batchnorm.training/f32/ncl/n1-c1-i1/eps1e-5/uni",
        ),
        (
            "pointwise.binary_select/f16+f16+u8+f32/nhwc/n3-c8-i5x7/in0.8x1x1-in2.3x8x1x7/uni",
            "pointwise.binary_select/f32/ncl/n1-c1-i1/none/uni",
        ),
        (
            "pointwise.gen_index/f32/nchw/n3-c8-i5x7/axis3/uni",
            "pointwise.gen_index/f32/ncl/n1-c1-i1/axis0/uni",
        ),
    ] {
        assert_eq!(shrunk(from, wrong(|_| true)).case.id, to);
    }
}

#[test]
fn what_the_fault_needs_stays() {
    let needs = |case: &Case| {
        let shape = case.shape();
        case.attributes().int(Key::Groups) > Some(1)
            && shape.k > Some(5)
            && case.layout().channels_last()
            && case.attributes().dims(Key::Post).contains(&1)
    };
    let from = "conv.dgrad/f16/ndhwc/n2-c12-k18-i9x11x7-f3x2x3/pre2x1x0-post1x0x1-str2x1x1-dil1x2x1-g6/uni";
    let result = shrunk(from, wrong(needs));
    assert_eq!(
        result.case.id,
        "conv.dgrad/f32/nlc/n1-c2-k6-i1-f1/pre0-post1-str1-dil1-g2/uni"
    );
    assert!(result.tries < 300, "{}", result.tries);
}

#[test]
fn another_way_of_failing_is_not_followed() {
    // Small cases crash: another failure than the one that is looked for.
    let verdict = |case: &Case| match case.shape().c {
        ..=3 => Verdict::Crash(Death::Signal(11)),
        _ => Verdict::Fail(FailKind::Numeric),
    };
    let result = shrunk("pointwise.add/f32/nchw/n2-c9-i5x7/none/uni", verdict);
    assert_eq!(result.case.id, "pointwise.add/f32/ncl/n1-c4-i1/none/uni");
}

#[test]
fn a_limit_ends_the_search_with_what_there_is() {
    let case = of_ids(&["pointwise.add/f16/nhwc/n9-c9-i9x9"]).expect("a case");
    let case = &case.cases[0];
    let way = Way::of(&end(&case.id, Verdict::Fail(FailKind::Numeric)));
    let limits = Limits { tries: 3, ..LIMITS };
    let result = shrink(case, &way, limits, &mut |case| {
        Ok::<_, Infallible>(Some(end(&case.id, Verdict::Fail(FailKind::Numeric))))
    });
    let result = result.expect("no errors");
    assert_eq!((result.tries, result.is_smallest), (3, false));
}

/// Whatever is drawn shrinks to an end, and every step is simpler by some measure.
#[test]
fn drawn_cases_shrink_to_the_smallest_of_their_kind() {
    for index in 0..200 {
        let case = crate::fuzz::case(11, index);
        let result = shrunk(&case.to_string(), wrong(|_| true));
        let shape = result.case.case.shape();
        let extents = [shape.n, shape.c, shape.k.unwrap_or(1)];
        assert_eq!(extents, [1, 1, 1], "{case} -> {}", result.case.id);
        assert!(
            shape.i == [1] && shape.f.iter().all(|f| *f == 1),
            "{}",
            result.case.id
        );
        assert_eq!(result.case.case.dtype_name(), "f32", "{case}");
    }
}
