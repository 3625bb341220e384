//! Faults on demand, read from the environment once.

use std::sync::OnceLock;
use std::time::Duration;

/// What goes wrong, and when.
#[derive(Clone, Copy, Debug)]
pub struct Knobs {
    /// `DNN_ASSAY_MOCK_HIP_DEVICES`: number of devices, default 1. With 0,
    /// `hipGetDeviceCount` returns `hipErrorNoDevice`.
    pub devices: i32,
    /// `DNN_ASSAY_MOCK_HIP_OOM_AT`: this allocation fails with `hipErrorOutOfMemory`.
    pub oom_at: Option<u64>,
    /// `DNN_ASSAY_MOCK_HIP_FAIL_LAUNCH`: this launch returns `hipErrorLaunchFailure`.
    pub fail_launch: Option<u64>,
    /// `DNN_ASSAY_MOCK_HIP_HANG_LAUNCH`: this kernel never ends.
    pub hang_launch: Option<u64>,
    /// `DNN_ASSAY_MOCK_HIP_STICKY_AT`: with this launch every later call returns
    /// `hipErrorIllegalAddress`.
    pub sticky_at: Option<u64>,
    /// `DNN_ASSAY_MOCK_HIP_SLOW_COPY_MS`: each copy takes this much longer.
    pub slow_copy: Duration,
    /// `DNN_ASSAY_MOCK_HIP_SLOW_KERNEL_MS`: each kernel takes this much longer.
    pub slow_kernel: Duration,
}

/// The knobs of this process.
pub fn knobs() -> &'static Knobs {
    static KNOBS: OnceLock<Knobs> = OnceLock::new();
    KNOBS.get_or_init(|| Knobs::from(|name| std::env::var(name).ok()))
}

impl Knobs {
    fn from(variable: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name: &str| -> Option<u64> {
            variable(&format!("DNN_ASSAY_MOCK_HIP_{name}"))?
                .parse()
                .ok()
        };
        let time = |name| Duration::from_millis(number(name).unwrap_or(0));
        Self {
            devices: number("DEVICES").map_or(1, |n| n.min(1024) as i32),
            oom_at: number("OOM_AT"),
            fail_launch: number("FAIL_LAUNCH"),
            hang_launch: number("HANG_LAUNCH"),
            sticky_at: number("STICKY_AT"),
            slow_copy: time("SLOW_COPY_MS"),
            slow_kernel: time("SLOW_KERNEL_MS"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_asked_for_is_one_device_without_faults() {
        let knobs = Knobs::from(|_| None);
        assert_eq!((knobs.devices, knobs.oom_at), (1, None));
        let knobs = Knobs::from(|name| name.ends_with("OOM_AT").then(|| "3".to_owned()));
        assert_eq!((knobs.devices, knobs.oom_at), (1, Some(3)));
    }
}
