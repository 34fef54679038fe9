//! `/profile/sessions` and `/sign-out`: the sessions of the signed-in user.

use galley_api_types::session::SessionBody;
use galley_application::operations::sessions::{self, EndedSessions, SessionList};
use galley_domain::{Credential, SessionId};
use galley_storage::sessions::Session;

use crate::extract::actor::AnyUser;
use crate::extract::request_origin::Origin;
use crate::routes::prelude::*;

/// List the sessions of the signed-in user
///
/// Returns the sessions that have not expired, oldest first. An access token can't list sessions.
#[utoipa::path(
    get, path = "/profile/sessions", operation_id = "listSessions", params(IdPageParams),
    responses(
        (status = 200, body = [SessionBody<'_>]),
        (status = 403, description = "session_required"),
    ),
)]
pub(crate) async fn list(
    actor: Actor<AnyUser>,
    list: IdListQuery<SessionId>,
) -> Result<Response, Problem> {
    let SessionList { mut sessions, own } = sessions::list(actor.caller(), list.page()).await?;
    let id = |session: &Session| session.id;
    Ok(list.respond(&mut sessions, id, |session| SessionBody::new(session, Some(own))))
}

/// End sessions of the signed-in user
///
/// Ends one session, or with `all=true` every session of the user, the one of the request included.
/// An access token can't end sessions, and is not ended by this.
#[utoipa::path(
    delete, path = "/profile/sessions", operation_id = "deleteSessions",
    params(
        ("id" = Option<schemas::SessionId>, Query, description = "The session to end."),
        ("all" = Option<bool>, Query, description = "If true, all sessions are ended."),
    ),
    responses(
        (status = 403, description = "session_required"),
        (status = 404, description = "not_found"),
    ),
)]
pub(crate) async fn delete(
    State(app): State<App>,
    actor: Actor<AnyUser>,
    Origin(origin): Origin,
    mut query: Query,
) -> Result<Response, Problem> {
    let is_all = query.boolean("all");
    let id = if is_all { None } else { Some(query.id::<SessionId>()) };
    query.finish()?;
    let which = match id {
        None => EndedSessions::All,
        Some(id) => EndedSessions::One(id.get()?),
    };
    let is_own = match which {
        EndedSessions::One(id) => actor.credential == Credential::Session(id),
        EndedSessions::All | EndedSessions::Own => true,
    };
    sessions::sign_out(actor.caller(), which, origin).await?;
    let mut response = response::no_content();
    if is_own {
        app.sessions().end(&mut response);
    }
    Ok(response)
}

/// Sign out
///
/// Ends the session of the request, and deletes its cookie.
#[utoipa::path(
    post, path = "/sign-out", operation_id = "signOut",
    responses(
        (status = 204, description = "Signed out."),
        (status = 403, description = "session_required"),
    ),
)]
pub(crate) async fn sign_out(
    State(app): State<App>,
    actor: Actor<AnyUser>,
    Origin(origin): Origin,
) -> Result<Response, Problem> {
    sessions::sign_out(actor.caller(), EndedSessions::Own, origin).await?;
    let mut response = response::no_content();
    app.sessions().end(&mut response);
    Ok(response)
}
