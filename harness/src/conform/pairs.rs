//! Two plugins in one process: what they share that they must not.

use dnn_assay_abi::engine_id::format_engine_id;
use dnn_assay_graph::wire::KnobSetting;

use super::check::{Level, Outcome, Stop, finding, fine, not_applicable};
use super::draft::{At, Bench, Draft, create};
use super::lab::{DIRT, Lab, Seen};
use super::links::{DLOPEN, ENGINE_API, HOST};
use crate::run::Subject;
use crate::worker::EngineName;
use crate::worker::script::{Call, Data, Object, Out, Step, Value, Workspace};

/// A contract of two plugins.
pub struct PairCheck {
    /// `pair/name`.
    pub id: &'static str,
    /// How much it matters.
    pub level: Level,
    /// What must hold, in one line.
    pub why: &'static str,
    /// Where that is written.
    pub link: &'static str,
    pub(super) run: fn(&Pair<'_>) -> Outcome,
}

/// Two plugins, each with its own laboratory.
pub(super) struct Pair<'a> {
    labs: [Lab<'a>; 2],
}

/// The checks of pairs, in the order of a report.
pub const CHECKS: &[PairCheck] = &[
    PairCheck {
        id: "pair/handles",
        level: Level::Required,
        why: "the two plugins' handles differ: the host tells plugins apart by them",
        link: HOST,
        run: handles,
    },
    PairCheck {
        id: "pair/entries",
        level: Level::Required,
        why: "each exported function that the host finds lies in the plugin's own file",
        link: DLOPEN,
        run: entries,
    },
    PairCheck {
        id: "pair/engine-ids",
        level: Level::Required,
        why: "no engine id is in both: the host drops the second engine, or the whole second plugin before 2026",
        link: HOST,
        run: engine_ids,
    },
    PairCheck {
        id: "pair/engine-names",
        level: Level::Recommended,
        why: "no engine names differ in case only",
        link: HOST,
        run: engine_names,
    },
    PairCheck {
        id: "pair/foreign-handle",
        level: Level::Recommended,
        why: "a plugin refuses the other's handle",
        link: ENGINE_API,
        run: foreign_handle,
    },
    PairCheck {
        id: "pair/results",
        level: Level::Required,
        why: "each plugin computes the same alone, after the other was loaded and used, and before",
        link: HOST,
        run: results,
    },
    PairCheck {
        id: "pair/same-file",
        level: Level::Informational,
        why: "the two are different files: the host skips a second path to the same file",
        link: HOST,
        run: same_file,
    },
];

pub(super) fn ids() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|check| check.id)
}

impl<'a> Pair<'a> {
    pub fn new(
        first: &'a Subject,
        second: &'a Subject,
        knobs: &[KnobSetting],
    ) -> Result<Self, Stop> {
        Ok(Self {
            labs: [
                Lab::new(first, knobs.to_vec(), false)?,
                Lab::new(second, knobs.to_vec(), false)?,
            ],
        })
    }

    /// What the two laboratories noted since the last time.
    pub fn take_notes(&self) -> Vec<String> {
        let notes = self.labs.iter().enumerate();
        let notes = notes.flat_map(|(which, lab)| {
            let name = self.path(which);
            lab.take_notes()
                .into_iter()
                .map(move |note| format!("{name}: {note}"))
        });
        notes.collect()
    }

    fn path(&self, which: usize) -> String {
        let path = &self.labs[which].subject.config.plugin;
        path.file_name().map_or_else(
            || path.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        )
    }

    /// A script with both libraries, loaded in this order.
    fn loaded(&self, order: [u8; 2]) -> Draft {
        let subject = self.labs[0].subject;
        let mut draft = Draft::new(&subject.config.plugin, subject.config.load_mode);
        let second = &self.labs[1].subject.config.plugin;
        draft.script.libraries.push(second.clone());
        for library in order {
            let engines = self.labs[usize::from(library)].engine_count();
            draft.steps.load(library, engines);
        }
        draft
    }

    /// The same with handles 0 and 1, of library 0 and 1.
    fn ready(&self, order: [u8; 2]) -> Draft {
        let mut draft = self.loaded(order);
        for library in order {
            draft.steps.ok_on(library, create(library));
        }
        draft
    }

    fn run(&self, draft: Draft) -> Result<Seen, Stop> {
        self.labs[0].run(draft)
    }
}

fn handles(pair: &Pair<'_>) -> Outcome {
    for order in [[0, 1], [1, 0]] {
        let draft = pair.ready(order);
        let count = draft.steps.list.len();
        let seen = pair.run(draft)?;
        let (first, second) = (seen.pointer(count - 2), seen.pointer(count - 1));
        if first.is_some() && first == second {
            let later = pair.path(usize::from(order[1]));
            return finding(format!(
                "both return the handle {:#x}. hipDNN would say: Plugin '{later}' returned a handle \
                 that collides with another plugin. This may indicate a symbol collision between \
                 plugins. Ensure all plugins are built with -fvisibility=hidden. The host tells \
                 plugins apart by their handles, so it destroys the second one and does not use \
                 {later}. Usual reasons: a handle that is a constant instead of an address of its \
                 own, or Create of one library resolved to the other's",
                first.unwrap_or_default()
            ));
        }
    }
    fine()
}

fn entries(pair: &Pair<'_>) -> Outcome {
    let mut draft = pair.loaded([0, 1]);
    let at = [0, 1].map(|library| draft.steps.push(Step::Entries { library }));
    let seen = pair.run(draft)?;
    for (which, at) in at.into_iter().enumerate() {
        let path = &pair.labs[which].subject.config.plugin;
        let own = path.canonicalize().unwrap_or_else(|_| path.clone());
        let Value::Entries(entries) = seen.value(at) else {
            continue;
        };
        for (symbol, file) in entries {
            let lies_in = std::fs::canonicalize(file).unwrap_or_else(|_| file.into());
            if lies_in != own {
                return finding(format!(
                    "{symbol} of {} lies in {file}: the name is bound to another library",
                    pair.path(which)
                ));
            }
        }
    }
    fine()
}

fn engine_ids(pair: &Pair<'_>) -> Outcome {
    let [first, second] = &pair.labs;
    for engine in &first.subject.info.engines {
        let twin = second
            .subject
            .info
            .engines
            .iter()
            .find(|e| e.id == engine.id);
        if let Some(twin) = twin {
            let hex = format_engine_id(engine.id);
            return finding(format!(
                "hipDNN would say: Plugin '{}' declares engine {hex}, which plugin '{}' already \
                 provides. The first plugin to declare an engine keeps it; dropping the duplicate. \
                 Names: {} and {}",
                pair.path(1),
                pair.path(0),
                engine.display_name(),
                twin.display_name()
            ));
        }
    }
    fine()
}

fn engine_names(pair: &Pair<'_>) -> Outcome {
    let names = |lab: &Lab<'_>| -> Vec<String> {
        let engines = lab.subject.info.engines.iter();
        engines
            .filter_map(|engine| match &engine.name {
                EngineName::Named(name) => Some(name.clone()),
                _ => None,
            })
            .collect()
    };
    let [first, second] = &pair.labs;
    for a in names(first) {
        for b in names(second) {
            if a != b && a.eq_ignore_ascii_case(&b) {
                return finding(format!("{a:?} and {b:?} differ in case only"));
            }
        }
    }
    fine()
}

fn foreign_handle(pair: &Pair<'_>) -> Outcome {
    for (library, foreign) in [(0, 1), (1, 0)] {
        let mut draft = pair.ready([0, 1]);
        let call = Call::SetStream(Object::Slot(foreign));
        let at = draft.steps.call_on(library, call);
        // A plugin that crashes on it does not take it either.
        let (seen, _) = pair.labs[0].attempt(draft)?;
        if seen.status(at) == Some(0) {
            return finding(format!(
                "{} takes a handle of {}: it does not tell its own handles from others",
                pair.path(usize::from(library)),
                pair.path(usize::from(foreign))
            ));
        }
    }
    fine()
}

/// Plans and executes a sample of one library on its handle.
fn use_sample(draft: &mut Draft, library: u8, bench: &Bench) -> Vec<At> {
    let handle = Object::Slot(library);
    let steps = &mut draft.steps;
    steps.ok_on(
        library,
        Call::CreateExecutionContext {
            handle,
            config: Data::Blob(bench.config),
            graph: Data::Blob(bench.graph),
            slot: library,
            out: Out::Given,
        },
    );
    steps.ok_on(
        library,
        Call::GetWorkspaceSizeFromExecutionContext {
            handle,
            context: Object::Slot(library),
            out: Out::Given,
        },
    );
    for &buffer in &bench.outputs {
        steps.push(Step::Fill {
            buffer,
            byte: DIRT[0],
        });
    }
    steps.ok_on(
        library,
        Call::ExecuteOpGraph {
            handle,
            context: Object::Slot(library),
            workspace: Workspace::Filled(DIRT[0]),
            buffers: Some(bench.bound.clone()),
            overrides: Vec::new(),
        },
    );
    steps.read(bench)
}

fn results(pair: &Pair<'_>) -> Outcome {
    let known = [pair.labs[0].first(), pair.labs[1].first()];
    if let [Err(stop), Err(_)] = known {
        return Err(stop);
    }
    for order in [[0u8, 1], [1, 0]] {
        let mut draft = pair.ready(order);
        let mut runs = Vec::new();
        for library in order {
            if let Ok(known) = &known[usize::from(library)] {
                let bench = draft.lay(known.sample);
                runs.push((library, use_sample(&mut draft, library, &bench)));
            }
        }
        let seen = pair.run(draft)?;
        for (library, run) in runs {
            let which = usize::from(library);
            let lab = &pair.labs[which];
            let Ok(known) = &known[which] else { continue };
            let got = seen.outputs(&run);
            let place = match library == order[0] {
                true => "before",
                false => "after",
            };
            let when = format!("{} {place} {}", pair.path(which), pair.path(1 - which));
            lab.same(known, &got, &when)?;
        }
    }
    fine()
}

fn same_file(pair: &Pair<'_>) -> Outcome {
    let paths = [0, 1].map(|i| pair.labs[i].subject.config.plugin.clone());
    let [first, second] = paths
        .clone()
        .map(|path| path.canonicalize().unwrap_or(path));
    if first == second {
        return finding(format!(
            "{} and {} are one file: hipDNN skips the second silently",
            paths[0].display(),
            paths[1].display()
        ));
    }
    match (std::fs::read(&first), std::fs::read(&second)) {
        (Ok(a), Ok(b)) if a == b => finding(
            "the two files have the same contents: hipDNN loads both, and every engine of the second is a duplicate",
        ),
        (Ok(_), Ok(_)) => fine(),
        _ => not_applicable("a file cannot be read"),
    }
}
