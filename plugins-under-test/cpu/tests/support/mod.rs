//! What the tests of the plugin share: the plugin, and tensors as bytes.

use crate::host::{Host, target_dir};
use dnn_assay_graph::{DataType, Tensor, TensorValue};
use half::{bf16, f16};
use std::path::PathBuf;

pub fn plugin() -> PathBuf {
    target_dir().join("deps").join("libdnn_assay_cpu_plugin.so")
}

pub fn open() -> Host {
    Host::open(&plugin())
}

pub fn f32s(uid: i64, dims: &[i64]) -> Tensor {
    Tensor::packed(uid, "", DataType::Float, dims)
}

pub fn close(got: &[f32], expected: &[f32]) {
    assert_eq!(got.len(), expected.len());
    for (i, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!(
            (g - e).abs() <= 1e-5 * e.abs().max(1.0),
            "[{i}] {g} is not {e}"
        );
    }
}

pub fn places(dims: &[i64]) -> Vec<Vec<i64>> {
    dims.iter().fold(vec![vec![]], |all, &dim| {
        all.iter()
            .flat_map(|place| (0..dim).map(move |i| [place.as_slice(), &[i]].concat()))
            .collect()
    })
}

/// Packed values in the tensor's memory order, as bytes of its type.
pub fn encode(tensor: &Tensor, values: &[f32]) -> Vec<u8> {
    let size = tensor.data_type.size().unwrap();
    let mut bytes = vec![0; tensor.byte_size().unwrap()];
    for (place, value) in places(&tensor.dims).iter().zip(values) {
        let at: i64 = place.iter().zip(&tensor.strides).map(|(i, s)| i * s).sum();
        let element = match tensor.data_type {
            DataType::Half => f16::from_f32(*value).to_ne_bytes().to_vec(),
            DataType::Bfloat16 => bf16::from_f32(*value).to_ne_bytes().to_vec(),
            DataType::Double => f64::from(*value).to_ne_bytes().to_vec(),
            _ => value.to_ne_bytes().to_vec(),
        };
        bytes[at as usize * size..][..size].copy_from_slice(&element);
    }
    bytes
}

pub fn scalar(uid: i64, value: f32) -> Tensor {
    Tensor {
        value: Some(TensorValue::Float32(value)),
        ..f32s(uid, &[1])
    }
}
