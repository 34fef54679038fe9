//! JSON with the limits of this service: no duplicate keys, 256 levels, a million values, and no
//! NUL in strings.
//!
//! serde_json keeps the last of two equal keys and has a fixed depth limit. So a custom visitor
//! builds the `Value`, and every rejection states line and column.

use std::cell::Cell;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::{RawValue, Value};
use serde_json::{Map, Number};

/// The limit of nested arrays and objects. The deepest content trees have some 200 levels.
const DEPTH_LIMIT: usize = 256;

/// The limit of values and keys together. Each takes tens of bytes in memory, however short its
/// text is.
const VALUES_LIMIT: usize = 1_000_000;

/// Parses one JSON text without trailing data. The error message states line and column.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    deserializer.disable_recursion_limit();
    let left = Cell::new(VALUES_LIMIT);
    ValueVisitor { depth: 0, remaining: &left }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| error.to_string())
}

/// Returns the value of a top-level field as compact JSON text, with its numbers unchanged.
pub(crate) fn compact_field(bytes: &[u8], name: &str) -> Option<String> {
    field_text(bytes, name).map(compact)
}

/// Returns the text of a top-level field in an object that was parsed before.
pub(crate) fn field_text<'b>(bytes: &'b [u8], name: &str) -> Option<&'b str> {
    let fields: std::collections::HashMap<String, &RawValue> = parsed_before(bytes)?;
    fields.get(name).map(|raw| raw.get())
}

/// Returns the texts of the items in a top-level field, a list in an object that was parsed before.
pub(crate) fn texts_of_items<'b>(bytes: &'b [u8], name: &str) -> Vec<&'b str> {
    let list = field_text(bytes, name).unwrap_or("[]");
    let items: Vec<&RawValue> = parsed_before(list.as_bytes()).unwrap_or_default();
    items.into_iter().map(RawValue::get).collect()
}

/// Parses a text whose depth was checked before.
fn parsed_before<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Option<T> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    deserializer.disable_recursion_limit();
    T::deserialize(&mut deserializer).ok()
}

/// Removes the white space between the tokens of a valid JSON text.
fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut in_string, mut escaped) = (false, false);
    for c in json.chars() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = c == '\\' && !escaped;
        } else if c.is_ascii_whitespace() {
            continue;
        } else {
            in_string = c == '"';
        }
        out.push(c);
    }
    out
}

#[derive(Clone, Copy)]
struct ValueVisitor<'c> {
    depth: usize,
    /// The number of further values and keys that are allowed.
    remaining: &'c Cell<usize>,
}

impl ValueVisitor<'_> {
    fn count_value<E: serde::de::Error>(self) -> Result<(), E> {
        match self.remaining.get().checked_sub(1) {
            Some(left) => {
                self.remaining.set(left);
                Ok(())
            }
            None => Err(E::custom(format!("more than {VALUES_LIMIT} values"))),
        }
    }

    fn descend<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == DEPTH_LIMIT {
            return Err(E::custom(format!("nested over {DEPTH_LIMIT} levels")));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for ValueVisitor<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.count_value()?;
        deserializer.deserialize_any(self)
    }
}

fn without_nul<E: serde::de::Error>(text: &str) -> Result<(), E> {
    if text.contains('\0') { Err(E::custom("a NUL character in a string")) } else { Ok(()) }
}

impl<'de> Visitor<'de> for ValueVisitor<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.visit_string(value.to_owned())
    }

    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<Value, E> {
        without_nul(&value)?;
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let deeper = self.descend()?;
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(deeper)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let deeper = self.descend()?;
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            without_nul(&key)?;
            self.count_value()?;
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("duplicate key {key:?}")));
            }
            object.insert(key, entries.next_value_seed(deeper)?);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_state_line_and_column() {
        for (text, place) in [
            ("{\"a\":1,\n\"a\":2}", "line 2 column"),
            ("{\"a\":\"\\ud800\"}", "line 1 column"),
            ("{\"a\":\"\\u0000\"}", "NUL"),
            ("{\"a\":1} x", "trailing characters"),
            ("{a:1}", "line 1 column 2"),
            ("", "EOF"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(place), "{text}: {error}");
        }
        assert!(parse(b"{\"a\":\"\xff\"}").unwrap_err().contains("line 1"));
    }

    #[test]
    fn nesting_is_limited_to_256_levels() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(256).as_bytes()).is_ok());
        assert!(parse(nested(257).as_bytes()).unwrap_err().contains("nested over 256"));
        assert!(parse("[".repeat(1_000_000).as_bytes()).is_err());
    }

    #[test]
    fn compact_text_keeps_strings_and_numbers() {
        let text = "{ \"a b\" : [ 1.0 , 12345678901234567890123 ] , \"c\\\" \" : \" x \" }";
        assert_eq!(compact(text), "{\"a b\":[1.0,12345678901234567890123],\"c\\\" \":\" x \"}");
    }
}
