//! Schemas of the requests to `/variants`.

#![expect(dead_code, reason = "bodies are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use utoipa::ToSchema;

/// A new variant.
#[derive(ToSchema)]
#[schema(as = NewVariant)]
pub(super) struct NewVariantSchema {
    /// The key that programs use. It is unique in the workspace.
    #[schema(pattern = "^[a-z0-9_]{1,20}$", example = "de")]
    key: String,
    /// The label, without control characters.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "German"
    )]
    label: String,
    /// A short description.
    #[schema(max_length = 1024, example = "For readers in Germany.")]
    description: Option<String>,
}

/// A change of a variant.
#[derive(ToSchema)]
pub(super) struct VariantChange {
    #[schema(value_type = schemas::VariantId)]
    id: String,
    /// The key that programs use. It is unique in the workspace.
    #[schema(required = false, pattern = "^[a-z0-9_]{1,20}$", example = "de")]
    key: String,
    /// The label, without control characters.
    #[schema(
        required = false,
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "German"
    )]
    label: String,
    /// A short description.
    #[schema(max_length = 1024, example = "For readers in Germany.")]
    description: Option<String>,
}
