//! Faults on demand, read from the environment once.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// What goes wrong, and when.
#[derive(Clone, Debug)]
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
    /// `DNN_ASSAY_MOCK_HIP_ONE_STREAM`: all streams are one, so that each is held up by the others.
    pub one_stream: bool,
    /// `DNN_ASSAY_MOCK_HIP_PLUGIN`: what happens to every launch, as if the plugin had done it.
    pub plugin: Option<PluginFault>,
    /// `DNN_ASSAY_MOCK_HIP_FAULTY_DEVICE`: on this device of the machine kernels do nothing.
    pub faulty_device: Option<i32>,
    /// `DNN_ASSAY_MOCK_HIP_MEMORY_MB`: what each device says it has, default 8192.
    pub memory: usize,
    /// `DNN_ASSAY_MOCK_HIP_RAS_FILE`: this file counts launches as corrected errors, in the form of
    /// amdgpu's `umc_err_count`.
    pub ras_file: Option<PathBuf>,
    /// `DNN_ASSAY_MOCK_HIP_LOST_FILE`: after a kernel that never ends or a sticky error this file
    /// exists, and every process that finds it has no device.
    pub lost_file: Option<PathBuf>,
}

/// A fault of a plugin, made where its launches arrive: only plugins launch kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginFault {
    /// `default-stream`: it launches on the default stream, whatever stream it was given.
    DefaultStream,
    /// `unjoined-stream`: it launches on a stream of its own that the given one does not wait for.
    /// Where kernels are not slow, that stream is done when the launch returns.
    UnjoinedStream,
    /// `lost-error`: the launch fails and the plugin does not look.
    LostError,
    /// `leak`: it allocates a page with every launch and never frees it.
    Leak,
    /// `wait`: it waits for the stream before it returns. Legal.
    Wait,
    /// `short`: the last block of every grid does not run.
    Short,
    /// `invert:WORD:OFFSET:COUNT`: every kernel also inverts bytes where it has no business.
    Invert(Invert),
}

/// Bytes that a faulty kernel inverts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invert {
    /// Which eight bytes of the kernel's parameters hold the address: 0 is the output of the
    /// pointwise kernels, 1 to 3 their inputs.
    pub word: usize,
    /// The first byte, relative to that address.
    pub offset: i64,
    /// How many bytes.
    pub count: i64,
}

impl Invert {
    fn named(text: &str) -> Option<Self> {
        let mut numbers = text.split(':').map(|number| number.parse::<i64>().ok());
        let mut next = || numbers.next().flatten();
        let [word, offset, count] = [next()?, next()?, next()?];
        let word = usize::try_from(word).ok()?;
        Some(Self {
            word,
            offset,
            count,
        })
    }
}

impl PluginFault {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "default-stream" => Self::DefaultStream,
            "unjoined-stream" => Self::UnjoinedStream,
            "lost-error" => Self::LostError,
            "leak" => Self::Leak,
            "wait" => Self::Wait,
            "short" => Self::Short,
            _ => Self::Invert(Invert::named(name.strip_prefix("invert:")?)?),
        })
    }
}

/// The knobs of this process.
pub fn knobs() -> &'static Knobs {
    static KNOBS: OnceLock<Knobs> = OnceLock::new();
    KNOBS.get_or_init(|| Knobs::from(|name| std::env::var(name).ok()))
}

impl Knobs {
    fn from(variable: impl Fn(&str) -> Option<String>) -> Self {
        let text = |name: &str| variable(&format!("DNN_ASSAY_MOCK_HIP_{name}"));
        let number = |name: &str| -> Option<u64> { text(name)?.parse().ok() };
        let time = |name| Duration::from_millis(number(name).unwrap_or(0));
        Self {
            devices: number("DEVICES").map_or(1, |n| n.min(1024) as i32),
            oom_at: number("OOM_AT"),
            fail_launch: number("FAIL_LAUNCH"),
            hang_launch: number("HANG_LAUNCH"),
            sticky_at: number("STICKY_AT"),
            slow_copy: time("SLOW_COPY_MS"),
            slow_kernel: time("SLOW_KERNEL_MS"),
            one_stream: number("ONE_STREAM").is_some_and(|n| n > 0),
            plugin: text("PLUGIN").and_then(|name| PluginFault::named(&name)),
            faulty_device: number("FAULTY_DEVICE").map(|n| n as i32),
            memory: number("MEMORY_MB").map_or(8 << 30, |n| (n as usize) << 20),
            ras_file: text("RAS_FILE").map(PathBuf::from),
            lost_file: text("LOST_FILE").map(PathBuf::from),
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
        let of = |name: &str| PluginFault::named(name);
        let wanted = Invert {
            word: 0,
            offset: -16,
            count: 4,
        };
        assert_eq!(of("invert:0:-16:4"), Some(PluginFault::Invert(wanted)));
        assert_eq!([of("invert:0:4"), of("invert:-1:0:4"), of("no")], [None; 3]);
    }
}
