//! What happened to the memory around, between and before the tensors.

use dnn_assay_device::{BufferCheck, Damage, Snapshot};
use dnn_assay_graph::{Graph, Tensor};

use super::Finding;
use super::geometry::coordinates;
use crate::verdict::{FailKind, Verdict};

/// The verdict that follows from guards, inputs, gaps and, where `confirmed` holds a second run,
/// unwritten elements; `None` where nothing was touched that must not be.
pub fn judge_memory(
    graph: &Graph,
    first: &Snapshot,
    confirmed: Option<&Snapshot>,
) -> Option<Finding> {
    let snapshots = [Some(first), confirmed];
    snapshots
        .iter()
        .flatten()
        .find_map(|snapshot| damage(graph, snapshot))
        .or_else(|| unwritten(graph, first, confirmed?))
}

fn damage(graph: &Graph, snapshot: &Snapshot) -> Option<Finding> {
    if let Some(check) = &snapshot.workspace {
        let hurt = check.canary_after.as_ref().or(check.canary_before.as_ref());
        if let Some(hurt) = hurt {
            let reason = format!("memory outside the workspace was written: {}", extent(hurt));
            return Some(Finding::new(Verdict::Fail(FailKind::Workspace), reason));
        }
    }
    snapshot.buffers.iter().find_map(|check| {
        let name = tensor_name(graph, check.uid);
        let fail = |kind, what: String| Some(Finding::new(Verdict::Fail(kind), what));
        if let Some(hurt) = &check.canary_before {
            let what = format!("memory before {name} was written: {}", extent(hurt));
            return fail(FailKind::GuardBefore, what);
        }
        if let Some(hurt) = &check.canary_after {
            let what = format!("memory behind {name} was written: {}", extent(hurt));
            return fail(FailKind::GuardAfter, what);
        }
        if let Some(hurt) = &check.changed {
            let what = format!("the input {name} was changed: {}", extent(hurt));
            return fail(FailKind::InputChanged, what);
        }
        if let Some(hurt) = &check.gaps {
            let what = format!(
                "gaps between the elements of {name}, a strided view, were written: {}",
                extent(hurt)
            );
            return fail(FailKind::GuardAfter, what);
        }
        None
    })
}

/// An element that holds the first poison after the first run and the second, different one
/// after the second run was not written.
fn unwritten(graph: &Graph, first: &Snapshot, second: &Snapshot) -> Option<Finding> {
    first
        .buffers
        .iter()
        .zip(&second.buffers)
        .find_map(|(a, b)| unwritten_in(graph, a, b))
}

fn unwritten_in(graph: &Graph, first: &BufferCheck, second: &BufferCheck) -> Option<Finding> {
    let count = first.unwritten.min(second.unwritten);
    if count == 0 {
        return None;
    }
    let tensor = graph.tensor(first.uid)?;
    let at = second.first_unwritten.or(first.first_unwritten)?;
    let reason = format!(
        "{count} of {} elements of {} were never written, the first at {:?}",
        tensor.element_count().unwrap_or(0),
        tensor_name(graph, first.uid),
        coordinates(&tensor.dims, at),
    );
    Some(Finding::new(Verdict::Fail(FailKind::Unwritten), reason))
}

/// Whether some output element still holds its poison, so that a second run must tell.
pub fn is_suspicious(snapshot: &Snapshot) -> bool {
    snapshot.buffers.iter().any(|check| check.unwritten > 0)
}

fn tensor_name(graph: &Graph, uid: i64) -> String {
    match graph.tensor(uid) {
        Some(Tensor { name, .. }) if !name.is_empty() => format!("{name} (uid {uid})"),
        _ => format!("uid {uid}"),
    }
}

fn extent(damage: &Damage) -> String {
    format!(
        "{} byte{} from offset {} to {} relative to its first byte",
        damage.count,
        if damage.count == 1 { "" } else { "s" },
        damage.first,
        damage.last
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnn_assay_device::Role;
    use dnn_assay_graph::DataType;

    fn graph() -> Graph {
        Graph {
            tensors: vec![Tensor::packed(3, "y", DataType::Float, &[2, 3])],
            ..Graph::default()
        }
    }

    fn check() -> BufferCheck {
        BufferCheck {
            uid: 3,
            role: Role::Output,
            canary_before: None,
            canary_after: None,
            changed: None,
            gaps: None,
            unwritten: 0,
            first_unwritten: None,
            bytes: vec![0; 24],
        }
    }

    fn snapshot(check: BufferCheck) -> Snapshot {
        Snapshot {
            buffers: vec![check],
            workspace: None,
        }
    }

    #[test]
    fn an_overrun_is_named_with_its_place() {
        let damage = Damage {
            first: 24,
            last: 27,
            count: 4,
            found: vec![1, 2, 3, 4],
        };
        let hurt = snapshot(BufferCheck {
            canary_after: Some(damage),
            ..check()
        });
        let finding = judge_memory(&graph(), &hurt, None).expect("an overrun");
        assert_eq!(finding.verdict, Verdict::Fail(FailKind::GuardAfter));
        assert_eq!(
            finding.reason,
            "memory behind y (uid 3) was written: 4 bytes from offset 24 to 27 relative to its first byte"
        );
        assert_eq!(judge_memory(&graph(), &snapshot(check()), None), None);
    }

    #[test]
    fn poison_counts_as_unwritten_only_after_two_runs() {
        let poisoned = snapshot(BufferCheck {
            unwritten: 2,
            first_unwritten: Some(4),
            ..check()
        });
        assert!(is_suspicious(&poisoned));
        assert_eq!(judge_memory(&graph(), &poisoned, None), None);
        assert_eq!(
            judge_memory(&graph(), &poisoned, Some(&snapshot(check()))),
            None
        );
        let finding = judge_memory(&graph(), &poisoned, Some(&poisoned)).expect("unwritten");
        assert_eq!(finding.verdict, Verdict::Fail(FailKind::Unwritten));
        assert!(finding.reason.contains("[1, 1]"), "{}", finding.reason);
    }
}
