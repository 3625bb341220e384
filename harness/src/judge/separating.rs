//! Cases that tell hypotheses apart which explain the same output: the same operation with other
//! extents, all different, and with other paddings and epsilons.

use dnn_assay_graph::case::Case;

/// Cases at most.
const MOST: usize = 3;

/// Images, channels (per group), filters (per group) of the cases; what is added to the smallest
/// image that the window fits, axis by axis.
const EXTENTS: [(i64, i64, i64, [i64; 3]); MOST] = [
    (3, 9, 4, [7, 4, 2]),
    (2, 33, 5, [10, 6, 3]),
    (4, 65, 7, [5, 9, 3]),
];

/// Cases of the same operation, types, layout and fill whose N, C, K, H and W all differ; fewer
/// where the operation's attributes are bound to its extents.
pub fn separating_cases(case: &Case) -> Vec<Case> {
    let id = case.to_string();
    let parts: Vec<&str> = id.split('/').collect();
    let [op, dtypes, layout, shape, attributes, fill] = parts[..] else {
        return Vec::new();
    };
    // Broadcast extents follow the shape.
    if ["in0.", "in1.", "in2."]
        .iter()
        .any(|key| attributes.contains(key))
    {
        return Vec::new();
    }
    let packed = layout.split('~').next().unwrap_or(layout);
    let cases = (0..MOST).filter_map(|at| {
        let shape = other_shape(shape, attributes, at)?;
        let attributes = other_attributes(attributes, at);
        let text = format!("{op}/{dtypes}/{packed}/{shape}/{attributes}/{fill}");
        Case::parse_short(&text).ok().filter(|other| other != case)
    });
    cases.collect()
}

/// `n2-c64-k64-i56x56-f3x3` with other extents; the window stays.
fn other_shape(shape: &str, attributes: &str, at: usize) -> Option<String> {
    let fields: Vec<(&str, Vec<i64>)> = shape.split('-').map(field).collect::<Option<_>>()?;
    let get = |key: &str| fields.iter().find(|(k, _)| *k == key).map(|(_, v)| v);
    let attribute = |key: &str| {
        let mut all = attributes.split('-').filter_map(field);
        all.find(|(k, _)| *k == key).map(|(_, v)| v)
    };
    let groups = attribute("g").map_or(1, |g| g[0]);
    let (batch, channels, filters, more) = EXTENTS[at];
    let per_group = |key: &str, wanted: i64| {
        // One channel per group is another kernel.
        match get(key).map(|v| v[0] / groups) {
            Some(1) if groups > 1 => groups,
            _ => groups * wanted,
        }
    };
    let axes = get("i")?.len();
    let window = |axis: usize| {
        let taps = get("f").map_or(1, |f| f[axis]);
        let dilation = attribute("dil").map_or(1, |d| d[axis]);
        (taps - 1) * dilation + 1
    };
    let image: Vec<String> = (0..axes)
        .map(|axis| (window(axis) + more[axis]).to_string())
        .collect();
    let mut out = format!("n{batch}-c{}", per_group("c", channels));
    if get("k").is_some() {
        out += &format!("-k{}", per_group("k", filters));
    }
    out += &format!("-i{}", image.join("x"));
    if let Some(taps) = get("f") {
        let taps: Vec<String> = taps.iter().map(i64::to_string).collect();
        out += &format!("-f{}", taps.join("x"));
    }
    Some(out)
}

/// Other paddings and another epsilon from the second case on.
fn other_attributes(attributes: &str, at: usize) -> String {
    if at == 0 {
        return attributes.to_owned();
    }
    let axes = attributes.split('-').filter_map(field);
    let axes = axes.filter(|(key, _)| *key == "pre").map(|(_, v)| v.len());
    let axes = axes.max().unwrap_or(0);
    let paddings = |first: usize| {
        let sizes: Vec<String> = (0..axes)
            .map(|axis| ((first + axis) % 3).to_string())
            .collect();
        sizes.join("x")
    };
    let parts = attributes.split('-').map(|part| {
        if part.starts_with("pre") {
            format!("pre{}", paddings(at + 1))
        } else if part.starts_with("post") {
            format!("post{}", paddings(at - 1))
        } else if part.starts_with("eps") {
            format!("eps{}", [0.125, 0.5][at - 1])
        } else {
            part.to_owned()
        }
    });
    // The exponent of 1e-5 is split off and belongs to no part.
    let parts: Vec<String> = parts
        .filter(|part| !part.bytes().all(|byte| byte.is_ascii_digit()))
        .collect();
    parts.join("-")
}

/// A key and its numbers: `i56x56`.
fn field(part: &str) -> Option<(&str, Vec<i64>)> {
    let at = part.find(|c: char| c.is_ascii_digit())?;
    let numbers = part[at..].split('x').map(|n| n.parse().ok());
    Some((&part[..at], numbers.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn ids(id: &str) -> Vec<String> {
        let case = Case::parse_short(id).expect("a case");
        separating_cases(&case)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[rstest]
    #[case(
        "conv.fprop/f16/nhwc~s512x1x64x8/n1-c8-k8-i4x4-f3x3/pad1",
        "conv.fprop/f16/nhwc/n3-c9-k4-i10x7-f3x3/pre1x1-post1x1-str1x1-dil1x1-g1/uni"
    )]
    #[case(
        "conv.wgrad/f32/nchw/n1-c4-k4-i9x9-f3x3/pad1-g4",
        "conv.wgrad/f32/nchw/n3-c4-k4-i10x7-f3x3/pre1x1-post1x1-str1x1-dil1x1-g4/uni"
    )]
    #[case(
        "batchnorm.training/f16+f32/ncdhw/n2-c4-i3x3x3",
        "batchnorm.training/f16+f32/ncdhw/n3-c9-i8x5x3/eps1e-5/uni"
    )]
    #[case(
        "pointwise.relu_fwd/f32/nchw/n1-c1-i8x8/up6/special",
        "pointwise.relu_fwd/f32/nchw/n3-c9-i8x5/up6/special"
    )]
    fn extents_differ(#[case] id: &str, #[case] first: &str) {
        let ids = ids(id);
        assert_eq!(ids.len(), MOST, "{ids:?}");
        assert_eq!(ids[0], first);
        assert!(ids[0] != ids[1] && ids[1] != ids[2]);
    }

    #[test]
    fn paddings_and_epsilons_differ_too() {
        let conv = ids("conv.fprop/f32/nchw/n2-c4-k4-i9x9-f3x3/pre1x1-post0x0");
        assert!(conv[1].contains("/pre2x0-post0x1-"), "{}", conv[1]);
        let norm = ids("batchnorm.training/f32/nchw/n2-c4-i5x5");
        assert!(norm[1].contains("/eps0.125/") && norm[2].contains("/eps0.5/"));
    }

    #[test]
    fn broadcast_extents_have_no_others() {
        assert!(ids("pointwise.add/f32/nchw/n2-c5-i7x11/in1.1x5x1x1").is_empty());
    }
}
