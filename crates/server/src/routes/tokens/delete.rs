//! `DELETE /tokens?id=`

use axum::response::Response;
use galley_api_types::schemas;
use galley_application::VersionPrecondition;
use galley_application::operations::tokens;
use galley_domain::TokenId;

use crate::extract::actor::{Actor, WriteTokens};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::response;

/// Revoke a token
///
/// The revocation takes effect at once.
#[utoipa::path(
    delete,
    path = "/tokens",
    operation_id = "deleteToken",
    params(("id" = schemas::TokenId, Query)),
    responses(
        (status = 403, description = "beyond_own_permissions, outside_group_limit"),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<WriteTokens>,
    expected: VersionPrecondition,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<TokenId>();
    query.finish()?;
    tokens::revoke(actor.caller(), id.get()?, expected).await?;
    Ok(response::no_content())
}
