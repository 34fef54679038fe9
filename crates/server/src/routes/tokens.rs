//! `/tokens`.

use galley_api_types::request::GroupLimit;
use galley_api_types::token::{NewToken, TokenBody, TokenChange};
use galley_application::operations::tokens::{self, TokenRequest};
use galley_domain::{Invalid, Timestamp, TokenId};
use galley_storage::tokens::Token;

use crate::extract::actor::{ReadTokens, WriteTokens};
use crate::respond::response::MinimalBody;
use crate::routes::prelude::*;

const PATH: &str = "/tokens";

/// Get a token
#[utoipa::path(
    get, path = "/tokens", operation_id = "getToken", params(("id" = schemas::TokenId, Query)),
    responses((status = 200, body = TokenBody<'_>)),
)]
pub(crate) async fn get(
    actor: Actor<ReadTokens>,
    IdQuery(id): IdQuery<TokenId>,
) -> Result<Response, Problem> {
    let token = tokens::get(actor.caller(), id).await?;
    Ok(response::resource(token.version, &TokenBody::from(&token)))
}

/// List the tokens
///
/// Returns the tokens in the order of their creation, oldest first.
#[utoipa::path(
    get, path = "/tokens/list", operation_id = "listTokens", params(IdPageParams),
    responses((status = 200, body = [TokenBody<'_>])),
)]
pub(crate) async fn list(
    actor: Actor<ReadTokens>,
    list: IdListQuery<TokenId>,
) -> Result<Response, Problem> {
    let mut tokens = tokens::list(actor.caller(), list.page()).await?;
    Ok(list.respond(&mut tokens, |token| token.id, TokenBody::from))
}

/// Create a token
///
/// The token belongs to the user of the requesting token. It can't exceed that token in
/// permissions, groups, extension or lifetime. Only this response contains the token's text.
#[utoipa::path(
    post, path = "/tokens", operation_id = "createToken", request_body = NewToken,
    responses(
        (status = 201, body = TokenBody<'_>),
        (status = 400, description = "unknown_reference"),
        (status = 403, description = "beyond_own_permissions, outside_group_limit"),
    ),
)]
pub(crate) async fn create(
    State(app): State<App>,
    actor: Actor<WriteTokens>,
    mut request: CreateRequest<NewToken>,
) -> Result<Response, Problem> {
    let fields = request.fields();
    let expires_at = fields.optional::<Timestamp>("expiresAt").ok().flatten();
    if expires_at.is_some_and(|end| end <= app.environment().now()) {
        fields.add_issue("expiresAt", &Invalid::new("invalid_date", "must be in the future"));
    }
    let (prefer, new, request) = request.parse(actor.caller()).await?;
    let new = TokenRequest {
        token: app.environment().new_access_token(),
        user: actor.user,
        name: new.name,
        description: new.description,
        permissions: new.permissions,
        view: new.view.unwrap_or(actor.view),
        content_groups: new.content_group_ids.map(|GroupLimit(groups)| groups),
        extension: new.extension,
        expires_at,
    };
    let secret = new.token.clone();
    let respond = Respond::new(move |token: &Token| {
        let text = secret.reveal();
        let created = MinimalBody { id: token.id.to_string(), warning: None, token: Some(text) };
        let body = TokenBody::with_text(token, text);
        created::created_with_body(prefer, &created, token.version, &body)
            .with_location(PATH, token.id)
            .not_replayable()
    });
    Ok(created::respond(tokens::issue(actor.caller(), new, request, respond).await?))
}

/// Change a token
///
/// Absent fields stay unchanged. The change applies to all later requests.
#[utoipa::path(
    put, path = "/tokens", operation_id = "updateToken", request_body = TokenChange,
    responses(
        (status = 200, body = TokenBody<'_>),
        (status = 400, description = "unknown_reference"),
        (status = 403, description = "beyond_own_permissions, outside_group_limit"),
    ),
)]
pub(crate) async fn update(
    actor: Actor<WriteTokens>,
    mut request: ChangeRequest<TokenChange>,
) -> Result<Response, Problem> {
    // A past expiry time is valid, so that clients can send back the fields of a GET response.
    let expires_at = request.fields.clearable::<Timestamp>("expiresAt").ok().flatten();
    let ParsedChange { prefer, expected, id, change } = request.parse(actor.caller()).await?;
    let token = tokens::update(actor.caller(), id, change, expires_at, expected).await?;
    Ok(response::updated(prefer, token.version, &TokenBody::from(&token)))
}

/// Revoke a token
///
/// The revocation takes effect at once.
#[utoipa::path(
    delete, path = "/tokens", operation_id = "deleteToken", params(("id" = schemas::TokenId, Query)),
    responses((status = 403, description = "beyond_own_permissions, outside_group_limit")),
)]
pub(crate) async fn delete(
    actor: Actor<WriteTokens>,
    expected: VersionPrecondition,
    IdQuery(id): IdQuery<TokenId>,
) -> Result<Response, Problem> {
    tokens::revoke(actor.caller(), id, expected).await?;
    Ok(response::no_content())
}
