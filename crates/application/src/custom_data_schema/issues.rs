//! The issues of schemas and of custom data.

use galley_api_types::problem::{Issue, Step};
use galley_domain::Invalid;

/// The field of a group that has a schema.
const FIELD: &str = "customDataSchema";

/// The field of a piece that a schema describes.
const DATA_FIELD: &str = "customData";

/// The limit on characters of an issue's message.
const MESSAGE_MAX: usize = 300;

/// The limit on characters of a name or value in a message, and of a step of a path.
const SHORTENED_MAX: usize = 100;

/// Returns an issue of a schema.
pub(super) fn schema_issue(path: Vec<Step>, invalid: &Invalid) -> Issue {
    let field = Step::Field(FIELD.to_owned());
    let steps = path.into_iter().map(|step| match step {
        Step::Field(name) => Step::Field(shortened(&name)),
        item @ Step::Item(_) => item,
    });
    Issue::new([field].into_iter().chain(steps).collect(), invalid)
}

/// Returns an issue of custom data.
pub(super) fn issue(steps: Vec<Step>, message: &str) -> Issue {
    let path = [Step::Field(DATA_FIELD.to_owned())].into_iter().chain(steps).collect();
    Issue::new(path, &Invalid::new("schema_violation", up_to(message, MESSAGE_MAX)))
}

pub(super) fn shortened(text: &str) -> String {
    up_to(text, SHORTENED_MAX)
}

fn up_to(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
