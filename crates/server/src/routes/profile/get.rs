//! `GET /profile`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::workspace_member::ProfileBody;
use galley_application::Error;
use galley_storage::{Tx, users};

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
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadProfile>,
) -> Result<Response, Problem> {
    let user = actor.user;
    let read = async move |tx: &Tx<'_>| Ok::<_, Error>(users::find(tx, user).await?);
    let user = app.database().read("profile.get", read).await?.ok_or_else(Error::not_found)?;
    Ok(response::resource(user.version, &ProfileBody::from(&user)))
}
