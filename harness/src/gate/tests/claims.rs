//! What must be accepted: claims, floors, and cases of which too much may be accepted.

use super::*;
use crate::journal::samples;

const CLAIMS: &str =
    "schema: 1\nclaims:\n  - engine: MY_ENGINE\n    arch: gfx942\n    filters: [op=pointwise]\n";

fn claims(text: &str) -> Claims {
    Claims::read(&Source::new("c.yaml", text))
        .map_err(|p| p.to_string())
        .expect("claims")
}

#[test]
fn a_claimed_case_that_is_declined_is_a_failure() {
    let gate = gate(Waivers::default(), claims(CLAIMS), false, BEFORE);
    let end = applied(&gate, Verdict::Unsupported);
    assert_eq!(end.verdict, Verdict::Fail(FailKind::OverClaim));
    assert!(
        end.reason
            .unwrap_or_default()
            .contains("claimed at c.yaml:3")
    );
    let elsewhere = CLAIMS.replace("gfx942", "gfx90a");
    let gate = super::gate(Waivers::default(), claims(&elsewhere), false, BEFORE);
    assert_eq!(
        applied(&gate, Verdict::Unsupported).verdict,
        Verdict::Unsupported
    );
}

#[test]
fn a_claim_for_an_engine_that_is_gone() {
    let here = gate(Waivers::default(), claims(CLAIMS), false, BEFORE);
    assert_eq!(here.gone_engine(), None);
    let gone = gate(
        Waivers::default(),
        claims(&CLAIMS.replace("MY_", "OLD_")),
        false,
        BEFORE,
    );
    let text = gone.gone_engine().expect("no such engine").to_string();
    assert!(
        text.contains("OLD_ENGINE") && text.contains("c.yaml:3") && text.contains("MY_ENGINE"),
        "{text}"
    );
}

#[test]
fn what_was_verified_is_recorded_and_holds_afterwards() {
    let journal = samples::journal();
    let text = recorded(&journal);
    let read = claims(&text);
    let gate = Gate::new(Waivers::default(), read, false, BEFORE);
    gate.see_plugin(&journal.plugins[0]);
    let mut passed = CaseEnd::new(
        key("pointwise.add/f32/nchw/n1-c2-i3x4/none/uni"),
        1,
        Verdict::Unsupported,
    );
    passed.engine = Some("MY_ENGINE".to_owned());
    gate.apply(&mut passed);
    assert_eq!(passed.verdict, Verdict::Fail(FailKind::OverClaim), "{text}");
    let mut weak = CaseEnd::new(
        key("pointwise.sub/f32/nchw/n1-c2-i3x4/none/uni"),
        1,
        Verdict::Unsupported,
    );
    weak.engine = Some("MY_ENGINE".to_owned());
    gate.apply(&mut weak);
    assert_eq!(
        weak.verdict,
        Verdict::Unsupported,
        "a weak case was not verified"
    );
}

#[test]
fn the_provider_claims_read_and_mean_what_they_say() {
    let text = dnn_assay_suites::file("claims/miopen-provider.yaml").expect("embedded");
    let gate = gate(Waivers::default(), claims(text), false, BEFORE);
    let is_claimed = |case: &str, tags: &[&str]| {
        let mut end = CaseEnd::new(key(case), 1, Verdict::Unsupported);
        end.engine = Some("MIOPEN_ENGINE".to_owned());
        end.engine_id = dnn_assay_abi::engine_id::engine_id("MIOPEN_ENGINE");
        end.tags = tags.iter().map(|t| (*t).to_owned()).collect();
        gate.apply(&mut end);
        end.verdict.is_red()
    };
    let conv = "n2-c8-k16-i6x10-f3x3/pre1x1-post1x1-str1x1-dil1x1-g1";
    assert!(is_claimed(&format!("conv.fprop/f16/nhwc/{conv}/uni"), &[]));
    assert!(is_claimed(
        &format!("conv.fprop+bias+relu_fwd/f16/nhwc/{conv}/uni"),
        &[]
    ));
    assert!(is_claimed(
        "batchnorm.training/f16+f32/nchw/n4-c8-i5x6/eps1e-5-stats/uni",
        &[]
    ));
    assert!(!is_claimed(&format!("conv.fprop/f64/nhwc/{conv}/uni"), &[]));
    assert!(!is_claimed(
        &format!("conv.fprop/f16/nhwc/{conv}-mode-conv/uni"),
        &[]
    ));
    assert!(!is_claimed(
        &format!("conv.fprop/f16/nhwc/{conv}/uni"),
        &["over-acceptance"]
    ));
    assert!(!is_claimed(
        "batchnorm.training/f16+f32/nchw/n4-c8-i5x6/eps1e-5-mom0.1-stats-run/uni",
        &[]
    ));
    assert!(!is_claimed(
        &format!("conv.fprop+bias+elu_fwd/f16/nhwc/{conv}/uni"),
        &[]
    ));
    assert!(!is_claimed(
        "pointwise.add/f16/nchw/n1-c2-i3x4/none/uni",
        &[]
    ));
}

#[test]
fn accepting_too_much_and_computing_it_wrongly_is_named_so() {
    let gate = Gate::default();
    let mut wrong = end(NUMERIC);
    wrong.tags.push(OVER_ACCEPTANCE.to_owned());
    gate.apply(&mut wrong);
    assert_eq!(wrong.verdict, Verdict::Fail(FailKind::OverClaim));
    let mut declined = end(Verdict::Unsupported);
    declined.tags.push(OVER_ACCEPTANCE.to_owned());
    gate.apply(&mut declined);
    assert_eq!(declined.verdict, Verdict::Unsupported);
    assert_eq!(applied(&gate, NUMERIC).verdict, NUMERIC);
}

#[test]
fn a_floor_names_its_engine() {
    let mut gate = Gate {
        floors: vec![("MY_ENGINE".to_owned(), 2)],
        ..Gate::default()
    };
    assert_eq!(
        gate.unmet_floor(&samples::journal()),
        None,
        "one passed, one failed: two verified"
    );
    gate.floors = vec![("MY_ENGINE".to_owned(), 3)];
    assert!(
        gate.unmet_floor(&samples::journal())
            .is_some_and(|t| t.contains("asks for 3"))
    );
    let empty = crate::journal::Journal::default();
    assert!(gate.unmet_floor(&empty).is_some());
}
