//! Schemas of the requests to `/content-groups`.

#![expect(dead_code, reason = "bodies are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use utoipa::ToSchema;

/// A new content group.
#[derive(ToSchema)]
pub(super) struct NewContentGroup {
    /// The name, without control characters. It need not be unique.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "Posts"
    )]
    name: String,
    /// The parent group. Absent or null creates a top-level group.
    #[schema(value_type = Option<schemas::ContentGroupId>)]
    ancestor: Option<String>,
}

/// A change of a content group.
#[derive(ToSchema)]
pub(super) struct ContentGroupChange {
    #[schema(value_type = schemas::ContentGroupId)]
    id: String,
    /// The name, without control characters. It need not be unique.
    #[schema(
        required = false,
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "Posts"
    )]
    name: String,
    /// The new parent group. Null moves the group to the top level.
    #[schema(value_type = Option<schemas::ContentGroupId>)]
    ancestor: Option<String>,
}
