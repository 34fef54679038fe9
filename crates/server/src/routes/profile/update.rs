//! `PUT /profile`

use axum::response::Response;
use galley_api_types::workspace_member::ProfileBody;
use galley_application::VersionPrecondition;
use galley_application::operations::profile::{self, ProfileUpdate};
use galley_domain::people::{FullName, Username};
use galley_domain::text::WebReference;

use super::schema;
use crate::extract::actor::{Actor, WriteProfile};
use crate::extract::body::JsonBody;
use crate::extract::fields::text;
use crate::extract::prefer::Prefer;
use crate::problem::Problem;
use crate::respond::response;

/// Change the profile of the token's user
///
/// Absent fields stay unchanged. A user has the same profile in every workspace.
#[utoipa::path(
    put,
    path = "/profile",
    operation_id = "updateProfile",
    request_body = schema::ProfileChange,
    responses(
        (status = 200, body = ProfileBody<'_>),
        (status = 409, description = "username_taken"),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<WriteProfile>,
    prefer: Prefer,
    expected: VersionPrecondition,
    JsonBody { mut fields, .. }: JsonBody,
) -> Result<Response, Problem> {
    let full_name = fields.replacement("fullName", text(FullName::parse));
    let username = fields.replacement("username", text(Username::parse));
    let avatar = fields.clearable("avatar", text(WebReference::parse));
    fields.finish()?;
    let update = ProfileUpdate { full_name, username, avatar };
    let user = profile::update(actor.caller(), update, expected).await?;
    Ok(response::updated(prefer, user.version, &ProfileBody::from(&user)))
}
