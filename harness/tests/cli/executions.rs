//! How often a case is executed, counted by the plugin.

use crate::support::run_fault;
use rstest::rstest;

/// Elements that look unwritten and wrong values ask for a second execution each; one serves both.
#[rstest]
#[case("", 1, &["1 pass"])]
#[case("write-half", 2, &["fail(unwritten): 8 of 16 elements"])]
#[case("write-half-first", 2, &["fail(not-finite)", "executed again, 8 of 16 elements"])]
fn a_case_is_executed_at_most_once_more(
    #[case] fault: &str,
    #[case] times: u64,
    #[case] texts: &[&str],
) {
    let folder = tempfile::tempdir().unwrap();
    let counter = folder.path().join("executions");
    let variable = format!("DNN_MOCK_EXECUTIONS={}", counter.display());
    let ran = run_fault(fault, &["--env", &variable]);
    for text in texts {
        assert!(ran.out.contains(text), "`{text}` is missing in {ran:#?}");
    }
    assert_eq!(counter.metadata().unwrap().len(), times, "{ran:#?}");
}

/// Values that are wrong each time are noted as such.
#[test]
fn wrong_values_that_come_again_are_the_same() {
    let ran = run_fault("wrong-sign", &[]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.out.contains("executed again, it gives the same bits"));
}
