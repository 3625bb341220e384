//! What a plain f32 loop gives for one element: the author of a kernel sees beside the f64 reference
//! what f32 by itself costs.

use super::nodes::geometry;
use crate::fill::broadcast;
use crate::ops::batchnorm::{DEFAULT_EPSILON, Shape};
use crate::ops::conv::factors;
use crate::ops::pointwise::naive as pointwise;
use crate::sample::Source;
use dnn_assay_graph::schema::{BatchnormAttributes, BatchnormBackwardAttributes};
use dnn_assay_graph::{Attributes, DataType, Graph, Node, Tensor};
use std::cell::Cell;

/// Elements that are read for one.
const MOST: usize = 1 << 22;

/// Element `index` of tensor `uid` by loops in f32, in the order that comes first to mind: sums from
/// the first term to the last, statistics in two passes, the textbook formula of a function.
/// Intermediates stay f32. `None` for graphs with f64 tensors, operations without such a loop, and where
/// it would read more than 2²² elements.
pub fn naive_f32(graph: &Graph, source: &dyn Source, uid: i64, index: usize) -> Option<f32> {
    let wide = |tensor: &Tensor| tensor.data_type == DataType::Double;
    if graph.tensors.iter().any(wide) {
        return None;
    }
    let naive = Naive {
        graph,
        source,
        read: Cell::new(0),
    };
    naive.at(uid, index)
}

struct Naive<'a> {
    graph: &'a Graph,
    source: &'a dyn Source,
    read: Cell<usize>,
}

impl Naive<'_> {
    fn at(&self, uid: i64, index: usize) -> Option<f32> {
        self.read.set(self.read.get() + 1);
        if self.read.get() > MOST {
            return None;
        }
        let mut nodes = self.graph.nodes.iter();
        match nodes.find(|node| node.attributes.outputs().contains(&uid)) {
            Some(node) => self.computed(node, uid, index),
            None => match self.graph.tensor(uid)?.value {
                Some(value) => value.as_f64().map(|value| value as f32),
                None => self.source.value(uid, index).map(|value| value as f32),
            },
        }
    }

    fn dims(&self, uid: i64) -> Option<&[i64]> {
        self.graph.tensor(uid).map(|tensor| tensor.dims.as_slice())
    }

    fn computed(&self, node: &Node, uid: i64, index: usize) -> Option<f32> {
        match &node.attributes {
            Attributes::Pointwise(table) => {
                let mut operands = [0.0f32; 3];
                let out = self.dims(table.out_0_tensor_uid)?;
                let uids = node.attributes.inputs();
                for (operand, uid) in operands.iter_mut().zip(uids) {
                    *operand = self.at(uid, broadcast(out, self.dims(uid)?, index))?;
                }
                pointwise(table, operands)
            }
            Attributes::Matmul(table) => {
                let (c, a, b) = (
                    self.dims(table.c_tensor_uid)?,
                    self.dims(table.a_tensor_uid)?,
                    self.dims(table.b_tensor_uid)?,
                );
                let (rank, k) = (c.len(), *a.last()?);
                let place = crate::sample::coordinates(c, index);
                let behind = |own: &[i64]| -> Vec<usize> {
                    let axes = (0..rank)
                        .map(|axis| place[axis] / (c[axis] / own[axis].max(1)).max(1) as usize);
                    axes.collect()
                };
                let (mut left, mut right) = (behind(a), behind(b));
                left[rank - 2] = place[rank - 2];
                right[rank - 1] = place[rank - 1];
                let mut sum = 0.0f32;
                for k in 0..k as usize {
                    (left[rank - 1], right[rank - 2]) = (k, k);
                    let a = self.at(table.a_tensor_uid, crate::sample::flat(a, &left))?;
                    let b = self.at(table.b_tensor_uid, crate::sample::flat(b, &right))?;
                    sum += a * b;
                }
                Some(sum)
            }
            Attributes::BatchnormInference(norm) => {
                let c = self.channel(norm.x_tensor_uid, index)?;
                let x = self.at(norm.x_tensor_uid, index)?;
                let inverse = self.at(norm.inv_variance_tensor_uid, c)?;
                let normal = (x - self.at(norm.mean_tensor_uid, c)?) * inverse;
                Some(
                    normal * self.at(norm.scale_tensor_uid, c)?
                        + self.at(norm.bias_tensor_uid, c)?,
                )
            }
            Attributes::BatchnormInferenceVariance(norm) => {
                let c = self.channel(norm.x_tensor_uid, index)?;
                let x = self.at(norm.x_tensor_uid, index)?;
                let variance = self.at(norm.variance_tensor_uid, c)?;
                let inverse = 1.0 / (variance + self.at(norm.epsilon_tensor_uid, 0)?).sqrt();
                let normal = (x - self.at(norm.mean_tensor_uid, c)?) * inverse;
                Some(
                    normal * self.at(norm.scale_tensor_uid, c)?
                        + self.at(norm.bias_tensor_uid, c)?,
                )
            }
            Attributes::Batchnorm(norm) => self.training(norm, uid, index),
            Attributes::BatchnormBackward(norm) => self.backward(norm, uid, index),
            attributes => {
                let node = attributes.convolution()?;
                let geometry = geometry(&node, self.graph)?;
                if geometry.flipped {
                    return None;
                }
                let [first, second] = factors(&node);
                let mut sum = Some(0.0f32);
                geometry.terms(node.direction, index, |a, b| {
                    let term = || Some(self.at(first, a)? * self.at(second, b)?);
                    sum = sum.and_then(|sum| Some(sum + term()?));
                });
                sum
            }
        }
    }

    fn shape(&self, x: i64) -> Option<Shape> {
        Shape::new(self.dims(x)?).ok()
    }

    fn channel(&self, x: i64, index: usize) -> Option<usize> {
        let shape = self.shape(x)?;
        Some(index / shape.plane.max(1) % shape.channels.max(1))
    }

    /// Elements of a channel, image by image.
    fn elements(&self, x: i64, c: usize) -> Option<impl Iterator<Item = usize> + use<>> {
        let Shape {
            batch,
            channels,
            plane,
        } = self.shape(x)?;
        let starts = (0..batch).map(move |image| (image * channels + c) * plane);
        Some(starts.flat_map(move |start| start..start + plane))
    }

    fn sum(&self, x: i64, c: usize, term: impl Fn(usize) -> Option<f32>) -> Option<f32> {
        let mut sum = 0.0f32;
        for index in self.elements(x, c)? {
            sum += term(index)?;
        }
        Some(sum)
    }

    /// Mean and biased variance.
    fn statistics(&self, x: i64, c: usize) -> Option<(f32, f32)> {
        let count = self.shape(x)?.count() as f32;
        let mean = self.sum(x, c, |index| self.at(x, index))? / count;
        let square = |index| {
            let deviation = self.at(x, index)? - mean;
            Some(deviation * deviation)
        };
        Some((mean, self.sum(x, c, square)? / count))
    }

    fn training(&self, norm: &BatchnormAttributes, uid: i64, index: usize) -> Option<f32> {
        let x = norm.x_tensor_uid;
        let is_y = uid == norm.y_tensor_uid;
        let c = if is_y { self.channel(x, index)? } else { index };
        let (mean, variance) = self.statistics(x, c)?;
        let inverse = 1.0 / (variance + self.at(norm.epsilon_tensor_uid, 0)?).sqrt();
        if is_y {
            let normal = (self.at(x, index)? - mean) * inverse;
            return Some(
                normal * self.at(norm.scale_tensor_uid, c)? + self.at(norm.bias_tensor_uid, c)?,
            );
        }
        let running = |previous: Option<i64>, batch: f32| {
            let m = self.at(norm.momentum_tensor_uid?, 0)?;
            Some((1.0 - m) * self.at(previous?, c)? + m * batch)
        };
        let count = self.shape(x)?.count() as f32;
        match Some(uid) {
            mine if mine == norm.mean_tensor_uid => Some(mean),
            mine if mine == norm.inv_variance_tensor_uid => Some(inverse),
            mine if mine == norm.next_running_mean_tensor_uid => {
                running(norm.prev_running_mean_tensor_uid, mean)
            }
            _ => {
                let unbiased = variance * count / (count - 1.0).max(1.0);
                running(norm.prev_running_variance_tensor_uid, unbiased)
            }
        }
    }

    fn backward(&self, norm: &BatchnormBackwardAttributes, uid: i64, index: usize) -> Option<f32> {
        let (x, dy) = (norm.x_tensor_uid, norm.dy_tensor_uid);
        let is_dx = uid == norm.dx_tensor_uid;
        let c = if is_dx {
            self.channel(x, index)?
        } else {
            index
        };
        let (mean, inverse) = match (norm.mean_tensor_uid, norm.inv_variance_tensor_uid) {
            (Some(mean), Some(inverse)) => (self.at(mean, c)?, self.at(inverse, c)?),
            _ => {
                let (mean, variance) = self.statistics(x, c)?;
                (mean, 1.0 / (variance + DEFAULT_EPSILON as f32).sqrt())
            }
        };
        let normal = |index| Some((self.at(x, index)? - mean) * inverse);
        if uid == norm.dbias_tensor_uid {
            return self.sum(x, c, |index| self.at(dy, index));
        }
        let dscale = self.sum(x, c, |index| Some(self.at(dy, index)? * normal(index)?))?;
        if !is_dx {
            return Some(dscale);
        }
        let dbias = self.sum(x, c, |index| self.at(dy, index))?;
        let count = self.shape(x)?.count() as f32;
        let inner = self.at(dy, index)? - dbias / count - normal(index)? * dscale / count;
        Some(self.at(norm.scale_tensor_uid, c)? * inverse * inner)
    }
}
