//! The case itself, and what there is to ask of it.

use super::attribute::Attributes;
use super::build;
use super::error::{CaseError, Fault};
use super::fill::Fill;
use super::layout::Layout;
use super::op::Op;
use super::parse;
use super::shape::Shape;
use super::strided::Strided;
use super::work::Work;
use crate::enums::DataType;
use crate::model::Graph;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// One graph and the fill of its inputs, as a case id names them.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub(super) op: Op,
    pub(super) dtypes: Vec<DataType>,
    pub(super) layout: Layout,
    pub(super) strided: Strided,
    pub(super) shape: Shape,
    pub(super) attributes: Attributes,
    pub(super) fill: Fill,
}

impl Case {
    /// Reads a canonical id: `Case::parse(id)?.to_string() == id`.
    ///
    /// # Errors
    /// Anything else, with the byte range at fault and the canonical spelling where there is one.
    pub fn parse(id: &str) -> Result<Self, CaseError> {
        parse::strict(id)
    }

    /// Reads an id in which everything that has a default may be left out, parts and attributes
    /// may come in any order after the operation, and shorthands are known: `pad1` for `pre` and
    /// `post`, one number for all spatial axes, `relu` for `relu_fwd`.
    ///
    /// # Errors
    /// What is unknown, given twice, missing or contradictory, with the byte range at fault.
    pub fn parse_short(text: &str) -> Result<Self, CaseError> {
        parse::short(text)
    }

    /// The smallest case of an operation: f32, NCHW, every extent 1.
    pub fn smallest(op: Op) -> Self {
        let shape = if op.is_conv() {
            "n1-c1-k1-i1x1-f1x1"
        } else {
            "n1-c1-i1x1"
        };
        parse::short(&format!("{op}/f32/nchw/{shape}"))
            .expect("the smallest shape suits every operation")
    }

    /// The same case with another fill.
    #[must_use]
    pub fn with_fill(mut self, fill: Fill) -> Self {
        self.fill = fill;
        self
    }

    /// The graph, named with the case's id. Uids: [`super::TENSOR_UIDS`].
    ///
    /// # Errors
    /// None for a case that was parsed: parsing has built the graph already. The range would be
    /// one of the canonical id.
    pub fn graph(&self) -> Result<Graph, CaseError> {
        build::graph(self)
            .map_err(|Fault { message, .. }| CaseError::new(message, 0..self.to_string().len()))
    }

    /// Class for JUnit: operation, direction, types, layout, as in `conv.fprop.f16.nhwc`.
    pub fn class_name(&self) -> String {
        format!("{}.{}.{}", self.op, self.dtype_name(), self.layout)
    }

    /// The operation.
    pub fn op(&self) -> Op {
        self.op
    }

    /// `conv`, `batchnorm` or `pointwise`.
    pub fn family(&self) -> &'static str {
        self.op.family()
    }

    /// What follows the family: `fprop+bias+relu_fwd`.
    pub fn direction(&self) -> String {
        self.op.direction()
    }

    /// The types as given: one for all, or convolution inputs and output; batchnorm tensors and
    /// parameters; pointwise operands and output.
    pub fn dtypes(&self) -> &[DataType] {
        &self.dtypes
    }

    /// The types as the id has them: `f16`, `f16+f32`.
    pub fn dtype_name(&self) -> String {
        let names: Vec<_> = self.dtypes.iter().map(|dtype| dtype.short_name()).collect();
        names.join("+")
    }

    /// The type of the first input.
    pub fn io_type(&self) -> DataType {
        self.dtypes[0]
    }

    /// The layout, whether packed or not.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Strides that replace the packed ones.
    pub fn strided(&self) -> &Strided {
        &self.strided
    }

    /// The extents.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The attributes, typed.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The attributes as text, by key, for filters; flags have an empty value.
    pub fn attribute_map(&self) -> BTreeMap<&'static str, String> {
        self.attributes
            .iter()
            .map(|(key, value)| (key.name(), value.text()))
            .collect()
    }

    /// The fill.
    pub fn fill(&self) -> Fill {
        self.fill
    }

    /// Arithmetic and memory of the case, for estimates.
    pub fn work(&self) -> Work {
        build::graph(self)
            .map(|graph| Work::of(&graph))
            .unwrap_or_default()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::with_capacity(96);
        self.strided.print(&mut out);
        out.push('/');
        self.shape.print(&mut out);
        out.push('/');
        self.attributes.print(&mut out);
        write!(
            f,
            "{}/{}/{}{out}/{}",
            self.op,
            self.dtype_name(),
            self.layout,
            self.fill
        )
    }
}

impl FromStr for Case {
    type Err = CaseError;

    fn from_str(id: &str) -> Result<Self, CaseError> {
        Self::parse(id)
    }
}
