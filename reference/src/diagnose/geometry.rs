//! Where the wrong elements of an output lie, in numbers and in words.

use super::agreement::Bench;
use super::layout::Coordinates;
use crate::criterion::Criterion;
use crate::dtype::{self, LayoutError};
use crate::estimate::Estimate;
use dnn_assay_graph::Tensor;

/// Where the wrong elements of a tensor lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Geometry {
    /// One line for people: `all 512 wrong elements (of 4096, 12.5 %) have w ≥ 112: last tile
    /// column, period 16`.
    pub text: String,
    /// Elements that the criterion does not accept.
    pub wrong: usize,
    /// Elements.
    pub total: usize,
    /// Smallest coordinates of the wrong elements, per axis; empty where none is wrong.
    pub low: Vec<i64>,
    /// Largest coordinates of the wrong elements, per axis; empty where none is wrong.
    pub high: Vec<i64>,
    /// Wrong elements by coordinate, per axis.
    pub histogram: Vec<Vec<u64>>,
}

/// Looks at every element of `got`, the bytes of `tensor`'s strided buffer.
///
/// # Errors
/// [`LayoutError`] if the tensor's type has no reference, its layout does not fit the buffer, or
/// the estimate is of another size.
pub fn geometry(
    tensor: &Tensor,
    estimate: &Estimate,
    got: &[u8],
    criterion: &Criterion,
) -> Result<Geometry, LayoutError> {
    let got = dtype::decode(tensor, got)?;
    if got.len() != estimate.value.len() || got.len() != estimate.error.len() {
        return Err(LayoutError::Values {
            uid: tensor.uid,
            expected: got.len(),
            seen: estimate.value.len(),
        });
    }
    let bench = Bench::new(*criterion, tensor.data_type);
    let mut tally = Tally::new(&tensor.dims);
    let mut at = Coordinates::new(&tensor.dims);
    for (index, &got) in got.iter().enumerate() {
        if !bench.accepts(index, estimate, got) {
            tally.add(index, at.get());
        }
        at.advance();
    }
    Ok(tally.into_geometry(tensor))
}

/// Counts of wrong elements.
struct Tally {
    dims: Vec<i64>,
    total: usize,
    wrong: usize,
    histogram: Vec<Vec<u64>>,
    /// Index of the first wrong element.
    first: usize,
    /// Smallest position within a plane, row-major over the spatial axes.
    first_position: usize,
    /// Largest distance of a wrong element from the border of its plane.
    deepest: i64,
}

impl Tally {
    fn new(dims: &[i64]) -> Self {
        Self {
            dims: dims.to_vec(),
            total: dims.iter().map(|&dim| dim.max(0) as usize).product(),
            wrong: 0,
            histogram: dims
                .iter()
                .map(|&dim| vec![0; dim.max(0) as usize])
                .collect(),
            first: usize::MAX,
            first_position: usize::MAX,
            deepest: 0,
        }
    }

    fn plane(&self) -> usize {
        let spatial = self.dims.iter().skip(2);
        spatial.map(|&dim| dim.max(1) as usize).product()
    }

    fn add(&mut self, index: usize, at: &[i64]) {
        self.wrong += 1;
        for (histogram, &at) in self.histogram.iter_mut().zip(at) {
            histogram[at as usize] += 1;
        }
        self.first = self.first.min(index);
        self.first_position = self.first_position.min(index % self.plane());
        let spatial = self.dims.iter().zip(at).skip(2);
        let depth = spatial.map(|(&dim, &at)| at.min(dim - 1 - at)).min();
        self.deepest = self.deepest.max(depth.unwrap_or(i64::MAX));
    }

    fn into_geometry(self, tensor: &Tensor) -> Geometry {
        let text = self.text(&names(tensor));
        let edge = |find: fn(&[u64]) -> Option<usize>| -> Vec<i64> {
            let edges = self.histogram.iter().map(|axis| find(axis));
            edges.flatten().map(|at| at as i64).collect()
        };
        Geometry {
            text,
            wrong: self.wrong,
            total: self.total,
            low: edge(|axis| axis.iter().position(|&count| count > 0)),
            high: edge(|axis| axis.iter().rposition(|&count| count > 0)),
            histogram: self.histogram,
        }
    }

    fn text(&self, names: &[Name]) -> String {
        let (wrong, total) = (self.wrong, self.total);
        if wrong == 0 {
            return "no single element is wrong, the figure of the whole tensor is".to_owned();
        }
        if wrong == total {
            return format!("all {total} elements are wrong");
        }
        if wrong == 1 {
            return self.one(names);
        }
        let share = share(wrong, total);
        let mut clauses: Vec<String> = self
            .histogram
            .iter()
            .zip(names)
            .filter_map(|(axis, name)| along(axis, name))
            .collect();
        clauses.extend(self.joint(names, &clauses));
        if clauses.is_empty() {
            return format!(
                "{wrong} of {total} elements ({share} %) are wrong, spread over the whole tensor"
            );
        }
        let whole = if self.fills_its_box() {
            "; every element there is wrong"
        } else {
            ""
        };
        format!(
            "all {wrong} wrong elements (of {total}, {share} %) have {}{whole}",
            clauses.join(" and ")
        )
    }

    /// The only wrong element.
    fn one(&self, names: &[Name]) -> String {
        let at: Vec<String> = self
            .histogram
            .iter()
            .zip(names)
            .map(|(axis, name)| {
                let at = axis.iter().position(|&count| count > 0).unwrap_or(0);
                format!("{} = {at}", name.symbol)
            })
            .collect();
        let which = match self.first {
            0 => ", the very first",
            index if index + 1 == self.total => ", the very last",
            _ => "",
        };
        format!(
            "one element of {} is wrong{which}, at {}",
            self.total,
            at.join(", ")
        )
    }

    /// What no axis shows by itself: the end of the flattened plane, its border, the buffer's end.
    fn joint(&self, names: &[Name], clauses: &[String]) -> Option<String> {
        let spatial = names.get(2..).unwrap_or_default();
        let said = |name: &Name| clauses.iter().any(|clause| clause.starts_with(name.symbol));
        if spatial.len() >= 2 && !spatial.iter().any(said) {
            let plane = self.plane();
            if let Some(period) = last_tile(self.first_position, plane) {
                return Some(format!(
                    "position ≥ {} in the plane of {plane}: last tile, period {period}",
                    self.first_position
                ));
            }
            let room = self.dims[2..].iter().min().copied().unwrap_or(0);
            if self.deepest < room / 4 {
                let width = self.deepest + 1;
                return Some(format!("places at the border of the plane, {width} deep"));
            }
        }
        let tail = clauses.is_empty() && self.first > 0 && self.wrong == self.total - self.first;
        tail.then(|| format!("index ≥ {}: the end of the tensor", self.first))
    }

    fn fills_its_box(&self) -> bool {
        let hit = |axis: &Vec<u64>| axis.iter().filter(|&&count| count > 0).count();
        self.histogram.iter().map(hit).product::<usize>() == self.wrong
    }
}

/// Percent, as short as it may be.
fn share(wrong: usize, total: usize) -> String {
    let percent = 100.0 * wrong as f64 / total.max(1) as f64;
    if percent < 0.01 {
        return "< 0.01".to_owned();
    }
    let text = format!("{percent:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Extents of tiles that kernels work in.
const TILES: [usize; 6] = [256, 128, 64, 32, 16, 8];

/// The period of the tiles of which the last begins at `first`.
fn last_tile(first: usize, extent: usize) -> Option<usize> {
    let fits = |&tile: &usize| first > 0 && first.is_multiple_of(tile) && extent - first <= tile;
    TILES.into_iter().find(fits)
}

/// What the wrong coordinates of one axis have in common; `None` where all coordinates occur.
fn along(histogram: &[u64], name: &Name) -> Option<String> {
    let Name { symbol, unit } = name;
    let extent = histogram.len();
    let hit: Vec<usize> = (0..extent).filter(|&at| histogram[at] > 0).collect();
    let (&low, &high) = (hit.first()?, hit.last()?);
    if hit.len() == extent {
        return None;
    }
    if low == high {
        let which = match low {
            0 => ", the first",
            at if at + 1 == extent => ", the last",
            _ => "",
        };
        return Some(format!("{symbol} = {low}: one {unit}{which}"));
    }
    if hit.len() == high - low + 1 {
        return Some(match (low, high + 1 == extent) {
            (0, _) => format!("{symbol} ≤ {high}"),
            (_, false) => format!("{low} ≤ {symbol} ≤ {high}"),
            (_, true) => match last_tile(low, extent) {
                Some(period) => format!("{symbol} ≥ {low}: last tile {unit}, period {period}"),
                None => format!("{symbol} ≥ {low}"),
            },
        });
    }
    periodic(&hit, extent, name).or_else(|| scattered(&hit, extent, name))
}

fn periodic(hit: &[usize], extent: usize, name: &Name) -> Option<String> {
    let Name { symbol, unit } = name;
    let same = |&period: &usize| {
        let rest = hit[0] % period;
        period < extent && hit.iter().all(|at| at % period == rest)
    };
    if let Some(period) = TILES.into_iter().chain([4, 3, 2]).find(same) {
        let rest = hit[0] % period;
        return Some(format!(
            "{symbol} ≡ {rest} (mod {period}): every {period}th {unit}"
        ));
    }
    let borders = |&period: &usize| {
        period < extent
            && hit
                .iter()
                .all(|at| at % period == 0 || at % period == period - 1)
    };
    let period = TILES.into_iter().find(borders)?;
    Some(format!("{symbol} at the borders of tiles, period {period}"))
}

fn scattered(hit: &[usize], extent: usize, name: &Name) -> Option<String> {
    let symbol = name.symbol;
    if hit.len() <= 4 {
        return Some(format!("{symbol} among {hit:?}"));
    }
    let (low, high) = (hit[0], hit[hit.len() - 1]);
    (low > 0 || high + 1 < extent).then(|| format!("{low} ≤ {symbol} ≤ {high}"))
}

/// How an axis is called.
#[derive(Clone, Copy)]
struct Name {
    symbol: &'static str,
    unit: &'static str,
}

const fn name(symbol: &'static str, unit: &'static str) -> Name {
    Name { symbol, unit }
}

/// The axes of a tensor by what it is and by its rank: n, c, d, h, w; of filters k, c, t, r, s.
fn names(tensor: &Tensor) -> Vec<Name> {
    const IMAGE: [Name; 3] = [name("d", "slice"), name("h", "row"), name("w", "column")];
    const FILTER: [Name; 3] = [
        name("t", "tap slice"),
        name("r", "tap row"),
        name("s", "tap column"),
    ];
    const OTHER: [Name; 8] = [
        name("axis 0", "slice"),
        name("axis 1", "slice"),
        name("axis 2", "slice"),
        name("axis 3", "slice"),
        name("axis 4", "slice"),
        name("axis 5", "slice"),
        name("axis 6", "slice"),
        name("axis 7", "slice"),
    ];
    let is_filter = matches!(tensor.name.as_str(), "w" | "dw");
    match tensor.dims.len() {
        1 => vec![name("i", "element")],
        2 => vec![name("row", "row"), name("column", "column")],
        rank @ 3..=5 => {
            let (first, second, spatial) = if is_filter {
                (name("k", "filter"), name("c", "channel"), FILTER)
            } else {
                (name("n", "image"), name("c", "channel"), IMAGE)
            };
            let spatial = spatial.iter().skip(5 - rank).copied();
            [first, second].into_iter().chain(spatial).collect()
        }
        rank => OTHER.iter().cycle().take(rank).copied().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnn_assay_graph::DataType;
    use rstest::rstest;

    fn words(dims: &[i64], wrong: impl Fn(&[i64]) -> bool) -> String {
        let tensor = Tensor::packed(1, "y", DataType::Float, dims);
        let count = tensor.element_count().unwrap();
        let estimate = Estimate::exact(vec![1.0; count]);
        let mut at = Coordinates::new(dims);
        let mut bytes = Vec::new();
        for _ in 0..count {
            let value: f32 = if wrong(at.get()) { 2.0 } else { 1.0 };
            bytes.extend(value.to_le_bytes());
            at.advance();
        }
        let found = geometry(&tensor, &estimate, &bytes, &Criterion::Bound).unwrap();
        let sums: Vec<u64> = found
            .histogram
            .iter()
            .map(|axis| axis.iter().sum())
            .collect();
        assert!(sums.iter().all(|&sum| sum == found.wrong as u64));
        found.text
    }

    #[rstest]
    #[case::last_tile(&[1, 2, 2, 128], |at: &[i64]| at[3] >= 112,
        "all 64 wrong elements (of 512, 12.5 %) have w ≥ 112: last tile column, period 16; \
         every element there is wrong")]
    #[case::everything(&[2, 3], |_: &[i64]| true, "all 6 elements are wrong")]
    #[case::nothing(&[2, 3], |_: &[i64]| false,
        "no single element is wrong, the figure of the whole tensor is")]
    #[case::the_last(&[2, 3], |at: &[i64]| at == [1, 2],
        "one element of 6 is wrong, the very last, at row = 1, column = 2")]
    #[case::one_channel(&[2, 4, 3, 3], |at: &[i64]| at[1] == 3,
        "all 18 wrong elements (of 72, 25 %) have c = 3: one channel, the last; \
         every element there is wrong")]
    #[case::later_images(&[4, 2, 3, 3], |at: &[i64]| at[0] > 0 && at[2] != at[3],
        "all 36 wrong elements (of 72, 50 %) have n ≥ 1")]
    #[case::period(&[1, 1, 1, 20], |at: &[i64]| at[3] % 8 == 3,
        "all 3 wrong elements (of 20, 15 %) have w ≡ 3 (mod 8): every 8th column; \
         every element there is wrong")]
    #[case::tile_borders(&[1, 1, 1, 40], |at: &[i64]| at[3] % 16 == 0 || at[3] % 16 == 15,
        "all 5 wrong elements (of 40, 12.5 %) have w at the borders of tiles, period 16; \
         every element there is wrong")]
    #[case::border(&[1, 2, 9, 9], |at: &[i64]| at[2..].iter().any(|&i| i == 0 || i == 8),
        "all 64 wrong elements (of 162, 39.51 %) have places at the border of the plane, 1 deep")]
    #[case::plane_tail(&[1, 2, 7, 7], |at: &[i64]| at[1] == 1 && at[2] * 7 + at[3] >= 48,
        "one element of 98 is wrong, the very last, at n = 0, c = 1, h = 6, w = 6")]
    #[case::plane_tile(&[1, 2, 5, 5], |at: &[i64]| at[2] * 5 + at[3] >= 16,
        "all 18 wrong elements (of 50, 36 %) have h ≥ 3")]
    #[case::spread(&[1, 2, 4, 4], |at: &[i64]| (at[2] + at[3]) % 2 == 0,
        "16 of 32 elements (50 %) are wrong, spread over the whole tensor")]
    #[case::tail(&[10], |at: &[i64]| at[0] >= 7,
        "all 3 wrong elements (of 10, 30 %) have i ≥ 7; every element there is wrong")]
    fn wrong_places_in_words(
        #[case] dims: &[i64],
        #[case] wrong: fn(&[i64]) -> bool,
        #[case] expected: &str,
    ) {
        assert_eq!(words(dims, wrong), expected);
    }
}
