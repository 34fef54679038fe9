//! `GET /tokens/list`

use axum::response::Response;
use galley_api_types::token::TokenBody;
use galley_application::operations::tokens;
use galley_domain::TokenId;

use crate::extract::actor::{Actor, ReadTokens};
use crate::extract::pagination::{self, IdPageParams, PageRequest};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::page_links;

/// List the tokens
///
/// Returns the tokens in the order of their creation, oldest first.
#[utoipa::path(
    get,
    path = "/tokens/list",
    operation_id = "listTokens",
    params(IdPageParams),
    responses(
        (status = 200, body = [TokenBody<'_>]),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<ReadTokens>,
    mut query: Query,
) -> Result<Response, Problem> {
    let page = PageRequest::from_query(&mut query, pagination::PER_PAGE_MAX);
    let after = pagination::after_id::<TokenId>(&mut query);
    query.finish()?;
    let mut tokens = tokens::list(actor.caller(), page.after(after)).await?;
    Ok(page_links::list_by_id(page, &query, &mut tokens, |token| token.id, TokenBody::from))
}
