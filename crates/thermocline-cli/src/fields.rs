//! Bytes as fields of JSON, whose strings are Unicode. What is not UTF-8 goes under another name,
//! in hexadecimal.

use serde_json::{Map, Value as Json};

use crate::text::{Notation, hex};

/// The ending of the name of a field whose string is hexadecimal.
const HEX: &str = "_hex";

/// The field that stands for `bytes`: the one called `name`, or the one with `_hex` behind its
/// name.
pub(crate) fn field(name: &str, bytes: &[u8], notation: Notation) -> (String, Json) {
    match (notation, std::str::from_utf8(bytes)) {
        (Notation::Text, Ok(text)) => (name.to_owned(), text.into()),
        _ => (format!("{name}{HEX}"), hex(bytes).into()),
    }
}

/// A record as an object, or a key alone.
pub(crate) fn record(key: &[u8], value: Option<&[u8]>, notation: Notation) -> Json {
    let value = value.map(|value| field("value", value, notation));
    let fields = [field("key", key, notation)].into_iter().chain(value);
    Json::Object(fields.collect())
}

/// The bytes that a field stands for: the one called `name`, or the one with `_hex` behind its
/// name.
pub(crate) fn bytes(
    object: &Map<String, Json>,
    name: &str,
    notation: Notation,
) -> Result<Vec<u8>, String> {
    let hex_name = format!("{name}{HEX}");
    let (field, value) = match (object.get(name), object.get(&hex_name)) {
        (Some(value), None) => (name, value),
        (None, Some(value)) => (hex_name.as_str(), value),
        (Some(_), Some(_)) => return Err(format!("there are both {name:?} and {hex_name:?}")),
        (None, None) => return Err(format!("there is no {name:?}, nor {hex_name:?}")),
    };
    let text = value.as_str();
    let text = text.ok_or_else(|| format!("{field:?} is no string"))?;
    // The string says what the bytes are: JSON has escapes of its own.
    if notation == Notation::Text && field == name {
        return Ok(text.as_bytes().to_vec());
    }
    let read = Notation::Hex.read(text.as_bytes());
    read.map_err(|why| format!("{field:?}: {why}"))
}
