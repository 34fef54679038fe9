//! `POST /tokens`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::token::TokenBody;
use galley_application::Respond;
use galley_application::operations::tokens::{self, TokenRequest};
use galley_domain::access_token::{ExtensionName, TokenName};
use galley_domain::text::ShortText;
use galley_storage::tokens::Token;

use super::{PATH, check_expiry, groups, schema};
use crate::app::App;
use crate::extract::actor::{Actor, WriteTokens};
use crate::extract::body::JsonBody;
use crate::extract::fields::{each_once, permissions, text, time};
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::prefer::Prefer;
use crate::extract::references;
use crate::problem::Problem;
use crate::respond::created;
use crate::respond::response::MinimalBody;

/// Create a token
///
/// The token belongs to the user of the requesting token. It can't exceed that token in
/// permissions, groups, extension or lifetime. Only this response contains the token's text.
#[utoipa::path(
    post,
    path = "/tokens",
    operation_id = "createToken",
    request_body = schema::NewToken,
    responses(
        (status = 201, body = TokenBody<'_>),
        (status = 400, description = "unknown_reference"),
        (status = 403, description = "beyond_own_permissions, outside_group_limit"),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteTokens>,
    prefer: Prefer,
    key: IdempotencyKey,
    JsonBody { mut fields, bytes }: JsonBody,
) -> Result<Response, Problem> {
    for name in ["extension", "expiresAt"] {
        fields.drop_empty(name);
    }
    let name = fields.required("name", text(TokenName::parse));
    let description = fields.optional("description", text(ShortText::parse));
    let permissions = fields.required("permissions", permissions).unwrap_or_default();
    let content_groups = fields.optional("contentGroupIds", groups);
    let extension = fields.optional("extension", text(ExtensionName::parse));
    let expires_at = fields.optional("expiresAt", text(time));
    check_expiry(&mut fields, expires_at, app.environment().now());
    let named =
        references::groups("contentGroupIds", content_groups.as_deref().unwrap_or_default());
    let name = references::finish(actor.caller(), fields, named, name).await?;
    let request = TokenRequest {
        token: app.environment().new_access_token(),
        user: actor.user,
        name,
        description,
        permissions,
        content_groups: content_groups.map(each_once),
        extension,
        expires_at,
    };
    let secret = request.token.clone();
    let respond = Respond::new(move |token: &Token| {
        let text = secret.reveal();
        let created = MinimalBody { id: token.id.to_string(), warning: None, token: Some(text) };
        let body = TokenBody::with_text(token, text);
        created::created_with_body(prefer, &created, token.version, &body)
            .with_location(PATH, token.id)
            .not_replayable()
    });
    let key = key.for_body(&bytes);
    let response = tokens::issue(actor.caller(), request, key, respond).await?;
    Ok(created::respond(response))
}
