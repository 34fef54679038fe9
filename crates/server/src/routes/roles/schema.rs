//! Schemas of the requests to `/roles`.

#![expect(dead_code, reason = "bodies are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use utoipa::ToSchema;

/// A new role.
#[derive(ToSchema)]
#[schema(as = NewRole)]
pub(super) struct NewRoleSchema {
    /// The name, without control characters. It is unique in the workspace.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "Author"
    )]
    name: String,
    /// A short description.
    #[schema(max_length = 1024, example = "Writes pieces.")]
    description: Option<String>,
    /// The permissions. A write permission includes the read permission.
    #[schema(max_items = 100, value_type = Vec<schemas::Permission>)]
    permissions: Vec<String>,
}

/// A change of a role.
#[derive(ToSchema)]
pub(super) struct RoleChange {
    #[schema(value_type = schemas::RoleId)]
    id: String,
    /// The name, without control characters. It is unique in the workspace.
    #[schema(
        required = false,
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "Author"
    )]
    name: String,
    /// A short description.
    #[schema(max_length = 1024, example = "Writes pieces.")]
    description: Option<String>,
    /// The permissions. A write permission includes the read permission.
    #[schema(required = false, max_items = 100, value_type = Vec<schemas::Permission>)]
    permissions: Vec<String>,
}
