//! The graphs of a sweep: a template whose placeholders take the values of each case.

use serde_json::{Map, Value};

/// The graph of one case.
///
/// A value `"${case.a.b}"` is replaced as a whole. Inside a tensor (an object with a whole-number
/// `uid`) it is looked for in the case's values of that tensor first; extents, strides and type
/// must be found there.
///
/// # Errors
/// What has no value, or a patch of a tensor that there is not.
pub fn expand(template: &Value, case: &Map<String, Value>) -> Result<Value, String> {
    let empty = Map::new();
    let values = match case.get("values") {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(values)) => values,
        Some(_) => return Err("`values` is no object".to_owned()),
    };
    let mut graph = fill(template, values, None)?;
    for patch in list(case, "tensor_patches")? {
        apply(&mut graph, patch)?;
    }
    Ok(graph)
}

/// Values of one tensor alone.
const OF_TENSORS: [&str; 3] = ["dims", "strides", "data_type"];

fn fill(
    value: &Value,
    values: &Map<String, Value>,
    tensor: Option<&Map<String, Value>>,
) -> Result<Value, String> {
    match value {
        Value::String(text) => match placeholder(text) {
            Some(path) => look_up(path, values, tensor),
            None => Ok(value.clone()),
        },
        Value::Array(items) => items
            .iter()
            .map(|item| fill(item, values, tensor))
            .collect(),
        Value::Object(object) => {
            let empty = Map::new();
            let own = match object.get("uid").and_then(Value::as_i64) {
                None => None,
                Some(uid) => Some(of_tensor(values, uid)?.unwrap_or(&empty)),
            };
            let tensor = own.or(tensor);
            let fields = object
                .iter()
                .map(|(key, value)| Ok((key.clone(), fill(value, values, tensor)?)));
            Ok(Value::Object(fields.collect::<Result<_, String>>()?))
        }
        other => Ok(other.clone()),
    }
}

fn placeholder(text: &str) -> Option<&str> {
    text.strip_prefix("${case.")?.strip_suffix('}')
}

fn of_tensor(values: &Map<String, Value>, uid: i64) -> Result<Option<&Map<String, Value>>, String> {
    let mut entries = list(values, "tensors")?.iter();
    let entry = entries.find(|entry| entry.get("uid").and_then(Value::as_i64) == Some(uid));
    Ok(entry.and_then(Value::as_object))
}

fn look_up(
    path: &str,
    values: &Map<String, Value>,
    tensor: Option<&Map<String, Value>>,
) -> Result<Value, String> {
    let at = |object: &Map<String, Value>| {
        let mut keys = path.split('.');
        let first = object.get(keys.next()?)?;
        keys.try_fold(first, |value, key| value.get(key)).cloned()
    };
    let own = tensor.and_then(at);
    let shared = match tensor {
        Some(_) if OF_TENSORS.contains(&path) => None,
        _ => at(values),
    };
    own.or(shared)
        .ok_or_else(|| format!("`${{case.{path}}}` has no value"))
}

/// Sets and removes fields of a tensor.
fn apply(graph: &mut Value, patch: &Value) -> Result<(), String> {
    let uid = patch.get("uid").and_then(Value::as_i64);
    let uid = uid.ok_or("a tensor patch has no `uid`")?;
    let tensors = graph.get_mut("tensors").and_then(Value::as_array_mut);
    let tensor = tensors
        .into_iter()
        .flatten()
        .find(|tensor| tensor.get("uid").and_then(Value::as_i64) == Some(uid))
        .and_then(Value::as_object_mut)
        .ok_or_else(|| format!("a patch is for tensor {uid}, which the graph lacks"))?;
    if let Some(set) = patch.get("set").and_then(Value::as_object) {
        for (key, value) in set {
            tensor.insert(key.clone(), value.clone());
        }
    }
    for key in patch
        .get("remove")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let key = key
            .as_str()
            .ok_or("`remove` of a tensor patch lists no names")?;
        tensor.shift_remove(key);
    }
    Ok(())
}

/// A list under a key; empty where there is none.
pub fn list<'a>(object: &'a Map<String, Value>, key: &str) -> Result<&'a [Value], String> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(format!("`{key}` is no list")),
    }
}
