//! The keyword `format`, checked by the library `jsonschema`.

use std::sync::LazyLock;

use jsonschema::{EmailOptions, Validator};
use serde_json::{Value, json};

/// A format.
#[derive(Debug)]
pub(super) struct Format {
    pub(super) name: &'static str,
    validator: Validator,
}

/// The formats that are checked. Others are annotations, `regex` among them, as its check takes
/// quadratic time.
const NAMES: [&str; 16] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
];

static FORMATS: LazyLock<Vec<Format>> = LazyLock::new(|| {
    let of = |name| {
        let validator = jsonschema::draft202012::options()
            .offline()
            .with_email_options(EmailOptions::default().without_display_text())
            .should_validate_formats(true)
            .build(&json!({"format": name}))
            .expect("it is a schema");
        Format { name, validator }
    };
    NAMES.into_iter().map(of).collect()
});

impl Format {
    /// Finds a format that is checked.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == name)
    }

    pub(super) fn is_valid(&self, text: &Value) -> bool {
        self.validator.is_valid(text)
    }
}
