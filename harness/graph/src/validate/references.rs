//! Who reads and writes what, and in which order.

use super::problem::Problem;
use crate::model::{Graph, Tensor};
use crate::schema::Role;
use std::collections::HashMap;

pub(super) fn check(graph: &Graph, by_uid: &HashMap<i64, &Tensor>, problems: &mut Vec<Problem>) {
    if graph.nodes.is_empty() {
        problems.push(Problem {
            node: None,
            tensor: None,
            field: "nodes",
            expected: "at least one node".to_owned(),
            seen: "none".to_owned(),
            advice: "add an operation",
        });
    }
    let writers = writers(graph, by_uid, problems);
    for (index, node) in graph.nodes.iter().enumerate() {
        node.attributes.visit_uids(Role::Input, &mut |info, uid| {
            let fault = match (by_uid.get(&uid), writers.get(&uid)) {
                (None, _) => Some(absent(uid)),
                (Some(_), Some(writer)) if *writer >= index => Some((
                    "a tensor that an earlier node has written".to_owned(),
                    format!("tensor {uid}, written by node {writer}"),
                    "sort the nodes topologically, and write no tensor in place",
                )),
                (Some(tensor), None) if tensor.is_virtual => Some((
                    "a tensor with contents".to_owned(),
                    format!("virtual tensor {uid}, which no node writes"),
                    "write it first or make it an input",
                )),
                _ => None,
            };
            push(problems, index, info.name, fault);
        });
    }
}

/// The first writer of each tensor; reports absent ones, second writers and written constants.
fn writers(
    graph: &Graph,
    by_uid: &HashMap<i64, &Tensor>,
    problems: &mut Vec<Problem>,
) -> HashMap<i64, usize> {
    let mut writers = HashMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        node.attributes.visit_uids(Role::Output, &mut |info, uid| {
            let constant =
                |tensor: &&Tensor| tensor.value.is_some() || tensor.runtime_pass_by_value;
            let fault = match (by_uid.get(&uid), writers.get(&uid)) {
                (None, _) => Some(absent(uid)),
                (Some(_), Some(first)) => Some((
                    "a tensor that nothing else writes".to_owned(),
                    format!("tensor {uid}, written by node {first} too"),
                    "give each output a tensor of its own",
                )),
                (Some(tensor), None) if constant(tensor) => Some((
                    "a tensor with a buffer, or a virtual one".to_owned(),
                    format!("tensor {uid}, which is passed by value"),
                    "drop its value or write another tensor",
                )),
                _ => None,
            };
            writers.entry(uid).or_insert(index);
            push(problems, index, info.name, fault);
        });
    }
    writers
}

type Fault = (String, String, &'static str);

fn absent(uid: i64) -> Fault {
    (
        "the uid of a tensor of the graph".to_owned(),
        uid.to_string(),
        "add the tensor or correct the uid",
    )
}

fn push(problems: &mut Vec<Problem>, node: usize, field: &'static str, fault: Option<Fault>) {
    if let Some((expected, seen, advice)) = fault {
        problems.push(Problem {
            node: Some(node),
            tensor: None,
            field,
            expected,
            seen,
            advice,
        });
    }
}
