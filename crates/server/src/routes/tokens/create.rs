//! `POST /tokens`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::token::TokenBody;
use galley_application::operations::tokens::{self, TokenRequest};
use galley_domain::access_token::{ExtensionName, TokenName};
use galley_domain::text::ShortText;
use galley_storage::WriteTx;

use super::{PATH, check_expiry, groups, schema};
use crate::app::App;
use crate::extract::actor::{Actor, WriteTokens};
use crate::extract::body::JsonBody;
use crate::extract::fields::{each_once, permissions, text, time};
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::prefer::Prefer;
use crate::extract::references;
use crate::problem::Problem;
use crate::respond::idempotent;
use crate::respond::response::{CreatedResponse, MinimalBody};

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
    references::refuse_all(&app, actor.scope(), fields, named).await?;
    let (authentication, environment) = (actor.into_authentication(), app.environment().clone());
    let request = TokenRequest {
        token: environment.new_access_token(),
        user: authentication.user,
        name: name.expect("there, as nothing was refused"),
        description,
        permissions,
        content_groups: content_groups.map(each_once),
        extension,
        expires_at,
    };
    let caller = authentication.clone();
    let create = async move |tx: &WriteTx<'_>| {
        let made = tokens::issue(tx, &environment, &caller, &request).await?;
        let text = request.token.reveal();
        let created = MinimalBody { id: made.id.to_string(), warning: None, token: Some(text) };
        let body = TokenBody::with_text(&made, text);
        Ok(CreatedResponse::with_body(prefer, &created, made.version, &body)
            .with_location(PATH, made.id)
            .not_replayable())
    };
    idempotent::create(&app, "tokens.create", &authentication, key, &bytes, create).await
}
