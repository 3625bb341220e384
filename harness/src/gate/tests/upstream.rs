//! hipDNN's own test configuration.

use rstest::rstest;

use super::*;

const UPSTREAM: &str = "[meta]\nversion = 1\n\n[[tolerance_overrides]]\nfilters = ['conv.*', 'pointwise.add/*']\natol = 1e-3\n\n[[test_skips]]\nfilters = ['pointwise.*/f16/*']\nreason = 'slow'\narchs = ['gfx942']\n\n[[test_skips]]\nfilters = ['*']\nreason = 'elsewhere'\nplatforms = ['windows']\n";
const VALIDATORS: &str = "[[validator_overrides]]\nfilters = ['conv.*']\nvalidator = 'rms'\nrms_threshold = 0.01\ntensors = ['dx']\n\n[[validator_overrides]]\nfilters = ['conv.dgrad/*']\nvalidator = 'allclose_matching_infinities'\n";

fn upstream(text: &str) -> Expected {
    let read = read_waivers(&Source::new("engine.toml", text)).map_err(|p| p.to_string());
    read.expect("a configuration")
}

#[test]
fn skips_of_hipdnns_configuration_excuse_failures_and_no_more() {
    let expected = upstream(UPSTREAM);
    assert_eq!(
        expected.waivers.len(),
        1,
        "the other platform's entry is left out"
    );
    let gate = gate(expected.waivers, Claims::default(), true, AFTER);
    let end = applied(&gate, NUMERIC);
    assert_eq!(end.verdict, Verdict::ExpectedFail);
    assert!(end.reason.unwrap_or_default().contains("engine.toml:8"));
    assert_eq!(applied(&gate, Verdict::Pass).verdict, Verdict::Pass);
    // hipDNN takes a part of the name, features and all.
    let part = upstream(&UPSTREAM.replace("gfx942", "sramecc+"));
    let gate = super::gate(part.waivers, Claims::default(), true, AFTER);
    assert_eq!(applied(&gate, NUMERIC).verdict, Verdict::ExpectedFail);
}

#[test]
fn overrides_of_hipdnns_configuration_rule_where_they_match() {
    let overrides = upstream(UPSTREAM).overrides;
    assert_eq!(overrides.ruling("pointwise.mul/f32/nchw/x", "out"), None);
    let ruling = overrides.ruling(CASE, "out").expect("an override");
    assert_eq!(ruling.validator, Validator::Allclose);
    assert_eq!(
        (ruling.tolerance.atol, ruling.tolerance.rtol),
        (Some(1e-3), None)
    );
    assert_eq!(ruling.because, "engine.toml:4");
    assert!(overrides.remarks(true)[0].contains("judged nothing"));
    overrides.count(CASE, "out");
    assert!(overrides.remarks(true)[0].contains("engine.toml:4 judged 1 output instead"));
    let later = UPSTREAM.replace(
        "[[test_skips]]\nfilters = ['pointwise",
        "[[tolerance_overrides]]\nfilters = ['pointwise.*']\nrtol = 0.5\n\n[[test_skips]]\nfilters = ['pointwise",
    );
    let ruling = upstream(&later)
        .overrides
        .ruling(CASE, "out")
        .expect("an override");
    assert_eq!(
        ruling.tolerance.rtol,
        Some(0.5),
        "the last that matches wins"
    );
}

#[test]
fn a_validator_is_for_the_tensors_that_it_names_and_what_is_not_honoured_is_said() {
    let expected = upstream(&format!("{UPSTREAM}\n{VALIDATORS}"));
    let dgrad = expected
        .overrides
        .ruling("conv.dgrad/f32/nchw/x", "dx")
        .expect("rms");
    assert_eq!(dgrad.validator, Validator::Rms(Some(0.01)));
    assert_eq!(
        dgrad.tolerance.atol, None,
        "a root mean square has no tolerance"
    );
    let fprop = expected
        .overrides
        .ruling("conv.fprop/f32/nchw/x", "y")
        .expect("the tolerance");
    assert_eq!(fprop.validator, Validator::Allclose);
    assert_eq!(expected.remarks.len(), 1);
    assert!(
        expected.remarks[0].contains("not honoured")
            && expected.remarks[0].contains("engine.toml:"),
        "{:?}",
        expected.remarks
    );
    let unused = upstream(UPSTREAM).overrides;
    assert!(unused.remarks(true)[0].contains("judged nothing"));
    assert!(unused.remarks(false).is_empty());
}

#[rstest]
#[case("[meta]\nversion = 2\n", "version 1 is read")]
#[case(
    "[meta]\nversion = 1\n[[test_skips]]\nfilter = ['*']\nreason = 'x'\n",
    "did you mean `filters`?"
)]
#[case(
    "[meta]\nversion = 1\n[[test_skips]]\nfilters = ['a[']\nreason = 'x'\n",
    "a["
)]
#[case(
    "[meta]\nversion = 1\n[[tolerance_overrides]]\nfilters = ['*']\natol = -1.0\n",
    "-1 is no tolerance"
)]
#[case(
    "[meta]\nversion = 1\n[[validator_overrides]]\nfilters = ['*']\nvalidator = 'allclos'\n",
    "did you mean `allclose`?"
)]
fn mistakes_in_hipdnns_configuration(#[case] text: &str, #[case] part: &str) {
    let problem = read_waivers(&Source::new("engine.toml", text))
        .expect_err("a mistake")
        .to_string();
    assert!(
        problem.contains(part) && problem.contains("engine.toml:"),
        "{problem}"
    );
}
