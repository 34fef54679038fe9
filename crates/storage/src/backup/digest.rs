//! A checksum of a table's rows, the same on both engines.

use sha2::{Digest, Sha256};

use crate::engine::{OwnedRow, Value};

/// The SHA-256 of rows in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct RowDigest(Sha256);

impl RowDigest {
    pub(super) fn add(&mut self, rows: &[OwnedRow]) {
        let mut bytes = Vec::new();
        for row in rows {
            bytes.clear();
            for value in row {
                write(&mut bytes, value);
            }
            self.0.update(&bytes);
        }
    }

    pub(super) fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// Writes a value unambiguously: no other sequence of values has the same bytes.
pub(super) fn write(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Null => out.push(b'-'),
        Value::Bool(value) => out.extend([b'?', u8::from(*value)]),
        Value::Int(value) => {
            out.push(b'#');
            out.extend(value.to_be_bytes());
        }
        Value::Text(text) => write_bytes(out, b't', text.as_bytes()),
        Value::Bytes(bytes) => write_bytes(out, b'b', bytes),
    }
}

fn write_bytes(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    out.extend((bytes.len() as u64).to_be_bytes());
    out.extend(bytes);
}
