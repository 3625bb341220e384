//! What happened to the memory around, between and before the tensors.

use dnn_assay_device::{BufferCheck, Damage, Run, Snapshot};
use dnn_assay_graph::{Graph, Tensor};

use super::Finding;
use super::geometry::coordinates;
use crate::run::output_view;
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
    if first.unwritten.min(second.unwritten) == 0 {
        return None;
    }
    let tensor = graph.tensor(first.uid)?;
    let view = output_view(tensor);
    let element = view.element;
    let (poison, other) = (element.poison(Run::First), element.poison(Run::Second));
    let size = usize::from(element.size());
    let (mut count, mut at) = (0u64, None::<u64>);
    // The same element in both: narrow integers hold every pattern somewhere.
    view.for_each_in_memory(|offset, index| {
        let holds = |bytes: &[u8], pattern: &[u8]| {
            let offset = offset as usize;
            bytes.get(offset..offset + size) == Some(pattern)
        };
        if holds(&first.bytes, poison.bytes()) && holds(&second.bytes, other.bytes()) {
            count += 1;
            at = Some(at.map_or(index, |at| at.min(index)));
        }
    });
    let at = at?;
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
        BufferCheck::intact(3, Role::Output, vec![0; 24])
    }

    fn snapshot(check: BufferCheck) -> Snapshot {
        Snapshot {
            buffers: vec![check],
            workspace: None,
            notes: Vec::new(),
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

    /// A snapshot whose elements at these indices hold the poison of `run`.
    fn poisoned(run: Run, at: &[usize]) -> Snapshot {
        let mut check = check();
        for &index in at {
            let pattern = dnn_assay_device::Element::F32.poison(run);
            check.bytes[index * 4..(index + 1) * 4].copy_from_slice(pattern.bytes());
        }
        check.unwritten = at.len() as u64;
        check.first_unwritten = at.first().map(|&index| index as u64);
        snapshot(check)
    }

    #[test]
    fn poison_counts_as_unwritten_only_after_two_runs_and_in_the_same_element() {
        let first = poisoned(Run::First, &[4, 5]);
        assert!(is_suspicious(&first));
        assert_eq!(judge_memory(&graph(), &first, None), None);
        assert_eq!(
            judge_memory(&graph(), &first, Some(&snapshot(check()))),
            None
        );
        // Other elements hold the second pattern, as results of narrow integers do by chance.
        let elsewhere = poisoned(Run::Second, &[0, 1]);
        assert_eq!(judge_memory(&graph(), &first, Some(&elsewhere)), None);
        let second = poisoned(Run::Second, &[3, 4]);
        let finding = judge_memory(&graph(), &first, Some(&second)).expect("unwritten");
        assert_eq!(finding.verdict, Verdict::Fail(FailKind::Unwritten));
        assert!(finding.reason.contains("[1, 1]"), "{}", finding.reason);
    }
}
