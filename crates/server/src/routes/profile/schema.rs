//! What requests for the profile hold.

#![expect(dead_code, reason = "bodies are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use utoipa::ToSchema;

/// A change of the own profile.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct ProfileChange {
    /// The name that people read, without control characters.
    #[schema(required = false, value_type = schemas::FullName)]
    full_name: String,
    /// The short name, without white space or control characters; unique in the installation.
    #[schema(required = false, value_type = schemas::Username)]
    username: String,
    /// Where the picture is: an absolute http or https URL, or a relative reference.
    #[schema(format = "uri-reference", max_length = 2048, example = "https://example.org/ann.png")]
    avatar: Option<String>,
}
