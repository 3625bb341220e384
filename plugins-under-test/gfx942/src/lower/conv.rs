//! Convolution nodes: one matrix product with gathered operands (see `kernels/conv.hpp`).

use dnn_assay_graph::schema::{
    ConvolutionBwdAttributes, ConvolutionFwdAttributes, ConvolutionWrwAttributes,
};
use dnn_assay_plugin_sdk::Error;

use super::memory::Memory;
use super::view::{View, aligned};
use super::{Launch, Parameters, blocks};
use crate::parameters::{AXES, BESIDE, ConvParams, Decoder, Kernel, Operand, element};

/// Deeper products are split where there are too few tiles to fill a device.
const DEEP: usize = 2048;
/// No part is less deep than this.
const LEAST_PART: usize = 512;
/// Blocks that fill a device; a number of its own so that results do not depend on the device.
const MANY_BLOCKS: usize = 512;
/// Largest extent of a grid along y and z.
const MAX_GRID: usize = 65_535;

/// Rows of a tile of `kernels/conv_linear.hpp`.
const LINEAR_ROWS: usize = 256;
/// Depths of a tile, and how many of each operand a thread takes.
const LINEAR_DEEP: u32 = 8;
const EACH: [i64; 2] = [8, 2];
/// Extents that it takes are below.
const LINEAR_EXTENT: i64 = 1 << 28;

/// Tensors and window of a convolution, spatial axes aligned at the last of three.
struct Conv {
    x: View,
    w: View,
    y: View,
    image: [i64; AXES],
    filter: [i64; AXES],
    output: [i64; AXES],
    pre: [i64; AXES],
    stride: [i64; AXES],
    dilation: [i64; AXES],
    groups: i64,
}

impl Conv {
    fn new(
        memory: &mut Memory<'_>,
        [x, w, y]: [i64; 3],
        [pre, stride, dilation]: [&[i64]; 3],
    ) -> Result<Self, Error> {
        let (x, w, y) = (memory.view(x)?, memory.view(w)?, memory.view(y)?);
        for view in [&x, &w, &y] {
            view.count()?;
        }
        Ok(Self {
            image: x.spatial_dims(),
            filter: w.spatial_dims(),
            output: y.spatial_dims(),
            pre: aligned(pre, 0),
            stride: aligned(stride, 1),
            dilation: aligned(dilation, 1),
            groups: x.dims[1] / w.dims[1],
            x,
            w,
            y,
        })
    }

    /// Filters of a group.
    fn filters(&self) -> i64 {
        self.w.dims[0] / self.groups
    }

    /// Channels of a group.
    fn channels(&self) -> i64 {
        self.w.dims[1]
    }

    /// Offsets of a filter's channel and tap.
    fn weight_taps(&self, slow: i64) -> Decoder {
        let [a, b, c] = self.w.spatial_strides();
        Decoder {
            radix: self.filter.map(|n| n as u32),
            step: [slow, a, b, c],
            ..Decoder::default()
        }
    }

    fn x_group(&self) -> i64 {
        self.channels() * self.x.strides[1]
    }

    fn y_group(&self) -> i64 {
        self.filters() * self.y.strides[1]
    }

    fn w_group(&self) -> i64 {
        self.filters() * self.w.strides[0]
    }

    /// A filter of one tap that never leaves the image.
    fn is_window_of_one(&self) -> bool {
        let reaches = |a: usize| (self.output[a] - 1) * self.stride[a] < self.image[a];
        self.filter == [1; AXES] && self.pre == [0; AXES] && (0..AXES).all(reaches)
    }

    fn weights(&self, row: Decoder, depth: Decoder) -> Operand {
        Operand {
            base: self.w.address,
            kind: self.w.kind,
            row,
            depth,
            divisor: [1; AXES],
            group: self.w_group(),
            ..Operand::default()
        }
    }
}

/// A number whose digits are positions of `extents`, each position times `factor` plus `offset`.
fn positions(
    slow: i64,
    extents: [i64; AXES],
    factor: [i64; AXES],
    offset: [i64; AXES],
) -> Result<Decoder, Error> {
    Ok(Decoder {
        radix: extents.map(|n| n as u32),
        step: [slow, 0, 0, 0],
        factor: small(factor)?,
        offset: small(offset)?,
        ..Decoder::default()
    })
}

/// A number that is one digit.
fn plain(step: i64) -> Decoder {
    Decoder {
        radix: [1; AXES],
        step: [step, 0, 0, 0],
        ..Decoder::default()
    }
}

/// A batch and a position, as offsets in `view`.
fn places(view: &View) -> Decoder {
    let [a, b, c] = view.spatial_strides();
    Decoder {
        radix: view.spatial_dims().map(|n| n as u32),
        step: [view.strides[0], a, b, c],
        ..Decoder::default()
    }
}

fn small(values: [i64; AXES]) -> Result<[i32; AXES], Error> {
    let mut out = [0; AXES];
    for (to, from) in out.iter_mut().zip(values) {
        *to = i32::try_from(from)
            .map_err(|_| Error::not_applicable("an extent or window that 32 bits cannot hold"))?;
    }
    Ok(out)
}

/// `view` read at positions that may fall outside of it.
fn gathered(view: &View, row: Decoder, depth: Decoder, group: i64) -> Result<Operand, Error> {
    Ok(Operand {
        base: view.address,
        kind: view.kind,
        row,
        depth,
        step: view.spatial_strides(),
        extent: small(view.spatial_dims())?,
        divisor: [1; AXES],
        group,
        spatial: 1,
    })
}

/// `view` read at every `stride`-th position, which is inside of it, one channel per depth.
fn strided(view: &View, extents: [i64; AXES], stride: [i64; AXES], group: i64) -> Operand {
    let steps = view.spatial_strides();
    Operand {
        base: view.address,
        kind: view.kind,
        row: Decoder {
            radix: extents.map(|n| n as u32),
            step: [
                view.strides[0],
                steps[0] * stride[0],
                steps[1] * stride[1],
                steps[2] * stride[2],
            ],
            ..Decoder::default()
        },
        depth: plain(view.strides[1]),
        divisor: [1; AXES],
        group,
        ..Operand::default()
    }
}

fn product(dims: [i64; AXES]) -> i64 {
    dims.iter().product()
}

pub(super) fn fprop(
    a: &ConvolutionFwdAttributes,
    memory: &mut Memory<'_>,
    launches: &mut Vec<Launch>,
) -> Result<(), Error> {
    let uids = [a.x_tensor_uid, a.w_tensor_uid, a.y_tensor_uid];
    let c = Conv::new(memory, uids, [&a.pre_padding, &a.stride, &a.dilation])?;
    let rows = positions(c.x.strides[0], c.output, c.stride, c.pre.map(|p| -p))?;
    let depth = positions(c.x.strides[1], c.filter, c.dilation, [0; AXES])?;
    let a = match c.is_window_of_one() {
        true => strided(&c.x, c.output, c.stride, c.x_group()),
        false => gathered(&c.x, rows, depth, c.x_group())?,
    };
    let p = ConvParams {
        a,
        b: c.weights(plain(c.w.strides[0]), c.weight_taps(c.w.strides[1])),
        row: places(&c.y),
        column: plain(c.y.strides[1]),
        group: c.y_group(),
        ..ConvParams::default()
    };
    let shape = [
        c.y.dims[0] * product(c.output),
        c.filters(),
        c.channels() * product(c.filter),
    ];
    multiply(p, &c, &c.y, shape, memory, launches)
}

pub(super) fn dgrad(
    a: &ConvolutionBwdAttributes,
    memory: &mut Memory<'_>,
    launches: &mut Vec<Launch>,
) -> Result<(), Error> {
    let uids = [a.dx_tensor_uid, a.w_tensor_uid, a.dy_tensor_uid];
    let c = Conv::new(memory, uids, [&a.pre_padding, &a.stride, &a.dilation])?;
    // Output position o reads input o·stride − pre + tap·dilation: from an input, o is
    // (input + pre − tap·dilation) / stride where that is whole.
    let rows = positions(c.y.strides[0], c.image, [1; AXES], c.pre)?;
    let depth = positions(c.y.strides[1], c.filter, c.dilation.map(|d| -d), [0; AXES])?;
    let dy = match c.is_window_of_one() && c.stride == [1; AXES] {
        true => strided(&c.y, c.image, [1; AXES], c.y_group()),
        false => Operand {
            divisor: small(c.stride)?,
            ..gathered(&c.y, rows, depth, c.y_group())?
        },
    };
    let p = ConvParams {
        a: dy,
        b: c.weights(plain(c.w.strides[1]), c.weight_taps(c.w.strides[0])),
        row: places(&c.x),
        column: plain(c.x.strides[1]),
        group: c.x_group(),
        ..ConvParams::default()
    };
    let shape = [
        c.x.dims[0] * product(c.image),
        c.channels(),
        c.filters() * product(c.filter),
    ];
    multiply(p, &c, &c.x, shape, memory, launches)
}

pub(super) fn wgrad(
    a: &ConvolutionWrwAttributes,
    memory: &mut Memory<'_>,
    launches: &mut Vec<Launch>,
) -> Result<(), Error> {
    let uids = [a.x_tensor_uid, a.dw_tensor_uid, a.dy_tensor_uid];
    let c = Conv::new(memory, uids, [&a.pre_padding, &a.stride, &a.dilation])?;
    let columns = positions(c.x.strides[1], c.filter, c.dilation, c.pre.map(|p| -p))?;
    let depth = positions(c.x.strides[0], c.output, c.stride, [0; AXES])?;
    let dy = Operand {
        base: c.y.address,
        kind: c.y.kind,
        row: plain(c.y.strides[1]),
        depth: places(&c.y),
        divisor: [1; AXES],
        group: c.y_group(),
        ..Operand::default()
    };
    let p = ConvParams {
        a: dy,
        b: gathered(&c.x, columns, depth, c.x_group())?,
        row: plain(c.w.strides[0]),
        column: c.weight_taps(c.w.strides[1]),
        group: c.w_group(),
        ..ConvParams::default()
    };
    let shape = [
        c.filters(),
        c.channels() * product(c.filter),
        c.y.dims[0] * product(c.output),
    ];
    multiply(p, &c, &c.w, shape, memory, launches)
}

/// The launches of a product of `[rows, columns, depth]` per group.
fn multiply(
    mut p: ConvParams,
    conv: &Conv,
    out: &View,
    shape: [i64; 3],
    memory: &mut Memory<'_>,
    launches: &mut Vec<Launch>,
) -> Result<(), Error> {
    let too_large = || Error::not_applicable("a product with an extent of 2^31 or more");
    let [rows, columns, depth] = shape.map(|n| i32::try_from(n).map(|n| n as usize).ok());
    let rows = rows.ok_or_else(too_large)?;
    let columns = columns.ok_or_else(too_large)?;
    let depth = depth.ok_or_else(too_large)?;
    let groups = conv.groups as usize;
    let wide = [&conv.x, &conv.w, &conv.y]
        .iter()
        .any(|v| v.kind == element::F64);
    let tile_rows = if wide { 64 } else { 128 };
    let tiles = [rows.div_ceil(tile_rows), columns.div_ceil(64)];
    let (parts, part) = split(depth, tiles[0] * tiles[1] * groups);
    if tiles[1] > MAX_GRID || groups * parts > MAX_GRID {
        return Err(Error::not_applicable("a grid with more than 65535 tiles"));
    }
    p.out = out.address;
    p.out_type = out.kind;
    (p.rows, p.columns, p.depth) = (rows as u32, columns as u32, depth as u32);
    (p.groups, p.parts, p.part) = (groups as u32, parts as u32, part as u32);
    let elements = groups * rows * columns;
    if parts > 1 {
        let bytes = parts * elements * if wide { 8 } else { 4 };
        p.partial = memory.scratch(bytes)?;
    }
    let all = [&conv.x, &conv.w, &conv.y];
    let inputs: Vec<View> = all
        .into_iter()
        .filter(|view| view.address != out.address)
        .cloned()
        .collect();
    let kind = if wide { element::F64 } else { element::F32 };
    let partial = View::of(p.partial, kind, [(parts * elements) as i64], [1]);
    let made = if parts > 1 { &partial } else { out };
    let [main, sum] = if wide {
        [Kernel::ConvF64, Kernel::ConvSumF64]
    } else {
        [Kernel::ConvF32, Kernel::ConvSumF32]
    };
    let (main, tall) = if is_linear(&p, conv) {
        for (operand, (bit, each)) in [&p.a, &p.b].into_iter().zip(BESIDE.into_iter().zip(EACH)) {
            p.beside |= if goes_wide(operand, each) { bit } else { 0 };
        }
        (Kernel::ConvLinear, rows.div_ceil(LINEAR_ROWS))
    } else {
        (main, tiles[0])
    };
    launches.push(Launch {
        kernel: main,
        grid: [tall as u32, tiles[1] as u32, (groups * parts) as u32],
        parameters: Parameters::Conv(Box::new(p.clone())),
        reads: inputs,
        writes: vec![made.clone()],
    });
    if parts > 1 {
        launches.push(Launch {
            kernel: sum,
            grid: [blocks(elements), 1, 1],
            parameters: Parameters::Conv(Box::new(p)),
            reads: vec![partial],
            writes: vec![out.clone()],
        });
    }
    Ok(())
}

/// Whether `kernels/conv_linear.hpp` can do it: floats, no divisors, offsets that 32 bits hold and
/// positions that 28 do.
fn is_linear(p: &ConvParams, conv: &Conv) -> bool {
    let views = [&conv.x, &conv.w, &conv.y];
    let span = |view: &View| -> Option<i64> {
        let axes = view.dims.iter().zip(&view.strides);
        axes.map(|(dim, stride)| (dim - 1).checked_mul(stride.abs()))
            .try_fold(0i64, |sum, step| sum.checked_add(step?))
    };
    let small = |view: &&View| {
        span(view).is_some_and(|span| span < i64::from(i32::MAX))
            && view.dims.iter().all(|dim| *dim < LINEAR_EXTENT)
    };
    let windows = [conv.pre, conv.stride, conv.dilation];
    let reach = |a: usize| {
        let steps = conv.filter[a].checked_mul(conv.dilation[a])?;
        steps.checked_add(conv.output[a].checked_mul(conv.stride[a])?)
    };
    p.a.divisor == [1; AXES]
        && p.b.divisor == [1; AXES]
        && views
            .iter()
            .all(|view| element::vectored(view.kind).is_some())
        && views.iter().all(small)
        && windows.iter().flatten().all(|n| n.abs() < LINEAR_EXTENT)
        && (0..AXES).all(|a| reach(a).is_some_and(|reach| reach < LINEAR_EXTENT))
}

/// Whether the depths of every tile lie side by side in `operand`, `each` of them aligned for the
/// widest loads of a thread. Tiles begin at multiples of their own depth.
fn goes_wide(operand: &Operand, each: i64) -> bool {
    let Some(size) = element::vectored(operand.kind) else {
        return false;
    };
    // What one load takes: up to 16 bytes.
    let lane = each.min(16 / size as i64);
    let whole = |step: i64| step % lane == 0;
    let digits = |d: &Decoder| {
        (0..AXES)
            .rev()
            .map(|a| (d.radix[a], d.step[a + 1]))
            .collect()
    };
    let depth: Vec<(u32, i64)> = digits(&operand.depth);
    let row: Vec<(u32, i64)> = digits(&operand.row);
    // How many depths from a multiple of it on lie side by side.
    let mut run = 1u32;
    let mut others = Vec::new();
    for &(radix, step) in depth.iter().filter(|digit| digit.0 > 1) {
        match others.is_empty() && step == i64::from(run) {
            true => run = run.saturating_mul(radix),
            false => others.push(step),
        }
    }
    let endless = others.is_empty() && operand.depth.step[0] == i64::from(run);
    others.push(operand.depth.step[0]);
    operand.spatial == 0
        && operand.base.is_multiple_of(lane as u64 * size)
        && whole(operand.group)
        && whole(operand.row.step[0])
        && row.iter().all(|&(radix, step)| radix <= 1 || whole(step))
        && (endless || run.is_multiple_of(LINEAR_DEEP) && others.iter().all(|s| whole(*s)))
}

/// In how many parts a product is added up, and how deep each is: from the shape alone.
fn split(depth: usize, tiles: usize) -> (usize, usize) {
    if depth < DEEP || tiles >= MANY_BLOCKS {
        return (1, depth);
    }
    let parts = MANY_BLOCKS.div_ceil(tiles).min(depth / LEAST_PART);
    let part = depth.div_ceil(parts).next_multiple_of(16);
    (depth.div_ceil(part), part)
}

#[cfg(test)]
mod tests {
    use super::{goes_wide, plain, split};
    use crate::parameters::{Decoder, Operand, element};

    /// Filters of 12 channels and 3x3 taps, packed: each a row, its channel and tap the depth.
    fn filters() -> Operand {
        Operand {
            base: 256,
            kind: element::F32,
            row: plain(108),
            depth: Decoder {
                radix: [1, 3, 3],
                step: [9, 0, 3, 1],
                ..Decoder::default()
            },
            group: 108 * 6,
            ..Operand::default()
        }
    }

    #[test]
    fn packed_filters_go_wide_and_what_is_apart_or_misaligned_does_not() {
        assert!(goes_wide(&filters(), 8));
        let with = |change: fn(&mut Operand)| {
            let mut operand = filters();
            change(&mut operand);
            goes_wide(&operand, 8)
        };
        assert!(!with(|o| o.base = 264), "half a load");
        assert!(!with(|o| o.kind = element::F16), "rows of 108 halves");
        assert!(!with(|o| o.row = plain(109)), "odd rows");
        assert!(!with(|o| o.group = 642), "odd groups");
        assert!(!with(|o| o.depth.step = [1, 0, 36, 12]), "channels last");
        assert!(!with(|o| o.spatial = 1), "positions are looked at");
        assert!(!with(|o| o.kind = element::F64), "no narrow floats");
        let image = |radix, step| Decoder {
            radix,
            step,
            ..Decoder::default()
        };
        let mut pixels = Operand {
            depth: image([1, 4, 6], [240, 0, 6, 1]),
            row: plain(24),
            ..filters()
        };
        assert!(goes_wide(&pixels, 8), "planes of 24, whole tiles");
        pixels.depth = image([1, 3, 6], [180, 0, 6, 1]);
        assert!(!goes_wide(&pixels, 8), "tiles across planes of 18");
        let channels = Operand {
            depth: plain(1),
            row: image([1, 5, 5], [400, 0, 80, 16]),
            group: 16,
            ..filters()
        };
        assert!(goes_wide(&channels, 8), "channels last under one tap");
    }

    #[test]
    fn parts_cover_the_depth() {
        assert_eq!(split(100, 1), (1, 100));
        assert_eq!(split(1_000_000, 600), (1, 1_000_000));
        for (depth, tiles) in [(2048, 1), (200_704, 9), (5000, 511), (1 << 30, 1)] {
            let (parts, part) = split(depth, tiles);
            assert!(
                parts * part >= depth && (parts - 1) * part < depth,
                "{depth}"
            );
            assert!(part >= 512 && parts <= 512);
        }
    }
}
