//! Arbitrary graphs of every node kind, filled field by field through the schema.

use dnn_assay_abi::ApiVersion;
use dnn_assay_graph::schema::{FieldMut, Record};
use dnn_assay_graph::wire::{
    EngineConfig, EngineDetails, Generation, Knob, KnobConstraint, KnobSetting, KnobValue,
};
use dnn_assay_graph::{Attributes, DataType, Graph, Node, Tensor, TensorValue};
use proptest::collection::vec;
use proptest::prelude::*;

/// Choices, read from the front; zeros once they are spent, so that shrinking the tape shrinks
/// what is built from it.
pub struct Tape(std::vec::IntoIter<u64>);

impl Tape {
    pub fn new(words: Vec<u64>) -> Self {
        Self(words.into_iter())
    }

    fn word(&mut self) -> u64 {
        self.0.next().unwrap_or(0)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }

    fn bool(&mut self) -> bool {
        self.below(2) == 1
    }

    fn i64(&mut self) -> i64 {
        match self.below(6) {
            0 => 0,
            1 => self.below(16) as i64,
            2 => -1,
            3 => i64::MAX,
            4 => i64::MIN,
            _ => self.word() as i64,
        }
    }

    fn i32(&mut self) -> i32 {
        self.i64() as i32
    }

    /// Any f32 but NaN, which is not equal to itself.
    fn f32(&mut self) -> f32 {
        let value = f32::from_bits(self.word() as u32);
        if value.is_nan() { f32::INFINITY } else { value }
    }

    /// Any f64 but NaN.
    fn f64(&mut self) -> f64 {
        let value = f64::from_bits(self.word());
        if value.is_nan() { -0.0 } else { value }
    }

    fn option<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.bool().then(|| make(self))
    }

    fn list<T>(&mut self, make: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.below(5)).map(|_| make(self)).collect()
    }

    fn text(&mut self) -> String {
        const LETTERS: [char; 8] = ['a', 'B', '_', '.', '"', '\\', 'é', '∂'];
        self.list(|tape| LETTERS[tape.below(8) as usize])
            .into_iter()
            .collect()
    }

    fn data_type(&mut self, generation: Generation) -> DataType {
        let known = match generation {
            Generation::Nov2025 => 7,
            Generation::Current => 18,
        };
        DataType::from_number(self.below(known) as i8).expect("below the count")
    }
}

/// Fills every field of a record.
pub fn fill(record: &mut dyn Record, tape: &mut Tape) {
    record.visit_mut(&mut |_, field| match field {
        FieldMut::Int64(value) => *value = tape.i64(),
        FieldMut::OptInt64(value) => *value = tape.option(Tape::i64),
        FieldMut::Int32(value) => *value = tape.i32(),
        FieldMut::OptInt32(value) => *value = tape.option(Tape::i32),
        FieldMut::OptFloat32(value) => *value = tape.option(Tape::f32),
        FieldMut::Bool(value) => *value = tape.bool(),
        FieldMut::OptBool(value) => *value = tape.option(Tape::bool),
        FieldMut::Enum(value) => {
            let count = (0..i8::MAX).take_while(|&n| value.set_number(n)).count();
            assert!(value.set_number(tape.below(count as u64) as i8));
        }
        FieldMut::Int64s(value) => *value = tape.list(Tape::i64),
        FieldMut::Int32s(value) => *value = tape.list(Tape::i32),
        FieldMut::Bytes(value) => *value = tape.list(|tape| tape.word() as u8),
        FieldMut::Text(value) => *value = tape.text(),
    });
}

/// A node of this kind.
pub fn node(mut attributes: Attributes, tape: &mut Tape, compute_type: DataType) -> Node {
    fill(attributes.record_mut(), tape);
    Node {
        name: tape.text(),
        compute_type,
        attributes,
    }
}

fn any_node(tape: &mut Tape, generation: Generation) -> Node {
    let kinds = match generation {
        Generation::Nov2025 => 7,
        Generation::Current => 23,
    };
    let kind = Attributes::from_tag(1 + tape.below(kinds) as u8).expect("a known tag");
    let compute_type = match generation {
        Generation::Nov2025 => DataType::Unset,
        Generation::Current => tape.data_type(generation),
    };
    node(kind, tape, compute_type)
}

fn value(tape: &mut Tape, generation: Generation) -> TensorValue {
    let kinds = match generation {
        Generation::Nov2025 => 6,
        Generation::Current => 8,
    };
    match tape.below(kinds) {
        0 => TensorValue::Float32(tape.f32()),
        1 => TensorValue::Float16(tape.f32()),
        2 => TensorValue::Bfloat16(tape.f32()),
        3 => TensorValue::Float8(tape.word() as u8),
        4 => TensorValue::Int32(tape.i32()),
        5 => TensorValue::Float64(tape.f64()),
        6 => TensorValue::Int64(tape.i64()),
        _ => TensorValue::Bool(tape.bool()),
    }
}

fn tensor(tape: &mut Tape, generation: Generation) -> Tensor {
    let mut tensor = Tensor {
        uid: tape.i64(),
        name: tape.text(),
        data_type: tape.data_type(generation),
        strides: tape.list(Tape::i64),
        dims: tape.list(Tape::i64),
        is_virtual: tape.bool(),
        value: tape.option(|tape| value(tape, generation)),
        ..Tensor::default()
    };
    if generation == Generation::Current {
        tensor.runtime_pass_by_value = tape.bool();
        tensor.ragged_offset_uid = tape.option(Tape::i64);
        tensor.alignment = tape.i64();
        tensor.ragged_offset_multiplier = tape.i64();
    }
    tensor
}

/// A graph that the generation can express.
pub fn graph_from(tape: &mut Tape, generation: Generation) -> Graph {
    let mut graph = Graph {
        name: tape.text(),
        compute_type: tape.data_type(generation),
        intermediate_type: tape.data_type(generation),
        io_type: tape.data_type(generation),
        nodes: tape.list(|tape| any_node(tape, generation)),
        tensors: tape.list(|tape| tensor(tape, generation)),
        ..Graph::default()
    };
    if generation == Generation::Current {
        graph.preferred_engine_id = tape.option(Tape::i64);
        graph.override_shapes = tape.bool();
        graph.min_engine_api = tape.option(|tape| {
            ApiVersion::new(tape.word() as u32, tape.word() as u32, tape.word() as u32)
        });
        graph.id = tape.option(|tape| std::array::from_fn(|_| tape.word() as u8));
    }
    graph
}

fn knob_value(tape: &mut Tape) -> KnobValue {
    match tape.below(3) {
        0 => KnobValue::Int(tape.i64()),
        1 => KnobValue::Float(tape.f64()),
        _ => KnobValue::Text(tape.text()),
    }
}

fn constraint(tape: &mut Tape) -> KnobConstraint {
    match tape.below(3) {
        0 => KnobConstraint::Int {
            min: tape.i64(),
            max: tape.i64(),
            step: tape.i64(),
            valid_values: tape.list(Tape::i64),
        },
        1 => KnobConstraint::Float {
            min: tape.f64(),
            max: tape.f64(),
        },
        _ => KnobConstraint::Text {
            max_length: tape.i32(),
            valid_values: tape.list(Tape::text),
        },
    }
}

fn tape() -> impl Strategy<Value = Tape> + use<> {
    // A graph takes a few hundred words; the long tapes fill several nodes of the widest kind.
    vec(any::<u64>(), 0..600).prop_map(Tape::new)
}

impl std::fmt::Debug for Tape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tape of {} words", self.0.len())
    }
}

pub fn graphs(generation: Generation) -> impl Strategy<Value = Graph> {
    tape().prop_map(move |mut tape| graph_from(&mut tape, generation))
}

pub fn configs() -> impl Strategy<Value = EngineConfig> {
    tape().prop_map(|mut tape| EngineConfig {
        engine_id: tape.i64(),
        knobs: tape.list(|tape| KnobSetting {
            knob_id: tape.text(),
            value: knob_value(tape),
        }),
    })
}

pub fn details() -> impl Strategy<Value = EngineDetails> {
    tape().prop_map(|mut tape| EngineDetails {
        engine_id: tape.i64(),
        behavior_notes: tape.list(Tape::i32),
        name: tape.text(),
        knobs: tape.list(|tape| Knob {
            knob_id: tape.text(),
            description: tape.text(),
            default_value: knob_value(tape),
            constraint: tape.option(constraint),
            deprecated: tape.bool(),
        }),
    })
}
