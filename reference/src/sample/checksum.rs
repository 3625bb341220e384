//! A sum that touches every element of a convolution or matrix product.
//!
//! A convolution is linear in its filters: the sum of y over the output channels k of a group is the
//! convolution of x with Σₖ wₖ, one filter instead of M. (Of dgrad, the sum of dx over its channels; of
//! wgrad, of dw over k, with Σₖ dyₖ; of a product, of C over its columns.) So the sums cost an M-th of
//! the reference, and a wrong element shows in its sum.
//!
//! **The bound.** A correct engine has |gotₖ − yₖ| ≤ Eₖ for each element, hence
//! |Σ gotₖ − Σ yₖ| ≤ Σ Eₖ. Each is Eₖ ≤ A·|yₖ| + B·Qₖ + c by the rules of the element, and
//! |yₖ| ≤ |gotₖ| + Eₖ, so Eₖ ≤ (A·|gotₖ| + B·Qₖ + c)/(1 − A). Qₖ² is linear too: Σₖ Qₖ² is the
//! convolution of x² with Σₖ wₖ², and Σₖ Qₖ ≤ √(M·Σₖ Qₖ²) (Cauchy–Schwarz). Together
//!
//! ```text
//! |Σ gotₖ − Σ yₖ| ≤ (A·Σ|gotₖ| + B·√(M·ΣQₖ²) + M·c) / (1 − A) + r
//! ```
//!
//! where r = 2⁻⁵³·(M + K + 2)·√(M·K)·√(ΣQₖ²) + 2⁻⁵³·M·Σ|gotₖ| covers what f64 itself loses, as
//! Σₖ Σ|terms| ≤ √(M·K)·√(ΣQₖ²). An engine whose elements are all within their bounds never fails.

use super::crop::geometry;
use super::{Source, coordinates};
use crate::arithmetic::{Arithmetic, Precision};
use crate::array::Array;
use crate::dtype::{self, Element, checked_view, with_element};
use crate::ops::conv::{Convolution, Direction, Geometry, Transform};
use crate::ops::matmul::Matmul;
use crate::ops::operand::Operand;
use crate::ops::sums::SumBound;
use dnn_assay_graph::{Attributes, DataType, Graph, Tensor};
use rayon::prelude::*;

/// Elements of an operand that is held in f64.
const MOST: usize = 1 << 28;
/// What Q may be low by, as in the element's own bound.
const MARGIN: f64 = 1.02;
/// What rounding the element's error up to f32 adds at most, and to spare.
const ROUNDING: f64 = 1.001;
/// Positions whose channels are added together.
const CHUNK: usize = 1 << 10;

/// What the sums said.
#[derive(Clone, Debug, PartialEq)]
pub struct Checksum {
    /// Sums that were compared.
    pub sums: usize,
    /// Elements in each.
    pub channels: usize,
    /// Sums beyond their bound, and those with a NaN or an infinity where no element can have one.
    pub outside: usize,
    /// Sums with a NaN or an infinity that may be right: they say nothing.
    pub unsummed: usize,
    /// The largest distance over its bound.
    pub margin: f64,
    /// Where that was.
    pub worst: Option<WorstSum>,
}

/// A sum.
#[derive(Clone, Debug, PartialEq)]
pub struct WorstSum {
    /// Coordinates of its elements; on the axis of the sum, which group.
    pub coordinates: Vec<usize>,
    /// The sum by the reference.
    pub expected: f64,
    /// The sum of what was written.
    pub got: f64,
    /// The largest distance that passes.
    pub bound: f64,
}

/// A convolution or product, and the axis along which its output is summed.
struct Linear<'a> {
    form: Form,
    /// The operand that is taken as it is, and the one that is summed.
    kept: &'a Tensor,
    folded: &'a Tensor,
    fold: Fold,
    output: Fold,
    terms: f64,
    bound: SumBound,
    extra: f64,
}

enum Form {
    Convolution(Box<Geometry>, Direction),
    Product,
}

/// Groups of `each` neighbours along an axis.
#[derive(Clone, Copy)]
struct Fold {
    axis: usize,
    each: usize,
}

/// Compares sums over the channels of `output`, whose strided bytes are `got`.
///
/// # Errors
/// Why there is no such sum, in words: more than one node, an operation that is not linear, a trait
/// that errs by the whole tensor, operands that are too large.
pub fn checksum(
    graph: &Graph,
    source: &dyn Source,
    arithmetic: &Arithmetic,
    output: &Tensor,
    got: &[u8],
) -> Result<Checksum, String> {
    let sums = Sums::of(graph, source, arithmetic, output)?;
    let written = written(graph, arithmetic, output, got)?;
    sums.compare((graph, output), arithmetic, &written)
}

/// The sums of what an engine wrote, `got`, in logical order.
///
/// # Errors
/// As [`checksum`]; or a buffer that does not fit.
pub fn written(
    graph: &Graph,
    arithmetic: &Arithmetic,
    output: &Tensor,
    got: &[u8],
) -> Result<Vec<Written>, String> {
    Linear::of(graph, arithmetic, output)?
        .output
        .read(output, got)
}

/// Sums of an output by the reference, and sums of its squares.
#[derive(Clone, Debug)]
pub struct Sums {
    sums: Array<f64>,
    squares: Array<f64>,
}

impl Sums {
    /// Computes them; they are the same for every arithmetic that allows for them.
    ///
    /// # Errors
    /// As [`checksum`].
    pub fn of(
        graph: &Graph,
        source: &dyn Source,
        arithmetic: &Arithmetic,
        output: &Tensor,
    ) -> Result<Self, String> {
        let linear = Linear::of(graph, arithmetic, output)?;
        let kept = read(source, linear.kept)?;
        let folded = read(source, linear.folded)?;
        let fold = |map: fn(f64) -> f64| linear.fold.sums(&linear.folded.dims, &folded, map);
        let sums = linear.apply(&kept, fold(|v| v))?;
        let squares: Vec<f64> = kept.iter().map(|v| v * v).collect();
        let squares = linear.apply(&squares, fold(|v| v * v))?;
        Ok(Self { sums, squares })
    }

    /// Compares what was written with them, by the bounds of an arithmetic.
    ///
    /// # Errors
    /// As [`checksum`]; or another number of sums.
    pub fn compare(
        &self,
        (graph, output): (&Graph, &Tensor),
        arithmetic: &Arithmetic,
        written: &[Written],
    ) -> Result<Checksum, String> {
        let linear = Linear::of(graph, arithmetic, output)?;
        if written.len() != self.sums.len() {
            let (seen, expected) = (written.len(), self.sums.len());
            return Err(format!("{seen} sums were kept, and there are {expected}"));
        }
        Ok(linear.compare(output, &self.sums, &self.squares, written))
    }
}

fn read(source: &dyn Source, tensor: &Tensor) -> Result<Vec<f64>, String> {
    let count = tensor.element_count().filter(|&count| count <= MOST);
    let count = count.ok_or_else(|| format!("{} is too large for sums", tensor.name))?;
    let values: Option<Vec<f64>> = (0..count)
        .into_par_iter()
        .map(|index| source.value(tensor.uid, index))
        .collect();
    let values = values.ok_or_else(|| format!("{} has no values", tensor.name))?;
    let finite = values.iter().all(|value| value.is_finite());
    finite
        .then_some(values)
        .ok_or_else(|| format!("{} holds NaN or infinities", tensor.name))
}

impl<'a> Linear<'a> {
    fn of(graph: &'a Graph, arithmetic: &Arithmetic, output: &Tensor) -> Result<Self, String> {
        let [node] = &graph.nodes[..] else {
            return Err("the graph has more than one node".to_owned());
        };
        if arithmetic.transform > 0.0 || arithmetic.flushes_denormals {
            return Err("a declared trait errs by more than its own terms".to_owned());
        }
        if !output.data_type.is_float() {
            return Err("the output holds integers".to_owned());
        }
        let tensor = |uid: i64| {
            graph
                .tensor(uid)
                .ok_or_else(|| format!("there is no tensor {uid}"))
        };
        let along = |axis: usize, each: usize| Fold { axis, each };
        let (form, kept, folded, fold, output_fold, terms) = match &node.attributes {
            Attributes::Matmul(product) => {
                let (a, b) = (tensor(product.a_tensor_uid)?, tensor(product.b_tensor_uid)?);
                let (Some(&terms), Some(&each)) = (a.dims.last(), b.dims.last()) else {
                    return Err("its shapes do not fit".to_owned());
                };
                let last = along(b.dims.len() - 1, each.max(1) as usize);
                (Form::Product, a, b, last, last, terms.max(0) as usize)
            }
            attributes => {
                let conv = attributes
                    .convolution()
                    .ok_or("the operation is not linear in its filters")?;
                let of = geometry(graph, &conv).map_err(|_| "its shapes do not fit")?;
                // What is kept and what is folded, with the axis of each fold; then elements in a
                // fold, and terms of a sum.
                let ([kept, folded], axes, (each, terms)) = match conv.direction {
                    Direction::Fprop => (
                        [conv.x, conv.w],
                        [0, 1],
                        (of.filters, of.channels * of.window()),
                    ),
                    Direction::Dgrad => (
                        [conv.y, conv.w],
                        [1, 1],
                        (of.channels, of.filters * of.window()),
                    ),
                    Direction::Wgrad => (
                        [conv.x, conv.y],
                        [1, 0],
                        (of.filters, of.batch * of.output_plane()),
                    ),
                };
                let of = match conv.direction {
                    Direction::Dgrad => Geometry { channels: 1, ..of },
                    Direction::Fprop | Direction::Wgrad => Geometry { filters: 1, ..of },
                };
                let [fold, output_fold] = axes.map(|axis| along(axis, each));
                (
                    Form::Convolution(Box::new(of), conv.direction),
                    tensor(kept)?,
                    tensor(folded)?,
                    fold,
                    output_fold,
                    terms,
                )
            }
        };
        let types = [kept, folded, output].map(|tensor| tensor.data_type);
        let declared = match node.compute_type {
            DataType::Unset => graph.compute_type,
            declared => declared,
        };
        let precision = Precision::of(arithmetic, declared, &types)
            .ok_or_else(|| format!("compute type {declared}"))?;
        let digits = |tensor: &Tensor| match dtype::precision(tensor.data_type) {
            0 => 53,
            bits => bits,
        };
        let widest = digits(kept).max(digits(folded));
        let bound = SumBound::of_products(arithmetic, &precision, widest > 11);
        Ok(Self {
            form,
            kept,
            folded,
            fold,
            output: output_fold,
            terms: terms as f64,
            extra: if widest > precision.bits {
                8.0 * bound.roundoff()
            } else {
                0.0
            },
            bound,
        })
    }

    /// The operation on one filter per group.
    fn apply(&self, kept: &[f64], folded: Vec<f64>) -> Result<Array<f64>, String> {
        let mut dims = self.folded.dims.clone();
        dims[self.fold.axis] /= self.fold.each as i64;
        let (kept, folded) = (operand(kept, &self.kept.dims), operand(&folded, &dims));
        match &self.form {
            Form::Convolution(geometry, direction) => {
                // Operands in the order of the terms: dy first for wgrad.
                let (first, second) = match direction {
                    Direction::Wgrad => (folded, kept),
                    _ => (kept, folded),
                };
                Convolution {
                    geometry: (**geometry).clone(),
                    direction: *direction,
                    first,
                    second,
                    bound: self.bound,
                    rounds_inputs: false,
                    transform: Transform::NONE,
                }
                .values()
            }
            Form::Product => {
                let mut c: Vec<i64> = kept
                    .dims
                    .iter()
                    .zip(&dims)
                    .map(|(&a, &b)| a.max(b))
                    .collect();
                let rank = c.len();
                (c[rank - 2], c[rank - 1]) = (kept.dims[rank - 2], 1);
                let product = Matmul {
                    a: kept,
                    b: folded,
                    c: &c,
                    bound: self.bound,
                    rounds_inputs: false,
                };
                Ok(product.run()?.0.value)
            }
        }
    }

    fn compare(
        &self,
        output: &Tensor,
        sums: &[f64],
        squares: &[f64],
        written: &[Written],
    ) -> Checksum {
        let u = dtype::unit_roundoff(output.data_type);
        let half = dtype::smallest_subnormal(output.data_type) / 2.0;
        let (many, terms) = (self.output.each as f64, self.terms);
        let [of_y, of_q, rest] = self.bound.coefficients(terms);
        let a = of_y * (1.0 + u) + u;
        let b = (of_q * MARGIN + self.extra) * (1.0 + u);
        let c = rest * (1.0 + u) + half;
        let own = U64 * (many + terms + 2.0) * (many * terms).sqrt();
        let overflow = dtype::overflow_threshold(output.data_type).min(self.bound.overflow);
        let mut all = Checksum {
            sums: sums.len(),
            channels: self.output.each,
            outside: 0,
            unsummed: 0,
            margin: 0.0,
            worst: None,
        };
        for (index, ((&sum, &square), written)) in sums.iter().zip(squares).zip(written).enumerate()
        {
            let q = square.sqrt();
            let bound = (a * written.magnitude + b * many.sqrt() * q + many * c) / (1.0 - a);
            let summed = U64 * many * written.magnitude;
            let bound = bound * ROUNDING + own * q + summed;
            let distance = (written.sum - sum).abs();
            // No partial sum of any element is larger than √K·Q.
            let may_overflow = q.is_nan() || terms.sqrt() * q * 1.01 >= overflow;
            let unbounded = a >= 1.0 || !(b * q).is_finite();
            if unbounded || !written.magnitude.is_finite() && may_overflow {
                all.unsummed += 1;
                continue;
            }
            let ratio = match distance {
                0.0 => 0.0,
                distance if distance.is_finite() => distance / bound,
                _ => f64::INFINITY,
            };
            all.outside += usize::from(ratio > 1.0);
            if all.worst.is_none() || ratio > all.margin {
                all.margin = ratio;
                all.worst = Some(WorstSum {
                    coordinates: coordinates(&self.output.dims(&output.dims), index),
                    expected: sum,
                    got: written.sum,
                    bound,
                });
            }
        }
        all
    }
}

/// Unit roundoff of f64.
const U64: f64 = f64::EPSILON / 2.0;

/// Values that are no tensor's: f64, without uncertainty.
fn operand<'v>(value: &'v [f64], dims: &'v [i64]) -> Operand<'v> {
    Operand {
        value,
        error: &[],
        also: &[],
        dims,
        data_type: DataType::Double,
        is_virtual: true,
    }
}

/// The sum of what was written, and of its magnitudes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Written {
    /// Σ got.
    pub sum: f64,
    /// Σ |got|.
    pub magnitude: f64,
}

impl Written {
    #[inline]
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.magnitude += value.abs();
    }
}

impl Fold {
    fn dims(self, dims: &[i64]) -> Vec<i64> {
        let mut dims = dims.to_vec();
        dims[self.axis] /= self.each as i64;
        dims
    }

    /// Σ `map(value)` of each group, in the logical order of the folded extents.
    fn sums(self, dims: &[i64], values: &[f64], map: impl Fn(f64) -> f64) -> Vec<f64> {
        let inner: usize = dims[self.axis + 1..]
            .iter()
            .map(|&dim| dim as usize)
            .product();
        let mut sums = vec![0.0; values.len() / self.each.max(1)];
        if sums.is_empty() {
            return sums;
        }
        for (sums, values) in sums.chunks_mut(inner).zip(values.chunks(inner * self.each)) {
            for row in values.chunks(inner) {
                for (sum, &value) in sums.iter_mut().zip(row) {
                    *sum += map(value);
                }
            }
        }
        sums
    }

    /// The sums of what an engine wrote.
    fn read(self, tensor: &Tensor, got: &[u8]) -> Result<Vec<Written>, String> {
        checked_view(tensor, got.len()).map_err(|error| error.to_string())?;
        let read = with_element!(tensor.data_type, E => self.read_as::<E>(tensor, got));
        read.ok_or_else(|| format!("{} of type {}", tensor.name, tensor.data_type))
    }

    fn read_as<E: Element>(self, tensor: &Tensor, got: &[u8]) -> Vec<Written> {
        let dims = self.dims(&tensor.dims);
        let count = dims.iter().map(|&dim| dim as usize).product();
        let mut sums = vec![Written::default(); count];
        let stride = tensor.strides[self.axis] as usize * E::SIZE;
        sums.par_chunks_mut(CHUNK)
            .enumerate()
            .for_each(|(chunk, sums)| {
                let first = chunk * CHUNK;
                let starts: Vec<usize> = (first..first + sums.len())
                    .map(|index| {
                        let mut place = coordinates(&dims, index);
                        place[self.axis] *= self.each;
                        let places = place.iter().zip(&tensor.strides);
                        places
                            .map(|(&at, &stride)| at * stride as usize)
                            .sum::<usize>()
                            * E::SIZE
                    })
                    .collect();
                // Neighbours in memory first: channels that lie side by side, or else positions.
                if stride == E::SIZE {
                    for (sum, start) in sums.iter_mut().zip(&starts) {
                        let channels = &got[*start..start + self.each * E::SIZE];
                        channels
                            .chunks_exact(E::SIZE)
                            .for_each(|bytes| sum.add(E::load(bytes)));
                    }
                } else {
                    for step in 0..self.each {
                        for (sum, start) in sums.iter_mut().zip(&starts) {
                            sum.add(E::load(&got[start + step * stride..]));
                        }
                    }
                }
            });
        sums
    }
}
