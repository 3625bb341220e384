//! Faults in manners: results that depend on what happened before, and things left behind.

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dnn_assay_graph::Graph;
use dnn_assay_plugin_sdk::Error;

/// What goes on beside the results.
#[derive(Clone, Copy)]
pub enum Behaviour {
    /// One element in a hundred is an ulp off, another one each time.
    Unsteady,
    /// Only the first execution of a plan computes; later ones write zeros.
    WorksOnce,
    /// What is planned first for tensors of some shapes is executed for all that have them.
    SharedPlan,
    /// Each execution keeps a mebibyte.
    Leaks,
    /// Each execution leaves a thread.
    LeavesThread,
    /// Each execution leaves an open file.
    LeavesFile,
    /// Each execution waits this long.
    Sleeps(Duration),
    /// Execution returns success and does nothing.
    NoWork,
    /// Execution returns an error after having done its work.
    FailsAfterWork,
}

static EXECUTIONS: AtomicU64 = AtomicU64::new(1);
static PLANS: Mutex<Vec<Graph>> = Mutex::new(Vec::new());

/// One mebibyte.
const LEAK: usize = 1 << 20;

impl Behaviour {
    /// The graph that is executed where `graph` was planned.
    pub fn planned(self, graph: &Graph) -> Graph {
        if !matches!(self, Self::SharedPlan) {
            return graph.clone();
        }
        let mut plans = PLANS
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let same =
            |plan: &&Graph| plan.nodes.len() == graph.nodes.len() && plan.tensors == graph.tensors;
        if let Some(plan) = plans.iter().find(same) {
            return plan.clone();
        }
        plans.push(graph.clone());
        graph.clone()
    }

    /// Changes an output of the `run`-th execution of a plan, counted from 0.
    pub fn spoil(self, run: u64, values: &mut [f64]) {
        match self {
            Self::Unsteady => {
                let salt = EXECUTIONS.fetch_add(1, Ordering::Relaxed) as usize;
                for value in values.iter_mut().skip(salt * 37 % 100).step_by(100) {
                    *value = f64::from((*value as f32).next_up());
                }
            }
            Self::WorksOnce if run > 0 => values.fill(0.0),
            _ => {}
        }
    }

    /// What happens before the kernel.
    pub fn before(self) {
        match self {
            Self::Leaks => {
                let block = vec![1u8; LEAK].into_boxed_slice();
                black_box(Box::leak(block));
            }
            Self::LeavesThread => {
                std::thread::spawn(|| {
                    loop {
                        std::thread::park();
                    }
                });
            }
            Self::LeavesFile => {
                if let Ok(file) = std::fs::File::open("/dev/null") {
                    std::mem::forget(file);
                }
            }
            Self::Sleeps(time) => std::thread::sleep(time),
            _ => {}
        }
    }

    /// What is returned where the kernel succeeded.
    ///
    /// # Errors
    /// For the behaviour that is one.
    pub fn after(self) -> Result<(), Error> {
        match self {
            Self::FailsAfterWork => Err(Error::internal("mutant: an error after all the work")),
            _ => Ok(()),
        }
    }
}
