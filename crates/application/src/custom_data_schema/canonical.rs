//! The canonical form of JSON values: equal values have equal bytes, and different ones differ.
//!
//! The order of members does not matter, and 1 equals 1.0.

use serde_json::{Number, Value};

use super::budget::{Exhausted, WorkBudget};

/// The bytes that are written in the time of a unit of work.
const BYTES_PER_UNIT: u64 = 8;

/// The work of a value, besides its bytes.
const VALUE_WORK: u64 = 3;

/// Appends the canonical form of a value. Returns false if it exceeds `max` bytes; it is then
/// incomplete.
pub(super) fn write(
    value: &Value,
    bytes: &mut Vec<u8>,
    max: usize,
    budget: &mut WorkBudget,
) -> Result<bool, Exhausted> {
    budget.charge(VALUE_WORK)?;
    match value {
        Value::Null => bytes.push(b'n'),
        Value::Bool(false) => bytes.push(b'f'),
        Value::Bool(true) => bytes.push(b't'),
        Value::Number(number) => write_number(number, bytes),
        Value::String(text) => write_text(text, bytes, budget)?,
        Value::Array(items) => {
            bytes.push(b'[');
            for item in items {
                if !write(item, bytes, max, budget)? {
                    return Ok(false);
                }
            }
            bytes.push(b']');
        }
        // Each member has at least the length of its name, and a byte.
        Value::Object(members) if members.len() > max / 10 => return Ok(false),
        Value::Object(members) => {
            let count = members.len() as u64;
            // They are sorted.
            budget.charge(count * (4 + 2 * u64::from(count.checked_ilog2().unwrap_or(0))))?;
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            bytes.push(b'{');
            for (name, member) in members {
                write_text(name, bytes, budget)?;
                if !write(member, bytes, max, budget)? {
                    return Ok(false);
                }
            }
            bytes.push(b'}');
        }
    }
    Ok(bytes.len() <= max)
}

fn write_text(text: &str, bytes: &mut Vec<u8>, budget: &mut WorkBudget) -> Result<(), Exhausted> {
    budget.charge(text.len() as u64 / BYTES_PER_UNIT)?;
    bytes.push(b's');
    bytes.extend_from_slice(&text.len().to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    Ok(())
}

fn write_number(number: &Number, bytes: &mut Vec<u8>) {
    match integer(number) {
        Some(integer) => {
            bytes.push(b'i');
            bytes.extend_from_slice(&integer.to_le_bytes());
        }
        None => {
            bytes.push(b'd');
            bytes.extend_from_slice(&number.as_f64().unwrap_or_default().to_bits().to_le_bytes());
        }
    }
}

/// Returns the value of a number without a fraction, exactly.
pub(super) fn integer(number: &Number) -> Option<i128> {
    number.as_i128().or_else(|| {
        let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e30)?;
        #[expect(clippy::cast_possible_truncation, reason = "it is within the range")]
        Some(float as i128)
    })
}
