//! What requests for content groups hold.

#![expect(dead_code, reason = "bodies are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use utoipa::ToSchema;

/// A new content group.
#[derive(ToSchema)]
pub(super) struct NewContentGroup {
    /// What people call it, without control characters; not unique.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "Posts"
    )]
    name: String,
    /// The group under which it stands; absent or null, it stands at the top.
    #[schema(value_type = Option<schemas::ContentGroupId>)]
    ancestor: Option<String>,
}

/// A change of a content group.
#[derive(ToSchema)]
pub(super) struct ContentGroupChange {
    #[schema(value_type = schemas::ContentGroupId)]
    id: String,
    /// What people call it, without control characters; not unique.
    #[schema(
        required = false,
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "Posts"
    )]
    name: String,
    /// The group under which it is moved; null moves it to the top.
    #[schema(value_type = Option<schemas::ContentGroupId>)]
    ancestor: Option<String>,
}
