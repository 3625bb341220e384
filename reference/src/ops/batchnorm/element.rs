//! One element of y or dx with its error. The error of either is linear in a handful of magnitudes:
//! their coefficients are worked out once per channel, and an element costs one square root and no
//! division. `account` spells the same sums out term by term, and a test holds them together.

use super::channels::Bounds;

/// A number and its error.
pub(super) type Uncertain = (f64, f64);

/// y = scale·(x − mean)·inverse + bias of one channel, after e = s·(|y| + Q) + |a|·(e_x + e_mean)·(1 + r) +
/// |scale·x̂|·r + |x̂|·e_scale + e_bias. Here a = scale·inverse, r is the relative error of the inverse,
/// s and the constant are those of a sum of three terms, and Q² = (a·x)² + (a·mean)² + bias².
#[derive(Clone, Copy)]
pub(super) struct Affine {
    mean: f64,
    inverse: f64,
    scale: f64,
    bias: f64,
    /// a.
    factor: f64,
    /// (a·mean)² + bias².
    squares: f64,
    /// s.
    of_size: f64,
    /// What |x̂| has.
    of_normal: f64,
    /// What the error of x has.
    of_error: f64,
    /// What every element has.
    always: f64,
}

impl Affine {
    /// The error of `inverse` is relative.
    pub fn new(
        bounds: &Bounds<'_>,
        (mean, mean_error): Uncertain,
        (inverse, inverse_error): Uncertain,
        (scale, scale_error): Uncertain,
        (bias, bias_error): Uncertain,
    ) -> Self {
        let factor = scale * inverse;
        let moved = factor * mean;
        let [of_size, rounding] = bounds.sum.per_size(3.0);
        let of_error = factor.abs() * (1.0 + inverse_error);
        Self {
            mean,
            inverse,
            scale,
            bias,
            factor,
            squares: moved * moved + bias * bias,
            of_size,
            of_normal: scale.abs() * inverse_error + scale_error,
            of_error,
            always: rounding + of_error * mean_error + bias_error,
        }
    }

    /// Value and error of y at x.
    #[inline(always)]
    pub fn at(&self, x: f64, x_error: f64) -> (f64, f64) {
        let normal = (x - self.mean) * self.inverse;
        let y = self.scale * normal + self.bias;
        let term = self.factor * x;
        let size = y.abs() + (term * term + self.squares).sqrt();
        let error = self.of_size * size + self.of_normal * normal.abs();
        (y, error + (self.of_error * x_error + self.always))
    }
}

/// What the sums of a channel are, each with its error; that of the inverse is relative.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    pub mean: Uncertain,
    pub inverse: Uncertain,
    pub dscale: Uncertain,
    pub dbias: Uncertain,
}

/// dx = a·(dy − dbias/M − x̂·dscale/M) of one channel. With t₁ = a·dbias/M, t₂ = a·x̂·dscale/M,
/// b = (|a| + e_scale·inverse)·(1 + r) and e_x̂ = inverse·(e_x + e_mean) + |x̂|·r,
/// e = s·(|dx| + Q) + u·(2·|t₁| + 6·|t₂|) + b·(e_dy + e_dbias/M + (|x̂| + e_x̂)·e_dscale/M + e_x̂·|dscale|/M)
/// + |dx|·r + |dx/a|·e_scale·inverse.
#[derive(Clone, Copy)]
pub(super) struct Gradient {
    mean: f64,
    inverse: f64,
    /// a.
    factor: f64,
    /// dbias/M.
    shift: f64,
    /// dscale/M.
    tilt: f64,
    /// a·dscale/M.
    slope: f64,
    /// t₁².
    square: f64,
    /// s.
    of_size: f64,
    /// What |dx/a| has beside s·|dx|.
    of_inner: f64,
    /// What |x̂| has.
    of_normal: f64,
    of_dy_error: f64,
    of_x_error: f64,
    always: f64,
}

impl Gradient {
    /// `count` is M.
    pub fn new(bounds: &Bounds<'_>, sums: &Sums, scale: Uncertain, count: f64) -> Self {
        let (inverse, relative) = sums.inverse;
        let factor = scale.0 * inverse;
        let scale_error = scale.1 * inverse;
        let (shift, tilt) = (sums.dbias.0 / count, sums.dscale.0 / count);
        let (shift_error, tilt_error) = (sums.dbias.1 / count, sums.dscale.1 / count);
        let [of_size, rounding] = bounds.sum.per_size(3.0);
        let u = bounds.u();
        let around = (factor.abs() + scale_error) * (1.0 + relative);
        // What an error of x̂ costs.
        let of_normal_error = around * (tilt_error + tilt.abs());
        let of_x_error = of_normal_error * inverse;
        let fixed = 2.0 * u * (factor * shift).abs() + around * shift_error;
        Self {
            mean: sums.mean.0,
            inverse,
            factor,
            shift,
            tilt,
            slope: factor * tilt,
            square: (factor * shift) * (factor * shift),
            of_size,
            of_inner: factor.abs() * relative + scale_error,
            of_normal: 6.0 * u * (factor * tilt).abs()
                + around * tilt_error
                + of_normal_error * relative,
            of_dy_error: around,
            of_x_error,
            always: rounding + fixed + of_x_error * sums.mean.1,
        }
    }

    /// Value and error of dx.
    #[inline(always)]
    pub fn at(&self, [x, dy]: [f64; 2], [x_error, dy_error]: [f64; 2]) -> (f64, f64) {
        let normal = (x - self.mean) * self.inverse;
        let inner = dy - self.shift - normal * self.tilt;
        let dx = self.factor * inner;
        let (direct, tilted) = (self.factor * dy, self.slope * normal);
        let q = (direct * direct + tilted * tilted + self.square).sqrt();
        let error = self.of_size * (dx.abs() + q)
            + self.of_inner * inner.abs()
            + self.of_normal * normal.abs();
        let carried = self.of_dy_error * dy_error + self.of_x_error * x_error;
        (dx, error + (carried + self.always))
    }
}
