//! What requests for roles hold.

#![expect(dead_code, reason = "bodies are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use utoipa::ToSchema;

/// A new role.
#[derive(ToSchema)]
pub(super) struct NewRole {
    /// Its name, without control characters, unique in the workspace.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "Author"
    )]
    name: String,
    /// One sentence for people.
    #[schema(max_length = 1024, example = "Writes pieces.")]
    description: Option<String>,
    /// What it allows. To write includes to read.
    #[schema(max_items = 100, value_type = Vec<schemas::Permission>)]
    permissions: Vec<String>,
}

/// A change of a role.
#[derive(ToSchema)]
pub(super) struct RoleChange {
    #[schema(value_type = schemas::RoleId)]
    id: String,
    /// Its name, without control characters, unique in the workspace.
    #[schema(
        required = false,
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "Author"
    )]
    name: String,
    /// One sentence for people.
    #[schema(max_length = 1024, example = "Writes pieces.")]
    description: Option<String>,
    /// What it allows. To write includes to read.
    #[schema(required = false, max_items = 100, value_type = Vec<schemas::Permission>)]
    permissions: Vec<String>,
}
