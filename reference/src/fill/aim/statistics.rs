//! Channels whose statistics are hard: a mean far from 0 beside the deviation, a variance at or
//! below ε.

use super::Sight;
use super::places::channel;
use crate::ops::batchnorm::DEFAULT_EPSILON;
use dnn_assay_graph::{Attributes, Tensor, TensorValue};

/// Means of successive channels, in standard deviations. The bound of a two-pass variance is known
/// to hold up to 100.
const MEANS: [f64; 4] = [100.0, 10.0, 0.0, -100.0];

/// Standard deviation of what was drawn, uniform in [−1, 1].
const DEVIATION: f64 = 0.577_350_269_189_625_8;

/// Variances of successive channels, over ε.
const SPREADS: [f64; 4] = [0.0, 0.01, 1.0, 100.0];

/// What a channel without variance holds: no type has it exactly, so that a sum over it rounds.
const CONSTANT: f64 = 0.3;

pub(super) fn means(sight: &mut Sight<'_>) {
    let shift = |tensor: &Tensor, values: &mut [f64]| {
        for (index, value) in values.iter_mut().enumerate() {
            *value += DEVIATION * MEANS[channel(tensor, index) % MEANS.len()];
        }
    };
    let mut uids = Vec::new();
    for attributes in sight.nodes() {
        match attributes {
            Attributes::Batchnorm(norm) => uids.push(Some(norm.x_tensor_uid)),
            Attributes::BatchnormInference(norm) => {
                uids.extend([Some(norm.x_tensor_uid), Some(norm.mean_tensor_uid)]);
            }
            Attributes::BatchnormInferenceVariance(norm) => {
                uids.extend([Some(norm.x_tensor_uid), Some(norm.mean_tensor_uid)]);
            }
            Attributes::BatchnormBackward(norm) => {
                uids.extend([Some(norm.x_tensor_uid), norm.mean_tensor_uid]);
            }
            _ => {}
        }
    }
    // Nodes of a chain read the same tensors.
    uids.sort_unstable();
    uids.dedup();
    for uid in uids.into_iter().flatten() {
        sight.edit(uid, shift);
    }
}

pub(super) fn spreads(sight: &mut Sight<'_>) {
    let mut images = Vec::new();
    for attributes in sight.nodes() {
        match attributes {
            Attributes::Batchnorm(norm) => {
                images.push((norm.x_tensor_uid, epsilon(sight, norm.epsilon_tensor_uid)));
            }
            Attributes::BatchnormBackward(norm) => {
                images.push((norm.x_tensor_uid, DEFAULT_EPSILON));
                if let Some(uid) = norm.inv_variance_tensor_uid {
                    inverses(sight, uid);
                }
            }
            Attributes::BatchnormInference(norm) => inverses(sight, norm.inv_variance_tensor_uid),
            Attributes::BatchnormInferenceVariance(norm) => {
                let epsilon = epsilon(sight, norm.epsilon_tensor_uid);
                sight.edit(norm.variance_tensor_uid, |tensor, values| {
                    per_channel(tensor, values, |spread| epsilon * spread);
                });
            }
            _ => {}
        }
    }
    images.sort_by_key(|(uid, _)| *uid);
    images.dedup_by_key(|(uid, _)| *uid);
    for (uid, epsilon) in images {
        sight.edit(uid, |tensor, values| {
            for (index, value) in values.iter_mut().enumerate() {
                let spread = SPREADS[channel(tensor, index) % SPREADS.len()];
                *value = if spread == 0.0 {
                    CONSTANT
                } else {
                    (epsilon * spread).sqrt() / DEVIATION * *value
                };
            }
        });
    }
}

fn inverses(sight: &mut Sight<'_>, uid: i64) {
    sight.edit(uid, |tensor, values| {
        per_channel(tensor, values, |spread| {
            1.0 / (DEFAULT_EPSILON * (1.0 + spread)).sqrt()
        });
    });
}

fn per_channel(tensor: &Tensor, values: &mut [f64], value: impl Fn(f64) -> f64) {
    for (index, out) in values.iter_mut().enumerate() {
        *out = value(SPREADS[channel(tensor, index) % SPREADS.len()]);
    }
}

/// ε, wherever it travels.
fn epsilon(sight: &Sight<'_>, uid: i64) -> f64 {
    let constant = sight.graph.tensor(uid).and_then(|tensor| tensor.value);
    let given = sight.values.get(&uid).and_then(|values| values.first());
    constant
        .and_then(TensorValue::as_f64)
        .or(given.copied())
        .unwrap_or(DEFAULT_EPSILON)
}
