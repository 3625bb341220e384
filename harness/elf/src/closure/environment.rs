//! What steers the loader besides the files themselves.

use super::cache::LoaderCache;
use std::path::PathBuf;

/// What steers the loader besides the files themselves.
#[derive(Clone, Debug, Default)]
pub struct LoadEnvironment {
    /// `LD_LIBRARY_PATH`, one element per directory; an empty element is the working directory.
    pub library_path: Vec<String>,
    /// `LD_PRELOAD`: libraries in the process before all others.
    pub preload: Vec<String>,
    /// `/etc/ld.so.cache`.
    pub cache: Option<LoaderCache>,
    /// The directories that the loader falls back on.
    pub default_directories: Vec<PathBuf>,
    /// The `glibc-hwcaps` subdirectories that this processor supports, best first.
    pub hwcaps: Vec<String>,
    /// What `$LIB` stands for.
    pub lib: String,
    /// What `$PLATFORM` stands for.
    pub platform: String,
    /// The working directory, which relative paths count from.
    pub working_directory: PathBuf,
    /// The libraries that the host process has already loaded, by SONAME or path. What only
    /// these provide is luck. The host program's own RPATH, which the loader would also look at,
    /// is not known here; give such directories as `library_path`.
    pub host: Vec<String>,
}

/// The libraries of a host that links nothing beyond C.
#[cfg(target_arch = "x86_64")]
pub(crate) const MINIMAL_HOST: [&str; 4] = [
    "libc.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
];
/// The libraries of a host that links nothing beyond C.
#[cfg(target_arch = "aarch64")]
pub(crate) const MINIMAL_HOST: [&str; 4] = [
    "libc.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "ld-linux-aarch64.so.1",
];

impl LoadEnvironment {
    /// The loader of this kind of machine with the usual directories, without variables and
    /// cache, and a host that links nothing beyond C.
    #[must_use]
    pub fn standard() -> Self {
        let triplet = concat_triplet();
        let directories = [
            format!("/lib/{triplet}"),
            format!("/usr/lib/{triplet}"),
            "/lib64".into(),
            "/usr/lib64".into(),
            "/lib".into(),
            "/usr/lib".into(),
        ];
        Self {
            default_directories: directories.into_iter().map(PathBuf::from).collect(),
            lib: format!("lib/{triplet}"),
            platform: std::env::consts::ARCH.into(),
            working_directory: PathBuf::from("/"),
            host: MINIMAL_HOST.map(String::from).to_vec(),
            ..Self::default()
        }
    }

    /// The loader of the machine that this runs on: [`Self::standard`] with its cache and the
    /// capabilities of its processor. Variables are the caller's to add.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let cache = std::fs::read("/etc/ld.so.cache").ok();
        let cache = cache.and_then(|bytes| LoaderCache::parse(&bytes).ok());
        Self {
            cache,
            hwcaps: supported_hwcaps(),
            working_directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            ..Self::standard()
        }
    }

    /// Adds `LD_LIBRARY_PATH` as the variable has it: separated by colons or semicolons.
    #[must_use]
    pub fn with_library_path(mut self, value: &str) -> Self {
        if !value.is_empty() {
            self.library_path = value.split([':', ';']).map(str::to_owned).collect();
        }
        self
    }

    /// Adds `LD_PRELOAD` as the variable has it: separated by colons or spaces.
    #[must_use]
    pub fn with_preload(mut self, value: &str) -> Self {
        let names = value.split([':', ' ']).filter(|name| !name.is_empty());
        self.preload = names.map(str::to_owned).collect();
        self
    }

    /// Adds the loader's cache.
    #[must_use]
    pub fn with_cache(mut self, cache: LoaderCache) -> Self {
        self.cache = Some(cache);
        self
    }
}

fn concat_triplet() -> String {
    format!("{}-linux-gnu", std::env::consts::ARCH)
}

/// The `glibc-hwcaps` subdirectories for this processor, best first: the levels of the x86-64
/// psABI.
#[cfg(target_arch = "x86_64")]
fn supported_hwcaps() -> Vec<String> {
    macro_rules! has {
        ($($feature:tt),*) => { $(std::arch::is_x86_feature_detected!($feature))&&* };
    }
    let v2 = has!("cmpxchg16b", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3");
    let v3 = v2
        && has!(
            "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"
        );
    let v4 = v3 && has!("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl");
    [(v4, "x86-64-v4"), (v3, "x86-64-v3"), (v2, "x86-64-v2")]
        .into_iter()
        .filter(|(supported, _)| *supported)
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// The `glibc-hwcaps` subdirectories for this processor: glibc has none for this architecture.
#[cfg(not(target_arch = "x86_64"))]
fn supported_hwcaps() -> Vec<String> {
    Vec::new()
}
