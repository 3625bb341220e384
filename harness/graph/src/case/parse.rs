//! From text to a case. One reader takes every spelling; the strict one then wants the canonical.

use super::attribute::{AttributeKey as Key, AttributeValue as Value, Attributes};
use super::build;
use super::error::{CaseError, Fault, Part, suggestion};
use super::fill::Fill;
use super::layout::Layout;
use super::number::Piece;
use super::op::{BatchnormPhase, Op};
use super::shape::Shape;
use super::strided::{Strided, StridedTensor};
use super::value::Case;
use crate::enums::{DataType, PointwiseMode};
use crate::semantics::pointwise;

const PARTS: &str = "op/dtypes/layout/shape/attrs/fill";
const DEFAULT_EPSILON: f32 = 1e-5;
const DEFAULT_MOMENTUM: f32 = 0.1;

/// The parts of a text; those that were left out are `None`.
struct Parts<'a> {
    op: Piece<'a>,
    dtypes: Option<Piece<'a>>,
    layout: Option<Piece<'a>>,
    shape: Option<Piece<'a>>,
    attributes: Option<Piece<'a>>,
    fill: Option<Piece<'a>>,
}

pub(super) fn strict(id: &str) -> Result<Case, CaseError> {
    check_characters(id)?;
    let pieces: Vec<Piece<'_>> = Piece { text: id, start: 0 }.split('/').take(8).collect();
    let &[op, dtypes, layout, shape, attributes, fill] = pieces.as_slice() else {
        return Err(CaseError::new(
            format!(
                "a case id has six parts, {PARTS}; found {}",
                count(pieces.len())
            ),
            0..id.len(),
        ));
    };
    let case = assemble(&Parts {
        op,
        dtypes: Some(dtypes),
        layout: Some(layout),
        shape: Some(shape),
        attributes: Some(attributes),
        fill: Some(fill),
    })?;
    let canonical = case.to_string();
    if canonical == id {
        return Ok(case);
    }
    let same = id
        .bytes()
        .zip(canonical.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    Err(CaseError::new(
        format!("not the canonical spelling; write `{canonical}`"),
        same..id.len(),
    ))
}

pub(super) fn short(text: &str) -> Result<Case, CaseError> {
    check_characters(text)?;
    let mut pieces = Piece { text, start: 0 }.split('/');
    let mut parts = Parts {
        op: pieces.next().unwrap_or(Piece { text, start: 0 }),
        dtypes: None,
        layout: None,
        shape: None,
        attributes: None,
        fill: None,
    };
    for piece in pieces {
        let (slot, what) = match recognise(piece)? {
            Part::Dtypes => (&mut parts.dtypes, "types"),
            Part::Layout => (&mut parts.layout, "layout"),
            Part::Shape => (&mut parts.shape, "shape"),
            Part::Fill => (&mut parts.fill, "fill"),
            Part::Attributes => (&mut parts.attributes, "attributes"),
        };
        if slot.replace(piece).is_some() {
            return Err(piece.error(format!("the part for the {what} is given twice")));
        }
    }
    assemble(&parts)
}

fn count(parts: usize) -> String {
    match parts {
        8 => "more".to_owned(),
        n => n.to_string(),
    }
}

fn check_characters(text: &str) -> Result<(), CaseError> {
    let good = |c: char| {
        c.is_ascii_lowercase()
            || c.is_ascii_digit()
            || matches!(c, '.' | '+' | '~' | '_' | '/' | '-')
    };
    match text.char_indices().find(|(_, c)| !good(*c)) {
        None => Ok(()),
        Some((at, c)) => Err(CaseError::new(
            format!("{c:?} does not occur in case ids, which are of a-z 0-9 . + ~ _ / -"),
            at..at + c.len_utf8(),
        )),
    }
}

/// Which part a piece of a short id is, by its look.
fn recognise(piece: Piece<'_>) -> Result<Part, CaseError> {
    let head = |separator| piece.text.split(separator).next().unwrap_or_default();
    let key_end = piece.text.find(|c: char| !c.is_ascii_lowercase());
    let key = &piece.text[..key_end.unwrap_or(piece.text.len())];
    if Fill::from_name(piece.text).is_some() {
        Ok(Part::Fill)
    } else if DataType::from_short_name(head('+')).is_some() {
        Ok(Part::Dtypes)
    } else if Layout::from_name(head('~')).is_some() {
        Ok(Part::Layout)
    } else if piece.text == super::attribute::NONE || is_attribute(piece, key) {
        Ok(Part::Attributes)
    } else if matches!(key, "n" | "c" | "k" | "i" | "f") && piece.text.contains('-') {
        Ok(Part::Shape)
    } else {
        let known = DataType::short_names()
            .chain(Layout::ALL.iter().map(|layout| layout.name()))
            .chain(Fill::ALL.iter().map(|fill| fill.name()))
            .chain(Key::ALL.iter().map(|key| key.name()));
        let hint = suggestion(piece.text, known);
        Err(piece.error(format!(
            "`{}` is neither types, layout, shape, attributes nor fill ({PARTS}){hint}",
            piece.text
        )))
    }
}

fn is_attribute(piece: Piece<'_>, key: &str) -> bool {
    let named = |known: &Key| key == known.name() || piece.text.starts_with("in") && key == "in";
    key == "pad" || piece.text.starts_with(Key::ModeConv.name()) || Key::ALL.iter().any(named)
}

fn assemble(parts: &Parts<'_>) -> Result<Case, CaseError> {
    let op = parse_op(parts.op)?;
    let end = parts.op.range().end;
    let missing = |what: &str| {
        CaseError::new(
            format!("{op} needs a {what}, as in {}", Case::smallest(op)),
            0..end,
        )
    };
    let dtypes = match parts.dtypes {
        Some(part) => parse_dtypes(op, part)?,
        None => vec![DataType::Float],
    };
    let shape = Shape::parse(op, parts.shape.ok_or_else(|| missing("shape"))?)?;
    let (layout, strided) = parse_layout(op, &shape, parts.layout)?;
    let attributes = match parts.attributes {
        Some(part) => Attributes::parse(op, part)?,
        None => Attributes::default(),
    };
    let fill = match parts.fill {
        Some(part) => parse_fill(part)?,
        None => Fill::default(),
    };
    let mut case = Case {
        op,
        dtypes,
        layout,
        strided,
        shape,
        attributes,
        fill,
    };
    let finished = fill_in(&mut case).and_then(|()| build::graph(&case).map(drop));
    finished.map_err(|fault| locate(parts, fault))?;
    Ok(case)
}

/// Where a fault lies in the text: the part, or the operation if the part was left out.
fn locate(parts: &Parts<'_>, fault: Fault) -> CaseError {
    let part = match fault.part {
        Part::Dtypes => parts.dtypes,
        Part::Layout => parts.layout,
        Part::Shape => parts.shape,
        Part::Attributes => parts.attributes,
        Part::Fill => parts.fill,
    };
    CaseError::new(fault.message, part.unwrap_or(parts.op).range())
}

fn parse_op(part: Piece<'_>) -> Result<Op, CaseError> {
    Op::from_name(part.text)
        .or_else(|| Op::from_name(&format!("{}_fwd", part.text)))
        .ok_or_else(|| {
            let hint = suggestion(part.text, Op::names());
            part.error(format!("no operation `{}`{hint}", part.text))
        })
}

fn parse_dtypes(op: Op, part: Piece<'_>) -> Result<Vec<DataType>, CaseError> {
    let mut dtypes = Vec::new();
    for name in part.split('+') {
        let dtype = DataType::from_short_name(name.text).filter(|t| *t != DataType::Unset);
        dtypes.push(dtype.ok_or_else(|| {
            let hint = suggestion(name.text, DataType::short_names());
            name.error(format!("no data type `{}`{hint}", name.text))
        })?);
    }
    let roles: &[&str] = match op {
        Op::Pointwise(mode) => &["in0", "in1", "in2"][..pointwise(mode).arity()],
        _ if op.is_conv() => &["inputs"],
        _ => &["tensors"],
    };
    let last = if op.family() == "batchnorm" {
        "parameters"
    } else {
        "output"
    };
    if dtypes.len() != 1 && dtypes.len() != roles.len() + 1 {
        return Err(part.error(format!(
            "{op} takes one type for all, or {}+{last}; found {}",
            roles.join("+"),
            dtypes.len()
        )));
    }
    if dtypes.iter().all(|dtype| *dtype == dtypes[0]) {
        dtypes.truncate(1);
    }
    Ok(dtypes)
}

fn parse_layout(
    op: Op,
    shape: &Shape,
    part: Option<Piece<'_>>,
) -> Result<(Layout, Strided), CaseError> {
    let Some(part) = part else {
        let layout = Layout::for_spatial(shape.spatial(), false);
        return Ok((
            layout.expect("a shape has 1 to 3 spatial axes"),
            Strided::default(),
        ));
    };
    let mut pieces = part.split('~');
    let name = pieces.next().unwrap_or(part);
    let layout = Layout::from_name(name.text).ok_or_else(|| {
        let hint = suggestion(name.text, Layout::ALL.iter().map(|layout| layout.name()));
        name.error(format!("no layout `{}`{hint}", name.text))
    })?;
    if layout.spatial() != shape.spatial() {
        let right = Layout::for_spatial(shape.spatial(), layout.channels_last());
        let right = right.map_or("", Layout::name);
        return Err(name.error(format!(
            "{layout} has {} spatial axes and the shape has {}; write {right}",
            layout.spatial(),
            shape.spatial()
        )));
    }
    Ok((layout, Strided::parse(op, pieces)?))
}

fn parse_fill(part: Piece<'_>) -> Result<Fill, CaseError> {
    Fill::from_name(part.text).ok_or_else(|| {
        let known: Vec<&str> = Fill::ALL.iter().map(|fill| fill.name()).collect();
        let hint = suggestion(part.text, known.iter().copied());
        part.error(format!(
            "no fill `{}`{hint}; there are {}",
            part.text,
            known.join(", ")
        ))
    })
}

/// Fills in defaults and drops what says nothing, so that each case has one spelling.
fn fill_in(case: &mut Case) -> Result<(), Fault> {
    if let Some(wanted) = case.fill.wants(case.op, case.dtypes[0]) {
        let message = format!("the fill `{}` wants {wanted}", case.fill);
        return Err(Fault::new(Part::Fill, message));
    }
    if case.op.is_conv() {
        fill_in_conv(case)?;
    }
    let running = case.attributes.has(Key::Running);
    match case.op {
        Op::Batchnorm(phase) | Op::BatchnormActivation(phase, _) => {
            if matches!(
                phase,
                BatchnormPhase::Training | BatchnormPhase::InferenceVariance
            ) {
                case.attributes
                    .set_default(Key::Epsilon, Value::Float(DEFAULT_EPSILON));
            }
            if running {
                case.attributes
                    .set_default(Key::Momentum, Value::Float(DEFAULT_MOMENTUM));
            } else if case.attributes.has(Key::Momentum) {
                let message = "`mom` is of use with running statistics only; add `run`";
                return Err(Fault::new(Part::Attributes, message));
            }
        }
        Op::Pointwise(mode) => {
            if mode == PointwiseMode::GenIndex {
                case.attributes.set_default(Key::Axis, Value::Int(1));
            }
            let full = case.shape.x_dims();
            for operand in 0..pointwise(mode).arity() {
                let key = Key::broadcast(operand);
                if case.attributes.dims(key) == full {
                    case.attributes.remove(key);
                }
            }
        }
        _ => {}
    }
    drop_packed_strides(case)
}

fn fill_in_conv(case: &mut Case) -> Result<(), Fault> {
    let axes = case.shape.spatial();
    let given = [Key::Pre, Key::Post, Key::Str, Key::Dil].map(|key| {
        case.attributes
            .has(key)
            .then(|| case.attributes.dims(key).to_vec())
    });
    let [pre, post, stride, dilation] = given;
    let zeros = || vec![0];
    let before = pre.clone().or_else(|| post.clone()).unwrap_or_else(zeros);
    let after = post.or(pre).unwrap_or_else(zeros);
    let ones = || vec![1];
    for (key, mut dims) in [
        (Key::Pre, before),
        (Key::Post, after),
        (Key::Str, stride.unwrap_or_else(ones)),
        (Key::Dil, dilation.unwrap_or_else(ones)),
    ] {
        debug_assert!(key.is_spatial());
        if dims.len() == 1 {
            dims.resize(axes, dims[0]);
        }
        if dims.len() != axes {
            let message = format!(
                "`{}` has {} numbers for {axes} spatial axes",
                key.name(),
                dims.len()
            );
            return Err(Fault::new(Part::Attributes, message));
        }
        case.attributes.set(key, Value::Dims(dims));
    }
    case.attributes.set_default(Key::Groups, Value::Int(1));
    Ok(())
}

fn drop_packed_strides(case: &mut Case) -> Result<(), Fault> {
    for (tensor, dims) in build::strided_dims(case)? {
        let packed = case.layout.strides(&dims);
        if packed.is_some() && packed.as_deref() == case.strided.get(tensor) {
            case.strided.forget(tensor);
        }
    }
    debug_assert!(case.op.is_conv() || case.strided.get(StridedTensor::Y).is_none());
    Ok(())
}
