//! Random cases: valid graphs of every operation, shape, layout and parameter that ids can name.
//!
//! Case `i` of a seed is a function of the seed and `i` alone, so a longer run begins with the
//! cases of a shorter one.

mod draw;
mod random;
mod shape;

use std::collections::HashSet;

use dnn_assay_graph::case::Case;

use crate::suite::{Suite, of_ids};

/// Floating-point operations of a drawn case at most: a millisecond of the reference.
pub const MOST_FLOPS: f64 = 2.0e6;
/// Bytes of its tensors at most.
pub const MOST_BYTES: f64 = 1.0e6;

/// Draws `count` different cases.
pub fn suite(seed: u64, count: usize) -> Suite {
    let mut seen = HashSet::with_capacity(count);
    let mut ids = Vec::with_capacity(count);
    for index in 0u64.. {
        if ids.len() == count {
            break;
        }
        let id = case(seed, index).to_string();
        if seen.insert(id.clone()) {
            ids.push(id);
        }
    }
    let mut suite = of_ids(&ids).expect("ids of cases are ids");
    suite.name = format!("--fuzz {count} --seed {seed}");
    suite
}

/// The case of this index.
pub fn case(seed: u64, index: u64) -> Case {
    let mut random = random::Random::new(seed, index);
    loop {
        // Parts that do not fit together, and cases that are too large, are drawn anew.
        let Ok(case) = draw::draft(&mut random).and_then(|draft| draft.case()) else {
            continue;
        };
        let work = case.work();
        if work.flops <= MOST_FLOPS && work.bytes <= MOST_BYTES {
            return case;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_same_seed_gives_the_same_cases_and_another_gives_others() {
        let ids = |seed, count| -> Vec<String> {
            let suite = suite(seed, count);
            suite.cases.into_iter().map(|case| case.id).collect()
        };
        let long = ids(7, 60);
        assert_eq!(ids(7, 40), long[..40]);
        assert_ne!(ids(8, 40), long[..40]);
        assert_eq!(long.iter().collect::<HashSet<_>>().len(), 60);
        // The cases of a seed are the same in every version, or a failure could not be found again.
        assert_eq!(case(1, 0).to_string(), FIRST);
    }

    const FIRST: &str = "pointwise.max/f32/nlc~s1x4x60/n2-c15-i2/in1.1x1/uni";

    /// What ids can name is drawn: every operation, type, layout and attribute.
    #[test]
    fn everything_is_drawn() {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for index in 0..20_000 {
            let case = case(3, index);
            let mut see = |what: String| *seen.entry(what).or_default() += 1;
            see(case.op().to_string());
            see(case.dtype_name());
            see(case.layout().to_string());
            see(format!("fill {}", case.fill()));
            see(format!("strided {}", !case.strided().is_empty()));
            for (key, value) in case.attributes().iter() {
                see(format!("attribute {}", key.name()));
                let varies = ["pre", "post", "str", "dil", "g"].contains(&key.name());
                if varies && !value.text().bytes().all(|b| b"01x".contains(&b)) {
                    see(format!("large {}", key.name()));
                }
            }
            assert!(case.graph().is_ok(), "{case}");
        }
        for op in dnn_assay_graph::case::Op::all() {
            assert!(seen.contains_key(&op.to_string()), "{op}");
        }
        for layout in dnn_assay_graph::case::Layout::ALL {
            assert!(seen[layout.name()] > 100, "{layout}");
        }
        // Ragged tensors are an engine's to decline: the smoke suite asks for one.
        let drawn = |key: &dnn_assay_graph::case::AttributeKey| key.name() != "ragged";
        for key in dnn_assay_graph::case::AttributeKey::ALL
            .iter()
            .filter(|key| drawn(key))
        {
            assert!(
                seen.contains_key(&format!("attribute {}", key.name())),
                "{key:?}"
            );
        }
        for what in [
            "f32",
            "f16",
            "bf16",
            "f64",
            "f16+f32",
            "fill int",
            "strided true",
            "large g",
        ] {
            assert!(seen[what] > 100, "{what}: {}", seen[what]);
        }
        for what in [
            "i32",
            "u8",
            "large pre",
            "large post",
            "large str",
            "large dil",
        ] {
            assert!(seen[what] > 10, "{what}: {}", seen[what]);
        }
    }
}
