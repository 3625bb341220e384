//! Convolutions: x [N, G·C, spatial…], w [G·K, C, taps…], y [N, G·K, spatial…].

use super::node::NodeCheck;
use super::problem::list;
use crate::enums::ConvMode;
use crate::schema::{ConvolutionBwdAttributes, ConvolutionFwdAttributes, ConvolutionWrwAttributes};
use crate::semantics::conv_output_extent;

/// A convolution of any direction, in the terms of fprop.
struct Conv<'a> {
    /// Field and uid.
    x: (&'static str, i64),
    w: (&'static str, i64),
    y: (&'static str, i64),
    pre: &'a [i64],
    post: &'a [i64],
    stride: &'a [i64],
    dilation: &'a [i64],
    mode: ConvMode,
}

pub(super) fn fprop(check: &mut NodeCheck<'_, '_>, node: &ConvolutionFwdAttributes) -> Option<()> {
    Conv {
        x: ("x_tensor_uid", node.x_tensor_uid),
        w: ("w_tensor_uid", node.w_tensor_uid),
        y: ("y_tensor_uid", node.y_tensor_uid),
        pre: &node.pre_padding,
        post: &node.post_padding,
        stride: &node.stride,
        dilation: &node.dilation,
        mode: node.conv_mode,
    }
    .check(check)
}

pub(super) fn dgrad(check: &mut NodeCheck<'_, '_>, node: &ConvolutionBwdAttributes) -> Option<()> {
    Conv {
        x: ("dx_tensor_uid", node.dx_tensor_uid),
        w: ("w_tensor_uid", node.w_tensor_uid),
        y: ("dy_tensor_uid", node.dy_tensor_uid),
        pre: &node.pre_padding,
        post: &node.post_padding,
        stride: &node.stride,
        dilation: &node.dilation,
        mode: node.conv_mode,
    }
    .check(check)
}

pub(super) fn wgrad(check: &mut NodeCheck<'_, '_>, node: &ConvolutionWrwAttributes) -> Option<()> {
    Conv {
        x: ("x_tensor_uid", node.x_tensor_uid),
        w: ("dw_tensor_uid", node.dw_tensor_uid),
        y: ("dy_tensor_uid", node.dy_tensor_uid),
        pre: &node.pre_padding,
        post: &node.post_padding,
        stride: &node.stride,
        dilation: &node.dilation,
        mode: node.conv_mode,
    }
    .check(check)
}

impl Conv<'_> {
    fn check(&self, check: &mut NodeCheck<'_, '_>) -> Option<()> {
        let (x, w, y) = (
            check.dims(self.x.1)?,
            check.dims(self.w.1)?,
            check.dims(self.y.1)?,
        );
        if self.mode == ConvMode::Unset {
            let expected = "CROSS_CORRELATION or CONVOLUTION";
            check.problem("conv_mode", expected, "UNSET", "set it");
        }
        if !check.expect_rank(self.x.0, x, 3) {
            return Some(());
        }
        for (field, dims) in [(self.w.0, w), (self.y.0, y)] {
            if dims.len() != x.len() {
                let expected = format!("{} axes, as {} has", x.len(), self.x.0);
                check.problem(field, expected, list(dims), "give all three the same rank");
                return Some(());
            }
        }
        self.channels(check, x, w, y);
        if self.parameters(check, x.len() - 2) {
            self.extents(check, x, w, y);
        }
        Some(())
    }

    fn channels(&self, check: &mut NodeCheck<'_, '_>, x: &[i64], w: &[i64], y: &[i64]) {
        // Groups are implied: as many as the filter's channels fit into those of x.
        let groups = x[1].checked_div(w[1]).filter(|groups| *groups > 0);
        let whole = groups.is_some_and(|groups| groups.checked_mul(w[1]) == Some(x[1]));
        if !whole {
            let expected = format!(
                "a divisor of the {} channels of x as its second extent",
                x[1]
            );
            check.problem(
                self.w.0,
                expected,
                list(w),
                "make x's channels groups times w's",
            );
        } else if groups.is_some_and(|groups| w[0] % groups != 0) {
            let groups = groups.unwrap_or(1);
            let expected = format!("a multiple of the {groups} groups as its first extent");
            check.problem(
                self.w.0,
                expected,
                list(w),
                "make w's first extent groups times K",
            );
        }
        if (y[0], y[1]) != (x[0], w[0]) {
            let expected = format!("extents [{}, {}, …]", x[0], w[0]);
            check.problem(
                self.y.0,
                expected,
                list(y),
                "take N from x and channels from w",
            );
        }
    }

    /// Whether padding, stride and dilation are usable.
    fn parameters(&self, check: &mut NodeCheck<'_, '_>, spatial: usize) -> bool {
        let mut usable = true;
        for (field, values, least) in [
            ("pre_padding", self.pre, 0),
            ("post_padding", self.post, 0),
            ("stride", self.stride, 1),
            ("dilation", self.dilation, 1),
        ] {
            if values.len() != spatial || values.iter().any(|value| *value < least) {
                let expected = format!("{spatial} numbers of at least {least}");
                check.problem(field, expected, list(values), "give one per spatial axis");
                usable = false;
            }
        }
        usable
    }

    fn extents(&self, check: &mut NodeCheck<'_, '_>, x: &[i64], w: &[i64], y: &[i64]) {
        for axis in 0..x.len() - 2 {
            let expected = conv_output_extent(
                x[axis + 2],
                w[axis + 2],
                self.pre[axis],
                self.post[axis],
                self.stride[axis],
                self.dilation[axis],
            );
            if expected != Some(y[axis + 2]) {
                let expected = match expected {
                    Some(extent) if extent > 0 => format!("{extent} along spatial axis {axis}"),
                    Some(_) => format!("a filter that fits the padded input, spatial axis {axis}"),
                    None => format!("a padded input that fits i64, spatial axis {axis}"),
                };
                check.problem(
                    self.y.0,
                    expected,
                    y[axis + 2].to_string(),
                    "it is (x + pre + post - dilation·(w - 1) - 1) / stride + 1, rounded down",
                );
            }
        }
    }
}
