//! The plan of a graph with a fault, and the seam between kernels and buffers where edits sit.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use dnn_assay_cpu_kernels::{Num, Program, Storage, run};
use dnn_assay_graph::{Graph, TensorValue};
use dnn_assay_plugin_sdk::{Error, Execution, Plan};

use crate::arithmetic::{Arithmetic, InBf16, InF16, Kept, Split};
use crate::batchnorm;
use crate::behaviour::Behaviour;
use crate::fault::{Edit, Effect, Fault, Site};
use crate::knobs::Chosen;
use crate::memory::{Before, Far};

/// A planned graph.
pub struct MutantPlan {
    fault: Option<&'static Fault>,
    /// What is executed.
    graph: Graph,
    wide: bool,
    knobs: Chosen,
    executions: AtomicU64,
}

impl MutantPlan {
    /// Plans `graph`, or what the fault makes of it.
    pub fn new(graph: &Graph, fault: Option<&'static Fault>, knobs: Chosen) -> Self {
        let mut planned = graph.clone();
        match fault.map(|fault| &fault.effect) {
            Some(Effect::Graph(edit) | Effect::Claim(edit) | Effect::Reshaped(edit, ..)) => {
                edit(&mut planned);
            }
            Some(Effect::Behaviour(behaviour)) => planned = behaviour.planned(graph),
            _ => {}
        }
        Self {
            fault,
            wide: Program::new(graph).is_wide(),
            graph: planned,
            knobs,
            executions: AtomicU64::new(0),
        }
    }

    fn effect(&self) -> Option<&'static Effect> {
        self.fault.map(|fault| &fault.effect)
    }

    fn behaviour(&self) -> Option<Behaviour> {
        match self.effect() {
            Some(Effect::Behaviour(behaviour)) => Some(*behaviour),
            _ => None,
        }
    }

    fn compute(&self, execution: &Execution<'_>, count: u64) -> Result<(), Error> {
        match self.effect() {
            Some(Effect::Batchnorm(fault)) => {
                batchnorm::run(*fault, &Faulty::<f64>::new(self, execution, count))
            }
            Some(Effect::Arithmetic(Arithmetic::F16)) => {
                self.in_type::<Kept<InF16>>(execution, count)
            }
            Some(Effect::Arithmetic(Arithmetic::Bf16)) => {
                self.in_type::<Kept<InBf16>>(execution, count)
            }
            Some(Effect::Arithmetic(Arithmetic::SplitBf16)) => {
                self.in_type::<Split>(execution, count)
            }
            Some(Effect::Arithmetic(Arithmetic::F32)) => self.in_type::<f32>(execution, count),
            _ if self.wide => self.in_type::<f64>(execution, count),
            _ => self.in_type::<f32>(execution, count),
        }
    }

    fn in_type<T: Num>(&self, execution: &Execution<'_>, count: u64) -> Result<(), Error> {
        run::<T>(&Faulty::new(self, execution, count))
    }
}

impl Plan for MutantPlan {
    fn workspace_size(&self) -> usize {
        match self.effect() {
            Some(Effect::Memory(fault)) => fault.workspace(),
            _ => self.knobs.workspace(),
        }
    }

    fn execute(&self, execution: &Execution<'_>) -> Result<(), Error> {
        let count = self.executions.fetch_add(1, Ordering::Relaxed);
        if self.knobs.fails {
            return Err(Error::internal("mutant: no measurement was primed"));
        }
        if let Some(behaviour) = self.behaviour() {
            behaviour.before();
            if matches!(behaviour, Behaviour::NoWork) {
                return Ok(());
            }
        }
        match self.effect() {
            Some(Effect::Unwritten(missing)) => {
                let before = Before::of(execution, execution.graph());
                self.compute(execution, count)?;
                before.restore(*missing);
            }
            Some(Effect::Wrapped) => {
                let far = Far::of(execution, execution.graph());
                self.compute(execution, count)?;
                far.wrap();
            }
            Some(Effect::Memory(fault)) => {
                self.compute(execution, count)?;
                fault.commit(execution);
            }
            _ => self.compute(execution, count)?,
        }
        self.behaviour().map_or(Ok(()), Behaviour::after)
    }
}

/// The host's buffers, read and written with the fault.
struct Faulty<'a, T> {
    plan: &'a MutantPlan,
    execution: &'a Execution<'a>,
    count: u64,
    arithmetic: PhantomData<T>,
}

impl<'a, T> Faulty<'a, T> {
    fn new(plan: &'a MutantPlan, execution: &'a Execution<'a>, count: u64) -> Self {
        Self {
            plan,
            execution,
            count,
            arithmetic: PhantomData,
        }
    }

    fn site(&self, uid: i64) -> Option<Site<'_>> {
        Some(Site {
            tensor: self.plan.graph.tensor(uid)?,
            graph: &self.plan.graph,
            execution: self.execution,
        })
    }

    /// Edits the tensor if it is one of those named; no names mean all.
    fn edit(&self, uid: i64, names: &[&str], edit: Edit, values: &mut [f64]) {
        let Some(site) = self.site(uid) else {
            return;
        };
        if names.is_empty() || names.contains(&site.tensor.name.as_str()) {
            edit(&site, values);
        }
    }
}

impl<T: Num> Storage<T> for Faulty<'_, T> {
    fn graph(&self) -> &Graph {
        &self.plan.graph
    }

    fn load(&self, uid: i64) -> Result<Vec<T>, Error> {
        let mut values = self.execution.load::<f64>(uid)?;
        match self.plan.effect() {
            Some(Effect::Input(names, edit)) => self.edit(uid, names, *edit, &mut values),
            Some(Effect::Reshaped(_, name, reread)) => {
                if let Some(site) = self.site(uid).filter(|site| site.tensor.name == *name) {
                    values = reread(&site, &values);
                }
            }
            _ => {}
        }
        Ok(values.into_iter().map(T::from_f64).collect())
    }

    fn scalar(&self, uid: i64) -> Result<Option<f64>, Error> {
        let value = self.plan.graph.tensor(uid).and_then(|tensor| tensor.value);
        match value.and_then(TensorValue::as_f64) {
            Some(value) => Ok(Some(value)),
            None => Ok(self.execution.load::<f64>(uid)?.first().copied()),
        }
    }

    fn store(&self, uid: i64, values: &[T]) -> Result<(), Error> {
        let mut values: Vec<f64> = values.iter().map(|value| value.to_f64()).collect();
        if let Some(Effect::Output(names, edit)) = self.plan.effect() {
            self.edit(uid, names, *edit, &mut values);
        }
        if let Some(behaviour) = self.plan.behaviour() {
            behaviour.spoil(self.count, &mut values);
        }
        if self.plan.knobs.spoils {
            values.iter_mut().for_each(|value| *value *= 2.0);
        }
        self.execution.store(uid, &values)
    }
}
