//! The list of names as data, and the names that the mutants ask for.

use dnn_assay_reference::diagnose::{HYPOTHESES, hypothesis};

const LIST: &str = include_str!("../../../suites/hypotheses.yaml");
const MUTANTS: &str = include_str!("../../../mocks/mutants/mutants.yaml");

/// Ids that wait for data which no case has yet, as their mutants do.
const TO_COME: [&str; 1] = ["one-pass-variance"];

#[test]
fn the_list_is_the_table() {
    let row = |h: &dnn_assay_reference::diagnose::Hypothesis| {
        let operations: Vec<_> = h.operations.iter().map(|o| o.name()).collect();
        let (id, tier, text) = (h.id, h.tier, h.text);
        let operations = operations.join(", ");
        format!(
            "  - {{id: {id}, tier: {tier}, operations: [{operations}],\n     text: \"{text}\"}}\n"
        )
    };
    let rows: String = HYPOTHESES.iter().map(row).collect();
    let listed = LIST.split_once("hypotheses:\n").map(|(_, rows)| rows);
    assert_eq!(listed, Some(rows.as_str()), "the list should be:\n{rows}");
}

#[test]
fn mutants_ask_for_known_names() {
    let lists = MUTANTS.split("diagnosis: [").skip(1);
    let ids = lists.filter_map(|rest| rest.split_once(']').map(|(ids, _)| ids));
    let mut asked = 0;
    for id in ids
        .flat_map(|ids| ids.split(','))
        .map(str::trim)
        .filter(|id| !id.is_empty())
    {
        asked += 1;
        assert!(hypothesis(id).is_some() || TO_COME.contains(&id), "{id}");
    }
    assert!(asked > 50, "{asked}");
}
