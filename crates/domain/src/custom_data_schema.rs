//! The text of a JSON Schema of custom data.

use crate::text::{Invalid, checked_text};

/// The limit on bytes of a schema as compact JSON.
pub const SCHEMA_MAX: usize = 64 * 1024;

checked_text! {
    /// A JSON Schema as compact JSON. `galley-application` compiles and checks it.
    CustomDataSchema, |text| {
        if text.len() > SCHEMA_MAX {
            let message = format!("must have at most {SCHEMA_MAX} bytes as compact JSON");
            return Err(Invalid::new("too_long", message));
        }
        Ok(())
    }
}
