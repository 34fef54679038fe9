//! `GET /profile`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::workspace_member::ProfileBody;
use galley_application::operations::profile;

use crate::app::App;
use crate::extract::actor::{Actor, ReadProfile};
use crate::problem::Problem;
use crate::respond::response;

/// Get the profile of the token's user
#[utoipa::path(
    get,
    path = "/profile",
    operation_id = "getProfile",
    responses(
        (status = 200, body = ProfileBody<'_>),
    ),
)]
pub(crate) async fn handle(_: State<App>, actor: Actor<ReadProfile>) -> Result<Response, Problem> {
    let user = profile::get(actor.caller()).await?;
    Ok(response::resource(user.version, &ProfileBody::from(&user)))
}
