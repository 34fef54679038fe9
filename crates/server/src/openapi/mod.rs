//! The OpenAPI 3.1 document of the API, built from the routes.
//!
//! A handler's `#[utoipa::path]` and doc comment describe its particular parts. `rules` adds the
//! parts that follow from its arguments and its method.

mod conditions;
pub(crate) mod endpoint;
mod examples;
mod rules;
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
