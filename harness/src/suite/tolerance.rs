//! Tolerance tables: the constants of the bound, upstream's fixed table, MIOpenDriver's RMS
//! thresholds. The numbers and their reasons stand in `suites/tolerances`.

use std::collections::BTreeMap;

use dnn_assay_graph::{Attributes, DataType, Graph};
use dnn_assay_reference::{Arithmetic, FunctionErrors};
use serde::Deserialize;

use super::file::SCHEMA;
use crate::yaml::{self, Problem, Source, Step};

/// A number and where it comes from.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quoted {
    /// The number.
    pub value: f64,
    /// Why it is this one.
    pub why: String,
    /// Where that can be looked up.
    #[serde(default)]
    pub source: Option<String>,
}

/// Everything that the tolerance files say.
#[derive(Clone, Debug)]
pub struct Tolerances {
    /// Constants of the default criterion.
    pub bound: BoundConstants,
    /// Upstream's fixed table: atol = rtol = value.
    pub table: Table,
    /// MIOpenDriver's thresholds on the relative root mean square.
    pub rms: Table,
    /// Units in the last place, for operations without sums.
    pub ulp: Table,
}

/// Constants of the bound.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundConstants {
    /// The factor before `u·√K·(|y| + Q)`.
    pub sum_factor: Quoted,
    /// Error of elementary functions, in unit roundoffs.
    pub functions: Functions,
}

/// Error of each elementary function, in unit roundoffs of the compute type.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Functions {
    pub arithmetic: Quoted,
    pub divide: Quoted,
    pub sqrt: Quoted,
    pub rsqrt: Quoted,
    pub exp: Quoted,
    pub log: Quoted,
    pub tanh: Quoted,
    pub erf: Quoted,
    pub sin: Quoted,
    pub tan: Quoted,
}

/// Numbers by operation and output type.
#[derive(Clone, Debug)]
pub struct Table {
    source: Source,
    entries: Vec<TableEntry>,
    otherwise: Option<Quoted>,
}

/// Numbers for one operation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableEntry {
    /// The operation, as [`operation`] names it.
    pub op: String,
    /// Why these numbers.
    pub why: String,
    /// Value by output type, short name.
    pub values: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoundFile {
    schema: u32,
    #[serde(rename = "about")]
    _about: String,
    sum_factor: Quoted,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PointwiseFile {
    schema: u32,
    #[serde(rename = "about")]
    _about: String,
    functions: Functions,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableFile {
    schema: u32,
    #[serde(rename = "about")]
    _about: String,
    #[serde(rename = "source")]
    _source: String,
    entries: Vec<TableEntry>,
    #[serde(default)]
    otherwise: Option<Quoted>,
}

impl Tolerances {
    /// The embedded tables.
    ///
    /// # Errors
    /// A [`Problem`] with the place in the file.
    pub fn embedded() -> Result<Self, Box<Problem>> {
        Ok(Self {
            bound: BoundConstants::read(
                &embedded("tolerances/bound.yaml"),
                &embedded("tolerances/pointwise.yaml"),
            )?,
            table: Table::read(embedded("tolerances/table.yaml"))?,
            rms: Table::read(embedded("tolerances/rms.yaml"))?,
            ulp: Table::read(embedded("tolerances/ulp.yaml"))?,
        })
    }
}

/// An embedded file; an absent one reads as an empty text, which the reader then refuses.
pub(super) fn embedded(name: &str) -> Source {
    Source::new(name, dnn_assay_suites::file(name).unwrap_or_default())
}

impl BoundConstants {
    /// Reads both files.
    ///
    /// # Errors
    /// A [`Problem`] with the place in the file.
    pub fn read(bound: &Source, pointwise: &Source) -> Result<Self, Box<Problem>> {
        let constants: BoundFile = yaml::read(bound)?;
        check_schema(bound, constants.schema)?;
        let functions: PointwiseFile = yaml::read(pointwise)?;
        check_schema(pointwise, functions.schema)?;
        check_positive(bound, &constants.sum_factor, &[Step::Key("sum_factor")])?;
        for (name, quoted) in functions.functions.all() {
            check_positive(
                pointwise,
                quoted,
                &[Step::Key("functions"), Step::Key(name)],
            )?;
        }
        Ok(Self {
            sum_factor: constants.sum_factor,
            functions: functions.functions,
        })
    }

    /// The arithmetic of an engine that declares no trait.
    pub fn arithmetic(&self) -> Arithmetic {
        let f = &self.functions;
        Arithmetic {
            sum_factor: self.sum_factor.value,
            functions: FunctionErrors {
                arithmetic: f.arithmetic.value,
                divide: f.divide.value,
                sqrt: f.sqrt.value,
                rsqrt: f.rsqrt.value,
                exp: f.exp.value,
                log: f.log.value,
                tanh: f.tanh.value,
                erf: f.erf.value,
                sin: f.sin.value,
                tan: f.tan.value,
            },
            ..Arithmetic::default()
        }
    }
}

impl Functions {
    /// Each function with its name.
    pub fn all(&self) -> [(&'static str, &Quoted); 10] {
        [
            ("arithmetic", &self.arithmetic),
            ("divide", &self.divide),
            ("sqrt", &self.sqrt),
            ("rsqrt", &self.rsqrt),
            ("exp", &self.exp),
            ("log", &self.log),
            ("tanh", &self.tanh),
            ("erf", &self.erf),
            ("sin", &self.sin),
            ("tan", &self.tan),
        ]
    }
}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// A [`Problem`] with the place in the file: an unknown operation or type, one that is there
    /// twice, a number that is negative or not finite.
    pub fn read(source: Source) -> Result<Self, Box<Problem>> {
        let file: TableFile = yaml::read(&source)?;
        check_schema(&source, file.schema)?;
        for (index, entry) in file.entries.iter().enumerate() {
            check_entry(&source, &file.entries, index, entry)?;
        }
        Ok(Self {
            source,
            entries: file.entries,
            otherwise: file.otherwise,
        })
    }

    /// The number for an output of `graph`: the largest over its nodes, as upstream takes it.
    /// `None` where a node has none for the type and the table has no other.
    pub fn value(&self, graph: &Graph, output: DataType) -> Option<f64> {
        graph
            .nodes
            .iter()
            .map(|node| self.node_value(&node.attributes, output))
            .try_fold(0.0, |most: f64, value| Some(most.max(value?)))
    }

    /// The operations that the table names and no node of `graphs` is: entries that matched
    /// nothing, each with its place.
    pub fn unmatched<'g>(&self, graphs: impl IntoIterator<Item = &'g Graph>) -> Vec<Problem> {
        let mut unseen: BTreeMap<&str, usize> = self
            .entries
            .iter()
            .enumerate()
            .map(|(index, entry)| (entry.op.as_str(), index))
            .collect();
        for graph in graphs {
            for node in &graph.nodes {
                unseen.remove(operation(&node.attributes));
            }
        }
        unseen
            .into_values()
            .map(|index| {
                let path = [Step::Key("entries"), Step::Item(index)];
                Problem::new(
                    format!("the entry for `{}` matched nothing", self.entries[index].op),
                    self.source.place_of(&path, "this entry"),
                )
            })
            .collect()
    }

    fn node_value(&self, attributes: &Attributes, output: DataType) -> Option<f64> {
        let name = operation(attributes);
        self.entries
            .iter()
            .find(|entry| entry.op == name)
            .and_then(|entry| entry.values.get(output.short_name()).copied())
            .or_else(|| self.otherwise.as_ref().map(|quoted| quoted.value))
    }
}

/// The name of a node's operation in tolerance tables.
pub fn operation(attributes: &Attributes) -> &'static str {
    use Attributes as A;
    match attributes {
        A::BatchnormInference(_) => "batchnorm.inference",
        A::BatchnormInferenceVariance(_) => "batchnorm.inference_var",
        A::Batchnorm(_) => "batchnorm.training",
        A::BatchnormBackward(_) => "batchnorm.backward",
        A::ConvolutionFwd(_) => "conv.fprop",
        A::ConvolutionBwd(_) => "conv.dgrad",
        A::ConvolutionWrw(_) => "conv.wgrad",
        A::Pointwise(_) => "pointwise",
        A::Matmul(_) => "matmul",
        A::RMSNorm(_) => "rmsnorm",
        A::RMSNormBackward(_) => "rmsnorm.backward",
        A::Layernorm(_) => "layernorm",
        A::LayernormBackward(_) => "layernorm.backward",
        A::Sdpa(_) => "sdpa",
        A::SdpaBackward(_) => "sdpa.backward",
        A::Reduction(_) => "reduction",
        A::ResampleFwd(_) => "resample",
        A::ResampleBwd(_) => "resample.backward",
        A::BlockScaleDequantize(_) => "block_scale.dequantize",
        A::BlockScaleQuantize(_) => "block_scale.quantize",
        A::MoeGroupedMatmul(_) => "moe_matmul",
        A::MoeGroupedMatmulBwd(_) => "moe_matmul.backward",
        A::CustomOp(_) => "custom",
    }
}

pub(super) fn check_schema(source: &Source, schema: u32) -> Result<(), Box<Problem>> {
    if schema == SCHEMA {
        return Ok(());
    }
    let place = source.place_of(&[Step::Key("schema")], "this version");
    Err(Box::new(Problem::new(
        format!("schema {schema} is not known, only {SCHEMA}"),
        place,
    )))
}

fn check_positive(source: &Source, quoted: &Quoted, path: &[Step]) -> Result<(), Box<Problem>> {
    if quoted.value > 0.0 && quoted.value.is_finite() {
        return Ok(());
    }
    let path = [path, &[Step::Key("value")]].concat();
    Err(Box::new(Problem::new(
        format!(
            "{} is no factor: it must be positive and finite",
            quoted.value
        ),
        source.place_of(&path, "here"),
    )))
}

fn check_entry(
    source: &Source,
    entries: &[TableEntry],
    index: usize,
    entry: &TableEntry,
) -> Result<(), Box<Problem>> {
    let path = [Step::Key("entries"), Step::Item(index)];
    let at = |key, label: &str| source.place_of(&[&path[..], &[Step::Key(key)]].concat(), label);
    let all = Attributes::all();
    let known: Vec<&str> = all.iter().map(operation).collect();
    if !known.contains(&entry.op.as_str()) {
        let problem = Problem::new(
            format!("there is no operation `{}`", entry.op),
            at("op", "unknown operation"),
        );
        let problem = match yaml::nearest(&entry.op, known.iter().copied()) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem,
        };
        return Err(Box::new(
            problem.help(format!("known: {}", known.join(", "))),
        ));
    }
    if entries[..index].iter().any(|other| other.op == entry.op) {
        return Err(Box::new(Problem::new(
            format!("`{}` is there twice", entry.op),
            at("op", "second here"),
        )));
    }
    for (dtype, value) in &entry.values {
        if DataType::from_short_name(dtype).is_none() {
            return Err(Box::new(Problem::new(
                format!("there is no data type `{dtype}`"),
                at("values", "in these values"),
            )));
        }
        if !value.is_finite() || *value < 0.0 {
            return Err(Box::new(Problem::new(
                format!("{value} is no tolerance: it must be finite and not negative"),
                at("values", "in these values"),
            )));
        }
    }
    Ok(())
}
