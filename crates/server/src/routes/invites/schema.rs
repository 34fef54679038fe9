//! What requests for invites hold.

#![expect(dead_code, reason = "bodies are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use serde::Serialize;
use utoipa::ToSchema;

/// Somebody who comes by an invite.
#[derive(ToSchema)]
#[schema(as = InviteAcceptance, rename_all = "camelCase")]
pub(super) struct Acceptance {
    /// The code in the link of the invite's mail.
    #[schema(example = "kG1p0i3nYcYQ3X1bHc2mZq7n5T0uE8w4rJv9sLdAfBg")]
    code: String,
    /// The short name of a new user, unique in the installation whatever its case: 1 to 64 characters, no
    /// white space or control characters.
    #[schema(value_type = schemas::Username)]
    username: String,
    /// The name of a new user that people read, without control characters.
    #[schema(value_type = schemas::FullName)]
    full_name: String,
}

/// What the page's form sends.
#[derive(ToSchema)]
#[schema(as = InviteForm, rename_all = "camelCase")]
pub(super) struct Form {
    /// The code in the link of the invite's mail.
    #[schema(example = "kG1p0i3nYcYQ3X1bHc2mZq7n5T0uE8w4rJv9sLdAfBg")]
    code: String,
    /// What the page gave the form: sent again with it within 24 hours, the form gets the same token again.
    #[schema(example = "Xf2mB7dQeYc0aPq8tR5sJ1uVn3wKz6hLg9oTi4rEyDs")]
    attempt: Option<String>,
    /// The short name of a new user, unique in the installation whatever its case.
    #[schema(min_length = 1, max_length = 64, example = "ann")]
    username: Option<String>,
    /// The name of a new user that people read, without control characters.
    #[schema(min_length = 1, max_length = 255, example = "Ann Example")]
    full_name: Option<String>,
}

/// Who became a member.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AcceptedInvite, rename_all = "camelCase")]
pub(super) struct Accepted {
    #[schema(value_type = schemas::WorkspaceId)]
    pub(super) workspace_id: String,
    #[schema(value_type = schemas::WorkspaceMemberId)]
    pub(super) member_id: String,
    #[schema(value_type = schemas::UserId)]
    pub(super) user_id: String,
    /// An access token that allows what the role allows. It is shown this once.
    #[schema(example = "galley_…")]
    pub(super) token: String,
}
