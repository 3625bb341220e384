//! The attribute part: `pre1x1-post1x1-str1x1-dil1x1-g1`.

use super::error::{CaseError, suggestion};
use super::number::{self, Piece};
use super::op::{BatchnormPhase, ConvDirection, Op};
use crate::semantics::{Parameter, pointwise};
use std::collections::BTreeMap;

/// The attributes, in the order in which ids state them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AttributeKey {
    /// `pre`: padding before, per spatial axis.
    Pre,
    /// `post`: padding after, per spatial axis.
    Post,
    /// `str`: stride of the convolution, per spatial axis.
    Str,
    /// `dil`: dilation, per spatial axis.
    Dil,
    /// `g`: groups.
    Groups,
    /// `mode-conv`: true convolution (flipped filter) instead of cross-correlation.
    ModeConv,
    /// `ragged`: the images of x lie where a second tensor says.
    Ragged,
    /// `vio`: virtual tensors have the inputs' type instead of f32.
    VirtualIo,
    /// `lo`: lower clip of the ReLU.
    Lower,
    /// `up`: upper clip of the ReLU.
    Upper,
    /// `slope`: slope below the lower clip.
    Slope,
    /// `beta`: β of the swish or the softplus.
    Beta,
    /// `alpha`: α of the ELU.
    Alpha,
    /// `axis`: the axis of gen_index.
    Axis,
    /// `eps`: epsilon of a batchnorm.
    Epsilon,
    /// `mom`: momentum of the running statistics.
    Momentum,
    /// `stats`: training writes mean and inverse variance; backward reads them.
    Stats,
    /// `run`: training updates running statistics.
    Running,
    /// `in0.`: extents of the first operand, where it is broadcast.
    In0,
    /// `in1.`: extents of the second operand, where it is broadcast.
    In1,
    /// `in2.`: extents of the third operand, where it is broadcast.
    In2,
}

/// What an attribute holds.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// Whole numbers, one per axis.
    Dims(Vec<i64>),
    /// One whole number.
    Int(i64),
    /// A finite number.
    Float(f32),
    /// Its presence says it.
    Flag,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Dims,
    Int,
    Float,
    Flag,
}

use AttributeKey as Key;
use AttributeValue as Value;

impl AttributeKey {
    /// Every attribute, in the order of ids.
    pub const ALL: &'static [Self] = &[
        Key::Pre,
        Key::Post,
        Key::Str,
        Key::Dil,
        Key::Groups,
        Key::ModeConv,
        Key::Ragged,
        Key::VirtualIo,
        Key::Lower,
        Key::Upper,
        Key::Slope,
        Key::Beta,
        Key::Alpha,
        Key::Axis,
        Key::Epsilon,
        Key::Momentum,
        Key::Stats,
        Key::Running,
        Key::In0,
        Key::In1,
        Key::In2,
    ];

    /// The spelling in ids.
    pub const fn name(self) -> &'static str {
        self.spelling().0
    }

    const fn spelling(self) -> (&'static str, Kind) {
        match self {
            Key::Pre => ("pre", Kind::Dims),
            Key::Post => ("post", Kind::Dims),
            Key::Str => ("str", Kind::Dims),
            Key::Dil => ("dil", Kind::Dims),
            Key::Groups => ("g", Kind::Int),
            Key::ModeConv => ("mode-conv", Kind::Flag),
            Key::Ragged => ("ragged", Kind::Flag),
            Key::VirtualIo => ("vio", Kind::Flag),
            Key::Lower => ("lo", Kind::Float),
            Key::Upper => ("up", Kind::Float),
            Key::Slope => ("slope", Kind::Float),
            Key::Beta => ("beta", Kind::Float),
            Key::Alpha => ("alpha", Kind::Float),
            Key::Axis => ("axis", Kind::Int),
            Key::Epsilon => ("eps", Kind::Float),
            Key::Momentum => ("mom", Kind::Float),
            Key::Stats => ("stats", Kind::Flag),
            Key::Running => ("run", Kind::Flag),
            Key::In0 => ("in0.", Kind::Dims),
            Key::In1 => ("in1.", Kind::Dims),
            Key::In2 => ("in2.", Kind::Dims),
        }
    }

    /// The key for the broadcast of the operand of this index.
    pub(super) const fn broadcast(operand: usize) -> Self {
        match operand {
            0 => Key::In0,
            1 => Key::In1,
            _ => Key::In2,
        }
    }

    /// Whether it holds one number per spatial axis.
    pub(super) const fn is_spatial(self) -> bool {
        matches!(self, Key::Pre | Key::Post | Key::Str | Key::Dil)
    }
}

/// The attributes of a case, by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes {
    map: BTreeMap<AttributeKey, AttributeValue>,
}

/// The name of an empty attribute part.
pub(super) const NONE: &str = "none";

impl Attributes {
    /// The attributes in the order of ids.
    pub fn iter(&self) -> impl Iterator<Item = (AttributeKey, &AttributeValue)> {
        self.map.iter().map(|(key, value)| (*key, value))
    }

    /// The value under a key.
    pub fn get(&self, key: AttributeKey) -> Option<&AttributeValue> {
        self.map.get(&key)
    }

    /// Whether the key is given.
    pub fn has(&self, key: AttributeKey) -> bool {
        self.map.contains_key(&key)
    }

    /// The numbers per axis under a key; empty if it is not given.
    pub fn dims(&self, key: AttributeKey) -> &[i64] {
        match self.map.get(&key) {
            Some(Value::Dims(dims)) => dims,
            _ => &[],
        }
    }

    /// The whole number under a key.
    pub fn int(&self, key: AttributeKey) -> Option<i64> {
        match self.map.get(&key) {
            Some(Value::Int(value)) => Some(*value),
            _ => None,
        }
    }

    /// The number under a key.
    pub fn float(&self, key: AttributeKey) -> Option<f32> {
        match self.map.get(&key) {
            Some(Value::Float(value)) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn set(&mut self, key: AttributeKey, value: AttributeValue) {
        self.map.insert(key, value);
    }

    pub(super) fn set_default(&mut self, key: AttributeKey, value: AttributeValue) {
        self.map.entry(key).or_insert(value);
    }

    pub(super) fn remove(&mut self, key: AttributeKey) {
        self.map.remove(&key);
    }

    pub(super) fn print(&self, out: &mut String) {
        if self.map.is_empty() {
            out.push_str(NONE);
        }
        for (i, (key, value)) in self.map.iter().enumerate() {
            if i > 0 {
                out.push('-');
            }
            out.push_str(key.name());
            out.push_str(&value.text());
        }
    }

    /// Reads the part as written: nothing is filled in but `pad`, which sets `pre` and `post`.
    pub(super) fn parse(op: Op, part: Piece<'_>) -> Result<Self, CaseError> {
        let mut attributes = Self::default();
        if part.text == NONE || part.text.is_empty() {
            return Ok(attributes);
        }
        let allowed = allowed(op);
        for token in tokens(part) {
            let (name, rest) = split_key(token);
            if name == "pad" && op.is_conv() {
                let dims = Value::Dims(number::dims(rest)?);
                attributes.insert(Key::Pre, dims.clone(), token)?;
                attributes.insert(Key::Post, dims, token)?;
                continue;
            }
            let key = allowed.iter().copied().find(|key| key.name() == name);
            let key = key.ok_or_else(|| unknown(op, name, &allowed, token))?;
            attributes.insert(key, read(key, rest)?, token)?;
        }
        Ok(attributes)
    }

    fn insert(&mut self, key: Key, value: Value, token: Piece<'_>) -> Result<(), CaseError> {
        match self.map.insert(key, value) {
            None => Ok(()),
            Some(_) => Err(token.error(format!("`{}` is given twice", key.name()))),
        }
    }
}

impl AttributeValue {
    /// The text that follows the key in an id; empty for a flag.
    pub fn text(&self) -> String {
        let mut out = String::new();
        match self {
            Value::Dims(dims) => number::print_dims(&mut out, dims),
            Value::Int(value) => number::print_dims(&mut out, &[*value]),
            Value::Float(value) => out = number::print_float(*value),
            Value::Flag => {}
        }
        out
    }
}

/// The attributes that an operation takes.
pub(super) fn allowed(op: Op) -> Vec<AttributeKey> {
    let mut keys = Vec::new();
    if op.is_conv() {
        keys.extend([
            Key::Pre,
            Key::Post,
            Key::Str,
            Key::Dil,
            Key::Groups,
            Key::ModeConv,
        ]);
    }
    if op == Op::Conv(ConvDirection::Fprop) {
        keys.push(Key::Ragged);
    }
    if op.is_fused() {
        keys.push(Key::VirtualIo);
    }
    if let Some(mode) = op.mode() {
        keys.extend(
            pointwise(mode)
                .parameters
                .iter()
                .map(|parameter| match parameter {
                    Parameter::ReluLower => Key::Lower,
                    Parameter::ReluUpper => Key::Upper,
                    Parameter::ReluSlope => Key::Slope,
                    Parameter::SwishBeta | Parameter::SoftplusBeta => Key::Beta,
                    Parameter::EluAlpha => Key::Alpha,
                    Parameter::Axis => Key::Axis,
                }),
        );
    }
    match op {
        Op::Batchnorm(phase) | Op::BatchnormActivation(phase, _) => keys.extend(match phase {
            BatchnormPhase::Inference => &[][..],
            BatchnormPhase::InferenceVariance => &[Key::Epsilon],
            BatchnormPhase::Training => &[Key::Epsilon, Key::Momentum, Key::Stats, Key::Running],
            BatchnormPhase::Backward => &[Key::Stats],
        }),
        Op::Pointwise(mode) => keys.extend((0..pointwise(mode).arity()).map(Key::broadcast)),
        _ => {}
    }
    keys
}

/// The tokens of the part. `-` separates where a letter follows it; before a digit it is a sign.
fn tokens(part: Piece<'_>) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = Some(part);
    std::iter::from_fn(move || {
        let piece = rest?;
        let bytes = piece.text.as_bytes();
        let end = (0..bytes.len()).find(|&at| {
            let sign = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
            bytes[at] == b'-' && !sign && &piece.text[..at] != "mode"
        });
        rest = end.map(|end| piece.from(end + 1));
        Some(piece.until(end.unwrap_or(bytes.len())))
    })
}

fn split_key(token: Piece<'_>) -> (&str, Piece<'_>) {
    let end = match token.text.find('.') {
        Some(dot) if token.text.starts_with("in") => dot + 1,
        _ if token.text.starts_with("mode-") => token.text.len(),
        _ => token
            .text
            .find(|c: char| !c.is_ascii_lowercase())
            .unwrap_or(token.text.len()),
    };
    (&token.text[..end], token.from(end))
}

fn read(key: Key, rest: Piece<'_>) -> Result<Value, CaseError> {
    match key.spelling().1 {
        Kind::Dims => number::dims(rest).map(Value::Dims),
        Kind::Int => number::int(rest).map(Value::Int),
        Kind::Float => number::float(rest).map(Value::Float),
        Kind::Flag if rest.text.is_empty() => Ok(Value::Flag),
        Kind::Flag => Err(rest.error(format!("`{}` takes no value", key.name()))),
    }
}

fn unknown(op: Op, name: &str, allowed: &[Key], token: Piece<'_>) -> CaseError {
    let names: Vec<&str> = allowed.iter().map(|key| key.name()).collect();
    let hint = suggestion(name, names.iter().copied());
    let known = match names.is_empty() {
        true => "which takes none".to_owned(),
        false => format!("which takes {}", names.join(", ")),
    };
    token.error(format!("no attribute `{}` for {op}, {known}{hint}", name))
}
