//! Checks of the tensors themselves.

use super::problem::{Problem, list};
use super::strides::overlap;
use crate::enums::DataType;
use crate::model::{Graph, Tensor};
use crate::tensor_value::TensorValue;
use std::collections::{HashMap, HashSet};

pub(super) fn check(graph: &Graph, by_uid: &HashMap<i64, &Tensor>, problems: &mut Vec<Problem>) {
    let mut seen = HashSet::with_capacity(graph.tensors.len());
    for tensor in &graph.tensors {
        let mut check = TensorCheck { tensor, problems };
        if !seen.insert(tensor.uid) {
            check.problem(
                "uid",
                "a uid of its own",
                "one used before",
                "renumber the tensors",
            );
        }
        check.extents();
        check.strides();
        check.kind();
        if let Some(uid) = tensor.ragged_offset_uid
            && !by_uid.contains_key(&uid)
        {
            check.problem(
                "ragged_offset_tensor_uid",
                "the uid of a tensor of the graph",
                uid.to_string(),
                "add the tensor or correct the uid",
            );
        }
    }
}

struct TensorCheck<'a> {
    tensor: &'a Tensor,
    problems: &'a mut Vec<Problem>,
}

impl TensorCheck<'_> {
    fn problem(
        &mut self,
        field: &'static str,
        expected: impl Into<String>,
        seen: impl Into<String>,
        advice: &'static str,
    ) {
        self.problems.push(Problem {
            node: None,
            tensor: Some(self.tensor.uid),
            field,
            expected: expected.into(),
            seen: seen.into(),
            advice,
        });
    }

    fn extents(&mut self) {
        let dims = &self.tensor.dims;
        if dims.is_empty() || dims.iter().any(|dim| *dim < 1) {
            self.problem(
                "dims",
                "extents of at least 1",
                list(dims),
                "correct the extents",
            );
        } else if self.tensor.element_count().is_none() {
            self.problem(
                "dims",
                "a count of elements that fits",
                list(dims),
                "make it smaller",
            );
        }
    }

    fn strides(&mut self) {
        let Tensor {
            dims,
            strides,
            data_type,
            ..
        } = self.tensor;
        if strides.len() != dims.len() {
            let expected = format!("{} strides, one per axis", dims.len());
            self.problem(
                "strides",
                expected,
                list(strides),
                "give one stride per axis",
            );
            return;
        }
        let bad = |(dim, stride): (&i64, &i64)| *stride < i64::from(*dim > 1);
        if dims.iter().zip(strides).any(bad) {
            self.problem(
                "strides",
                "strides of at least 1 (0 where the extent is 1)",
                list(strides),
                "give a broadcast operand its own extents instead of strides of 0",
            );
            return;
        }
        if let Some(axis) = overlap(dims, strides) {
            self.problem(
                "strides",
                "a place of its own for each element",
                format!(
                    "stride {} of axis {axis} with extents {}",
                    strides[axis],
                    list(dims)
                ),
                "raise that stride beyond what the faster axes reach",
            );
        }
        let size = data_type.size().unwrap_or(1);
        let bytes = self.tensor.span().and_then(|span| span.checked_mul(size));
        if !dims.contains(&0) && bytes.is_none_or(|bytes| i64::try_from(bytes).is_err()) {
            self.problem(
                "strides",
                "a size in bytes that fits i64",
                list(strides),
                "make it smaller",
            );
        }
    }

    fn kind(&mut self) {
        let tensor = self.tensor;
        if tensor.data_type == DataType::Unset {
            self.problem("data_type", "a data type", "UNSET", "set it");
        }
        if tensor.alignment < 1 || tensor.alignment.count_ones() != 1 {
            let seen = tensor.alignment.to_string();
            self.problem(
                "alignment",
                "a power of two",
                seen,
                "leave it out for 16 bytes",
            );
        }
        let scalar = tensor.value.is_some() || tensor.runtime_pass_by_value;
        if scalar && tensor.element_count() != Some(1) {
            let seen = format!("extents {}", list(&tensor.dims));
            self.problem(
                "dims",
                "one element, since it is passed by value",
                seen,
                "make it [1]",
            );
        }
        if scalar && tensor.is_virtual {
            self.problem(
                "virtual",
                "false, since it is passed by value",
                "true",
                "clear it",
            );
        }
        if tensor.value.is_some() && tensor.runtime_pass_by_value {
            self.problem(
                "is_runtime_pass_by_value",
                "false, since the value is in the graph",
                "true",
                "drop one of the two",
            );
        }
        if let Some(value) = tensor.value
            && value_type(value).is_some_and(|expected| expected != tensor.data_type)
        {
            let expected = format!("a value of type {}", tensor.data_type);
            self.problem(
                "value",
                expected,
                format!("{value:?}"),
                "make the types agree",
            );
        }
    }
}

/// The tensor type that a value belongs to; `None` where several may hold it.
fn value_type(value: TensorValue) -> Option<DataType> {
    match value {
        TensorValue::Float32(_) => Some(DataType::Float),
        TensorValue::Float16(_) => Some(DataType::Half),
        TensorValue::Bfloat16(_) => Some(DataType::Bfloat16),
        TensorValue::Int32(_) => Some(DataType::Int32),
        TensorValue::Float64(_) => Some(DataType::Double),
        TensorValue::Int64(_) => Some(DataType::Int64),
        TensorValue::Float8(_) | TensorValue::Bool(_) => None,
    }
}
