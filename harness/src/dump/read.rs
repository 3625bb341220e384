//! Reading dumps.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dnn_assay_graph::case::Fill;
use dnn_assay_graph::json::{self, JsonError};
use dnn_assay_graph::{Graph, Tensor};
use dnn_assay_reference::{Values, dtype};
use safetensors::SafeTensors;

use super::elements::unpack;
use super::file::{
    DUMP_FILE, GRAPH_FILE, Manifest, Part, SCHEMA, TENSORS_FILE, TensorEntry, safetensors_type,
};
use super::sampled::{self, Samples};
use super::write::packed;

/// A dump in memory.
#[derive(Clone, Debug)]
pub struct Dump {
    /// What it is.
    pub manifest: Manifest,
    /// The graph.
    pub graph: Graph,
    /// The inputs.
    pub inputs: Values,
    /// Outputs as the engine wrote them, by uid, in the layout of their tensors; gaps are zero.
    pub got: Vec<(i64, Vec<u8>)>,
    /// Of a case that was judged by samples: those, instead of inputs and outputs.
    pub samples: Option<Samples>,
}

/// Why a dump cannot be read. Every message names the file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file or folder cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A folder without dumps.
    #[error(
        "{path}: there is no dump here: neither {DUMP_FILE} nor folders that have one; \
         `dnn-assay run --dump-on-fail DIR` writes them",
        path = path.display()
    )]
    None {
        /// The folder.
        path: PathBuf,
    },
    /// A file that is not what it should be.
    #[error("{path}: {problem}", path = path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What was expected and what was seen.
        problem: String,
    },
    /// A dump of a later version.
    #[error(
        "{path}: the dump has schema {found}, and this version reads up to {SCHEMA}: use a newer \
         dnn-assay",
        path = path.display()
    )]
    Schema {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: u32,
    },
}

/// The dumps in `folder`: itself, or the folders in it that are dumps, by name.
///
/// # Errors
/// [`ReadError`] where there are none.
pub fn find(folder: &Path) -> Result<Vec<PathBuf>, ReadError> {
    if folder.join(DUMP_FILE).is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let failed = |source| ReadError::Io {
        path: folder.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.join(DUMP_FILE).is_file() {
            found.push(path);
        }
    }
    found.sort();
    if found.is_empty() {
        return Err(ReadError::None {
            path: folder.to_owned(),
        });
    }
    Ok(found)
}

/// Reads the dump in `folder`.
///
/// # Errors
/// [`ReadError`], with the file.
pub fn read(folder: &Path) -> Result<Dump, ReadError> {
    let manifest = manifest(&folder.join(DUMP_FILE))?;
    let path = folder.join(GRAPH_FILE);
    let graph = json::from_str(&text(&path)?).map_err(|error: JsonError| form(&path, error))?;
    let path = folder.join(TENSORS_FILE);
    let bytes = fs::read(&path).map_err(|source| io_error(&path, source))?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| form(&path, error))?;
    let mut dump = Dump {
        manifest,
        graph,
        inputs: Values::new(),
        got: Vec::new(),
        samples: None,
    };
    let entries = dump.manifest.tensors.clone();
    if let Some(draws) = &dump.manifest.sampled {
        let fill = Fill::from_name(&dump.manifest.fill).unwrap_or_default();
        let samples = sampled::read(&dump.graph, (fill, draws), &entries, &tensors);
        dump.samples = Some(samples.map_err(|problem| form(&path, problem))?);
        return Ok(dump);
    }
    for entry in &entries {
        dump.add(entry, &tensors)
            .map_err(|problem| form(&path, problem))?;
    }
    let missing = dump
        .graph
        .inputs()
        .find(|tensor| !dump.inputs.contains_key(&tensor.uid));
    if let Some(tensor) = missing {
        let problem = format!("the input {} (uid {}) is not here", tensor.name, tensor.uid);
        return Err(form(&path, problem));
    }
    Ok(dump)
}

fn manifest(path: &Path) -> Result<Manifest, ReadError> {
    let text = text(path)?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|e| form(path, e))?;
    let schema = value.get("schema").and_then(serde_json::Value::as_u64);
    match schema {
        Some(found) if found > u64::from(SCHEMA) => Err(ReadError::Schema {
            path: path.to_owned(),
            found: u32::try_from(found).unwrap_or(u32::MAX),
        }),
        Some(_) => serde_json::from_value(value).map_err(|error| form(path, error)),
        None => Err(form(path, "`schema` is missing: this is no dump")),
    }
}

fn text(path: &Path) -> Result<String, ReadError> {
    fs::read_to_string(path).map_err(|source| io_error(path, source))
}

fn io_error(path: &Path, source: io::Error) -> ReadError {
    ReadError::Io {
        path: path.to_owned(),
        source,
    }
}

fn form(path: &Path, problem: impl std::fmt::Display) -> ReadError {
    ReadError::Form {
        path: path.to_owned(),
        problem: problem.to_string(),
    }
}

impl Dump {
    fn add(&mut self, entry: &TensorEntry, file: &SafeTensors<'_>) -> Result<(), String> {
        let tensor = self
            .graph
            .tensor(entry.uid)
            .ok_or_else(|| {
                format!(
                    "`{}` is of uid {}, which the graph lacks",
                    entry.key, entry.uid
                )
            })?
            .clone();
        match entry.part {
            Part::Input => {
                let bytes = elements(entry, &tensor, file)?;
                let values = dtype::decode(&packed(&tensor), bytes).map_err(|e| e.to_string())?;
                self.inputs.insert(tensor.uid, values);
            }
            Part::Got => {
                let bytes = elements(entry, &tensor, file)?;
                let bytes = unpack(&tensor, bytes).ok_or("its layout holds no such elements")?;
                self.got.push((tensor.uid, bytes));
            }
            // The reference is computed anew.
            Part::Expected | Part::Bound | Part::Coordinates | Part::Sums => {}
        }
        Ok(())
    }
}

/// The bytes of a tensor whose type and extents are those of the graph.
fn elements<'a>(
    entry: &TensorEntry,
    tensor: &Tensor,
    file: &SafeTensors<'a>,
) -> Result<&'a [u8], String> {
    let view = file
        .tensor(&entry.key)
        .map_err(|error| format!("`{}`: {error}", entry.key))?;
    let dims: Vec<i64> = view.shape().iter().map(|&dim| dim as i64).collect();
    if safetensors_type(tensor.data_type) != Some(view.dtype()) || dims != tensor.dims {
        return Err(format!(
            "`{}` is {:?} {dims:?}; the graph has {} {:?}",
            entry.key,
            view.dtype(),
            tensor.data_type.short_name(),
            tensor.dims
        ));
    }
    Ok(view.data())
}
