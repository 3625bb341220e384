//! `dnn-assay discover`.

use std::io::Write;
use std::path::PathBuf;

use super::args::LoadModeChoice;
use super::{Error, stdout};
use crate::discover::args::{DiscoverArgs, DiscoverFormat};
use crate::discover::{Search, discover as search_and_load, write_json, write_text};
use crate::exit::Exit;
use crate::worker::LoadMode;

/// Says what hipDNN would load.
///
/// # Errors
/// Usage and infrastructure.
pub fn discover(args: &DiscoverArgs) -> Result<Exit, Error> {
    if let Some(path) = args.backend.as_ref().filter(|path| !path.is_file()) {
        return Err(Error::usage(format!(
            "--backend {}: no such file",
            path.display()
        )));
    }
    let backend = args.backend.clone().or_else(installed_backend);
    let backend = backend.map(|path| path.canonicalize().unwrap_or(path));
    let search = Search {
        paths: args.paths.clone(),
        mode: args.mode,
        variable: std::env::var_os("HIPDNN_PLUGIN_DIR").map(PathBuf::from),
        backend_folder: backend.and_then(|path| Some(path.parent()?.to_owned())),
    };
    let load_mode = match args.load_mode {
        LoadModeChoice::Local => LoadMode::Local,
        LoadModeChoice::Deepbind => LoadMode::Deepbind,
    };
    let discovered = search_and_load(&search, load_mode).map_err(Error::infrastructure)?;
    let mut out = stdout();
    match args.format {
        DiscoverFormat::Text => write_text(&discovered, &mut out)?,
        DiscoverFormat::Json => write_json(&discovered, &mut out)?,
    }
    out.flush()?;
    Ok(discovered.exit())
}

/// hipDNN's backend where ROCm puts it.
fn installed_backend() -> Option<PathBuf> {
    let rocm = std::env::var_os("ROCM_PATH").map_or_else(|| "/opt/rocm".into(), PathBuf::from);
    Some(rocm.join("lib/libhipdnn_backend.so")).filter(|path| path.is_file())
}
