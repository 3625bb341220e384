//! The three convolution tables as one: tensors in the places of fprop, and the window.

use crate::case::ConvDirection;
use crate::enums::ConvMode;
use crate::schema::{
    Attributes, ConvolutionBwdAttributes, ConvolutionFwdAttributes, ConvolutionWrwAttributes,
};

/// A convolution node of any direction. Uids stand in the places of fprop: `x` is dx for dgrad, `w`
/// is dw for wgrad, `y` is dy for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convolution<'a> {
    /// Which of the three tensors is the result.
    pub direction: ConvDirection,
    /// The image `[N, G·C, spatial…]`.
    pub x: i64,
    /// The filter `[G·K, C, taps…]`.
    pub w: i64,
    /// The result of fprop `[N, G·K, spatial…]`.
    pub y: i64,
    /// How the filter is laid over the image.
    pub window: Window<'a>,
}

/// Padding, stride and dilation, one number per spatial axis each, as the node states them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window<'a> {
    /// Elements of padding before the image.
    pub pre: &'a [i64],
    /// Elements of padding after it.
    pub post: &'a [i64],
    /// Elements of the image from one position to the next.
    pub stride: &'a [i64],
    /// Elements of the image from one tap to the next.
    pub dilation: &'a [i64],
    /// Whether the filter is flipped.
    pub mode: ConvMode,
}

impl Convolution<'_> {
    /// The uids that the node reads, in the order of its table: x and w, dy and w, or x and dy.
    pub fn operands(&self) -> [i64; 2] {
        match self.direction {
            ConvDirection::Fprop => [self.x, self.w],
            ConvDirection::Dgrad => [self.y, self.w],
            ConvDirection::Wgrad => [self.x, self.y],
        }
    }

    /// The uid that it writes.
    pub fn result(&self) -> i64 {
        match self.direction {
            ConvDirection::Fprop => self.y,
            ConvDirection::Dgrad => self.x,
            ConvDirection::Wgrad => self.w,
        }
    }

    /// What its table calls the uids of x, w and y.
    pub fn fields(&self) -> [&'static str; 3] {
        match self.direction {
            ConvDirection::Fprop => ["x_tensor_uid", "w_tensor_uid", "y_tensor_uid"],
            ConvDirection::Dgrad => ["dx_tensor_uid", "w_tensor_uid", "dy_tensor_uid"],
            ConvDirection::Wgrad => ["x_tensor_uid", "dw_tensor_uid", "dy_tensor_uid"],
        }
    }
}

/// The window of any of the three tables.
macro_rules! window {
    ($table:expr) => {
        Window {
            pre: &$table.pre_padding,
            post: &$table.post_padding,
            stride: &$table.stride,
            dilation: &$table.dilation,
            mode: $table.conv_mode,
        }
    };
}

impl Attributes {
    /// The node as a convolution, `None` if it is none.
    pub fn convolution(&self) -> Option<Convolution<'_>> {
        let (direction, [x, w, y], window) = match self {
            Self::ConvolutionFwd(table) => (
                ConvDirection::Fprop,
                [table.x_tensor_uid, table.w_tensor_uid, table.y_tensor_uid],
                window!(table),
            ),
            Self::ConvolutionBwd(table) => (
                ConvDirection::Dgrad,
                [table.dx_tensor_uid, table.w_tensor_uid, table.dy_tensor_uid],
                window!(table),
            ),
            Self::ConvolutionWrw(table) => (
                ConvDirection::Wgrad,
                [table.x_tensor_uid, table.dw_tensor_uid, table.dy_tensor_uid],
                window!(table),
            ),
            _ => return None,
        };
        Some(Convolution {
            direction,
            x,
            w,
            y,
            window,
        })
    }
}

impl From<Convolution<'_>> for Attributes {
    fn from(conv: Convolution<'_>) -> Self {
        let Convolution { x, w, y, .. } = conv;
        let Window { mode, .. } = conv.window;
        let [pre_padding, post_padding, stride, dilation] = [
            conv.window.pre,
            conv.window.post,
            conv.window.stride,
            conv.window.dilation,
        ]
        .map(<[i64]>::to_vec);
        match conv.direction {
            ConvDirection::Fprop => ConvolutionFwdAttributes {
                x_tensor_uid: x,
                w_tensor_uid: w,
                y_tensor_uid: y,
                pre_padding,
                post_padding,
                stride,
                dilation,
                conv_mode: mode,
            }
            .into(),
            ConvDirection::Dgrad => ConvolutionBwdAttributes {
                dy_tensor_uid: y,
                w_tensor_uid: w,
                dx_tensor_uid: x,
                pre_padding,
                post_padding,
                stride,
                dilation,
                conv_mode: mode,
            }
            .into(),
            ConvDirection::Wgrad => ConvolutionWrwAttributes {
                x_tensor_uid: x,
                dy_tensor_uid: y,
                dw_tensor_uid: w,
                pre_padding,
                post_padding,
                stride,
                dilation,
                conv_mode: mode,
            }
            .into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_the_convolution_that_made_it() {
        let directions = [
            (ConvDirection::Fprop, [1, 2], 3),
            (ConvDirection::Dgrad, [3, 2], 1),
            (ConvDirection::Wgrad, [1, 3], 2),
        ];
        for (direction, reads, writes) in directions {
            let conv = Convolution {
                direction,
                x: 1,
                w: 2,
                y: 3,
                window: Window {
                    pre: &[1, 2],
                    post: &[3, 4],
                    stride: &[5, 6],
                    dilation: &[7, 8],
                    mode: ConvMode::Convolution,
                },
            };
            let node = Attributes::from(conv);
            assert_eq!(node.convolution(), Some(conv));
            assert_eq!(node.inputs(), conv.operands());
            assert_eq!(node.outputs(), [conv.result()]);
            assert_eq!((conv.operands(), conv.result()), (reads, writes));
            let mut named = Vec::new();
            node.record().visit(&mut |field, _| named.push(field.name));
            assert!(conv.fields().iter().all(|field| named.contains(field)));
        }
    }

    #[test]
    fn other_nodes_are_no_convolutions() {
        let are = |node: &Attributes| node.convolution().is_some();
        let kinds = Attributes::all();
        let kinds: Vec<&str> = kinds.iter().filter(|n| are(n)).map(|n| n.kind()).collect();
        assert_eq!(
            kinds,
            ["ConvolutionFwd", "ConvolutionBwd", "ConvolutionWrw"]
        );
    }
}
