//! Schemas of the requests to `/tokens`.

#![expect(dead_code, reason = "bodies are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use utoipa::ToSchema;

/// A new token.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct NewToken {
    /// The name, without control characters.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "The site's build"
    )]
    name: String,
    /// A short description.
    #[schema(max_length = 1024, example = "Reads what is published.")]
    description: Option<String>,
    /// The maximum permissions. At each request, the role of the token's user limits them further.
    #[schema(max_items = 100, value_type = Vec<schemas::Permission>)]
    permissions: Vec<String>,
    /// The groups to which the token's view of content is limited, with all groups below them. Null
    /// or absent means no limit.
    #[schema(min_items = 1, max_items = 100, value_type = Option<Vec<schemas::ContentGroupReference>>)]
    content_group_ids: Option<Vec<String>>,
    /// The extension that the token belongs to.
    #[schema(max_length = 100, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "search")]
    extension: Option<String>,
    /// The expiry time: an ISO 8601 date or date-time in the future. Null or absent means no
    /// expiry.
    #[schema(inline, required = false, value_type = schemas::ClearableTime)]
    expires_at: Option<String>,
}

/// A change of a token.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct TokenChange {
    #[schema(value_type = schemas::TokenId)]
    id: String,
    /// The name, without control characters.
    #[schema(
        required = false,
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "The site's build"
    )]
    name: String,
    /// A short description.
    #[schema(max_length = 1024, example = "Reads what is published.")]
    description: Option<String>,
    /// The maximum permissions. At each request, the role of the token's user limits them further.
    #[schema(required = false, max_items = 100, value_type = Vec<schemas::Permission>)]
    permissions: Vec<String>,
    /// The groups to which the token's view of content is limited. Null means no limit.
    #[schema(min_items = 1, max_items = 100, value_type = Option<Vec<schemas::ContentGroupReference>>)]
    content_group_ids: Option<Vec<String>>,
    /// The extension that the token belongs to.
    #[schema(max_length = 100, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "search")]
    extension: Option<String>,
    /// The expiry time: an ISO 8601 date or date-time. Null means no expiry.
    #[schema(inline, required = false, value_type = schemas::ClearableTime)]
    expires_at: Option<String>,
}
