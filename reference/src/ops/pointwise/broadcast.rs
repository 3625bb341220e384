//! Operands broadcast to an output: aligned at the last axis, extent 1 repeats.

/// Operands of a pointwise node at most.
pub(crate) const OPERANDS: usize = 3;

/// The output as a few merged axes, and each operand's step along them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broadcast {
    axes: Vec<Axis>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    extent: usize,
    steps: [usize; OPERANDS],
}

/// A run of output elements along the last merged axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// First output element.
    pub out: usize,
    /// Elements.
    pub len: usize,
    /// Each operand's first element.
    pub from: [usize; OPERANDS],
    /// Each operand's step: 0 or 1.
    pub step: [usize; OPERANDS],
}

impl Broadcast {
    /// Fits packed operands of these extents to an output.
    ///
    /// # Errors
    /// A text where an operand has more axes or another extent.
    pub fn new(output: &[i64], operands: &[&[i64]]) -> Result<Self, String> {
        let mut axes = Vec::with_capacity(output.len() + 1);
        let mut strides = [1usize; OPERANDS];
        for back in 0..output.len() {
            let extent = output[output.len() - 1 - back];
            let mut steps = [0usize; OPERANDS];
            for (index, dims) in operands.iter().enumerate() {
                let own = dims
                    .len()
                    .checked_sub(1 + back)
                    .map_or(1, |axis| dims[axis]);
                if own != extent && own != 1 {
                    return Err(format!(
                        "operand {index} is {dims:?}, the output {output:?}"
                    ));
                }
                if own != 1 {
                    steps[index] = strides[index];
                    strides[index] = strides[index].saturating_mul(own.max(0) as usize);
                }
            }
            push_outer(&mut axes, extent.max(0) as usize, steps);
        }
        for (index, dims) in operands.iter().enumerate() {
            let missing = dims.len().saturating_sub(output.len());
            if dims[..missing].iter().any(|&extent| extent != 1) {
                return Err(format!(
                    "operand {index} is {dims:?}, the output {output:?}"
                ));
            }
        }
        if axes.is_empty() {
            axes.push(Axis {
                extent: 1,
                steps: [0; OPERANDS],
            });
        }
        axes.reverse();
        Ok(Self { axes })
    }

    /// Calls `visit` with the runs that make up the output elements `range`, in order.
    pub fn runs(&self, range: std::ops::Range<usize>, mut visit: impl FnMut(Run)) {
        let (last, outer) = match self.axes.split_last() {
            Some(split) => split,
            None => return,
        };
        let mut out = range.start;
        while out < range.end {
            let column = out % last.extent;
            let mut row = out / last.extent;
            let mut from = last.steps.map(|step| step * column);
            for axis in outer.iter().rev() {
                let at = row % axis.extent;
                row /= axis.extent;
                for (from, step) in from.iter_mut().zip(axis.steps) {
                    *from += at * step;
                }
            }
            let len = (last.extent - column).min(range.end - out);
            visit(Run {
                out,
                len,
                from,
                step: last.steps,
            });
            out += len;
        }
    }
}

/// Adds an axis outside of those there are, merged with the outermost where every operand runs on.
fn push_outer(axes: &mut Vec<Axis>, extent: usize, steps: [usize; OPERANDS]) {
    if extent == 1 {
        return;
    }
    if let Some(inner) = axes.last_mut() {
        let continues = (0..OPERANDS).all(|i| steps[i] == inner.steps[i] * inner.extent);
        if continues {
            inner.extent *= extent;
            return;
        }
    }
    axes.push(Axis { extent, steps });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(output: &[i64], operand: &[i64]) -> Vec<usize> {
        let broadcast = Broadcast::new(output, &[operand]).unwrap();
        let total: i64 = output.iter().product();
        let mut indices = Vec::new();
        // In two pieces, so that a run is cut.
        for range in [0..total as usize / 2, total as usize / 2..total as usize] {
            broadcast.runs(range, |run| {
                indices.extend((0..run.len).map(|i| run.from[0] + i * run.step[0]));
            });
        }
        indices
    }

    #[test]
    fn repeats_axes_of_extent_one() {
        assert_eq!(gathered(&[2, 3], &[2, 3]), [0, 1, 2, 3, 4, 5]);
        assert_eq!(gathered(&[2, 3], &[1, 3]), [0, 1, 2, 0, 1, 2]);
        assert_eq!(gathered(&[2, 3], &[3]), [0, 1, 2, 0, 1, 2]);
        assert_eq!(gathered(&[2, 3], &[2, 1]), [0, 0, 0, 1, 1, 1]);
        assert_eq!(gathered(&[2, 3], &[1, 1]), [0; 6]);
        assert_eq!(gathered(&[1, 2, 1, 2], &[1, 2, 1, 1]), [0, 0, 1, 1]);
        assert_eq!(gathered(&[], &[1]), [0]);
    }

    #[test]
    fn merges_axes() {
        let plain = Broadcast::new(&[4, 3, 5, 7], &[&[4, 3, 5, 7], &[1]]).unwrap();
        assert_eq!(plain.axes.len(), 1);
        let bias = Broadcast::new(&[4, 3, 5, 7], &[&[4, 3, 5, 7], &[1, 3, 1, 1]]).unwrap();
        assert_eq!(bias.axes.len(), 3);
    }

    #[test]
    fn refuses_what_does_not_fit() {
        assert!(Broadcast::new(&[2, 3], &[&[2, 2]]).is_err());
        assert!(Broadcast::new(&[3], &[&[2, 3]]).is_err());
        assert!(Broadcast::new(&[3], &[&[1, 3]]).is_ok());
    }
}
