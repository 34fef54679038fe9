//! Schemas of the requests to `/invites` and `/invite`.

#![expect(dead_code, reason = "bodies are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use serde::Serialize;
use utoipa::ToSchema;

/// The form of the invite page.
#[derive(ToSchema)]
#[schema(as = InviteForm, rename_all = "camelCase")]
pub(super) struct Form {
    /// The code in the link of the invite's mail.
    #[schema(example = "kG1p0i3nYcYQ3X1bHc2mZq7n5T0uE8w4rJv9sLdAfBg")]
    code: String,
    /// The idempotency key from the page. A repeat of the form with it within 24 hours returns the
    /// same token.
    #[schema(example = "Xf2mB7dQeYc0aPq8tR5sJ1uVn3wKz6hLg9oTi4rEyDs")]
    attempt: Option<String>,
    /// The short name of a new user. It is unique in the installation, regardless of case.
    #[schema(min_length = 1, max_length = 64, example = "ann")]
    username: Option<String>,
    /// The display name of a new user, without control characters.
    #[schema(min_length = 1, max_length = 255, example = "Ann Example")]
    full_name: Option<String>,
}

/// An accepted invite.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AcceptedInvite, rename_all = "camelCase")]
pub(super) struct AcceptedInviteSchema {
    #[schema(value_type = schemas::WorkspaceId)]
    pub(super) workspace_id: String,
    #[schema(value_type = schemas::WorkspaceMemberId)]
    pub(super) member_id: String,
    #[schema(value_type = schemas::UserId)]
    pub(super) user_id: String,
    /// An access token with the permissions of the role. It is not shown again.
    #[schema(example = "galley_…")]
    pub(super) token: String,
}
