//! Libraries that come with this program: the built-in plugin and the mock HIP runtime. They lie
//! beside the program where it was built or installed; a released program carries them in its own
//! file, each in a section `.dnn_assay.<file name>`, and they are unpacked when one is asked for.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use dnn_assay_elf::ElfView;

/// The file name of the built-in CPU plugin.
pub const BUILTIN_CPU: &str = "libdnn_assay_cpu_plugin.so";

/// Begins the names of sections that hold libraries.
const SECTION: &str = ".dnn_assay.";

/// Why a library that comes with this program cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum BuiltInError {
    /// It is neither beside the program nor in it.
    #[error("{name} was not found; looked in {} and in this program's own file", list(.folders))]
    Absent {
        /// The file name.
        name: String,
        /// The folders that were looked into.
        folders: Vec<PathBuf>,
    },
    /// It is in the program's file and cannot be written.
    #[error("{} cannot be unpacked: {source}", .path.display())]
    Unpack {
        /// Where it was to go.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

fn list(paths: &[PathBuf]) -> String {
    let names: Vec<_> = paths.iter().map(|p| p.display().to_string()).collect();
    names.join(", ")
}

/// Where libraries are unpacked to.
enum Target {
    Named(PathBuf),
    Temporary(tempfile::TempDir),
}

static TARGET: Mutex<Option<Target>> = Mutex::new(None);

/// From now on libraries are unpacked into `folder`, which is made when it is needed. Without this
/// they go to a temporary folder.
pub fn unpack_to(folder: &Path) {
    *target() = Some(Target::Named(folder.to_owned()));
}

/// Removes what was unpacked into a temporary folder. To be called once, before the program ends.
pub fn remove_unpacked() {
    *target() = None;
}

fn target() -> std::sync::MutexGuard<'static, Option<Target>> {
    TARGET.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A library that was built, installed or released with this program, by its file name.
///
/// # Errors
/// [`BuiltInError`].
pub fn built_in_file(name: &str) -> Result<PathBuf, BuiltInError> {
    let exe = std::env::current_exe().ok();
    let folders = builtin_folders(exe.as_deref());
    if let Some(path) = folders.iter().map(|f| f.join(name)).find(|p| p.is_file()) {
        return Ok(path);
    }
    let bytes = exe.and_then(|exe| std::fs::read(exe).ok());
    let absent = || BuiltInError::Absent {
        name: name.to_owned(),
        folders,
    };
    let carried = bytes.as_deref().and_then(|bytes| carried(bytes, name));
    unpack(name, carried.ok_or_else(absent)?)
}

/// The bytes of a library in a program's file.
fn carried<'a>(program: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let view = ElfView::parse(program).ok()?;
    let section = view.section(&format!("{SECTION}{name}"))?;
    view.section_bytes(section)
}

fn unpack(name: &str, bytes: &[u8]) -> Result<PathBuf, BuiltInError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| BuiltInError::Unpack { path, source }
    };
    let mut target = target();
    let folder = match target.as_ref() {
        Some(Target::Named(folder)) => folder.clone(),
        Some(Target::Temporary(folder)) => folder.path().to_owned(),
        None => {
            let folder = tempfile::tempdir().map_err(failed(&std::env::temp_dir()))?;
            let path = folder.path().to_owned();
            *target = Some(Target::Temporary(folder));
            path
        }
    };
    std::fs::create_dir_all(&folder).map_err(failed(&folder))?;
    let path = folder.join(name);
    // Another process may have the old file mapped: it is replaced, never written over.
    let mut file = tempfile::NamedTempFile::new_in(&folder).map_err(failed(&path))?;
    std::io::Write::write_all(&mut file, bytes).map_err(failed(&path))?;
    let kept = file
        .persist(&path)
        .map_err(|error| failed(&path)(error.error));
    kept.map(|_| path)
}

/// Where the libraries may lie: beside the program, in cargo's `deps`, or in an installation's
/// `lib/dnn-assay`.
fn builtin_folders(exe: Option<&Path>) -> Vec<PathBuf> {
    let Some(folder) = exe.and_then(Path::parent) else {
        return Vec::new();
    };
    ["", "deps", "../deps", "../lib/dnn-assay"]
        .iter()
        .map(|relative| folder.join(relative))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unpacked_is_what_was_carried_and_goes_away_again() {
        let path = unpack("x.so", b"bytes").expect("a temporary folder");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"bytes");
        unpack("x.so", b"other").expect("it is replaced");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"other");
        remove_unpacked();
        assert!(!path.exists());
        let named = tempfile::tempdir().expect("a folder");
        unpack_to(&named.path().join("a/b"));
        let path = unpack("x.so", b"bytes").expect("the folder is made");
        assert!(path.starts_with(named.path()));
        unpack_to(Path::new("/proc/nowhere"));
        let refused = unpack("x.so", b"bytes").expect_err("nobody can write there");
        assert!(refused.to_string().contains("/proc/nowhere"), "{refused}");
        remove_unpacked();
    }

    #[test]
    fn what_is_nowhere_is_said_with_the_places() {
        let text = built_in_file("libnothing.so")
            .expect_err("no such file")
            .to_string();
        assert!(
            text.contains("libnothing.so") && text.contains("lib/dnn-assay"),
            "{text}"
        );
        assert_eq!(carried(b"no ELF", "libnothing.so"), None);
    }
}
