//! From files to graphs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use dnn_assay_graph::{Graph, json};
use serde_json::{Map, Value};

use super::find::{Found, SWEEP, TEMPLATE};
use super::sweep::{expand, list};

/// The version of metadata and of sweeps that this code reads.
const VERSION: u64 = 1;
/// How far a run must get for a claim.
const LEVELS: [&str; 3] = ["applicability", "buildable", "full"];

/// One graph with what stands beside it.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// Path below the root, and the case's id in a sweep: `quick/Add/Default:small`.
    pub name: String,
    /// The graph.
    pub graph: Graph,
    /// Where tensor `uid` lies, if it does: `golden(uid)`.
    golden: Golden,
    /// Seed of inputs that are drawn.
    pub seed: Option<u64>,
    /// The golden data hold for this architecture only.
    pub architecture: Option<String>,
    /// Ranges of inputs that the metadata give, by uid.
    pub ranges: BTreeMap<i64, [f64; 2]>,
    /// Engine and architecture that the support sidecar claims on Linux.
    pub claims: Vec<(String, String)>,
}

/// The folder of golden tensors and what their names begin with.
#[derive(Clone, Debug)]
struct Golden {
    folder: PathBuf,
    prefix: String,
    is_promised: bool,
}

/// A bundle that cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its name.
    pub name: String,
    /// The file, what was expected and what was seen.
    pub text: String,
}

/// Everything that was found.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// Bundles, in the order of their paths.
    pub bundles: Vec<Bundle>,
    /// What could not be loaded.
    pub problems: Vec<Problem>,
}

/// Loads what [`super::find()`] found below `root`.
pub fn load(root: &Path, found: &[Found]) -> Loaded {
    let mut loaded = Loaded::default();
    for item in found {
        match item {
            Found::Single(path) => {
                let name = name(root, &path.with_extension(""));
                loaded.add(single(path, &name), name);
            }
            Found::Sweep(folder) => {
                let name = name(root, folder);
                if let Err(text) = sweep(folder, &name, &mut loaded) {
                    loaded.problems.push(Problem { name, text });
                }
            }
        }
    }
    loaded
}

/// The path below the root; the root's own name where it is the bundle.
fn name(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    if below.as_os_str().is_empty() {
        return root
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
    }
    below.to_string_lossy().into_owned()
}

impl Loaded {
    fn add(&mut self, bundle: Result<Bundle, String>, name: String) {
        match bundle {
            Ok(bundle) => self.bundles.push(bundle),
            Err(text) => self.problems.push(Problem { name, text }),
        }
    }
}

impl Bundle {
    /// The bytes of a golden tensor in its own layout; `None` where there are none.
    ///
    /// # Errors
    /// What the system says, with the path.
    pub fn golden(&self, uid: i64) -> Result<Option<Vec<u8>>, String> {
        let path = self.golden_path(uid);
        if !path.is_file() {
            return Ok(None);
        }
        fs::read(&path)
            .map(Some)
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Where a golden tensor lies if there is one.
    pub fn golden_path(&self, uid: i64) -> PathBuf {
        let Golden { folder, prefix, .. } = &self.golden;
        folder.join(format!("{prefix}tensor{uid}.bin"))
    }

    /// Whether the bundle says that it has golden tensors, be they here or not.
    pub fn promises_golden(&self) -> bool {
        self.golden.is_promised
    }
}

fn read(path: &Path) -> Result<Value, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn single(path: &Path, name: &str) -> Result<Bundle, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let graph = json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let side = |extension: &str| path.with_extension(extension);
    let meta = side("meta.json");
    let metadata = read(&meta)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let golden = Golden {
        folder: path.parent().unwrap_or(Path::new("")).to_owned(),
        prefix: format!("{stem}."),
        is_promised: side("tensors.dvc").is_file(),
    };
    let support = side("support.json");
    let bundle = with_metadata(name, graph, golden, &metadata);
    let mut bundle = bundle.map_err(|e| format!("{}: {e}", meta.display()))?;
    if support.is_file() {
        let claims = support_claims(&read(&support)?, None);
        bundle.claims = claims.map_err(|e| format!("{}: {e}", support.display()))?;
    }
    Ok(bundle)
}

fn sweep(folder: &Path, name: &str, loaded: &mut Loaded) -> Result<(), String> {
    let template = read(&folder.join(TEMPLATE))?;
    let path = folder.join(SWEEP);
    let sweep = read(&path)?;
    let at = |text: String| format!("{}: {text}", path.display());
    if sweep.get("version").and_then(Value::as_u64) != Some(VERSION) {
        return Err(at(format!(
            "`version` must be {VERSION}, not {}",
            sweep.get("version").unwrap_or(&Value::Null)
        )));
    }
    let object = sweep
        .as_object()
        .ok_or_else(|| at("no object".to_owned()))?;
    let cases = list(object, "cases").map_err(at)?;
    if cases.is_empty() {
        return Err(at("`cases` is empty or missing".to_owned()));
    }
    let support = folder.join("support.json");
    let claims = match support.is_file() {
        true => Some(read(&support)?),
        false => None,
    };
    let mut seen = BTreeSet::new();
    for (index, case) in cases.iter().enumerate() {
        let id = case
            .get("id")
            .and_then(Value::as_str)
            .filter(|id| !id.is_empty());
        let Some((id, case)) = id.zip(case.as_object()) else {
            let text = at(format!("case {index} has no `id`"));
            let name = format!("{name}:#{index}");
            loaded.problems.push(Problem { name, text });
            continue;
        };
        let name = format!("{name}:{id}");
        if !seen.insert(id) {
            let text = at(format!("the id `{id}` is there twice"));
            loaded.problems.push(Problem { name, text });
            continue;
        }
        let bundle = sweep_case(folder, &template, case, &name).and_then(|mut bundle| {
            if let Some(claims) = &claims {
                bundle.claims = support_claims(claims, Some(id))?;
            }
            Ok(bundle)
        });
        let bundle = bundle.map_err(|e| at(format!("`{id}`: {e}")));
        loaded.add(bundle, name);
    }
    Ok(())
}

fn sweep_case(
    folder: &Path,
    template: &Value,
    case: &Map<String, Value>,
    name: &str,
) -> Result<Bundle, String> {
    let graph = expand(template, case)?;
    let graph = json::from_str(&graph.to_string()).map_err(|error| error.to_string())?;
    let metadata = case.get("metadata").ok_or("`metadata` is missing")?;
    let (golden, is_promised) = match case.get("golden") {
        None | Some(Value::Null) => (folder.join("golden").join("none"), false),
        Some(golden) => {
            let path = golden.get("path").and_then(Value::as_str);
            let path = folder.join(path.ok_or("`golden` has no `path`")?);
            (path.parent().unwrap_or(folder).to_owned(), true)
        }
    };
    let golden = Golden {
        folder: golden,
        prefix: String::new(),
        is_promised,
    };
    with_metadata(name, graph, golden, metadata)
}

fn with_metadata(
    name: &str,
    graph: Graph,
    golden: Golden,
    metadata: &Value,
) -> Result<Bundle, String> {
    let found = metadata.get("format_version");
    if found.and_then(Value::as_u64) != Some(VERSION) {
        let found = found.unwrap_or(&Value::Null);
        return Err(format!("`format_version` must be {VERSION}, not {found}"));
    }
    let level = metadata.get("enforcement_level").and_then(Value::as_str);
    if let Some(level) = level.filter(|level| !LEVELS.contains(level)) {
        let known = LEVELS.join(", ");
        return Err(format!(
            "`enforcement_level` is `{level}`; there are {known}"
        ));
    }
    if let Err(problems) = dnn_assay_graph::validate::validate(&graph) {
        let first = problems.first().map(ToString::to_string);
        return Err(format!(
            "the graph is not valid: {}",
            first.unwrap_or_default()
        ));
    }
    let ranges = match metadata.get("inputs") {
        None | Some(Value::Null) => BTreeMap::new(),
        Some(inputs) => ranges(&graph, inputs)?,
    };
    Ok(Bundle {
        name: name.to_owned(),
        graph,
        golden,
        seed: metadata.get("seed").and_then(Value::as_u64),
        architecture: metadata
            .get("gpu_architecture")
            .and_then(Value::as_str)
            .map(str::to_owned),
        claims: Vec::new(),
        ranges,
    })
}

/// `inputs` of the metadata: a range for each uid.
fn ranges(graph: &Graph, inputs: &Value) -> Result<BTreeMap<i64, [f64; 2]>, String> {
    let inputs = inputs.as_object().ok_or("`inputs` is no object")?;
    let mut ranges = BTreeMap::new();
    for (uid, range) in inputs {
        let number = uid.parse::<i64>();
        let number = number.map_err(|_| format!("`inputs` has `{uid}`, which is no uid"))?;
        if !graph.inputs().any(|tensor| tensor.uid == number) {
            return Err(format!(
                "`inputs` has {uid}, which is no input of the graph"
            ));
        }
        let end = |name: &str| range.get(name).and_then(Value::as_f64);
        let (Some(low), Some(high)) = (end("min"), end("max")) else {
            return Err(format!("`inputs` of {uid} has no numbers `min` and `max`"));
        };
        if low > high {
            return Err(format!("`inputs` of {uid}: {low} is above {high}"));
        }
        ranges.insert(number, [low, high]);
    }
    Ok(ranges)
}

/// The platform that claims are taken for.
const PLATFORM: &str = "linux";

/// Engine and architecture of a sidecar's claims on Linux: of a graph alone, or of a sweep's case.
fn support_claims(sidecar: &Value, case: Option<&str>) -> Result<Vec<(String, String)>, String> {
    if sidecar.get("version").and_then(Value::as_u64) != Some(VERSION) {
        return Err(format!("`version` must be {VERSION}"));
    }
    let engines = sidecar.get("claims").and_then(Value::as_object);
    let engines = engines.ok_or("`claims` is missing")?;
    let mut claims = Vec::new();
    for (engine, support) in engines {
        let supports: Vec<&Value> = match case {
            None => vec![support],
            Some(id) => {
                let groups = support.as_array().into_iter().flatten();
                let groups = groups.filter(|group| {
                    let cases = group.get("cases").and_then(Value::as_array);
                    cases
                        .into_iter()
                        .flatten()
                        .any(|case| case.as_str() == Some(id))
                });
                groups.filter_map(|group| group.get("support")).collect()
            }
        };
        for (arch, platforms) in supports.iter().filter_map(|s| s.as_object()).flatten() {
            let platforms = platforms.as_array().into_iter().flatten();
            if platforms.into_iter().any(|p| p.as_str() == Some(PLATFORM)) {
                claims.push((engine.clone(), arch.clone()));
            }
        }
    }
    Ok(claims)
}
