//! How a worker is given one device of several: by the variables that its runtime reads. Inside,
//! the device is always number 0.

use dnn_assay_device::MemoryKind;

/// Variables that a worker is started with: a value, or taken away.
pub(super) type Changes = Vec<(&'static str, Option<String>)>;

/// What makes `index`, counted among the devices that this process would see, the only one.
///
/// A HIP worker keeps `ROCR_VISIBLE_DEVICES`, which renumbers the devices before HIP looks; the
/// older variables would choose a second time and are taken away. A CUDA worker has its one.
pub(super) fn only(
    kind: MemoryKind,
    index: u32,
    inherited: impl Fn(&str) -> Option<String>,
) -> Changes {
    let entry = |variable: &str| {
        let list = inherited(variable).unwrap_or_default();
        let entries = list.split(',').map(str::trim).filter(|e| !e.is_empty());
        let entry = entries.map(str::to_owned).nth(index as usize);
        Some(entry.unwrap_or_else(|| index.to_string()))
    };
    let mut changes = any(kind, &inherited);
    match kind {
        MemoryKind::Host => {}
        MemoryKind::Hip => changes.push(("HIP_VISIBLE_DEVICES", entry("HIP_VISIBLE_DEVICES"))),
        MemoryKind::Cuda => changes.push(("CUDA_VISIBLE_DEVICES", entry("CUDA_VISIBLE_DEVICES"))),
    }
    changes
}

/// What makes a child that looks at all devices count them as the workers' entries do.
pub(super) fn any(kind: MemoryKind, inherited: impl Fn(&str) -> Option<String>) -> Changes {
    let mut changes = Changes::new();
    if kind == MemoryKind::Hip {
        changes.push(("CUDA_VISIBLE_DEVICES", None));
        changes.push(("GPU_DEVICE_ORDINAL", None));
        let kept = "ROCR_VISIBLE_DEVICES";
        changes.extend(inherited(kept).map(|value| (kept, Some(value))));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: MemoryKind, index: u32, set: &[(&str, &str)]) -> Changes {
        let found = |name: &str| {
            let pair = set.iter().find(|(key, _)| *key == name)?;
            Some(pair.1.to_owned())
        };
        only(kind, index, found)
    }

    #[test]
    fn a_hip_worker_gets_its_entry_and_loses_what_would_choose_twice() {
        let gone = [("CUDA_VISIBLE_DEVICES", None), ("GPU_DEVICE_ORDINAL", None)];
        let changes = of(MemoryKind::Hip, 3, &[]);
        assert_eq!(changes[..2], gone);
        assert_eq!(
            changes[2..],
            [("HIP_VISIBLE_DEVICES", Some("3".to_owned()))]
        );
        let changes = of(
            MemoryKind::Hip,
            1,
            &[
                ("HIP_VISIBLE_DEVICES", "6, 2"),
                ("ROCR_VISIBLE_DEVICES", "4,5,6"),
            ],
        );
        assert_eq!(
            changes[2..],
            [
                ("ROCR_VISIBLE_DEVICES", Some("4,5,6".to_owned())),
                ("HIP_VISIBLE_DEVICES", Some("2".to_owned())),
            ]
        );
    }

    #[test]
    fn a_cuda_worker_gets_its_entry_only_and_a_host_worker_nothing() {
        let set = [("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")];
        let entry = ("CUDA_VISIBLE_DEVICES", Some("GPU-b".to_owned()));
        assert_eq!(of(MemoryKind::Cuda, 1, &set), [entry]);
        assert_eq!(of(MemoryKind::Host, 1, &set), []);
    }
}
