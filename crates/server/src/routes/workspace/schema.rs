//! Schemas of the requests to `/workspace`.

#![expect(dead_code, reason = "bodies are read field by field; only the schemas are used")]

use utoipa::ToSchema;

/// A change of the token's workspace.
#[derive(ToSchema)]
pub(super) struct WorkspaceChange {
    /// The name, without control characters.
    #[schema(
        required = false,
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "The Harbour Times"
    )]
    name: String,
    /// A short description.
    #[schema(max_length = 1024, example = "News from the harbour.")]
    description: Option<String>,
    /// The address of the logo: an absolute http or https URL, or a relative reference.
    #[schema(
        format = "uri-reference",
        max_length = 2048,
        example = "https://example.org/logo.png"
    )]
    logo: Option<String>,
}
