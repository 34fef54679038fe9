//! What requests for tags hold.

#![expect(dead_code, reason = "bodies are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use utoipa::ToSchema;

/// A new tag.
#[derive(ToSchema)]
pub(super) struct NewTag {
    /// What people call it, without control characters; not unique.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "News"
    )]
    label: String,
    /// The color that it is shown in: `gray`, unless given.
    #[schema(value_type = Option<schemas::Color>)]
    color: Option<String>,
}

/// A change of a tag.
#[derive(ToSchema)]
pub(super) struct TagChange {
    #[schema(value_type = schemas::TagId)]
    id: String,
    /// What people call it, without control characters; not unique.
    #[schema(
        required = false,
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "News"
    )]
    label: String,
    /// The color that it is shown in.
    #[schema(required = false, value_type = schemas::Color)]
    color: String,
}
