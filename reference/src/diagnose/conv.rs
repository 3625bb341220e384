//! A convolution node as the hypotheses see it.

use dnn_assay_graph::{Attributes, ConvMode, Graph};

/// The three directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Fprop,
    Dgrad,
    Wgrad,
}

/// Padding, stride and dilation, one entry per spatial axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub pre: Vec<i64>,
    pub post: Vec<i64>,
    pub stride: Vec<i64>,
    pub dilation: Vec<i64>,
}

/// A convolution: uids of the tensors in the places of x, w and y.
#[derive(Clone, Debug)]
pub(super) struct Conv {
    pub node: usize,
    pub direction: Direction,
    pub x: i64,
    pub w: i64,
    pub y: i64,
    pub window: Window,
}

/// Mutable references to the fields that the three tables share.
struct Fields<'a> {
    lists: [&'a mut Vec<i64>; 4],
    mode: &'a mut ConvMode,
}

macro_rules! fields {
    ($table:expr) => {
        Some(Fields {
            lists: [
                &mut $table.pre_padding,
                &mut $table.post_padding,
                &mut $table.stride,
                &mut $table.dilation,
            ],
            mode: &mut $table.conv_mode,
        })
    };
}

fn fields(attributes: &mut Attributes) -> Option<Fields<'_>> {
    match attributes {
        Attributes::ConvolutionFwd(table) => fields!(table),
        Attributes::ConvolutionBwd(table) => fields!(table),
        Attributes::ConvolutionWrw(table) => fields!(table),
        _ => None,
    }
}

impl Conv {
    /// The graph's first convolution.
    pub(super) fn of(graph: &Graph) -> Option<Self> {
        let (node, direction, [x, w, y]) =
            graph.nodes.iter().enumerate().find_map(|(index, node)| {
                let (direction, roles) = match &node.attributes {
                    Attributes::ConvolutionFwd(a) => (
                        Direction::Fprop,
                        [a.x_tensor_uid, a.w_tensor_uid, a.y_tensor_uid],
                    ),
                    Attributes::ConvolutionBwd(a) => (
                        Direction::Dgrad,
                        [a.dx_tensor_uid, a.w_tensor_uid, a.dy_tensor_uid],
                    ),
                    Attributes::ConvolutionWrw(a) => (
                        Direction::Wgrad,
                        [a.x_tensor_uid, a.dw_tensor_uid, a.dy_tensor_uid],
                    ),
                    _ => return None,
                };
                Some((index, direction, roles))
            })?;
        let rank = graph.tensor(x)?.dims.len();
        let consistent = [w, y].iter().all(|&uid| {
            graph
                .tensor(uid)
                .is_some_and(|tensor| tensor.dims.len() == rank)
        });
        if rank < 3 || !consistent {
            return None;
        }
        let mut attributes = graph.nodes[node].attributes.clone();
        let [pre, post, stride, dilation] = fields(&mut attributes)?.lists.map(std::mem::take);
        let full = |list: Vec<i64>, default| {
            if list.is_empty() {
                vec![default; rank - 2]
            } else {
                list
            }
        };
        let window = Window {
            pre: full(pre, 0),
            post: full(post, 0),
            stride: full(stride, 1),
            dilation: full(dilation, 1),
        };
        let lists = [&window.pre, &window.post, &window.stride, &window.dilation];
        lists
            .iter()
            .all(|list| list.len() == rank - 2)
            .then_some(Self {
                node,
                direction,
                x,
                w,
                y,
                window,
            })
    }

    /// Puts a window into the node.
    pub(super) fn set_window(&self, graph: &mut Graph, window: &Window) {
        let node = graph
            .nodes
            .get_mut(self.node)
            .map(|node| &mut node.attributes);
        if let Some(Fields { lists, .. }) = node.and_then(fields) {
            let [pre, post, stride, dilation] = lists;
            pre.clone_from(&window.pre);
            post.clone_from(&window.post);
            stride.clone_from(&window.stride);
            dilation.clone_from(&window.dilation);
        }
    }

    /// Convolution for cross-correlation and the reverse.
    pub(super) fn flip(&self, graph: &mut Graph) {
        let node = graph
            .nodes
            .get_mut(self.node)
            .map(|node| &mut node.attributes);
        if let Some(Fields { mode, .. }) = node.and_then(fields) {
            *mode = match *mode {
                ConvMode::Convolution => ConvMode::CrossCorrelation,
                _ => ConvMode::Convolution,
            };
        }
    }

    /// Groups, by the channels of x and of w.
    pub(super) fn groups(&self, graph: &Graph) -> i64 {
        let channels = |uid| {
            graph
                .tensor(uid)
                .and_then(|tensor| tensor.dims.get(1))
                .copied()
        };
        match (channels(self.x), channels(self.w)) {
            (Some(all), Some(each)) if each > 0 => (all / each).max(1),
            _ => 1,
        }
    }
}
