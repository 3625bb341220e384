//! The shapes of a convolution, checked once, in terms of its forward direction.

use dnn_assay_graph::{ConvMode, Tensor, Window};

/// One spatial axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    /// Extent of x (or dx).
    pub input: usize,
    /// Extent of y (or dy).
    pub output: usize,
    /// Extent of the filter.
    pub taps: usize,
    /// Step of the window.
    pub stride: usize,
    /// Distance of the taps.
    pub dilation: usize,
    /// Padding before the first element.
    pub pre: usize,
}

impl Axis {
    /// The input coordinate that `tap` of the window at `output` sees, `None` in the padding.
    #[inline]
    pub fn input_at(&self, output: usize, tap: usize) -> Option<usize> {
        let padded = output * self.stride + tap * self.dilation;
        padded
            .checked_sub(self.pre)
            .filter(|&coordinate| coordinate < self.input)
    }

    /// The output coordinate whose window sees `input` through `tap`.
    #[inline]
    pub fn output_at(&self, input: usize, tap: usize) -> Option<usize> {
        let first = (input + self.pre).checked_sub(tap * self.dilation)?;
        (first % self.stride == 0 && first / self.stride < self.output).then(|| first / self.stride)
    }
}

/// A convolution of any spatial rank, groups implied by the shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Batch.
    pub batch: usize,
    /// Groups.
    pub groups: usize,
    /// Input channels per group.
    pub channels: usize,
    /// Output channels per group.
    pub filters: usize,
    /// Spatial axes, slowest first.
    pub axes: Vec<Axis>,
    /// The filter is flipped along every spatial axis.
    pub flipped: bool,
}

impl Geometry {
    /// Checks x `[N, G·C, S…]`, w `[G·K, C, R…]` and y `[N, G·K, O…]` against the window.
    pub fn new(x: &Tensor, w: &Tensor, y: &Tensor, window: &Window<'_>) -> Result<Self, String> {
        let (x, w, y) = (extents(x)?, extents(w)?, extents(y)?);
        if x.len() < 3 || w.len() != x.len() || y.len() != x.len() {
            return Err(format!(
                "convolution of ranks x {}, w {}, y {}: three equal ranks of at least 3 are needed",
                x.len(),
                w.len(),
                y.len()
            ));
        }
        let (channels, outputs) = (w[1], w[0]);
        let groups = x[1].checked_div(channels).unwrap_or(0);
        if groups == 0 || x[1] != groups * channels || outputs % groups != 0 {
            return Err(format!(
                "x has {} channels, w is {w:?}: no whole number of groups",
                x[1]
            ));
        }
        if y[0] != x[0] || y[1] != outputs {
            return Err(format!("y is {y:?}, x is {x:?}, w is {w:?}"));
        }
        let spatial = x.len() - 2;
        let axes = (0..spatial)
            .map(|axis| {
                let extents = (x[axis + 2], w[axis + 2], y[axis + 2]);
                checked_axis(axis, spatial, extents, window)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            batch: x[0],
            groups,
            channels,
            filters: outputs / groups,
            axes,
            flipped: window.mode == ConvMode::Convolution,
        })
    }

    /// A matrix product `[filters, channels] · [channels, positions]`.
    pub fn dense(channels: usize, filters: usize, positions: usize) -> Self {
        Self {
            batch: 1,
            groups: 1,
            channels,
            filters,
            axes: vec![Axis {
                input: positions,
                output: positions,
                taps: 1,
                stride: 1,
                dilation: 1,
                pre: 0,
            }],
            flipped: false,
        }
    }

    /// Elements of one channel of x.
    pub fn input_plane(&self) -> usize {
        self.axes.iter().map(|axis| axis.input).product()
    }

    /// Elements of one channel of y.
    pub fn output_plane(&self) -> usize {
        self.axes.iter().map(|axis| axis.output).product()
    }

    /// Taps of one channel of one filter.
    pub fn window(&self) -> usize {
        self.axes.iter().map(|axis| axis.taps).product()
    }

    /// Whether Winograd's or Fourier's transform saves products here: some axis has taps side by
    /// side.
    pub fn can_be_transformed(&self) -> bool {
        self.axes
            .iter()
            .any(|axis| axis.taps > 1 && axis.dilation == 1)
    }

    /// Elements of x, w and y.
    pub fn sizes(&self) -> (usize, usize, usize) {
        (
            self.batch * self.groups * self.channels * self.input_plane(),
            self.groups * self.filters * self.channels * self.window(),
            self.batch * self.groups * self.filters * self.output_plane(),
        )
    }
}

fn extents(tensor: &Tensor) -> Result<Vec<usize>, String> {
    tensor
        .element_count()
        .ok_or_else(|| format!("tensor {}: {:?} has no size", tensor.uid, tensor.dims))?;
    Ok(tensor.dims.iter().map(|&dim| dim as usize).collect())
}

fn checked_axis(
    axis: usize,
    spatial: usize,
    (input, taps, output): (usize, usize, usize),
    window: &Window<'_>,
) -> Result<Axis, String> {
    let pick = |name: &str, values: &[i64], default: i64, least: i64| {
        let value = if values.is_empty() {
            default
        } else if values.len() == spatial {
            values[axis]
        } else {
            return Err(format!(
                "{name} has {} entries, {spatial} are needed",
                values.len()
            ));
        };
        // 2³¹ keeps every product of two of these within 64 bits.
        if value < least || value >= 1 << 31 {
            return Err(format!("{name}[{axis}] is {value}"));
        }
        Ok(value as usize)
    };
    let pre = pick("pre_padding", window.pre, 0, 0)?;
    let post = pick("post_padding", window.post, 0, 0)?;
    let stride = pick("stride", window.stride, 1, 1)?;
    let dilation = pick("dilation", window.dilation, 1, 1)?;
    let reach = taps
        .checked_sub(1)
        .and_then(|steps| steps.checked_mul(dilation)?.checked_add(1))
        .ok_or_else(|| format!("filter extent {taps} on axis {axis}"))?;
    let padded = input
        .checked_add(pre + post)
        .ok_or_else(|| format!("input extent {input} on axis {axis}"))?;
    let expected = padded.checked_sub(reach).map(|rest| rest / stride + 1);
    if expected != Some(output) {
        return Err(format!(
            "axis {axis}: input {input}, padding {pre}+{post}, filter {taps}, stride {stride}, \
             dilation {dilation} give {expected:?} outputs, y has {output}"
        ));
    }
    Ok(Axis {
        input,
        output,
        taps,
        stride,
        dilation,
        pre,
    })
}
