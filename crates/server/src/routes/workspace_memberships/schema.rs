//! What requests for memberships hold.

#![expect(dead_code, reason = "bodies are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use utoipa::ToSchema;

/// Somebody to invite.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct NewInvite {
    /// The e-mail address that the invite goes to.
    ///
    /// Without `=?`, which mail programs would decode.
    #[schema(format = Email, pattern = r"^(?!.*=\?)", min_length = 1, max_length = 254, example = "ann@example.org")]
    email: String,
    /// What they are called until they say so themselves, without control characters.
    #[schema(value_type = schemas::FullName)]
    name: String,
    #[schema(value_type = schemas::RoleId)]
    role_id: String,
}

/// Another role for a member.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct MemberChange {
    #[schema(value_type = schemas::WorkspaceMemberId)]
    id: String,
    #[schema(value_type = schemas::RoleId)]
    role_id: String,
}
