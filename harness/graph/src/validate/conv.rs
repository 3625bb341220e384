//! Convolutions: x [N, G·C, spatial…], w [G·K, C, taps…], y [N, G·K, spatial…].

use super::node::NodeCheck;
use super::problem::list;
use crate::convolution::{Convolution, Window};
use crate::enums::ConvMode;
use crate::semantics::conv_output_extent;

/// A convolution's extents, with the fields that name its tensors.
struct Check<'a> {
    fields: [&'static str; 3],
    x: &'a [i64],
    w: &'a [i64],
    y: &'a [i64],
    window: Window<'a>,
}

pub(super) fn check(check: &mut NodeCheck<'_, '_>, node: &Convolution<'_>) -> Option<()> {
    let conv = Check {
        fields: node.fields(),
        x: check.dims(node.x)?,
        w: check.dims(node.w)?,
        y: check.dims(node.y)?,
        window: node.window,
    };
    conv.run(check);
    Some(())
}

impl Check<'_> {
    fn run(&self, check: &mut NodeCheck<'_, '_>) {
        let Self { x, w, y, .. } = *self;
        if self.window.mode == ConvMode::Unset {
            let expected = "CROSS_CORRELATION or CONVOLUTION";
            check.problem("conv_mode", expected, "UNSET", "set it");
        }
        if !check.expect_rank(self.fields[0], x, 3) {
            return;
        }
        for (field, dims) in [(self.fields[1], w), (self.fields[2], y)] {
            if dims.len() != x.len() {
                let expected = format!("{} axes, as {} has", x.len(), self.fields[0]);
                check.problem(field, expected, list(dims), "give all three the same rank");
                return;
            }
        }
        self.channels(check);
        if self.parameters(check) {
            self.extents(check);
        }
    }

    fn channels(&self, check: &mut NodeCheck<'_, '_>) {
        let Self { x, w, y, .. } = *self;
        // Groups are implied: as many as the filter's channels fit into those of x.
        let groups = x[1].checked_div(w[1]).filter(|groups| *groups > 0);
        let whole = groups.is_some_and(|groups| groups.checked_mul(w[1]) == Some(x[1]));
        if !whole {
            let expected = format!(
                "a divisor of the {} channels of x as its second extent",
                x[1]
            );
            check.problem(
                self.fields[1],
                expected,
                list(w),
                "make x's channels groups times w's",
            );
        } else if groups.is_some_and(|groups| w[0] % groups != 0) {
            let groups = groups.unwrap_or(1);
            let expected = format!("a multiple of the {groups} groups as its first extent");
            check.problem(
                self.fields[1],
                expected,
                list(w),
                "make w's first extent groups times K",
            );
        }
        if (y[0], y[1]) != (x[0], w[0]) {
            let expected = format!("extents [{}, {}, …]", x[0], w[0]);
            check.problem(
                self.fields[2],
                expected,
                list(y),
                "take N from x and channels from w",
            );
        }
    }

    /// Whether padding, stride and dilation are usable.
    fn parameters(&self, check: &mut NodeCheck<'_, '_>) -> bool {
        let (spatial, window) = (self.x.len() - 2, &self.window);
        let mut usable = true;
        for (field, values, least) in [
            ("pre_padding", window.pre, 0),
            ("post_padding", window.post, 0),
            ("stride", window.stride, 1),
            ("dilation", window.dilation, 1),
        ] {
            if values.len() != spatial || values.iter().any(|value| *value < least) {
                let expected = format!("{spatial} numbers of at least {least}");
                check.problem(field, expected, list(values), "give one per spatial axis");
                usable = false;
            }
        }
        usable
    }

    fn extents(&self, check: &mut NodeCheck<'_, '_>) {
        let Self {
            x, w, y, window, ..
        } = self;
        for axis in 0..x.len() - 2 {
            let expected = conv_output_extent(
                x[axis + 2],
                w[axis + 2],
                window.pre[axis],
                window.post[axis],
                window.stride[axis],
                window.dilation[axis],
            );
            if expected != Some(y[axis + 2]) {
                let expected = match expected {
                    Some(extent) if extent > 0 => format!("{extent} along spatial axis {axis}"),
                    Some(_) => format!("a filter that fits the padded input, spatial axis {axis}"),
                    None => format!("a padded input that fits i64, spatial axis {axis}"),
                };
                check.problem(
                    self.fields[2],
                    expected,
                    y[axis + 2].to_string(),
                    "it is (x + pre + post - dilation·(w - 1) - 1) / stride + 1, rounded down",
                );
            }
        }
    }
}
