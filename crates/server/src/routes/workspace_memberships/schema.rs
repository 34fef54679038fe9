//! Schemas of the requests to `/workspace-memberships`.

#![expect(dead_code, reason = "bodies are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use utoipa::ToSchema;

/// A new invite.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct NewInvite {
    /// The e-mail address of the invite.
    ///
    /// It must not contain `=?`, which mail programs decode.
    #[schema(format = Email, pattern = r"^(?!.*=\?)", min_length = 1, max_length = 254, example = "ann@example.org")]
    email: String,
    /// The name of the invited person, without control characters. The page of the invite suggests
    /// it as the full name of a new user.
    #[schema(value_type = schemas::FullName)]
    name: String,
    #[schema(value_type = schemas::RoleId)]
    role_id: String,
}

/// A change of a member's role.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct MemberChange {
    #[schema(value_type = schemas::WorkspaceMemberId)]
    id: String,
    #[schema(value_type = schemas::RoleId)]
    role_id: String,
}
