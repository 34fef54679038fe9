//! `GET /tokens?id=`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::schemas;
use galley_api_types::token::TokenBody;
use galley_application::Error;
use galley_application::operations::tokens;
use galley_domain::TokenId;
use galley_storage::Tx;

use crate::app::App;
use crate::extract::actor::{Actor, ReadTokens};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::response;

/// Get a token
#[utoipa::path(
    get,
    path = "/tokens",
    operation_id = "getToken",
    params(("id" = schemas::TokenId, Query)),
    responses(
        (status = 200, body = TokenBody<'_>),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadTokens>,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<TokenId>();
    query.finish()?;
    let (id, caller) = (id.get()?, actor.into_authentication());
    let read = async move |tx: &Tx<'_>| tokens::find(tx, &caller, id).await;
    let token = app.database().read("tokens.get", read).await?.ok_or_else(Error::not_found)?;
    Ok(response::resource(token.version, &TokenBody::from(&token)))
}
