//! The description of the whole interface: OpenAPI 3.1, made of the routes themselves.
//!
//! A handler's `#[utoipa::path]` and its doc comment say what is particular to it; `rules` adds
//! what follows from its arguments and its method.

mod conditions;
pub(crate) mod endpoint;
mod examples;
mod rules;
mod shape;
mod webhooks;

use serde_json::Value;

use crate::http::router;

/// The description as it is committed and served.
pub fn text() -> String {
    let mut text = serde_json::to_string_pretty(&document()).expect("a Value is JSON");
    text.push('\n');
    text
}

/// The description.
pub fn document() -> Value {
    let (api, facts) = router::table().into_descriptions();
    let api = serde_json::to_value(api).expect("a description is JSON");
    rules::complete(api, &facts)
}
