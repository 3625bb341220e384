//! Measures how far convolutions by transforms stray: the evidence behind the constants of the
//! traits `winograd` and `fft`.
//!
//! A check is one output plane of a 3 × 3 convolution over C channels with a padding of 1, in f32
//! by Winograd's minimal filtering (Lavin and Gray 2015, F(2×2, 3×3) and F(4×4, 3×3)) or by
//! Fourier's transform (radix 2). Its ratio is the largest |got − y| of the plane over the largest
//! 4·u·√K·(|y| + Q): a transform mixes the elements of a tile, so its error goes by the largest of
//! them. Where the transformed data are stored in f16, the ratio is over
//! (1 + 2·(2⁻¹¹/u)/√K) times that.

use super::{Distribution, Random};

/// How a convolution is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// F(2×2, 3×3).
    WinogradTwo,
    /// F(4×4, 3×3).
    WinogradFour,
    /// Fourier's, of 16 × 16 points.
    Fourier,
}

impl Transform {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::WinogradTwo, Self::WinogradFour, Self::Fourier];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WinogradTwo => "winograd F(2×2, 3×3)",
            Self::WinogradFour => "winograd F(4×4, 3×3)",
            Self::Fourier => "fft 16×16",
        }
    }
}

/// What the planes of one transform, distribution and number of channels showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The transform.
    pub transform: Transform,
    /// Transformed data are stored in f16.
    pub narrow: bool,
    /// The data.
    pub distribution: Distribution,
    /// Channels.
    pub channels: usize,
    /// Planes.
    pub planes: u64,
    /// The largest ratio.
    pub largest: f64,
}

/// Output extent: a multiple of both tiles.
const OUT: usize = 12;
/// With the padding.
const IN: usize = OUT + 2;

/// Runs `planes` planes.
pub fn measure(
    transform: Transform,
    narrow: bool,
    distribution: Distribution,
    channels: usize,
    planes: u64,
    seed: u64,
) -> Row {
    let mut largest = 0.0f64;
    for plane in 0..planes {
        let mut random = Random::stream(seed ^ 0x7a5, plane);
        let store = if narrow { to_half } else { |x| x };
        let draw = |random: &mut Random| store(distribution.draw(random));
        let x: Vec<[[f32; IN]; IN]> = (0..channels)
            .map(|_| {
                let mut image = [[0.0; IN]; IN];
                for row in &mut image[1..=OUT] {
                    row[1..=OUT].fill_with(|| draw(&mut random));
                }
                image
            })
            .collect();
        let w: Vec<[[f32; 3]; 3]> = (0..channels)
            .map(|_| std::array::from_fn(|_| std::array::from_fn(|_| draw(&mut random))))
            .collect();
        let got = match transform {
            Transform::WinogradTwo => winograd::<2, 4>(&x, &w, &TWO, store),
            Transform::WinogradFour => winograd::<4, 6>(&x, &w, &FOUR, store),
            Transform::Fourier => fourier(&x, &w, store),
        };
        largest = largest.max(ratio(&x, &w, &got, narrow));
    }
    Row {
        transform,
        narrow,
        distribution,
        channels,
        planes,
        largest,
    }
}

fn to_half(x: f32) -> f32 {
    crate::dtype::round(dnn_assay_graph::DataType::Half, f64::from(x)) as f32
}

type Plane = [[f32; OUT]; OUT];

fn ratio(x: &[[[f32; IN]; IN]], w: &[[[f32; 3]; 3]], got: &Plane, narrow: bool) -> f64 {
    let terms = 9.0 * x.len() as f64;
    let (mut error, mut bound) = (0.0f64, 0.0f64);
    for (i, row) in got.iter().enumerate() {
        for (j, &got) in row.iter().enumerate() {
            let (mut y, mut squares) = (0.0f64, 0.0f64);
            for (x, w) in x.iter().zip(w) {
                for (r, taps) in w.iter().enumerate() {
                    for (s, &tap) in taps.iter().enumerate() {
                        let product = f64::from(x[i + r][j + s]) * f64::from(tap);
                        y += product;
                        squares += product * product;
                    }
                }
            }
            error = error.max((f64::from(got) - y).abs());
            bound = bound.max(y.abs() + squares.sqrt());
        }
    }
    let u = (-24f64).exp2();
    let stored = if narrow {
        2.0 * (-11f64).exp2() / u / terms.sqrt()
    } else {
        0.0
    };
    error / (4.0 * u * terms.sqrt() * bound * (1.0 + stored))
}

/// The three matrices of F(M×M, 3×3) with tiles of T = M + 2.
struct Matrices<const M: usize, const T: usize> {
    data: [[f32; T]; T],
    filter: [[f32; 3]; T],
    output: [[f32; T]; M],
}

const TWO: Matrices<2, 4> = Matrices {
    data: [
        [1.0, 0.0, -1.0, 0.0],
        [0.0, 1.0, 1.0, 0.0],
        [0.0, -1.0, 1.0, 0.0],
        [0.0, 1.0, 0.0, -1.0],
    ],
    filter: [
        [1.0, 0.0, 0.0],
        [0.5, 0.5, 0.5],
        [0.5, -0.5, 0.5],
        [0.0, 0.0, 1.0],
    ],
    output: [[1.0, 1.0, 1.0, 0.0], [0.0, 1.0, -1.0, -1.0]],
};

const FOUR: Matrices<4, 6> = Matrices {
    data: [
        [4.0, 0.0, -5.0, 0.0, 1.0, 0.0],
        [0.0, -4.0, -4.0, 1.0, 1.0, 0.0],
        [0.0, 4.0, -4.0, -1.0, 1.0, 0.0],
        [0.0, -2.0, -1.0, 2.0, 1.0, 0.0],
        [0.0, 2.0, -1.0, -2.0, 1.0, 0.0],
        [0.0, 4.0, 0.0, -5.0, 0.0, 1.0],
    ],
    filter: [
        [0.25, 0.0, 0.0],
        [-1.0 / 6.0, -1.0 / 6.0, -1.0 / 6.0],
        [-1.0 / 6.0, 1.0 / 6.0, -1.0 / 6.0],
        [1.0 / 24.0, 1.0 / 12.0, 1.0 / 6.0],
        [1.0 / 24.0, -1.0 / 12.0, 1.0 / 6.0],
        [0.0, 0.0, 1.0],
    ],
    output: [
        [1.0, 1.0, 1.0, 1.0, 1.0, 0.0],
        [0.0, 1.0, -1.0, 2.0, -2.0, 0.0],
        [0.0, 1.0, 1.0, 4.0, 4.0, 0.0],
        [0.0, 1.0, -1.0, 8.0, -8.0, 1.0],
    ],
};

/// `left · middle · leftᵀ` in f32.
fn both_sides<const A: usize, const B: usize>(
    left: &[[f32; B]; A],
    middle: &[[f32; B]; B],
) -> [[f32; A]; A] {
    let half: [[f32; B]; A] = std::array::from_fn(|i| {
        std::array::from_fn(|j| (0..B).fold(0.0, |sum, k| sum + left[i][k] * middle[k][j]))
    });
    std::array::from_fn(|i| {
        std::array::from_fn(|j| (0..B).fold(0.0, |sum, k| sum + half[i][k] * left[j][k]))
    })
}

fn winograd<const M: usize, const T: usize>(
    x: &[[[f32; IN]; IN]],
    w: &[[[f32; 3]; 3]],
    matrices: &Matrices<M, T>,
    store: fn(f32) -> f32,
) -> Plane {
    let stored = |tile: [[f32; T]; T]| tile.map(|row| row.map(store));
    let filters: Vec<_> = w
        .iter()
        .map(|w| stored(both_sides(&matrices.filter, w)))
        .collect();
    let mut out = [[0.0; OUT]; OUT];
    for top in (0..OUT).step_by(M) {
        for left in (0..OUT).step_by(M) {
            let mut sum = [[0.0f32; T]; T];
            for (x, filter) in x.iter().zip(&filters) {
                let tile = std::array::from_fn(|i| std::array::from_fn(|j| x[top + i][left + j]));
                let data = stored(both_sides(&matrices.data, &tile));
                for (sum, (data, filter)) in sum.iter_mut().zip(data.iter().zip(filter)) {
                    for (sum, (a, b)) in sum.iter_mut().zip(data.iter().zip(filter)) {
                        *sum += a * b;
                    }
                }
            }
            let tile = both_sides(&matrices.output, &sum);
            for (i, row) in tile.iter().enumerate() {
                out[top + i][left..left + M].copy_from_slice(row);
            }
        }
    }
    out
}

/// Points of Fourier's transform along each axis.
const POINTS: usize = 16;

type Complex = (f32, f32);
type Spectrum = Vec<[Complex; POINTS]>;

fn times(a: Complex, b: Complex) -> Complex {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

/// Radix 2, decimation in time; `sign` of the exponent.
fn line(values: &mut [Complex], sign: f64) {
    let n = values.len();
    if n == 1 {
        return;
    }
    let mut even: Vec<Complex> = values.iter().copied().step_by(2).collect();
    let mut odd: Vec<Complex> = values.iter().copied().skip(1).step_by(2).collect();
    line(&mut even, sign);
    line(&mut odd, sign);
    for k in 0..n / 2 {
        let angle = sign * std::f64::consts::TAU * k as f64 / n as f64;
        let turned = times((libm::cos(angle) as f32, libm::sin(angle) as f32), odd[k]);
        values[k] = (even[k].0 + turned.0, even[k].1 + turned.1);
        values[k + n / 2] = (even[k].0 - turned.0, even[k].1 - turned.1);
    }
}

fn transform(plane: &mut Spectrum, sign: f64) {
    for row in plane.iter_mut() {
        line(row, sign);
    }
    for column in 0..POINTS {
        let mut values: Vec<Complex> = plane.iter().map(|row| row[column]).collect();
        line(&mut values, sign);
        for (row, value) in plane.iter_mut().zip(values) {
            row[column] = value;
        }
    }
}

fn spectrum(at: impl Fn(usize, usize) -> f32, store: fn(f32) -> f32) -> Spectrum {
    let mut plane: Spectrum = (0..POINTS)
        .map(|i| std::array::from_fn(|j| (at(i, j), 0.0)))
        .collect();
    transform(&mut plane, -1.0);
    for value in plane.iter_mut().flatten() {
        *value = (store(value.0), store(value.1));
    }
    plane
}

fn fourier(x: &[[[f32; IN]; IN]], w: &[[[f32; 3]; 3]], store: fn(f32) -> f32) -> Plane {
    let mut sum: Spectrum = vec![[(0.0, 0.0); POINTS]; POINTS];
    for (x, w) in x.iter().zip(w) {
        let of_pixel = |i: usize, j: usize| x.get(i).and_then(|row| row.get(j)).copied();
        let image = spectrum(|i, j| of_pixel(i, j).unwrap_or(0.0), store);
        // A correlation is the convolution with the turned filter.
        let of_tap = |i: usize, j: usize| w.get(i).and_then(|row| row.get(j)).copied();
        let filter = spectrum(
            |i, j| of_tap((POINTS - i) % POINTS, (POINTS - j) % POINTS).unwrap_or(0.0),
            store,
        );
        for (sum, (a, b)) in sum.iter_mut().zip(image.iter().zip(&filter)) {
            for (sum, (&a, &b)) in sum.iter_mut().zip(a.iter().zip(b)) {
                let product = times(a, b);
                *sum = (sum.0 + product.0, sum.1 + product.1);
            }
        }
    }
    transform(&mut sum, 1.0);
    let scale = 1.0 / (POINTS * POINTS) as f32;
    std::array::from_fn(|i| std::array::from_fn(|j| sum[i][j].0 * scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each transform computes a convolution, in f32 and in f16, and errs more than nothing.
    #[test]
    fn transforms_convolve_within_their_traits() {
        for transform in Transform::ALL {
            for narrow in [false, true] {
                let row = measure(transform, narrow, Distribution::Symmetric, 8, 20, 1);
                let most = match transform {
                    Transform::Fourier => crate::traits::FFT,
                    _ => crate::traits::WINOGRAD,
                };
                assert!(row.largest > 0.001 && row.largest < most, "{row:?}");
            }
        }
    }
}
