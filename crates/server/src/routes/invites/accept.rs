//! `POST /invites/accept`

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::response::Response;
use galley_api_types::request::RequestBody;
use galley_api_types::workspace_member::InviteAcceptance;
use galley_application::Rejection;
use galley_application::operations::invites::{self, AcceptInviteRequest};
use galley_domain::access_token::AccessToken;

use super::schema;
use crate::app::App;
use crate::extract::body::{JsonBody, UnauthenticatedBody};
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::request_origin::Origin;
use crate::problem::Problem;
use crate::respond::created::REPLAYED;
use crate::respond::response;

/// Accept an invite
///
/// Makes the invited person a member and returns an access token. If a user with the invite's
/// e-mail address exists, that user becomes the member and keeps its names. Otherwise a new user is
/// created. The code is the only credential that the request needs. A repeat within 24 hours with
/// the same `Idempotency-Key` returns the same token, so the key should be hard to guess.
#[utoipa::path(
    post,
    path = "/invites/accept",
    operation_id = "acceptInvite",
    request_body = InviteAcceptance,
    responses(
        (status = 200, body = schema::AcceptedInviteSchema),
        (status = 404, description = "not_found"),
        (status = 403, description = "sign_in_required"),
        (status = 409, description = "username_taken, already_member"),
        (status = 410, description = "invite_ended"),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    key: IdempotencyKey,
    Origin(origin): Origin,
    UnauthenticatedBody(JsonBody { mut fields, .. }): UnauthenticatedBody,
) -> Result<Response, Problem> {
    let acceptance = InviteAcceptance::parse(&mut fields);
    let Ok(InviteAcceptance { code, username, full_name }) = acceptance else {
        return Err(Rejection::of_issues(fields.into_issues_and_references().0).into());
    };
    let token = match key.into_text() {
        Some(key) => token_of_attempt(&app, &key, &code, username.as_str(), full_name.as_str()),
        None => app.environment().new_access_token(),
    };
    let acceptance =
        AcceptInviteRequest { code, username, full_name, token, signed_in: None, browser: None };
    let accepted = invites::accept(app.service(), acceptance.clone(), origin).await?;
    let mut response = response::ok(&schema::AcceptedInviteSchema {
        workspace_id: accepted.workspace.to_string(),
        member_id: accepted.member.to_string(),
        user_id: accepted.user.id.to_string(),
        token: acceptance.token.reveal().to_owned(),
    });
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if accepted.is_repeated {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// Derives the token of an attempt, so that a repeat of the attempt gets the same token. The
/// derivation uses the installation's key and all fields of the attempt, so clients can't compute
/// the token.
pub(super) fn token_of_attempt(
    app: &App,
    attempt: &str,
    code: &str,
    username: &str,
    full_name: &str,
) -> AccessToken {
    let parts = ["token of an invite", attempt, code, username, full_name];
    AccessToken::from_random(app.key().fingerprint(&parts.map(str::as_bytes)))
}
