//! The keyword `uniqueItems`, with bounded work. The library's hashes are equal for many distinct
//! values, which it then compares with one another.

use std::collections::HashSet;
use std::fmt::Write;

use jsonschema::{Keyword, ValidationError};
use serde_json::{Number, Value};

use super::pattern::{budget_left, charge};

/// The bytes that are compared in the time of an evaluation.
const BYTES_PER_EVALUATION: u64 = 2;

/// The keyword, which does nothing if it is false.
struct UniqueItems(bool);

impl<'i> Keyword<'i> for UniqueItems {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            return Ok(());
        }
        Err(ValidationError::custom("must not have an item twice"))
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        match instance {
            Value::Array(items) if self.0 && budget_left() > 0 => {
                let mut known = HashSet::with_capacity(items.len());
                items.iter().all(|item| {
                    let mut text = String::new();
                    write_canonical(item, &mut text);
                    // If the budget does not suffice, the result is not used.
                    charge(1 + text.len() as u64 / BYTES_PER_EVALUATION) && known.insert(text)
                })
            }
            _ => true,
        }
    }
}

/// Returns the keyword with a value.
pub(super) fn keyword(value: &Value) -> Box<dyn for<'i> Keyword<'i>> {
    Box::new(UniqueItems(value == &Value::Bool(true)))
}

/// Writes a value so that equal values have equal texts: the order of members does not matter, and
/// 1 equals 1.0.
fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (name, member) in members {
                let _ = write!(text, "{name:?}:");
                write_canonical(member, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Number(number) => write_number(number, text),
        Value::String(value) => {
            let _ = write!(text, "{value:?}");
        }
        Value::Bool(_) | Value::Null => {
            let _ = write!(text, "{value}");
        }
    }
}

fn write_number(number: &Number, text: &mut String) {
    let _ = match (number.as_i128(), number.as_f64()) {
        (Some(integer), _) => write!(text, "{integer}"),
        // The text of an integral number has no exponent.
        (None, Some(float)) => write!(text, "{}", if float == 0.0 { 0.0 } else { float }),
        (None, None) => write!(text, "{number}"),
    };
}
