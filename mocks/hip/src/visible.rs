//! Which devices this process sees, as ROCm decides it: `ROCR_VISIBLE_DEVICES` chooses among the
//! machine's, `HIP_VISIBLE_DEVICES` (or `CUDA_VISIBLE_DEVICES` where that is not set) among those.

use std::sync::OnceLock;

use crate::knobs::knobs;

/// The machine's numbers of the devices that this process sees, in its order.
pub(crate) fn devices() -> &'static [i32] {
    static DEVICES: OnceLock<Vec<i32>> = OnceLock::new();
    DEVICES.get_or_init(|| seen(knobs().devices, |name| std::env::var(name).ok()))
}

/// A list ends at its first entry that is no device.
fn seen(count: i32, variable: impl Fn(&str) -> Option<String>) -> Vec<i32> {
    let all: Vec<i32> = (0..count).collect();
    let choose = |from: Vec<i32>, list: Option<String>| match list {
        None => from,
        Some(list) => list
            .split(',')
            .map_while(|entry| from.get(entry.trim().parse::<usize>().ok()?).copied())
            .collect(),
    };
    let given = |name: &str| variable(name).filter(|list| !list.is_empty());
    let of_machine = choose(all, given("ROCR_VISIBLE_DEVICES"));
    let list = given("HIP_VISIBLE_DEVICES").or_else(|| given("CUDA_VISIBLE_DEVICES"));
    choose(of_machine, list)
}

#[cfg(test)]
mod tests {
    use super::seen;

    #[test]
    fn lists_choose_from_lists() {
        let with = |rocr: &str, hip: &str, cuda: &str| {
            seen(8, |name| {
                let list = match name {
                    "ROCR_VISIBLE_DEVICES" => rocr,
                    "HIP_VISIBLE_DEVICES" => hip,
                    "CUDA_VISIBLE_DEVICES" => cuda,
                    _ => "",
                };
                Some(list.to_owned())
            })
        };
        assert_eq!(with("", "", ""), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(with("4,5,6", "2,0", "1"), [6, 4]);
        assert_eq!(with("", "", "3"), [3]);
        assert_eq!(
            with("", "1,-1,2", ""),
            [1],
            "ends at the first that is none"
        );
        assert_eq!(with("", "9", ""), [0; 0]);
    }
}
