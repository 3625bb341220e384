use crate::engines::{Order, any_order, sum};
use crate::graphs::{fill, graph, inputs, run, tensor, within};
use dnn_assay_graph::schema::{
    BatchnormAttributes, BatchnormBackwardAttributes, BatchnormInferenceAttributes,
    BatchnormInferenceAttributesVarianceExt,
};
use dnn_assay_graph::{Attributes, DataType, Graph, Tensor, TensorValue};
use dnn_assay_reference::{Estimate, Values, dtype, evaluate_values};
use proptest::prelude::*;
use rstest::rstest;

const EPSILON: f32 = 1e-5;
const MOMENTUM: f32 = 0.1;
const X: i64 = 1;
const SCALE: i64 = 2;
const BIAS: i64 = 3;
const MEAN: i64 = 4;
const INVERSE: i64 = 5;
const VARIANCE: i64 = 6;
const EPS: i64 = 7;
const MOM: i64 = 8;
const PREVIOUS_MEAN: i64 = 9;
const PREVIOUS_VARIANCE: i64 = 10;
const DY: i64 = 11;
const Y: i64 = 20;
const OUT_MEAN: i64 = 21;
const OUT_INVERSE: i64 = 22;
const NEXT_MEAN: i64 = 23;
const NEXT_VARIANCE: i64 = 24;
const DX: i64 = 25;
const DSCALE: i64 = 26;
const DBIAS: i64 = 27;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Inference,
    Variance,
    Training,
    Backward,
    BackwardSaved,
}

fn node(form: Form) -> Attributes {
    match form {
        Form::Inference => BatchnormInferenceAttributes {
            x_tensor_uid: X,
            mean_tensor_uid: MEAN,
            inv_variance_tensor_uid: INVERSE,
            scale_tensor_uid: SCALE,
            bias_tensor_uid: BIAS,
            y_tensor_uid: Y,
        }
        .into(),
        Form::Variance => BatchnormInferenceAttributesVarianceExt {
            x_tensor_uid: X,
            mean_tensor_uid: MEAN,
            variance_tensor_uid: VARIANCE,
            scale_tensor_uid: SCALE,
            bias_tensor_uid: BIAS,
            y_tensor_uid: Y,
            epsilon_tensor_uid: EPS,
        }
        .into(),
        Form::Training => BatchnormAttributes {
            x_tensor_uid: X,
            scale_tensor_uid: SCALE,
            bias_tensor_uid: BIAS,
            epsilon_tensor_uid: EPS,
            momentum_tensor_uid: Some(MOM),
            prev_running_mean_tensor_uid: Some(PREVIOUS_MEAN),
            prev_running_variance_tensor_uid: Some(PREVIOUS_VARIANCE),
            y_tensor_uid: Y,
            mean_tensor_uid: Some(OUT_MEAN),
            inv_variance_tensor_uid: Some(OUT_INVERSE),
            next_running_mean_tensor_uid: Some(NEXT_MEAN),
            next_running_variance_tensor_uid: Some(NEXT_VARIANCE),
            ..Default::default()
        }
        .into(),
        Form::Backward | Form::BackwardSaved => BatchnormBackwardAttributes {
            dy_tensor_uid: DY,
            x_tensor_uid: X,
            mean_tensor_uid: (form == Form::BackwardSaved).then_some(MEAN),
            inv_variance_tensor_uid: (form == Form::BackwardSaved).then_some(INVERSE),
            scale_tensor_uid: SCALE,
            dx_tensor_uid: DX,
            dscale_tensor_uid: DSCALE,
            dbias_tensor_uid: DBIAS,
            ..Default::default()
        }
        .into(),
    }
}

fn norm_graph(form: Form, dims: &[i64], data_type: DataType) -> Graph {
    let node = node(form);
    let mut channel = vec![1; dims.len()];
    channel[1] = dims[1];
    let mut uids = node.inputs();
    uids.extend(node.outputs());
    let tensors = uids
        .into_iter()
        .map(|uid| match uid {
            X | DY | Y | DX => tensor(uid, data_type, dims),
            EPS | MOM => Tensor {
                value: Some(TensorValue::Float32(if uid == EPS {
                    EPSILON
                } else {
                    MOMENTUM
                })),
                ..tensor(uid, DataType::Float, &[1])
            },
            _ => tensor(uid, DataType::Float, &channel),
        })
        .collect();
    graph(tensors, vec![node])
}

/// Inputs with the given mean over deviation; spreads are positive.
fn norm_inputs(graph: &Graph, offset: f64, seed: u64) -> Values {
    let mut values = inputs(graph, seed);
    for (&uid, values) in &mut values {
        for value in values {
            match uid {
                X => *value = dtype::round(DataType::Float, *value + offset * 0.577),
                INVERSE | VARIANCE | PREVIOUS_VARIANCE => *value = value.abs() + 0.01,
                _ => {}
            }
            *value = dtype::round(DataType::Float, *value);
        }
    }
    if let (Some(x), Some(mean)) = (values.get(&X).cloned(), values.get_mut(&MEAN)) {
        let centre = x.iter().sum::<f64>() / x.len() as f64;
        for mean in mean {
            *mean = dtype::round(DataType::Float, centre + 0.1 * *mean);
        }
    }
    if let Some(x) = values.get_mut(&X) {
        let data_type = graph.tensor(X).unwrap().data_type;
        x.iter_mut().for_each(|x| *x = dtype::round(data_type, *x));
    }
    values
}

/// Elements of channel `c`.
fn members(dims: &[i64], c: usize) -> Vec<usize> {
    let plane: usize = dims[2..].iter().product::<i64>() as usize;
    let (batch, channels) = (dims[0] as usize, dims[1] as usize);
    (0..batch)
        .flat_map(|n| (0..plane).map(move |s| (n * channels + c) * plane + s))
        .collect()
}

/// The textbook in f64.
fn naive(form: Form, dims: &[i64], values: &Values) -> Vec<(i64, Vec<f64>)> {
    let channels = dims[1] as usize;
    let elements = dims.iter().product::<i64>() as usize;
    let mut out: std::collections::BTreeMap<i64, Vec<f64>> = [Y, DX]
        .iter()
        .map(|&uid| (uid, vec![0.0; elements]))
        .chain(
            [
                OUT_MEAN,
                OUT_INVERSE,
                NEXT_MEAN,
                NEXT_VARIANCE,
                DSCALE,
                DBIAS,
            ]
            .iter()
            .map(|&uid| (uid, vec![0.0; channels])),
        )
        .collect();
    let epsilon = f64::from(EPSILON);
    for c in 0..channels {
        let members = members(dims, c);
        let count = members.len() as f64;
        let x: Vec<f64> = members.iter().map(|&i| values[&X][i]).collect();
        let batch_mean = x.iter().sum::<f64>() / count;
        let batch_variance = x.iter().map(|x| (x - batch_mean).powi(2)).sum::<f64>() / count;
        let (mean, inverse) = match form {
            Form::Inference | Form::BackwardSaved => (values[&MEAN][c], values[&INVERSE][c]),
            Form::Variance => (
                values[&MEAN][c],
                1.0 / (values[&VARIANCE][c] + epsilon).sqrt(),
            ),
            // Backward has no tensor for epsilon: the constant is 1e-5 in double.
            Form::Backward => (batch_mean, 1.0 / (batch_variance + 1e-5).sqrt()),
            Form::Training => (batch_mean, 1.0 / (batch_variance + epsilon).sqrt()),
        };
        let normal: Vec<f64> = x.iter().map(|x| (x - mean) * inverse).collect();
        let scale = values[&SCALE][c];
        if let Some(bias) = values.get(&BIAS) {
            for (&i, normal) in members.iter().zip(&normal) {
                out.get_mut(&Y).unwrap()[i] = scale * normal + bias[c];
            }
        }
        if form == Form::Training {
            let m = f64::from(MOMENTUM);
            let unbiased = if count > 1.0 {
                batch_variance * count / (count - 1.0)
            } else {
                batch_variance
            };
            out.get_mut(&OUT_MEAN).unwrap()[c] = mean;
            out.get_mut(&OUT_INVERSE).unwrap()[c] = inverse;
            out.get_mut(&NEXT_MEAN).unwrap()[c] = (1.0 - m) * values[&PREVIOUS_MEAN][c] + m * mean;
            out.get_mut(&NEXT_VARIANCE).unwrap()[c] =
                (1.0 - m) * values[&PREVIOUS_VARIANCE][c] + m * unbiased;
        }
        if let Some(dy) = values.get(&DY) {
            let dbias: f64 = members.iter().map(|&i| dy[i]).sum();
            let dscale: f64 = members.iter().zip(&normal).map(|(&i, n)| dy[i] * n).sum();
            out.get_mut(&DBIAS).unwrap()[c] = dbias;
            out.get_mut(&DSCALE).unwrap()[c] = dscale;
            for (&i, normal) in members.iter().zip(&normal) {
                out.get_mut(&DX).unwrap()[i] =
                    scale * inverse * (dy[i] - dbias / count - normal * dscale / count);
            }
        }
    }
    let asked = node(form).outputs();
    out.into_iter()
        .filter(|(uid, _)| asked.contains(uid))
        .collect()
}

fn any_form() -> impl Strategy<Value = Form> {
    prop_oneof![
        Just(Form::Inference),
        Just(Form::Variance),
        Just(Form::Training),
        Just(Form::Backward),
        Just(Form::BackwardSaved),
    ]
}

fn any_dims() -> impl Strategy<Value = Vec<i64>> {
    (1..5i64, 1..6i64, prop::collection::vec(1..9i64, 0..4))
        .prop_map(|(n, c, spatial)| [vec![n, c], spatial].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn agrees_with_the_textbook(form in any_form(), dims in any_dims(), seed: u64) {
        let graph = norm_graph(form, &dims, DataType::Float);
        let values = norm_inputs(&graph, 1.0, seed);
        let evaluation = run(&graph, &values);
        for (uid, expected) in naive(form, &dims, &values) {
            let size = expected.iter().fold(1.0f64, |most, y| most.max(y.abs()));
            let got = &evaluation.tensors[&uid].value;
            prop_assert_eq!(got.len(), expected.len());
            for (got, y) in got.iter().zip(&expected) {
                prop_assert!((got - y).abs() <= 1e-11 * size, "{}: {} for {}", uid, got, y);
            }
        }
    }

    #[test]
    fn correct_f32_engines_fit(
        form in any_form(), dims in any_dims(), order in any_order(), style in 0..2usize,
        offset in prop_oneof![Just(0.0), Just(1.0), Just(10.0), Just(80.0)],
        data_type in prop_oneof![Just(DataType::Float), Just(DataType::Half), Just(DataType::Bfloat16)],
        seed: u64,
    ) {
        let graph = norm_graph(form, &dims, data_type);
        let values = norm_inputs(&graph, offset, seed);
        let evaluation = run(&graph, &values);
        for (uid, got) in engine(form, &dims, &values, order, style) {
            let data_type = graph.tensor(uid).unwrap().data_type;
            let got: Vec<f64> = got.iter().map(|&y| dtype::round(data_type, f64::from(y))).collect();
            let estimate = &evaluation.tensors[&uid];
            prop_assert_eq!(within(data_type, estimate, &got), Ok(()), "tensor {}", uid);
        }
    }
}

/// Rows that fill whole runs and leave some over, on several threads; many channels, and too few of
/// them for a thread each. Values alone have the bits of those with their uncertainty.
#[rstest]
fn large_tensors_agree_with_the_textbook(
    #[values(
        Form::Inference,
        Form::Variance,
        Form::Training,
        Form::Backward,
        Form::BackwardSaved
    )]
    form: Form,
    #[values([3, 9, 37, 41], [5, 1, 70, 67], [300, 70, 1, 1])] dims: [i64; 4],
) {
    let graph = norm_graph(form, &dims, DataType::Float);
    let values = norm_inputs(&graph, 1.0, 7);
    let evaluation = run(&graph, &values);
    let alone = evaluate_values(&graph, &values).unwrap();
    for (uid, expected) in naive(form, &dims, &values) {
        let size = expected.iter().fold(1.0f64, |most, y| most.max(y.abs()));
        let got = &evaluation.tensors[&uid].value;
        for (index, (got, y)) in got.iter().zip(&expected).enumerate() {
            assert!(
                (got - y).abs() <= 1e-11 * size,
                "{uid} at {index}: {got} for {y}"
            );
        }
        let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&alone[&uid]), bits(got), "{uid}");
    }
}

/// f16 values around 46 are some forty different numbers: their squared deviations round alike
/// wherever the partial sum is in one binade, and a sequential sum drifts five times further than
/// independent roundings would take it.
#[test]
fn repeating_values_may_round_alike() {
    let dims = [2, 4, 8, 7, 6];
    let graph = norm_graph(Form::Training, &dims, DataType::Half);
    let values = norm_inputs(&graph, 80.0, 679_409_309_925_137_877);
    let evaluation = run(&graph, &values);
    let outputs = engine(Form::Training, &dims, &values, Order::Sequential, 0);
    let (_, got) = outputs.iter().find(|(uid, _)| *uid == OUT_INVERSE).unwrap();
    let got: Vec<f64> = got.iter().map(|&y| f64::from(y)).collect();
    let estimate = &evaluation.tensors[&OUT_INVERSE];
    assert_eq!(within(DataType::Float, estimate, &got), Ok(()));
    // Values that do not repeat keep the tight bound.
    let plain = norm_graph(Form::Training, &dims, DataType::Float);
    let values = norm_inputs(&plain, 80.0, 1);
    let tight = &run(&plain, &values).tensors[&OUT_INVERSE];
    assert!(
        tight.error[0] / tight.value[0] as f32 * 2.0 < estimate.error[0] / estimate.value[0] as f32
    );
}

/// Batchnorm in f32: direct (style 0) or folded (style 1).
fn engine(
    form: Form,
    dims: &[i64],
    values: &Values,
    order: Order,
    style: usize,
) -> Vec<(i64, Vec<f32>)> {
    let get = |uid: i64, i: usize| values[&uid][i] as f32;
    let elements = dims.iter().product::<i64>() as usize;
    let channels = dims[1] as usize;
    let mut out: std::collections::BTreeMap<i64, Vec<f32>> = node(form)
        .outputs()
        .into_iter()
        .map(|uid| {
            (
                uid,
                vec![
                    0.0;
                    if matches!(uid, Y | DX) {
                        elements
                    } else {
                        channels
                    }
                ],
            )
        })
        .collect();
    for c in 0..channels {
        let members = members(dims, c);
        let count = members.len() as f32;
        let x: Vec<f32> = members.iter().map(|&i| get(X, i)).collect();
        let batch = || {
            let mean = sum(order, &x) / count;
            let squares: Vec<f32> = x.iter().map(|x| (x - mean) * (x - mean)).collect();
            (mean, sum(order, &squares) / count)
        };
        let (mean, inverse) = match form {
            Form::Inference | Form::BackwardSaved => (get(MEAN, c), get(INVERSE, c)),
            Form::Variance => (get(MEAN, c), 1.0 / (get(VARIANCE, c) + EPSILON).sqrt()),
            Form::Training | Form::Backward => {
                let (mean, variance) = batch();
                (mean, 1.0 / (variance + EPSILON).sqrt())
            }
        };
        let scale = get(SCALE, c);
        if out.contains_key(&Y) {
            let bias = get(BIAS, c);
            let factor = scale * inverse;
            let shift = bias - mean * factor;
            for (&i, &x) in members.iter().zip(&x) {
                out.get_mut(&Y).unwrap()[i] = match style {
                    0 => scale * ((x - mean) * inverse) + bias,
                    _ => x.mul_add(factor, shift),
                };
            }
        }
        if form == Form::Training {
            let (_, variance) = batch();
            let unbiased = if count > 1.0 {
                variance * (count / (count - 1.0))
            } else {
                variance
            };
            let step = |previous: f32, batch: f32| match style {
                0 => (1.0 - MOMENTUM) * previous + MOMENTUM * batch,
                _ => previous + MOMENTUM * (batch - previous),
            };
            out.get_mut(&OUT_MEAN).unwrap()[c] = mean;
            out.get_mut(&OUT_INVERSE).unwrap()[c] = inverse;
            out.get_mut(&NEXT_MEAN).unwrap()[c] = step(get(PREVIOUS_MEAN, c), mean);
            out.get_mut(&NEXT_VARIANCE).unwrap()[c] = step(get(PREVIOUS_VARIANCE, c), unbiased);
        }
        if out.contains_key(&DX) {
            let dy: Vec<f32> = members.iter().map(|&i| get(DY, i)).collect();
            let normal: Vec<f32> = x.iter().map(|x| (x - mean) * inverse).collect();
            let products: Vec<f32> = dy.iter().zip(&normal).map(|(dy, n)| dy * n).collect();
            let (dbias, dscale) = (sum(order, &dy), sum(order, &products));
            out.get_mut(&DBIAS).unwrap()[c] = dbias;
            out.get_mut(&DSCALE).unwrap()[c] = dscale;
            for (j, &i) in members.iter().enumerate() {
                out.get_mut(&DX).unwrap()[i] = match style {
                    0 => scale * inverse * (dy[j] - dbias / count - normal[j] * dscale / count),
                    _ => scale * inverse / count * (count * dy[j] - dbias - normal[j] * dscale),
                };
            }
        }
    }
    out.into_iter().collect()
}

fn margin(estimate: &Estimate, data_type: DataType, got: &[f64]) -> f64 {
    (0..got.len())
        .map(|i| {
            let e = f64::from(estimate.error[i]);
            (got[i] - estimate.value[i]).abs()
                / crate::graphs::bound(data_type, estimate.value[i], e)
        })
        .fold(0.0, f64::max)
}

#[rstest]
#[case(0.0)]
#[case(3.0)]
fn faults_exceed_the_bound(#[case] offset: f64) {
    let dims = [4, 5, 8, 8];
    let graph = norm_graph(Form::Training, &dims, DataType::Float);
    let values = norm_inputs(&graph, offset, 9);
    let evaluation = run(&graph, &values);
    let truth = &evaluation.tensors[&NEXT_VARIANCE];
    // Biased for unbiased: off by 1/256 of the batch's share.
    let biased: Vec<f64> = (0..5)
        .map(|c| {
            let previous = values[&PREVIOUS_VARIANCE][c] * 0.9;
            previous + (truth.value[c] - previous) * 255.0 / 256.0
        })
        .collect();
    assert!(margin(truth, DataType::Float, &biased) > 2.0);
    let y = &evaluation.tensors[&Y];
    let scaled: Vec<f64> = y.value.iter().map(|y| y * 1.001).collect();
    assert!(margin(y, DataType::Float, &scaled) > 2.0);
}

#[test]
fn statistics_survive_a_mean_far_from_zero() {
    let dims = [2, 1, 64, 64];
    let graph = norm_graph(Form::Training, &dims, DataType::Float);
    let mut values = norm_inputs(&graph, 0.0, 4);
    let centred = fill(DataType::Half, 2 * 64 * 64, 12);
    values.insert(X, centred.iter().map(|x| x + 1000.0).collect());
    let shifted = run(&graph, &values);
    values.insert(X, centred.into());
    let plain = run(&graph, &values);
    let (a, b) = (
        shifted.tensors[&OUT_INVERSE].value[0],
        plain.tensors[&OUT_INVERSE].value[0],
    );
    assert!((a / b - 1.0).abs() < 1e-12, "{a} {b}");
}
