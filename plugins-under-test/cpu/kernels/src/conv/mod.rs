//! Cross-correlation in one to three spatial axes: forward, data gradient, weight gradient.
//!
//! All three are matrix products over one group of one image, with the image kept in a zero
//! padded copy so that no index needs a check:
//! an element of the image is found at `position + tap`, for an output position and a filter tap
//! (see [`geometry`]). Sums run in one chain per element, or per image for the weight gradient.

mod geometry;
mod product;

use crate::program::{Num, Tensors};
use crate::support::{ensure, float};
use dnn_assay_graph::schema::{
    ConvolutionBwdAttributes, ConvolutionFwdAttributes, ConvolutionWrwAttributes,
};
use dnn_assay_graph::{ConvMode, Graph};
use dnn_assay_plugin_sdk::Error;
use geometry::{Geometry, Window};
use product::{LeftMatrix, WIDTH, tile_rows};

/// `y[n, k, o] = Σ over c, taps of x[n, c, o·stride + tap·dilation − pre] · w[k, c, tap]`.
pub(crate) fn fprop<T: Num>(
    a: &ConvolutionFwdAttributes,
    tensors: &mut Tensors<'_, T>,
) -> Result<(), Error> {
    let (x, w, y) = (a.x_tensor_uid, a.w_tensor_uid, a.y_tensor_uid);
    tensors.need(&[x, w])?;
    let window = Window::new(&a.pre_padding, &a.stride, &a.dilation);
    let g = Geometry::new(
        &tensors.dims(x)?,
        &tensors.dims(w)?,
        &tensors.dims(y)?,
        &window,
    );
    let (x, w) = (tensors.get(x)?, tensors.get(w)?);
    let mut out = vec![T::default(); g.y_len()];
    let mut image = g.empty_image();
    for group in 0..g.groups {
        // One row per filter, one column per channel and tap.
        let filters = LeftMatrix::pack(g.filters, g.taps.len(), |row, tap| {
            w[g.w_index(group, row, tap)]
        });
        for n in 0..g.batch {
            g.pad(&x[g.x_range(n, group)], &mut image);
            let y = &mut out[g.y_range(n, group)];
            product::for_each_panel(g.positions.len(), g.taps.len(), |columns, panel| {
                let starts = g.starts(columns.clone());
                for (row, &tap) in panel.iter_mut().zip(&g.taps) {
                    *row = starts.map(|start| image[start + tap]);
                }
                tile_rows(&filters, panel, |row, sums| {
                    let at = row * g.positions.len();
                    y[at + columns.start..at + columns.end].copy_from_slice(&sums[..columns.len()]);
                });
            });
        }
    }
    tensors.set(a.y_tensor_uid, out)
}

/// The transpose of [`fprop`] in the image: `dx[position + tap] += Σ over k of w[k, tap] · dy[k]`.
pub(crate) fn dgrad<T: Num>(
    a: &ConvolutionBwdAttributes,
    tensors: &mut Tensors<'_, T>,
) -> Result<(), Error> {
    let (dy, w, dx) = (a.dy_tensor_uid, a.w_tensor_uid, a.dx_tensor_uid);
    tensors.need(&[dy, w])?;
    let window = Window::new(&a.pre_padding, &a.stride, &a.dilation);
    let g = Geometry::new(
        &tensors.dims(dx)?,
        &tensors.dims(w)?,
        &tensors.dims(dy)?,
        &window,
    );
    let (dy, w) = (tensors.get(dy)?, tensors.get(w)?);
    let mut out = vec![T::default(); g.x_len()];
    let mut image = g.empty_image();
    for group in 0..g.groups {
        let filters = LeftMatrix::pack(g.taps.len(), g.filters, |tap, filter| {
            w[g.w_index(group, filter, tap)]
        });
        for n in 0..g.batch {
            image.fill(T::default());
            let dy = &dy[g.y_range(n, group)];
            product::for_each_panel(g.positions.len(), g.filters, |columns, panel| {
                for (filter, row) in panel.iter_mut().enumerate() {
                    let at = filter * g.positions.len();
                    row[..columns.len()].copy_from_slice(&dy[at + columns.start..at + columns.end]);
                }
                let positions = &g.positions[columns];
                tile_rows(&filters, panel, |tap, sums| {
                    for (&position, &sum) in positions.iter().zip(sums) {
                        image[position + g.taps[tap]] += sum;
                    }
                });
            });
            g.unpad(&image, &mut out[g.x_range(n, group)]);
        }
    }
    tensors.set(a.dx_tensor_uid, out)
}

/// `dw[k, tap] = Σ over images and positions of dy[k, position] · x[position + tap]`.
pub(crate) fn wgrad<T: Num>(
    a: &ConvolutionWrwAttributes,
    tensors: &mut Tensors<'_, T>,
) -> Result<(), Error> {
    let (x, dy, dw) = (a.x_tensor_uid, a.dy_tensor_uid, a.dw_tensor_uid);
    tensors.need(&[x, dy])?;
    let window = Window::new(&a.pre_padding, &a.stride, &a.dilation);
    let g = Geometry::new(
        &tensors.dims(x)?,
        &tensors.dims(dw)?,
        &tensors.dims(dy)?,
        &window,
    );
    let (x, dy) = (tensors.get(x)?, tensors.get(dy)?);
    let mut out = vec![T::default(); g.groups * g.filters * g.taps.len()];
    let mut image = g.empty_image();
    for group in 0..g.groups {
        for n in 0..g.batch {
            g.pad(&x[g.x_range(n, group)], &mut image);
            let dy = &dy[g.y_range(n, group)];
            let gradients = LeftMatrix::pack(g.filters, g.positions.len(), |row, position| {
                dy[row * g.positions.len() + position]
            });
            product::for_each_panel(g.taps.len(), g.positions.len(), |columns, panel| {
                let taps = g.tap_starts(columns.clone());
                for (row, &position) in panel.iter_mut().zip(&g.positions) {
                    *row = taps.map(|tap| image[position + tap]);
                }
                tile_rows(&gradients, panel, |row, sums| {
                    let at = g.w_index(group, row, columns.start);
                    for (to, &sum) in out[at..at + columns.len()].iter_mut().zip(sums) {
                        *to += sum;
                    }
                });
            });
        }
    }
    tensors.set(a.dw_tensor_uid, out)
}

/// Whether [`fprop`] can run this node.
pub(crate) fn check_fprop(a: &ConvolutionFwdAttributes, graph: &Graph) -> Result<(), String> {
    let tensors = [a.x_tensor_uid, a.w_tensor_uid, a.y_tensor_uid];
    let window = [&a.pre_padding, &a.post_padding, &a.stride, &a.dilation];
    check(graph, tensors, window, a.conv_mode)
}

/// Whether [`dgrad`] can run this node.
pub(crate) fn check_dgrad(a: &ConvolutionBwdAttributes, graph: &Graph) -> Result<(), String> {
    let tensors = [a.dx_tensor_uid, a.w_tensor_uid, a.dy_tensor_uid];
    let window = [&a.pre_padding, &a.post_padding, &a.stride, &a.dilation];
    check(graph, tensors, window, a.conv_mode)
}

/// Whether [`wgrad`] can run this node.
pub(crate) fn check_wgrad(a: &ConvolutionWrwAttributes, graph: &Graph) -> Result<(), String> {
    let tensors = [a.x_tensor_uid, a.dw_tensor_uid, a.dy_tensor_uid];
    let window = [&a.pre_padding, &a.post_padding, &a.stride, &a.dilation];
    check(graph, tensors, window, a.conv_mode)
}

/// `[image, filters, output]` must fit each other under `[pre, post, stride, dilation]`.
fn check(
    graph: &Graph,
    [x, w, y]: [i64; 3],
    [pre, post, stride, dilation]: [&Vec<i64>; 4],
    mode: ConvMode,
) -> Result<(), String> {
    ensure(
        mode == ConvMode::CrossCorrelation,
        "only cross-correlation is supported",
    )?;
    let (x, w, y) = (float(graph, x)?, float(graph, w)?, float(graph, y)?);
    let (x, w, y) = (&x.dims, &w.dims, &y.dims);
    let rank = x.len();
    ensure(
        (3..=5).contains(&rank),
        "one to three spatial axes are supported",
    )?;
    ensure(
        w.len() == rank && y.len() == rank,
        "tensors of different rank",
    )?;
    let per_axis = [pre, post, stride, dilation]
        .iter()
        .all(|v| v.len() == rank - 2);
    ensure(
        per_axis,
        "paddings, strides or dilations that are not one per spatial axis",
    )?;
    ensure(
        pre.iter()
            .chain(post)
            .all(|&p| (0..=MAX_WINDOW).contains(&p))
            && stride
                .iter()
                .chain(dilation)
                .all(|&s| (1..=MAX_WINDOW).contains(&s)),
        "a padding, stride or dilation out of range",
    )?;
    ensure(
        x[1] % w[1] == 0 && w[0] % (x[1] / w[1]) == 0,
        "channels that groups do not divide",
    )?;
    ensure(
        y[0] == x[0] && y[1] == w[0],
        "an output of another batch or channel count",
    )?;
    for axis in 0..rank - 2 {
        let reach = (w[axis + 2] - 1)
            .saturating_mul(dilation[axis])
            .saturating_add(1);
        let padded = x[axis + 2].saturating_add(pre[axis] + post[axis]);
        let extent = (padded - reach).div_euclid(stride[axis]) + 1;
        ensure(
            padded >= reach && extent == y[axis + 2],
            "an output of another size",
        )?;
    }
    let image: Option<i64> = (0..rank - 2).try_fold(x[1], |product, axis| {
        product.checked_mul(x[axis + 2].checked_add(pre[axis] + post[axis])?)
    });
    ensure(
        image.is_some_and(|size| size <= MAX_IMAGE),
        "an image that is too large",
    )
}

/// Largest padding, stride or dilation.
const MAX_WINDOW: i64 = 1 << 20;

/// Largest padded image, elements.
const MAX_IMAGE: i64 = 1 << 31;

const _: () = assert!(WIDTH.is_power_of_two());
