//! `GET /tokens?id=`

use axum::response::Response;
use galley_api_types::schemas;
use galley_api_types::token::TokenBody;
use galley_application::operations::tokens;
use galley_domain::TokenId;

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
    actor: Actor<ReadTokens>,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<TokenId>();
    query.finish()?;
    let token = tokens::get(actor.caller(), id.get()?).await?;
    Ok(response::resource(token.version, &TokenBody::from(&token)))
}
