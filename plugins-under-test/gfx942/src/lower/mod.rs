//! From a graph to launches.

mod batchnorm;
mod conv;
mod memory;
mod pointwise;
mod view;
mod walk;

use std::borrow::Cow;

use dnn_assay_abi::RawStream;
use dnn_assay_graph::{Attributes, DataType, Graph};
use dnn_assay_plugin_sdk::Error;

use crate::driver::Driver;
use crate::parameters::{ApplyParams, ConvParams, Kernel, PointwiseParams, StatisticsParams};

pub(crate) use memory::Addresses;
use memory::Memory;
pub(crate) use view::View;

/// One kernel on a grid with its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    kernel: Kernel,
    pub(crate) grid: [u32; 3],
    parameters: Parameters,
    /// What it reads; an address of 0 is nothing.
    pub(crate) reads: Vec<View>,
    /// What it writes.
    pub(crate) writes: Vec<View>,
}

#[derive(Clone, Debug)]
enum Parameters {
    Pointwise(Box<PointwiseParams>),
    Statistics(Box<StatisticsParams>),
    Apply(Box<ApplyParams>),
    Conv(Box<ConvParams>),
}

impl Launch {
    /// The kernel's symbol.
    pub(crate) fn name(&self) -> Cow<'static, str> {
        self.kernel.name().to_string_lossy()
    }

    /// The bytes of the parameters with 1 in place of every address that is not 0.
    pub(crate) fn arguments(&self) -> Vec<u8> {
        match &self.parameters {
            Parameters::Pointwise(p) => p.without_addresses(),
            Parameters::Statistics(p) => p.without_addresses(),
            Parameters::Apply(p) => p.without_addresses(),
            Parameters::Conv(p) => p.without_addresses(),
        }
    }

    /// Queues it.
    pub(crate) fn queue(&self, driver: &Driver, stream: RawStream) -> Result<(), Error> {
        let (kernel, grid) = (self.kernel, self.grid);
        match &self.parameters {
            Parameters::Pointwise(p) => driver.launch(kernel, grid, stream, &**p),
            Parameters::Statistics(p) => driver.launch(kernel, grid, stream, &**p),
            Parameters::Apply(p) => driver.launch(kernel, grid, stream, &**p),
            Parameters::Conv(p) => driver.launch(kernel, grid, stream, &**p),
        }
    }
}

/// Threads of a block.
const BLOCK: usize = 256;

/// Blocks along x for `count` threads.
fn blocks(count: usize) -> u32 {
    count.div_ceil(BLOCK) as u32
}

/// Whether every node can be lowered, and if not, why not: what the CPU engine takes, within the
/// limits of the kernels.
pub(crate) fn check(graph: &Graph) -> Result<(), String> {
    dnn_assay_cpu_kernels::check(graph)?;
    workspace_bytes(graph).map(|_| ())
}

/// Bytes of workspace of a graph that the kernels take; the reason where they do not.
pub(crate) fn workspace_bytes(graph: &Graph) -> Result<usize, String> {
    let mut memory = Memory::new(graph, &memory::Nowhere, 0);
    lower_into(graph, &mut memory).map_err(|error| error.message)?;
    Ok(memory.workspace_bytes())
}

/// The launches of one execution.
pub(crate) fn lower(
    graph: &Graph,
    addresses: &dyn Addresses,
    workspace: u64,
) -> Result<Vec<Launch>, Error> {
    lower_into(graph, &mut Memory::new(graph, addresses, workspace))
}

fn lower_into(graph: &Graph, memory: &mut Memory<'_>) -> Result<Vec<Launch>, Error> {
    let mut launches = Vec::new();
    for node in &graph.nodes {
        match &node.attributes {
            Attributes::ConvolutionFwd(a) => conv::fprop(a, memory, &mut launches)?,
            Attributes::ConvolutionBwd(a) => conv::dgrad(a, memory, &mut launches)?,
            Attributes::ConvolutionWrw(a) => conv::wgrad(a, memory, &mut launches)?,
            Attributes::BatchnormInference(a) => batchnorm::inference(a, memory, &mut launches)?,
            Attributes::BatchnormInferenceVariance(a) => {
                batchnorm::inference_with_variance(a, memory, &mut launches)?;
            }
            Attributes::Batchnorm(a) => batchnorm::training(a, memory, &mut launches)?,
            Attributes::BatchnormBackward(a) => batchnorm::backward(a, memory, &mut launches)?,
            Attributes::Pointwise(a) => pointwise::pointwise(a, memory, &mut launches)?,
            other => return Err(Error::not_applicable(other.kind())),
        }
    }
    Ok(launches)
}

/// Whether f32 could not hold every element of some tensor: intermediates are f64 then.
fn is_wide(graph: &Graph) -> bool {
    graph.tensors.iter().any(|tensor| {
        let wide = matches!(
            tensor.data_type,
            DataType::Double | DataType::Int32 | DataType::Int64
        );
        wide && tensor.value.is_none()
    })
}
