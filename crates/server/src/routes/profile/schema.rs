//! Schemas of the requests to `/profile`.

#![expect(dead_code, reason = "bodies are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use utoipa::ToSchema;

/// A change of the profile of the token's user.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct ProfileChange {
    /// The display name, without control characters.
    #[schema(required = false, value_type = schemas::FullName)]
    full_name: String,
    /// The short name, without white space or control characters. It is unique in the installation.
    #[schema(required = false, value_type = schemas::Username)]
    username: String,
    /// The address of the picture: an absolute http or https URL, or a relative reference.
    #[schema(format = "uri-reference", max_length = 2048, example = "https://example.org/ann.png")]
    avatar: Option<String>,
}
