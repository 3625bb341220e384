//! Running a graph: nodes in order, tensors packed and wide in between.

use crate::{batchnorm, conv, pointwise};
use dnn_assay_graph::{Attributes, DataType, Graph};
use dnn_assay_plugin_sdk::{Error, Execution, Plan, Real};
use std::collections::BTreeMap;
use std::ops::{Add, AddAssign, Mul, Range};

/// What kernels compute in: `f32`, `f64`, or a type whose sums round in another way.
pub trait Num: Real + Default + Add<Output = Self> + Mul<Output = Self> + AddAssign {}

impl Num for f32 {}
impl Num for f64 {}

/// Where the tensors of a run come from and go to.
pub trait Storage<T> {
    /// The graph, with the shapes of this run.
    fn graph(&self) -> &Graph;

    /// The elements of a tensor, packed in logical row-major order.
    ///
    /// # Errors
    /// A tensor that has no buffer or cannot be read.
    fn load(&self, uid: i64) -> Result<Vec<T>, Error>;

    /// The one element of a scalar tensor; those of a graph may be wider than its arithmetic.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    fn scalar(&self, uid: i64) -> Result<Option<f64>, Error>;

    /// Takes the elements of an output, packed in logical row-major order.
    ///
    /// # Errors
    /// A tensor that has no buffer or cannot be written.
    fn store(&self, uid: i64, values: &[T]) -> Result<(), Error>;

    /// The storage in parts, where tensors can be read and written so.
    fn parts(&self) -> Option<&dyn Parts<T>> {
        None
    }
}

/// Tensors that are read and written in parts, so that no copy of a whole one is needed.
pub trait Parts<T> {
    /// Appends elements `range` of a tensor, in logical row-major order, to `values`.
    ///
    /// # Errors
    /// As [`Storage::load`].
    fn load_part(&self, uid: i64, range: Range<usize>, values: &mut Vec<T>) -> Result<(), Error>;

    /// Takes the elements of an output from `start` on, in logical row-major order.
    ///
    /// # Errors
    /// As [`Storage::store`].
    fn store_part(&self, uid: i64, start: usize, values: &[T]) -> Result<(), Error>;
}

impl<T: Num> Parts<T> for Execution<'_> {
    fn load_part(&self, uid: i64, range: Range<usize>, values: &mut Vec<T>) -> Result<(), Error> {
        Execution::load_part(self, uid, range, values)
    }

    fn store_part(&self, uid: i64, start: usize, values: &[T]) -> Result<(), Error> {
        Execution::store_part(self, uid, start, values)
    }
}

impl<T: Num> Storage<T> for Execution<'_> {
    fn graph(&self) -> &Graph {
        Execution::graph(self)
    }

    fn load(&self, uid: i64) -> Result<Vec<T>, Error> {
        Execution::load(self, uid)
    }

    fn scalar(&self, uid: i64) -> Result<Option<f64>, Error> {
        Ok(Execution::load::<f64>(self, uid)?.first().copied())
    }

    fn store(&self, uid: i64, values: &[T]) -> Result<(), Error> {
        Execution::store(self, uid, values)
    }

    fn parts(&self) -> Option<&dyn Parts<T>> {
        Some(self)
    }
}

/// A planned graph. The graph itself comes with each execution.
pub struct Program {
    wide: bool,
}

impl Program {
    /// Chooses the arithmetic: f64 where f32 could not hold every element of some tensor.
    pub fn new(graph: &Graph) -> Self {
        let wide = graph.tensors.iter().any(|tensor| {
            matches!(
                tensor.data_type,
                DataType::Double | DataType::Int32 | DataType::Int64
            ) && tensor.value.is_none()
        });
        Self { wide }
    }

    /// Whether it computes in `f64`.
    pub fn is_wide(&self) -> bool {
        self.wide
    }
}

impl Plan for Program {
    fn execute(&self, execution: &Execution<'_>) -> Result<(), Error> {
        if self.wide {
            run::<f64>(execution)
        } else {
            run::<f32>(execution)
        }
    }
}

/// Runs the nodes of the storage's graph in order.
///
/// # Errors
/// A node that the kernels do not know (see [`crate::check`]), or what the storage says.
pub fn run<T: Num>(storage: &dyn Storage<T>) -> Result<(), Error> {
    if let Some(parts) = storage.parts()
        && let Some(chain) = pointwise::Chain::of(storage)?
    {
        return chain.run(parts);
    }
    let mut tensors = Tensors::<T> {
        storage,
        values: BTreeMap::new(),
    };
    for node in &storage.graph().nodes {
        match &node.attributes {
            Attributes::ConvolutionFwd(a) => conv::fprop(a, &mut tensors)?,
            Attributes::ConvolutionBwd(a) => conv::dgrad(a, &mut tensors)?,
            Attributes::ConvolutionWrw(a) => conv::wgrad(a, &mut tensors)?,
            Attributes::BatchnormInference(a) => batchnorm::inference(a, &mut tensors)?,
            Attributes::BatchnormInferenceVariance(a) => {
                batchnorm::inference_with_variance(a, &mut tensors)?;
            }
            Attributes::Batchnorm(a) => batchnorm::training(a, &mut tensors)?,
            Attributes::BatchnormBackward(a) => batchnorm::backward(a, &mut tensors)?,
            Attributes::Pointwise(a) => pointwise::run(a, &mut tensors)?,
            other => return Err(Error::not_applicable(other.kind())),
        }
    }
    Ok(())
}

/// The tensors of one run: packed in logical row-major order, read when first needed, written as
/// soon as computed.
pub(crate) struct Tensors<'a, T> {
    storage: &'a dyn Storage<T>,
    values: BTreeMap<i64, Vec<T>>,
}

impl<T: Num> Tensors<'_, T> {
    /// Makes sure that these tensors are there for [`get`](Self::get).
    pub(crate) fn need(&mut self, uids: &[i64]) -> Result<(), Error> {
        for &uid in uids {
            if !self.values.contains_key(&uid) {
                self.values.insert(uid, self.storage.load(uid)?);
            }
        }
        Ok(())
    }

    /// The elements of a tensor that was needed, or computed.
    pub(crate) fn get(&self, uid: i64) -> Result<&[T], Error> {
        self.values
            .get(&uid)
            .map(Vec::as_slice)
            .ok_or_else(|| Error::internal(format!("tensor {uid} is used before it is there")))
    }

    /// The one element of a scalar tensor, by way of `f64`.
    ///
    /// Scalars of a graph may be wider than its arithmetic (an epsilon in f64), so they are read
    /// on their own.
    pub(crate) fn scalar(&self, uid: i64) -> Result<f64, Error> {
        let value = match self.values.get(&uid) {
            Some(values) => values.first().map(|value| value.to_f64()),
            None => self.storage.scalar(uid)?,
        };
        value.ok_or_else(|| Error::invalid_value(format!("scalar {uid} is empty")))
    }

    /// Takes a computed tensor, and stores it if it has a buffer.
    pub(crate) fn set(&mut self, uid: i64, values: Vec<T>) -> Result<(), Error> {
        let is_virtual = self
            .storage
            .graph()
            .tensor(uid)
            .is_some_and(|t| t.is_virtual);
        if !is_virtual {
            self.storage.store(uid, &values)?;
        }
        self.values.insert(uid, values);
        Ok(())
    }

    /// The extents of a tensor; [`crate::support`] has seen that they are positive.
    pub(crate) fn dims(&self, uid: i64) -> Result<Vec<usize>, Error> {
        self.storage
            .graph()
            .tensor(uid)
            .map(|tensor| tensor.dims.iter().map(|&dim| dim as usize).collect())
            .ok_or_else(|| Error::internal(format!("the graph has no tensor {uid}")))
    }
}
