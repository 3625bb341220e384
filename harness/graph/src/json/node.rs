//! Nodes, field by field as the schema declares them.

use super::cursor::Cursor;
use super::error::JsonError;
use super::style::{self, NODE_KEYS, Section, Spelling};
use crate::enums::{DataType, WireEnum};
use crate::model::Node;
use crate::schema::{Attributes, FieldInfo, FieldMut, FieldRef, Record, Role};
use serde_json::{Map, Value};

/// Reads a node.
pub(super) fn read(node: &Cursor) -> Result<Node, JsonError> {
    let mut attributes = kind(&node.require("type")?)?;
    let sections = sections(node)?;
    check_keys(&sections, attributes.record())?;
    let mut result = Ok(());
    attributes.record_mut().visit_mut(&mut |info, field| {
        if result.is_ok() {
            result = read_field(node, &sections, info, field);
        }
    });
    result?;
    let mut compute_type = DataType::Unset;
    if let Some(value) = node.get("compute_data_type")? {
        value.enumeration(&mut compute_type)?;
    }
    Ok(Node {
        name: match node.get("name")? {
            Some(name) => name.text()?.to_owned(),
            None => String::new(),
        },
        compute_type,
        attributes,
    })
}

/// The kind that `type` names: the table's name, or the kind's.
fn kind(value: &Cursor) -> Result<Attributes, JsonError> {
    let name = value.text()?;
    let kinds = Attributes::all();
    let names: Vec<&str> = kinds
        .iter()
        .map(|kind| kind.record().table_name())
        .collect();
    kinds
        .iter()
        .find(|kind| kind.record().table_name() == name || kind.kind() == name)
        .cloned()
        .ok_or_else(|| value.unknown_name("node type", &names))
}

/// The objects in which a node's fields may stand.
fn sections<'v>(node: &Cursor<'v>) -> Result<Vec<Cursor<'v>>, JsonError> {
    let mut sections = Vec::new();
    for section in Section::ALL {
        match section.key() {
            Some(key) => sections.extend(node.get(key)?),
            None => sections.push(node.clone()),
        }
    }
    Ok(sections)
}

fn check_keys(sections: &[Cursor], record: &dyn Record) -> Result<(), JsonError> {
    let mut known = NODE_KEYS.to_vec();
    record.visit(&mut |info, _| known.push(info.name));
    sections
        .iter()
        .try_for_each(|section| section.check_keys(&known))
}

/// Reads a field from the one section that has it. A uid that is not optional must be there;
/// any other absent field keeps the schema's default.
fn read_field(
    node: &Cursor,
    sections: &[Cursor],
    info: FieldInfo,
    field: FieldMut,
) -> Result<(), JsonError> {
    let mut found: Option<Cursor> = None;
    for section in sections {
        let Some(value) = section.get(info.name)? else {
            continue;
        };
        if let Some(first) = &found {
            return Err(value.wrong(format!("nothing, since {} says it", first.path())));
        }
        found = Some(value);
    }
    match (found, field) {
        (Some(value), field) => read_value(&value, field),
        (None, FieldMut::Int64(_)) if info.role != Role::Attribute => {
            let key = match info.role {
                Role::Output => "outputs",
                _ => "inputs",
            };
            let place = node.get(key)?.unwrap_or_else(|| node.clone());
            Err(place.missing(info.name)?)
        }
        (None, _) => Ok(()),
    }
}

fn read_value(value: &Cursor, field: FieldMut) -> Result<(), JsonError> {
    match field {
        FieldMut::Int64(field) => *field = value.i64()?,
        FieldMut::OptInt64(field) => *field = Some(value.i64()?),
        FieldMut::Int32(field) => *field = value.i32()?,
        FieldMut::OptInt32(field) => *field = Some(value.i32()?),
        FieldMut::OptFloat32(field) => *field = Some(value.f32()?),
        FieldMut::Bool(field) => *field = value.bool()?,
        FieldMut::OptBool(field) => *field = Some(value.bool()?),
        FieldMut::Enum(field) => value.enumeration(field)?,
        FieldMut::Int64s(field) => *field = value.i64s()?,
        FieldMut::Int32s(field) => *field = value.i32s()?,
        FieldMut::Bytes(field) => *field = value.bytes()?,
        FieldMut::Text(field) => value.text()?.clone_into(field),
    }
    Ok(())
}

/// Writes a node as its kind's own serializer would.
pub(super) fn write(node: &Node) -> Value {
    let style = style::of(&node.attributes);
    let mut object = Map::new();
    object.insert("name".to_owned(), node.name.as_str().into());
    let table = node.attributes.record().table_name();
    object.insert("type".to_owned(), table.into());
    object.insert(
        "compute_data_type".to_owned(),
        spell(&node.compute_type, Spelling::Lower),
    );
    if style.split_uids {
        object.insert("inputs".to_owned(), Map::new().into());
        object.insert("outputs".to_owned(), Map::new().into());
    }
    if let Some(key) = style.parameters.key() {
        let section = object.entry(key);
        section.or_insert_with(|| Map::new().into());
    }
    node.attributes.record().visit(&mut |info, field| {
        let section = match info.role {
            Role::Attribute => style.parameters,
            _ if !style.split_uids => Section::Node,
            Role::Input => Section::Inputs,
            Role::Output => Section::Outputs,
        };
        let value = field_value(&node.attributes, field);
        if value.is_null() && !style.null_if_absent {
            return;
        }
        let target = match section.key() {
            Some(key) => object.get_mut(key).and_then(Value::as_object_mut),
            None => Some(&mut object),
        };
        if let Some(target) = target {
            target.insert(info.name.to_owned(), value);
        }
    });
    object.into()
}

fn field_value(attributes: &Attributes, field: FieldRef) -> Value {
    match field {
        FieldRef::Int64(value) => (*value).into(),
        FieldRef::OptInt64(value) => (*value).into(),
        FieldRef::Int32(value) => (*value).into(),
        FieldRef::OptInt32(value) => (*value).into(),
        FieldRef::OptFloat32(value) => value.map_or(Value::Null, float32),
        FieldRef::Bool(value) => (*value).into(),
        FieldRef::OptBool(value) => (*value).into(),
        FieldRef::Enum(value) => spell(value, style::spelling(attributes, value.enum_name())),
        FieldRef::Int64s(values) => values.as_slice().into(),
        FieldRef::Int32s(values) => values.as_slice().into(),
        FieldRef::Bytes(values) => values.as_slice().into(),
        FieldRef::Text(text) => text.as_str().into(),
    }
}

/// Writes an enum.
pub(super) fn spell(value: &dyn WireEnum, spelling: Spelling) -> Value {
    let name = value.name();
    match spelling {
        Spelling::Number => value.number().into(),
        Spelling::Upper => name.into(),
        Spelling::Lower if value.enum_name() == style::REDUCTION_MODE => {
            let stem = name.strip_suffix(style::OP_SUFFIX).unwrap_or(name);
            stem.to_lowercase().into()
        }
        Spelling::Lower => name.to_lowercase().into(),
    }
}

/// Writes an f32 with the fewest digits that give it back.
pub(super) fn float32(value: f32) -> Value {
    let short: f64 = value.to_string().parse().unwrap_or(f64::from(value));
    let same = (short as f32).to_bits() == value.to_bits();
    float64(if same { short } else { f64::from(value) })
}

/// Writes an f64, or the string that stands for what is no number.
pub(super) fn float64(value: f64) -> Value {
    let text = if value.is_nan() {
        "nan"
    } else if value == f64::INFINITY {
        "inf"
    } else if value == f64::NEG_INFINITY {
        "-inf"
    } else {
        return value.into();
    };
    text.into()
}
