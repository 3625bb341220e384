//! A case under construction: its parts, free to be changed, and the id that they make.

use dnn_assay_graph::DataType;
use dnn_assay_graph::case::{
    AttributeKey, AttributeValue, Case, CaseError, Fill, Layout, Op, StridedTensor,
};

/// The tensors that may be given strides, with their letters in ids.
const STRIDED: [(StridedTensor, char); 3] = [
    (StridedTensor::X, 's'),
    (StridedTensor::Y, 'y'),
    (StridedTensor::W, 'w'),
];

/// The parts of a case. They need not fit together: [`Draft::case`] tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Operation.
    pub op: Op,
    /// Types, as an id has them.
    pub dtypes: Vec<DataType>,
    /// Order of axes in memory.
    pub layout: Layout,
    /// Strides of tensors that are not packed, in elements and logical order.
    pub strides: Vec<(StridedTensor, Vec<i64>)>,
    /// Batch.
    pub n: i64,
    /// Channels of x.
    pub c: i64,
    /// Channels of y; convolutions only.
    pub k: Option<i64>,
    /// Spatial extents of x.
    pub i: Vec<i64>,
    /// Spatial extents of the filter; convolutions only.
    pub f: Vec<i64>,
    /// Attributes.
    pub attributes: Vec<(AttributeKey, AttributeValue)>,
    /// Fill.
    pub fill: Fill,
}

impl Draft {
    /// A case of one element without extents, types or attributes, to be filled in.
    pub fn new(op: Op, layout: Layout) -> Self {
        Self {
            op,
            dtypes: Vec::new(),
            layout,
            strides: Vec::new(),
            n: 1,
            c: 1,
            k: None,
            i: Vec::new(),
            f: Vec::new(),
            attributes: Vec::new(),
            fill: Fill::Uniform,
        }
    }

    /// The parts of a case.
    pub fn of(case: &Case) -> Self {
        let shape = case.shape();
        let strides = STRIDED.iter().filter_map(|&(tensor, _)| {
            let strides = case.strided().get(tensor)?;
            Some((tensor, strides.to_vec()))
        });
        let attributes = case.attributes().iter();
        Self {
            op: case.op(),
            dtypes: case.dtypes().to_vec(),
            layout: case.layout(),
            strides: strides.collect(),
            n: shape.n,
            c: shape.c,
            k: shape.k,
            i: shape.i.clone(),
            f: shape.f.clone(),
            attributes: attributes
                .map(|(key, value)| (key, value.clone()))
                .collect(),
            fill: case.fill(),
        }
    }

    /// The id that the parts make, in short form.
    pub fn id(&self) -> String {
        let dtypes: Vec<&str> = self.dtypes.iter().map(|d| d.short_name()).collect();
        let strides = self.strides.iter().map(|(tensor, strides)| {
            let known = STRIDED.iter().find(|(known, _)| known == tensor);
            let letter = known.map_or('s', |(_, letter)| *letter);
            format!("~{letter}{}", joined(strides))
        });
        let strides: String = strides.collect();
        let k = self.k.map_or_else(String::new, |k| format!("-k{k}"));
        let f = match self.f.as_slice() {
            [] => String::new(),
            f => format!("-f{}", joined(f)),
        };
        let attributes = self.attributes.iter();
        let attributes: Vec<String> = attributes
            .map(|(key, value)| format!("{}{}", key.name(), value.text()))
            .collect();
        let attributes = match attributes.as_slice() {
            [] => "none".to_owned(),
            some => some.join("-"),
        };
        format!(
            "{}/{}/{}{strides}/n{}-c{}{k}-i{}{f}/{attributes}/{}",
            self.op,
            dtypes.join("+"),
            self.layout,
            self.n,
            self.c,
            joined(&self.i),
            self.fill
        )
    }

    /// The case that the parts make.
    ///
    /// # Errors
    /// Where they do not fit together.
    pub fn case(&self) -> Result<Case, CaseError> {
        Case::parse_short(&self.id())
    }

    /// The value of an attribute.
    pub fn get(&self, key: AttributeKey) -> Option<&AttributeValue> {
        let found = self.attributes.iter().find(|(known, _)| *known == key);
        found.map(|(_, value)| value)
    }

    /// Gives an attribute a value.
    pub fn set(&mut self, key: AttributeKey, value: AttributeValue) {
        self.remove(key);
        self.attributes.push((key, value));
    }

    /// Takes an attribute away; one that is always stated takes its default.
    pub fn remove(&mut self, key: AttributeKey) {
        self.attributes.retain(|(known, _)| *known != key);
    }

    /// The numbers per spatial axis of an attribute.
    pub fn dims_mut(&mut self, key: AttributeKey) -> Option<&mut Vec<i64>> {
        let found = self.attributes.iter_mut().find(|(known, _)| *known == key);
        match found {
            Some((_, AttributeValue::Dims(dims))) => Some(dims),
            _ => None,
        }
    }
}

fn joined(numbers: &[i64]) -> String {
    let texts: Vec<String> = numbers.iter().map(i64::to_string).collect();
    texts.join("x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_the_sum_of_its_parts() {
        for id in [
            "conv.fprop+bias+relu_fwd/f16+f32/nhwc~s400x1x50x5~y999x1x99x9/n2-c5-k4-i8x9-f3x3/pre1x0-post0x1-str1x1-dil1x1-g1-lo0-up0.5/uni",
            "batchnorm.training/bf16+f32/ncdhw/n2-c3-i2x3x4/eps0.001-mom0.5-stats-run/uni",
            "pointwise.add/f32/nchw/n1-c4-i4x4/in1.4x1x1/int",
        ] {
            let case = Case::parse(id).expect("a canonical id");
            assert_eq!(
                Draft::of(&case).case().expect("its parts fit"),
                case,
                "{id}"
            );
        }
    }
}
