//! Whether a write into the gaps of a sparse output is that of an index which wrapped around.

use std::collections::{BTreeMap, BTreeSet};

use dnn_assay_device::{ElementView, Snapshot};

/// The hypothesis that is named.
const ID: &str = "index-overflow";
/// What an index of 32 bits cannot hold.
const WRAP: u64 = 1 << 32;

/// The name of the fault where the gaps of a sparse output were written just where its farther
/// elements land if an index, or an offset in bytes, is cut to 32 bits. `sparse`: where the
/// elements of the sparse tensors lie, by uid.
pub fn overflow_named(
    sparse: &BTreeMap<i64, ElementView>,
    snapshot: &Snapshot,
) -> Option<&'static str> {
    let explains = |(uid, view): (&i64, &ElementView)| {
        let gaps = snapshot.buffer(*uid)?.gaps.as_ref()?;
        let width = u64::from(view.element.size());
        let seen = (
            u64::try_from(gaps.first).ok()?,
            u64::try_from(gaps.last).ok()?,
        );
        [WRAP, WRAP * width]
            .into_iter()
            .any(|modulus| landing(view, modulus) == Some(seen))
            .then_some(ID)
    };
    sparse.iter().find_map(explains)
}

/// The first and last byte beside the elements that the elements beyond `modulus` bytes land on.
fn landing(view: &ElementView, modulus: u64) -> Option<(u64, u64)> {
    let mut all = BTreeSet::new();
    view.for_each_offset(|at| {
        all.insert(at);
    });
    let wrapped = all.range(modulus..).map(|at| at % modulus);
    let beside: BTreeSet<u64> = wrapped.filter(|at| !all.contains(at)).collect();
    let width = u64::from(view.element.size());
    Some((*beside.first()?, beside.last()? + width - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnn_assay_device::{BufferCheck, Damage, Element, Role};

    fn view() -> ElementView {
        ElementView {
            element: Element::F32,
            dims: vec![2, 3],
            strides: vec![(1 << 32) + 100, 1],
        }
    }

    fn named(first: i64, last: i64) -> Option<&'static str> {
        let check = BufferCheck {
            gaps: Some(Damage {
                first,
                last,
                count: 12,
                found: vec![1],
            }),
            ..BufferCheck::intact(3, Role::Output, vec![0; 24])
        };
        let snapshot = Snapshot {
            buffers: vec![check],
            workspace: None,
            notes: Vec::new(),
        };
        overflow_named(&BTreeMap::from([(3, view())]), &snapshot)
    }

    #[test]
    fn writes_that_land_where_an_index_wraps_are_named_and_others_are_not() {
        // Element 2³² + 100 … lands on 100 …, of four bytes each; so do the bytes.
        assert_eq!(named(400, 411), Some("index-overflow"));
        assert_eq!(named(400, 415), None);
        assert_eq!(named(404, 411), None);
        assert_eq!(named(-4, 411), None);
    }

    #[test]
    fn elements_that_land_on_elements_name_nothing() {
        let onto = ElementView {
            strides: vec![1 << 32, 1],
            ..view()
        };
        assert_eq!(landing(&onto, WRAP * 4), None);
        assert_eq!(landing(&view(), WRAP * 4), Some((400, 411)));
    }
}
