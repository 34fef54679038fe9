//! The OpenAPI 3.1 document of the API, built from the routes.
//!
//! A handler's `#[utoipa::path]` and doc comment describe its particular parts. `rules` adds the
//! parts that follow from its arguments and its method.

mod conditions;
pub(crate) mod content;
pub(crate) mod endpoint;
mod examples;
mod rules;
pub(crate) mod schemas;
mod shape;
mod webhooks;

use serde_json::Value;

use crate::http::router;

/// Returns the text of the OpenAPI document, as it is committed and served.
pub fn text() -> String {
    let mut text = serde_json::to_string_pretty(&document()).expect("a Value is JSON");
    text.push('\n');
    text
}

/// Returns the OpenAPI document.
pub fn document() -> Value {
    let (api, facts) = router::table().into_descriptions();
    let api = serde_json::to_value(api).expect("a description is JSON");
    rules::complete(api, &facts)
}

/// Returns a name with its first letter in upper case.
fn capitalized(name: &str) -> String {
    let mut name = name.to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    name
}
