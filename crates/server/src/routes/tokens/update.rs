//! `PUT /tokens`

use axum::response::Response;
use galley_api_types::token::TokenBody;
use galley_application::VersionPrecondition;
use galley_application::operations::tokens::{self, TokenUpdate};
use galley_domain::TokenId;
use galley_domain::access_token::{ExtensionName, TokenName};
use galley_domain::text::ShortText;

use super::{groups, schema};
use crate::extract::actor::{Actor, WriteTokens};
use crate::extract::body::JsonBody;
use crate::extract::fields::{each_once, permissions, reference, text, time};
use crate::extract::prefer::Prefer;
use crate::extract::query::RequestedId;
use crate::extract::references;
use crate::problem::Problem;
use crate::respond::response;

/// Change a token
///
/// Absent fields stay unchanged. The change applies to all later requests.
#[utoipa::path(
    put,
    path = "/tokens",
    operation_id = "updateToken",
    request_body = schema::TokenChange,
    responses(
        (status = 200, body = TokenBody<'_>),
        (status = 400, description = "unknown_reference"),
        (status = 403, description = "beyond_own_permissions, outside_group_limit"),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<WriteTokens>,
    prefer: Prefer,
    expected: VersionPrecondition,
    JsonBody { mut fields, .. }: JsonBody,
) -> Result<Response, Problem> {
    for name in ["extension", "expiresAt"] {
        fields.drop_empty(name);
    }
    let id = RequestedId::new(fields.required("id", reference::<TokenId>).flatten());
    let name = fields.replacement("name", text(TokenName::parse));
    let description = fields.clearable("description", text(ShortText::parse));
    let permissions = fields.replacement("permissions", permissions);
    let content_groups = fields.clearable("contentGroupIds", groups);
    let extension = fields.clearable("extension", text(ExtensionName::parse));
    // A past expiry time is valid, so that clients can send back the fields of a GET response.
    let expires_at = fields.clearable("expiresAt", text(time));
    let named = content_groups.iter().flatten();
    let named = named.flat_map(|ids| references::groups("contentGroupIds", ids)).collect();
    references::finish(actor.caller(), fields, named, ()).await?;
    let id = id.get()?;
    let content_groups = content_groups.map(|ids| ids.map(each_once));
    let update =
        TokenUpdate { id, name, description, permissions, content_groups, extension, expires_at };
    let token = tokens::update(actor.caller(), update, expected).await?;
    Ok(response::updated(prefer, token.version, &TokenBody::from(&token)))
}
