use super::*;
use crate::validate::validate;
use rstest::rstest;

mod graphs;
mod laws;

/// Canonical ids, each a spelling of its own.
const CANONICAL: &[&str] = &[
    "conv.fprop/f16/nhwc/n2-c64-k64-i56x56-f3x3/pre1x1-post1x1-str1x1-dil1x1-g1/int",
    "conv.dgrad/bf16/ncl/n1-c16-k4-i16-f3/pre0-post2-str2-dil1-g2/uni",
    "conv.wgrad/f16+f32/ncdhw/n1-c2-k3-i5x6x7-f1x2x3/pre0x0x0-post0x0x0-str1x1x1-dil1x1x1-g1/uni",
    "conv.fprop/f32/nchw/n1-c1-k1-i4x4-f2x2/pre0x0-post0x0-str1x1-dil1x1-g1-mode-conv/uni",
    "conv.fprop/f32/nchw~s64x32x8x1~y40x20x5x1/n1-c2-k2-i4x4-f1x1/pre0x0-post0x0-str1x1-dil1x1-g1/uni",
    "conv.fprop+bias/f32/nchw/n1-c1-k1-i4x4-f1x1/pre0x0-post0x0-str1x1-dil1x1-g1/uni",
    "conv.fprop+bias+relu_fwd/f16/nhwc/n1-c1-k1-i4x4-f1x1/pre0x0-post0x0-str1x1-dil1x1-g1-vio-lo-0.5-up6/uni",
    "conv.fprop+gelu_approx_tanh_fwd/f16/nhwc/n1-c1-k1-i4x4-f1x1/pre0x0-post0x0-str1x1-dil1x1-g1/int",
    "batchnorm.inference/f16+f32/nchw/n2-c3-i4x4/none/uni",
    "batchnorm.inference_var/f32/nlc/n2-c3-i4/eps1e-5/uni",
    "batchnorm.training/bf16+f32/ndhwc/n2-c3-i4x4x4/eps0.001-mom0.1-stats-run/uni",
    "batchnorm.training+relu_fwd/f32/nchw/n2-c3-i4x4/lo0-up6-eps1e-5-stats/uni",
    "batchnorm.backward/f32/nchw/n2-c3-i4x4/stats/uni",
    "batchnorm.inference+relu_bwd+batchnorm.backward/f16+f32/nhwc/n2-c3-i4x4/vio-up0.5/uni",
    "pointwise.add/f32/nchw/n2-c3-i4x4/in0.1-in1.1x3x1x1/int",
    "pointwise.binary_select/f32+f32+u8+f32/nchw/n2-c3-i4x4/none/uni",
    "pointwise.gen_index/f32+i32/nchw/n2-c3-i4x4/axis3/uni",
    "pointwise.softplus_fwd/f64/ncl/n2-c3-i4/beta2.5/uni",
    "pointwise.elu_bwd/f32/nhwc~s96x1x24x4/n2-c3-i4x4/alpha1e-10/uni",
];

#[test]
fn canonical_ids_are_read_and_printed_unchanged() {
    for id in CANONICAL {
        let case = Case::parse(id).unwrap_or_else(|error| panic!("{id}: {error} {:?}", error.at));
        assert_eq!(case.to_string(), *id);
        assert_eq!(Case::parse_short(id).as_ref(), Ok(&case), "{id}");
    }
}

#[rstest]
#[case(
    "conv.fprop/n2-c4-k8-i5x7-f3x3",
    "conv.fprop/f32/nchw/n2-c4-k8-i5x7-f3x3/pre0x0-post0x0-str1x1-dil1x1-g1/uni"
)]
#[case(
    "conv.fprop/int/nhwc/c4-k8-i5x7-f3x3/str2-pad1x2",
    "conv.fprop/f32/nhwc/n1-c4-k8-i5x7-f3x3/pre1x2-post1x2-str2x2-dil1x1-g1/int"
)]
#[case(
    "conv.dgrad/c4-k8-i9-f3/f16/post1-dil2",
    "conv.dgrad/f16/ncl/n1-c4-k8-i9-f3/pre1-post1-str1-dil2-g1/uni"
)]
#[case(
    "conv.fprop+bias+relu/c1-k1-i4x4-f1x1",
    "conv.fprop+bias+relu_fwd/f32/nchw/n1-c1-k1-i4x4-f1x1/pre0x0-post0x0-str1x1-dil1x1-g1/uni"
)]
#[case(
    "batchnorm.training/run/c3-i4x4/f16+f16",
    "batchnorm.training/f16/nchw/n1-c3-i4x4/eps1e-5-mom0.1-run/uni"
)]
#[case(
    "pointwise.gen_index/i4x4-c3",
    "pointwise.gen_index/f32/nchw/n1-c3-i4x4/axis1/uni"
)]
#[case(
    "pointwise.add/c3-i4x4/in1.1x3x4x4",
    "pointwise.add/f32/nchw/n1-c3-i4x4/none/uni"
)]
#[case(
    "pointwise.abs/nchw~s48x16x4x1/c3-i4x4",
    "pointwise.abs/f32/nchw/n1-c3-i4x4/none/uni"
)]
#[case(
    "conv.fprop/c1-k1-i4x4-f2x2/mode-conv-g1",
    "conv.fprop/f32/nchw/n1-c1-k1-i4x4-f2x2/pre0x0-post0x0-str1x1-dil1x1-g1-mode-conv/uni"
)]
fn short_ids_become_canonical(#[case] short: &str, #[case] canonical: &str) {
    let case = Case::parse_short(short).unwrap_or_else(|error| panic!("{short}: {error}"));
    assert_eq!(case.to_string(), canonical);
    assert!(Case::parse(canonical).is_ok());
    let strict = Case::parse(short).expect_err("a short id is not canonical");
    assert!(strict.at.end <= short.len());
}

/// A faulty text, the part of it that is underlined, and a word of the message.
#[rstest]
#[case(
    "conv.fprob/f32/nchw/n1-c1-k1-i1x1-f1x1/none/uni",
    "conv.fprob",
    "did you mean `conv.fprop`"
)]
#[case("conv.fprop/f17/c1-k1-i1x1-f1x1", "f17", "did you mean `f16`")]
#[case("conv.fprop/f16/nchv/c1-k1-i1x1-f1x1", "nchv", "did you mean `nchw`")]
#[case("conv.fprop/c1-k1-i1x1-f1x1/pda1", "pda1", "neither")]
#[case("conv.fprop/c1-k1-i1x1-f1x1/pad1-strr2", "strr2", "did you mean `str`")]
#[case("conv.fprop/c1-k1-i1x1-f1x1/pad1-pre1", "pre1", "twice")]
#[case("conv.fprop/c1-k1-i1x1-f1x1x1", "c1-k1-i1x1-f1x1x1", "agree")]
#[case("conv.fprop/c1-k1-i1x1", "c1-k1-i1x1", "lacks `f`")]
#[case("conv.fprop/c1-k1-i1x0-f1x1", "i1x0", "at least 1")]
#[case(
    "conv.fprop/c1-k1-i2x2-f3x3",
    "c1-k1-i2x2-f3x3",
    "longer than the padded input"
)]
#[case("conv.fprop/c3-k4-i2x2-f1x1/g2", "g2", "must divide")]
#[case("conv.fprop/c3-k4-i2x2-f1x1/str0", "str0", "at least 1")]
#[case(
    "conv.fprop/c9223372036854775807-k4-i2x2-f1x1",
    "c9223372036854775807-k4-i2x2-f1x1",
    "overflows i64"
)]
#[case(
    "conv.fprop/c9223372036854775808-k4-i2x2-f1x1",
    "9223372036854775808",
    "overflows i64"
)]
#[case("conv.fprop/i32/c1-k1-i1x1-f1x1", "i32", "not i32")]
#[case("conv.fprop/nlc/c1-k1-i1x1-f1x1", "nlc", "write nhwc")]
#[case("conv.fprop", "conv.fprop", "needs a shape")]
#[case("conv.fprop+relu/c1-k1-i1x1-f1x1/vio", "vio", "leave `vio` out")]
#[case("pointwise.exp/i32/c1-i1x1", "i32", "must be f64")]
#[case("pointwise.add/f16+f32/c1-i1x1", "f16+f32", "in0+in1+output")]
#[case("pointwise.add/c3-i2x2/in1.2x1x1", "in1.2x1x1", "does not broadcast")]
#[case("pointwise.abs/c3-i2x2/in1.1", "in1.1", "no attribute `in1.`")]
#[case("pointwise.gen_index/c3-i2x2/axis4", "axis4", "4 axes")]
#[case(
    "pointwise.abs/nchw~s12x1x2x1/n2-c3-i2x2",
    "nchw~s12x1x2x1",
    "share a place"
)]
#[case("pointwise.abs/nchw~q1/n2-c3-i2x2", "q1", "followed by s")]
#[case("pointwise.relu_fwd/c3-i2x2/upnan", "upnan", "neither")]
#[case(
    "pointwise.relu_fwd/c3-i2x2/lo2-up1",
    "lo2-up1",
    "below the lower clip"
)]
#[case("conv.fprop+relu/c1-k1-i1x1-f1x1/up-1", "up-1", "below the lower clip")]
#[case("pointwise.softplus_fwd/c3-i2x2/beta0", "beta0", "must not be 0")]
#[case("pointwise.relu_fwd/c3-i2x2/up1e99", "1e99", "f32 can hold")]
#[case("batchnorm.training/c3-i2x2/mom0.1", "mom0.1", "add `run`")]
#[case("batchnorm.backward/c3-i2x2/eps1e-5", "eps1e-5", "no attribute `eps`")]
#[case("pointwise.add/C3-i2x2", "C", "does not occur")]
#[case("pointwise.add/c3-i2x2/ü", "ü", "does not occur")]
fn faults_are_placed_and_explained(#[case] text: &str, #[case] at: &str, #[case] says: &str) {
    let strict = text.matches('/').count() == 5;
    let error = match strict {
        true => Case::parse(text).unwrap_err(),
        false => Case::parse_short(text).unwrap_err(),
    };
    assert!(error.message.contains(says), "{text}: {}", error.message);
    assert_eq!(&text[error.at.clone()], at, "{}", error.message);
}

#[test]
fn strict_parsing_says_how_many_parts_and_how_to_write_it() {
    let parts = Case::parse("pointwise.add/f32").unwrap_err();
    assert!(parts.message.contains("six parts"), "{parts}");
    let text = "pointwise.add/f32/nchw/n1-c03-i4x4/none/uni";
    let zeros = Case::parse(text).unwrap_err();
    assert!(
        zeros
            .message
            .contains("pointwise.add/f32/nchw/n1-c3-i4x4/none/uni")
    );
    assert_eq!(&text[zeros.at.start..], "03-i4x4/none/uni");
}

#[test]
fn names_of_operations_are_unique_and_lead_back() {
    assert_eq!(Op::all().count(), 103);
    for op in Op::all() {
        assert_eq!(Op::from_name(&op.to_string()), Some(op));
        let smallest = Case::smallest(op);
        assert_eq!(Case::parse(&smallest.to_string()), Ok(smallest.clone()));
        assert_eq!(validate(&smallest.graph().unwrap()), Ok(()), "{smallest}");
    }
}

#[test]
fn fields_for_filters() {
    let case = Case::parse(CANONICAL[0]).unwrap();
    assert_eq!(case.class_name(), "conv.fprop.f16.nhwc");
    assert_eq!(
        (case.family(), case.direction().as_str()),
        ("conv", "fprop")
    );
    assert_eq!(case.attribute_map()["pre"], "1x1");
    assert_eq!(case.fill(), Fill::Integer);
    let mixed = Case::parse(CANONICAL[2]).unwrap();
    assert_eq!(mixed.class_name(), "conv.wgrad.f16+f32.ncdhw");
}

#[test]
fn work_counts_multiply_accumulates_and_bytes() {
    let case = Case::parse_short("conv.fprop/f16/n2-c4-k6-i5x5-f3x3/pad1-g2").unwrap();
    let work = case.work();
    assert_eq!(work.flops, 2.0 * (2 * 6 * 25) as f64 * (2 * 9) as f64);
    assert_eq!(
        work.bytes,
        2.0 * (2 * 4 * 25 + 6 * 2 * 9 + 2 * 6 * 25) as f64
    );
}

#[test]
fn the_page_on_case_ids_has_every_attribute_uid_and_its_example() {
    let page = include_str!("../../../../docs/case-ids.md");
    for key in AttributeKey::ALL {
        assert!(
            page.contains(&format!("`{}`", key.name())),
            "{}",
            key.name()
        );
    }
    for (name, uid) in TENSOR_UIDS {
        assert!(page.contains(&format!("| {uid} | `{name}`")), "{name}");
    }
    let ids = page
        .split_whitespace()
        .filter(|word| word.matches('/').count() == 5);
    let ids: Vec<&str> = ids
        .filter(|word| word.ends_with("/uni") || word.ends_with("/int"))
        .collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    for id in ids {
        assert!(Case::parse(id).is_ok(), "{id}");
    }
}

#[test]
fn a_ragged_x_has_a_tensor_of_offsets_among_the_inputs() {
    let id = "conv.fprop/f16/nhwc/n3-c4-k6-i5x7-f3x3/pre1x1-post1x1-str1x1-dil1x1-g1-ragged/uni";
    let case = Case::parse(id).expect("an id");
    assert_eq!(case.to_string(), id);
    let graph = case.graph().expect("a graph");
    let inputs: Vec<&str> = graph.inputs().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(inputs, ["x", "w", "x_offsets"]);
    let offsets = graph.tensor(24).expect("its uid");
    assert_eq!(
        (offsets.dims.as_slice(), offsets.data_type),
        (&[4, 1, 1, 1][..], crate::enums::DataType::Int32)
    );
    assert_eq!(graph.tensor(1).and_then(|x| x.ragged_offset_uid), Some(24));
    assert!(Case::parse(&id.replace("fprop", "dgrad")).is_err());
}
