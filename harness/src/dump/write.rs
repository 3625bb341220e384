//! Writing dumps.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use dnn_assay_device::Snapshot;
use dnn_assay_graph::{DataType, Graph, Tensor, json};
use dnn_assay_reference::{Criterion, Evaluation, Values, bounds, dtype};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

use super::elements::pack;
use super::file::{
    DUMP_FILE, GRAPH_FILE, Manifest, Overridden, OverriddenRule, Part, SCHEMA, TENSORS_FILE,
    TensorEntry, key, safetensors_type,
};
use super::sampled::{self, SampledCase};
use crate::journal::{CaseEnd, PluginRecord, RunStart};

/// Cases that one run dumps at most: what a hundredth failure looks like helps nobody, and
/// tensors are large.
pub const MOST_DUMPS: usize = 50;

/// Writes dumps below one folder.
#[derive(Debug)]
pub struct Dumper {
    folder: PathBuf,
    run: RunStart,
    plugins: Mutex<Vec<PluginRecord>>,
    written: AtomicUsize,
}

/// A case that failed, with all that is known of it.
pub struct Failed<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The fill's name.
    pub fill: &'a str,
    /// The inputs.
    pub inputs: &'a Values,
    /// The reference, where it was computed.
    pub evaluation: Option<&'a Evaluation>,
    /// The rule of each output by uid.
    pub criterion: &'a dyn Fn(&Tensor) -> Criterion,
    /// The rule of an output that an override asks for, and which entries do.
    pub overridden: &'a dyn Fn(&Tensor) -> Option<(Criterion, String)>,
    /// The memory after the case, where it came so far.
    pub snapshot: Option<&'a Snapshot>,
    /// What a case was judged by that was judged by samples.
    pub samples: Option<SampledCase<'a>>,
}

/// Why a dump could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A file.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The tensors have no form in safetensors.
    #[error("safetensors: {0}")]
    Form(#[from] safetensors::SafeTensorError),
    /// The record has no form in JSON.
    #[error("{DUMP_FILE}: {0}")]
    Json(#[from] serde_json::Error),
}

impl Dumper {
    /// Dumps below `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(folder: &Path, run: RunStart) -> Result<Self, WriteError> {
        fs::create_dir_all(folder).map_err(|source| at(folder, source))?;
        Ok(Self {
            folder: folder.to_owned(),
            run,
            plugins: Mutex::default(),
            written: AtomicUsize::new(0),
        })
    }

    /// Keeps what is known of a plugin.
    pub fn see_plugin(&self, record: &PluginRecord) {
        let mut plugins = self
            .plugins
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        plugins.push(record.clone());
    }

    /// Writes the dump of a case and gives its folder; `None` once [`MOST_DUMPS`] are there.
    /// `end` is told where it is.
    ///
    /// # Errors
    /// [`WriteError`]; half a dump may be left.
    pub fn dump(&self, failed: &Failed<'_>, end: &mut CaseEnd) -> Result<(), WriteError> {
        if self.written.fetch_add(1, Ordering::Relaxed) >= MOST_DUMPS {
            end.notes.push(format!(
                "not dumped: {MOST_DUMPS} cases of this run were, in {}",
                self.folder.display()
            ));
            return Ok(());
        }
        let folder = self.folder.join(folder_name(end));
        fs::create_dir_all(&folder).map_err(|source| at(&folder, source))?;
        end.dump = Some(folder.display().to_string());
        let tensors = Tensors::of(failed);
        let entries = tensors.list.iter().map(|tensor| tensor.entry.clone());
        let manifest = Manifest {
            schema: SCHEMA,
            fill: failed.fill.to_owned(),
            run: self.run.clone(),
            plugin: self.plugin(end.plugin),
            end: end.clone(),
            tensors: entries.collect(),
            overridden: overridden(failed),
            sampled: failed.samples.as_ref().map(|case| case.draws(failed.graph)),
        };
        let put = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|source| at(&path, source))
        };
        put(GRAPH_FILE, &json::to_string(failed.graph))?;
        tensors.write(&folder.join(TENSORS_FILE))?;
        put(DUMP_FILE, &serde_json::to_string_pretty(&manifest)?)
    }

    fn plugin(&self, index: u32) -> PluginRecord {
        let plugins = self
            .plugins
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let plugin = plugins.iter().find(|plugin| plugin.plugin == index);
        plugin.cloned().unwrap_or_default()
    }
}

/// The outputs that overrides judged.
fn overridden(failed: &Failed<'_>) -> Vec<Overridden> {
    let outputs = failed.graph.outputs();
    let judged = outputs.filter_map(|tensor| {
        let (criterion, because) = (failed.overridden)(tensor)?;
        Some(Overridden {
            tensor: tensor.name.clone(),
            rule: OverriddenRule::of(criterion)?,
            because,
        })
    });
    judged.collect()
}

fn at(path: &Path, source: io::Error) -> WriteError {
    WriteError::Io {
        path: path.to_owned(),
        source,
    }
}

/// Characters of an id that a folder's name keeps.
const NAME_LENGTH: usize = 120;

/// A name for people, made unique by a hash of the unit.
fn folder_name(end: &CaseEnd) -> String {
    let unit = format!("{}@{:#x}@{}", end.case, end.engine_id, end.plugin);
    let hash = dnn_assay_abi::engine_id(&unit).cast_unsigned() as u32;
    let readable = end.case.chars().take(NAME_LENGTH);
    let readable: String = readable.map(|c| if c == '/' { '_' } else { c }).collect();
    format!("{readable}.{hash:08x}")
}

/// One tensor on its way to the file.
struct Stored {
    entry: TensorEntry,
    dtype: Dtype,
    dims: Vec<usize>,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Tensors {
    list: Vec<Stored>,
}

impl Tensors {
    fn of(failed: &Failed<'_>) -> Self {
        let mut tensors = Self::default();
        if let Some(case) = &failed.samples {
            let outputs = failed.snapshot.map(|s| case.tensors(failed.graph, s));
            for (uid, parts) in outputs.into_iter().flatten() {
                if let Some(tensor) = failed.graph.tensor(uid) {
                    parts
                        .into_iter()
                        .for_each(|part| tensors.push(tensor, part));
                }
            }
            return tensors;
        }
        for tensor in failed.graph.inputs() {
            if let Some(values) = failed.inputs.get(&tensor.uid) {
                tensors.add(Part::Input, tensor, encode_packed(tensor, values));
            }
        }
        for tensor in failed.graph.outputs() {
            let estimate = failed.evaluation.and_then(|e| e.tensors.get(&tensor.uid));
            if let Some(estimate) = estimate {
                let allowed = bounds(tensor, estimate, &(failed.criterion)(tensor));
                tensors.add_f64(Part::Expected, tensor, &estimate.value);
                tensors.add_f64(Part::Bound, tensor, &allowed);
            }
            let got = failed.snapshot.and_then(|s| s.buffer(tensor.uid));
            tensors.add(
                Part::Got,
                tensor,
                got.and_then(|check| pack(tensor, &check.bytes)),
            );
        }
        tensors
    }

    /// A tensor of a type or layout that cannot be stored is left out, and so not listed.
    fn add(&mut self, part: Part, tensor: &Tensor, bytes: Option<Vec<u8>>) {
        let (Some(bytes), Some(dtype)) = (bytes, safetensors_type(tensor.data_type)) else {
            return;
        };
        self.push(tensor, (part, dtype, extents(tensor), bytes));
    }

    fn add_f64(&mut self, part: Part, tensor: &Tensor, values: &[f64]) {
        let bytes = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        self.push(tensor, (part, Dtype::F64, extents(tensor), bytes));
    }

    fn push(&mut self, tensor: &Tensor, (part, dtype, dims, bytes): sampled::Stored) {
        self.list.push(Stored {
            entry: TensorEntry {
                key: key(part, tensor),
                part,
                uid: tensor.uid,
            },
            dtype,
            dims,
            bytes,
        });
    }

    fn write(&self, path: &Path) -> Result<(), WriteError> {
        let views = self
            .list
            .iter()
            .map(|tensor| {
                let view = TensorView::new(tensor.dtype, tensor.dims.clone(), &tensor.bytes)?;
                Ok((tensor.entry.key.as_str(), view))
            })
            .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()?;
        Ok(safetensors::serialize_to_file(views, None, path)?)
    }
}

fn extents(tensor: &Tensor) -> Vec<usize> {
    let dims = tensor.dims.iter();
    dims.map(|&dim| usize::try_from(dim).unwrap_or(0)).collect()
}

/// The values in the tensor's type, packed.
fn encode_packed(tensor: &Tensor, values: &[f64]) -> Option<Vec<u8>> {
    let packed = packed(tensor);
    let mut bytes = vec![0; packed.byte_size()?];
    dtype::encode(&packed, values, &mut bytes).ok()?;
    Some(bytes)
}

/// The tensor without gaps, in logical order.
pub(super) fn packed(tensor: &Tensor) -> Tensor {
    debug_assert_ne!(tensor.data_type, DataType::Unset);
    Tensor::packed(tensor.uid, &tensor.name, tensor.data_type, &tensor.dims)
}
