//! The last product of the sums of a convolution: what an engine leaves out that stops one short.

use crate::estimate::Values;
use crate::ops::conv::{Direction, Geometry, factors};
use dnn_assay_graph::{Attributes, Graph, PointwiseMode};

/// A convolution's tensors in the places of x, w and y, its direction, the output's uid.
struct Sum {
    geometry: Geometry,
    direction: Direction,
    /// Uids of the operands: image or dy, then filter or x.
    read: [i64; 2],
}

/// For every element of output `uid` the last product of its sum, 0 where the last tap lies in the
/// padding; `None` where the output is no sum of a convolution's products, with or without a bias,
/// where the sums have one term only, or where the last tap lies in the padding for every element, so
/// that no data can show it. Sums run over (channel, taps), of the weight gradient over
/// (image, positions), ascending.
pub fn last_terms(graph: &Graph, inputs: &Values, uid: i64) -> Option<Vec<f64>> {
    let sum = sum_behind(graph, uid)?;
    if terms(&sum) < 2 {
        return None;
    }
    let [first, second] = sum.read.map(|uid| inputs.get(&uid));
    let (first, second) = (first?, second?);
    let shape = Shape::of(&sum.geometry);
    match sum.direction {
        Direction::Fprop => shape.fprop(&sum.geometry, first, second),
        Direction::Dgrad => shape.dgrad(&sum.geometry, first, second),
        Direction::Wgrad => shape.wgrad(&sum.geometry, first, second),
    }
}

/// The convolution that makes a tensor, seen through an addition.
fn sum_behind(graph: &Graph, uid: i64) -> Option<Sum> {
    let producer = |uid: i64| {
        let mut nodes = graph.nodes.iter();
        nodes.find(|node| node.attributes.outputs().contains(&uid))
    };
    let node = producer(uid)?;
    let node = match &node.attributes {
        Attributes::Pointwise(table) if table.operation == PointwiseMode::Add => {
            producer(table.in_0_tensor_uid)?
        }
        _ => node,
    };
    let conv = node.attributes.convolution()?;
    let [x, w, y] = [conv.x, conv.w, conv.y].map(|uid| graph.tensor(uid));
    let geometry = Geometry::new(x?, w?, y?, &conv.window).ok()?;
    // A turned filter has another last tap for the weight gradient; nobody asks for it.
    let asked = !(geometry.flipped && conv.direction == Direction::Wgrad);
    asked.then_some(Sum {
        geometry,
        direction: conv.direction,
        read: factors(&conv),
    })
}

fn terms(sum: &Sum) -> usize {
    let g = &sum.geometry;
    match sum.direction {
        Direction::Fprop => g.channels * g.window(),
        Direction::Dgrad => g.filters * g.window(),
        Direction::Wgrad => g.batch * g.output_plane(),
    }
}

/// Places that the three directions share.
struct Shape {
    input: Vec<usize>,
    output: Vec<usize>,
    taps: Vec<usize>,
    /// Of the filter in memory that the window's last tap reads.
    last_tap: usize,
}

impl Shape {
    fn of(geometry: &Geometry) -> Self {
        let extents = |f: fn(&crate::ops::conv::Axis) -> usize| geometry.axes.iter().map(f);
        Self {
            input: extents(|axis| axis.input).collect(),
            output: extents(|axis| axis.output).collect(),
            taps: extents(|axis| axis.taps).collect(),
            last_tap: if geometry.flipped {
                0
            } else {
                geometry.window() - 1
            },
        }
    }

    fn fprop(&self, g: &Geometry, x: &[f64], w: &[f64]) -> Option<Vec<f64>> {
        let seen = self.seen(&self.output, &self.input, |axis, at| {
            let axis = &g.axes[axis];
            axis.input_at(at, axis.taps - 1)
        })?;
        let planes = g.batch * g.groups * g.filters;
        let plane = |plane: usize| {
            let (image, filter) = (
                plane / (g.groups * g.filters),
                plane % (g.groups * g.filters),
            );
            let channel = filter / g.filters * g.channels + g.channels - 1;
            let weight = w[(filter * g.channels + g.channels - 1) * g.window() + self.last_tap];
            let from = (image * g.groups * g.channels + channel) * g.input_plane();
            seen.iter()
                .map(move |at| at.map_or(0.0, |at| x[from + at] * weight))
        };
        Some((0..planes).flat_map(plane).collect())
    }

    fn dgrad(&self, g: &Geometry, dy: &[f64], w: &[f64]) -> Option<Vec<f64>> {
        let seen = self.seen(&self.input, &self.output, |axis, at| {
            let axis = &g.axes[axis];
            axis.output_at(at, axis.taps - 1)
        })?;
        let planes = g.batch * g.groups * g.channels;
        let plane = |plane: usize| {
            let (image, channel) = (
                plane / (g.groups * g.channels),
                plane % (g.groups * g.channels),
            );
            let filter = channel / g.channels * g.filters + g.filters - 1;
            let within = filter * g.channels + channel % g.channels;
            let weight = w[within * g.window() + self.last_tap];
            let from = (image * g.groups * g.filters + filter) * g.output_plane();
            seen.iter()
                .map(move |at| at.map_or(0.0, |at| dy[from + at] * weight))
        };
        Some((0..planes).flat_map(plane).collect())
    }

    fn wgrad(&self, g: &Geometry, dy: &[f64], x: &[f64]) -> Option<Vec<f64>> {
        let seen = self.seen(&self.taps, &self.input, |axis, tap| {
            let axis = &g.axes[axis];
            axis.input_at(axis.output - 1, tap)
        })?;
        let image = g.batch - 1;
        let plane = |plane: usize| {
            let (filter, channel) = (plane / g.channels, plane % g.channels);
            let of_group = filter / g.filters * g.channels + channel;
            let gradient = dy[(image * g.groups * g.filters + filter + 1) * g.output_plane() - 1];
            let from = (image * g.groups * g.channels + of_group) * g.input_plane();
            seen.iter()
                .map(move |at| at.map_or(0.0, |at| x[from + at] * gradient))
        };
        let planes = g.groups * g.filters * g.channels;
        Some((0..planes).flat_map(plane).collect())
    }

    /// For every place of a grid of extents `of` the flat place in a grid of extents `into` that
    /// `along` leads to, axis by axis; `None` where it leads nowhere from anywhere.
    fn seen(
        &self,
        of: &[usize],
        into: &[usize],
        along: impl Fn(usize, usize) -> Option<usize>,
    ) -> Option<Vec<Option<usize>>> {
        let count: usize = of.iter().product();
        let place = |mut flat: usize| {
            let mut at = vec![0; of.len()];
            for axis in (0..of.len()).rev() {
                at[axis] = flat % of[axis];
                flat /= of[axis];
            }
            at.iter().enumerate().try_fold(0, |flat, (axis, &at)| {
                Some(flat * into[axis] + along(axis, at)?)
            })
        };
        let places: Vec<_> = (0..count).map(place).collect();
        places.iter().any(Option::is_some).then_some(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::Arithmetic;
    use crate::evaluate::evaluate;
    use crate::fill::generate;
    use dnn_assay_graph::case::{Case, Fill};
    use rstest::rstest;

    /// The sum without its last term is the sum with that term's factor set to zero.
    #[rstest]
    #[case(
        "conv.fprop/f32/nchw/n2-c6-k4-i7x5-f3x2/pre2x1-post0x1-str2x1-dil1x2-g2",
        3,
        2
    )]
    #[case("conv.fprop+bias/f32/nchw/n2-c3-k4-i7x5-f3x3/pad1", 3, 2)]
    #[case("conv.dgrad/f32/nchw/n2-c6-k4-i7x5-f3x2/pad1-str2-g2", 6, 2)]
    fn the_rest_of_the_sum(#[case] id: &str, #[case] output: i64, #[case] filter: i64) {
        let case = Case::parse_short(id).unwrap();
        let graph = case.graph().unwrap();
        let inputs = generate(&graph, Fill::Uniform, 3).unwrap();
        let terms = last_terms(&graph, &inputs, output).unwrap();
        let value = |inputs: &Values| {
            let evaluation = evaluate(&graph, inputs, &Arithmetic::default()).unwrap();
            evaluation.tensors[&output].value.clone()
        };
        let whole = value(&inputs);
        // All but the last tap of the last summed channel.
        let w = graph.tensor(filter).unwrap();
        let window: usize = w.dims[2..].iter().map(|&dim| dim as usize).product();
        let (filters, channels) = (w.dims[0] as usize, w.dims[1] as usize);
        let mut rest = inputs.clone();
        let values = rest.get_mut(&filter).unwrap();
        let per_group = filters / 2;
        for k in 0..filters {
            for c in 0..channels {
                let last = if id.contains("dgrad") {
                    k % per_group == per_group - 1
                } else {
                    c == channels - 1
                };
                if last {
                    values[(k * channels + c + 1) * window - 1] = 0.0;
                }
            }
        }
        let rest = value(&rest);
        assert!(terms.iter().any(|term| term.abs() > 0.1));
        for ((whole, rest), term) in whole.iter().zip(rest).zip(terms) {
            assert!((whole - term - rest).abs() < 1e-12, "{whole} {term} {rest}");
        }
    }

    #[test]
    fn the_last_position_of_a_weight_gradient() {
        let case = Case::parse_short("conv.wgrad/f32/nchw/n2-c2-k3-i5x4-f3x3/pad1").unwrap();
        let graph = case.graph().unwrap();
        let inputs = generate(&graph, Fill::Uniform, 3).unwrap();
        let terms = last_terms(&graph, &inputs, 7).unwrap();
        let (dy, x) = (&inputs[&5], &inputs[&1]);
        // dw[2, 1, 0, 1]: the tap above the last position.
        let index = ((2 * 2 + 1) * 3) * 3 + 1;
        let expected = dy[dy.len() - 1] * x[x.len() - 1 - 4];
        assert_eq!(terms[index], expected);
        // The tap below lies in the padding.
        assert_eq!(terms[index + 6], 0.0);
    }

    #[test]
    fn what_is_no_sum_has_no_last_term() {
        for id in [
            "conv.fprop/f32/nchw/n2-c1-k3-i5x4-f1x1",
            // The last tap is in the padding, wherever the window stands.
            "conv.fprop/f32/nchw/n2-c8-k8-i1x1-f3x3/pad1",
            "conv.dgrad/f32/nchw/n2-c8-k8-i1x1-f3x3/pad1",
            "conv.fprop+relu_fwd/f32/nchw/n2-c2-k3-i5x4-f3x3",
            "pointwise.add/f32/nchw/n2-c2-i5x4",
        ] {
            let graph = Case::parse_short(id).unwrap().graph().unwrap();
            let inputs = generate(&graph, Fill::Uniform, 3).unwrap();
            for output in graph.outputs() {
                assert_eq!(last_terms(&graph, &inputs, output.uid), None, "{id}");
            }
        }
    }
}
