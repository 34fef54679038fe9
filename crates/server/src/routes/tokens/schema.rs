//! What requests for tokens hold.

#![expect(dead_code, reason = "bodies are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use utoipa::ToSchema;

/// A new token.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct NewToken {
    /// What people call it, without control characters.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "The site's build"
    )]
    name: String,
    /// One sentence for people.
    #[schema(max_length = 1024, example = "Reads what is published.")]
    description: Option<String>,
    /// What it allows at the most; the role of its user bounds that at each request.
    #[schema(max_items = 100, value_type = Vec<schemas::Permission>)]
    permissions: Vec<String>,
    /// The groups to which its view of content is limited, with all groups under them. Null, or
    /// absent: it sees everything.
    #[schema(min_items = 1, max_items = 100, value_type = Option<Vec<schemas::ContentGroupReference>>)]
    content_group_ids: Option<Vec<String>>,
    /// The extension that it belongs to.
    #[schema(max_length = 100, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "search")]
    extension: Option<String>,
    /// When it ends, as an ISO 8601 date or date-time in the future. Null, or absent: never.
    #[schema(inline, required = false, value_type = schemas::ClearableTime)]
    expires_at: Option<String>,
}

/// A change of a token.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct TokenChange {
    #[schema(value_type = schemas::TokenId)]
    id: String,
    /// What people call it, without control characters.
    #[schema(
        required = false,
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "The site's build"
    )]
    name: String,
    /// One sentence for people.
    #[schema(max_length = 1024, example = "Reads what is published.")]
    description: Option<String>,
    /// What it allows at the most; the role of its user bounds that at each request.
    #[schema(required = false, max_items = 100, value_type = Vec<schemas::Permission>)]
    permissions: Vec<String>,
    /// The groups to which its view of content is limited; null: it sees everything.
    #[schema(min_items = 1, max_items = 100, value_type = Option<Vec<schemas::ContentGroupReference>>)]
    content_group_ids: Option<Vec<String>>,
    /// The extension that it belongs to.
    #[schema(max_length = 100, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "search")]
    extension: Option<String>,
    /// When it ends, as an ISO 8601 date or date-time; null: never.
    #[schema(inline, required = false, value_type = schemas::ClearableTime)]
    expires_at: Option<String>,
}
