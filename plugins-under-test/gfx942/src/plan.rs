//! A planned graph: its launches are computed anew for each execution's addresses.

use dnn_assay_graph::Graph;
use dnn_assay_plugin_sdk::{Error, Execution, Plan};

use crate::driver::{Driver, driver};
use crate::lower::{Addresses, lower, workspace_bytes};
use crate::trace;

/// A plan: the driver has the kernels, and the workspace's size is known.
pub(crate) struct GpuPlan {
    driver: &'static Driver,
    workspace: usize,
}

impl GpuPlan {
    pub(crate) fn new(graph: &Graph) -> Result<Self, Error> {
        let workspace = workspace_bytes(graph).map_err(Error::not_applicable)?;
        let driver = driver()?;
        driver.prepare()?;
        Ok(Self { driver, workspace })
    }
}

impl Plan for GpuPlan {
    fn workspace_size(&self) -> usize {
        self.workspace
    }

    fn execute(&self, execution: &Execution<'_>) -> Result<(), Error> {
        let workspace = execution.workspace().addr() as u64;
        if workspace == 0 && self.workspace > 0 {
            let bytes = self.workspace;
            return Err(Error::bad_param(format!(
                "a workspace of {bytes} bytes is needed, and NULL was given"
            )));
        }
        let addresses = ExecutionAddresses(execution);
        for launch in lower(execution.graph(), &addresses, workspace)? {
            match trace::file() {
                None => launch.queue(self.driver, execution.stream())?,
                Some(file) => trace::queue(&launch, self.driver, execution.stream(), file)?,
            }
        }
        Ok(())
    }
}

struct ExecutionAddresses<'a, 'b>(&'a Execution<'b>);

impl Addresses for ExecutionAddresses<'_, '_> {
    fn address(&self, uid: i64) -> Result<u64, Error> {
        self.0
            .pointer(uid)
            .map(|pointer| pointer.addr() as u64)
            .ok_or_else(|| Error::bad_param(format!("no buffer was given for tensor {uid}")))
    }

    fn host_scalar(&self, uid: i64) -> Result<f64, Error> {
        let values = self.0.load::<f64>(uid)?;
        let value = values.first().copied();
        value.ok_or_else(|| Error::invalid_value(format!("scalar {uid} is empty")))
    }
}
