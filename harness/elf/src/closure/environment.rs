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
    /// these provide is luck.
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
