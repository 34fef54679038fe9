//! Schemas of the requests to `/tags`.

#![expect(dead_code, reason = "bodies are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use utoipa::ToSchema;

/// A new tag.
#[derive(ToSchema)]
pub(super) struct NewTag {
    /// The label, without control characters. It need not be unique.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "News"
    )]
    label: String,
    /// The display color. The default is `gray`.
    #[schema(value_type = Option<schemas::ColorSchema>)]
    color: Option<String>,
}

/// A change of a tag.
#[derive(ToSchema)]
pub(super) struct TagChange {
    #[schema(value_type = schemas::TagId)]
    id: String,
    /// The label, without control characters. It need not be unique.
    #[schema(
        required = false,
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "News"
    )]
    label: String,
    /// The display color.
    #[schema(required = false, value_type = schemas::ColorSchema)]
    color: String,
}
