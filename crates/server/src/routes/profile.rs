//! `/profile`: the profile of the token's user.

use galley_api_types::workspace_member::{ProfileBody, ProfileChange};
use galley_application::operations::profile;

use crate::extract::actor::{ReadOwnProfile, WriteOwnProfile};
use crate::routes::prelude::*;

/// Get the profile of the token's user
#[utoipa::path(
    get, path = "/profile", operation_id = "getProfile",
    responses((status = 200, body = ProfileBody<'_>)),
)]
pub(crate) async fn get(actor: Actor<ReadOwnProfile>) -> Result<Response, Problem> {
    let user = profile::get(actor.caller()).await?;
    Ok(response::resource(user.version, &ProfileBody::from(&user)))
}

/// Change the profile of the token's user
///
/// Absent fields stay unchanged. A user has the same profile in every workspace.
#[utoipa::path(
    put, path = "/profile", operation_id = "updateProfile", request_body = ProfileChange,
    responses(
        (status = 200, body = ProfileBody<'_>),
        (status = 403, description = "beyond_own_permissions"),
        (status = 409, description = "username_taken"),
    ),
)]
pub(crate) async fn update(
    actor: Actor<WriteOwnProfile>,
    request: ChangeRequest<ProfileChange>,
) -> Result<Response, Problem> {
    let ParsedChange { prefer, expected, change, .. } = request.parse(actor.caller()).await?;
    let user = profile::update(actor.caller(), change, expected).await?;
    Ok(response::updated(prefer, user.version, &ProfileBody::from(&user)))
}
