//! The sessions of users: their start, list and end.

use galley_domain::access_token;
use galley_domain::audit::{AuditAction, RequestOrigin};
use galley_domain::session::{SESSION_LIFETIME, SignInMethod};
use galley_domain::{Actor, Credential, SessionId, UserId, WorkspaceId};
use galley_storage::members::Membership;
use galley_storage::sessions::{self, Session};
use galley_storage::users::User;
use galley_storage::{IdPage, Tx, WriteTx, members};
use serde_json::json;

use crate::audit::{self, AuditChanges};
use crate::caller::Caller;
use crate::environment::Environment;
use crate::error::Error;
use crate::rejection::{Reason, Rejection};
use crate::scope::Scope;
use crate::service::Service;

/// The limit on characters of a browser's name that a session stores.
const USER_AGENT_LENGTH_MAX: usize = 300;

/// The browser that signs in.
#[derive(Debug, Clone)]
pub struct Browser {
    /// The request, for the audit log.
    pub request: RequestOrigin,
    /// The header `User-Agent`.
    pub user_agent: Option<String>,
    /// The value of the cookie of its present session, which the new one replaces.
    pub session: Option<String>,
}

/// A new session.
#[derive(Debug, Clone)]
pub struct StartedSession {
    /// The value of its cookie. It is shown once.
    pub cookie: String,
    /// The session.
    pub session: Session,
}

/// Starts a session of a user, and ends the browser's present one. With `workspace`, it reaches
/// that workspace only.
pub(crate) async fn start(
    tx: &WriteTx<'_>,
    environment: &Environment,
    user: &User,
    method: SignInMethod,
    workspace: Option<WorkspaceId>,
    browser: &Browser,
) -> Result<StartedSession, Error> {
    if let Some(cookie) = &browser.session
        && let Some(present) = sessions::find_by_hash(tx, &access_token::hash(cookie)).await?
    {
        end(tx, environment, &present, Some(&browser.request)).await?;
    }
    let now = environment.now();
    let cookie = environment.new_code();
    let cut = |text: &String| text.chars().take(USER_AGENT_LENGTH_MAX).collect();
    let session = Session {
        id: SessionId::new(environment.new_id()),
        user: user.id,
        workspace,
        method,
        user_agent: browser.user_agent.as_ref().map(cut),
        remote_address: browser.request.remote_address.map(|address| address.to_string()),
        created_at: now,
        last_used_at: now,
        expires_at: now.later(SESSION_LIFETIME),
    };
    sessions::insert(tx, &session, &access_token::hash(&cookie)).await?;
    record(tx, environment, &session, AuditAction::SessionCreate, Some(&browser.request)).await?;
    Ok(StartedSession { cookie, session })
}

/// Ends a session, if it still exists.
pub(crate) async fn end(
    tx: &WriteTx<'_>,
    environment: &Environment,
    session: &Session,
    request: Option<&RequestOrigin>,
) -> Result<(), Error> {
    if sessions::delete(tx, session.user, session.id).await? {
        record(tx, environment, session, AuditAction::SessionDelete, request).await?;
    }
    Ok(())
}

/// Records a change of a session in the audit log of each workspace that it reaches.
async fn record(
    tx: &WriteTx<'_>,
    environment: &Environment,
    session: &Session,
    action: AuditAction,
    request: Option<&RequestOrigin>,
) -> Result<(), Error> {
    let reached = |membership: &Membership| {
        session.workspace.is_none_or(|workspace| workspace == membership.workspace.id)
    };
    let memberships = members::of_user(tx, session.user, &IdPage::default()).await?;
    for membership in memberships.iter().filter(|membership| reached(membership)) {
        let scope = Scope {
            author: Actor::Member(membership.id),
            request: request.cloned(),
            ..Scope::whole(membership.workspace.id)
        };
        let changes = match action {
            AuditAction::SessionCreate => {
                AuditChanges::created(json!({"method": session.method.as_str()}))
            }
            _ => AuditChanges::default(),
        };
        audit::record(tx, environment, &scope, action, session.id, changes);
    }
    Ok(())
}

/// Returns the user of a session that reaches every workspace.
pub async fn find_user(service: &Service, cookie: &str) -> Result<Option<UserId>, Error> {
    let (hash, now) = (access_token::hash(cookie), service.environment().now());
    let read = async move |tx: &Tx<'_>| Ok::<_, Error>(sessions::find_by_hash(tx, &hash).await?);
    let found = service.database().read("sessions.find_user", read).await?;
    let valid = found.filter(|session| session.expires_at > now && session.workspace.is_none());
    Ok(valid.map(|session| session.user))
}

/// Returns the caller's session.
fn own_session(caller: &Caller) -> Result<SessionId, Error> {
    match caller.token().credential {
        Credential::Session(id) => Ok(id),
        Credential::Token(_) => {
            let detail = "an access token does not see or end sessions: sign in";
            Err(Rejection::new(Reason::SessionRequired, detail).into())
        }
    }
}

/// A list of sessions.
#[derive(Debug)]
pub struct SessionList {
    /// The sessions.
    pub sessions: Vec<Session>,
    /// The session of the request.
    pub own: SessionId,
}

/// Lists the sessions of the caller's user.
pub async fn list(caller: &Caller, page: IdPage) -> Result<SessionList, Error> {
    let own = own_session(caller)?;
    let (user, now) = (caller.token().user, caller.environment().now());
    let is_limited = caller.token().is_of_one_workspace;
    let read = async move |tx: &Tx<'_>| {
        let mut found = sessions::list(tx, user, now, &page).await?;
        found.retain(|session| !is_limited || session.id == own);
        Ok(found)
    };
    Ok(SessionList { sessions: caller.read("sessions.list", read).await?, own })
}

/// The sessions to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedSessions {
    /// The session of the request.
    Own,
    /// One session of the same user.
    One(SessionId),
    /// All sessions of the same user.
    All,
}

/// Ends sessions of the caller's user.
pub async fn sign_out(
    caller: &Caller,
    which: EndedSessions,
    request: RequestOrigin,
) -> Result<(), Error> {
    let own = own_session(caller)?;
    // A session that reaches one workspace only does not act for the user elsewhere.
    let which = match which {
        EndedSessions::All if caller.token().is_of_one_workspace => EndedSessions::Own,
        EndedSessions::One(id) if caller.token().is_of_one_workspace && id != own => {
            return Err(Error::not_found());
        }
        which => which,
    };
    let caller_copy = caller.clone();
    let write = async move |tx: &WriteTx<'_>| {
        let (environment, user) = (caller_copy.environment(), caller_copy.token().user);
        let ended = match which {
            EndedSessions::Own => sessions::find(tx, user, own).await?.into_iter().collect(),
            EndedSessions::One(id) => {
                vec![sessions::find(tx, user, id).await?.ok_or_else(Error::not_found)?]
            }
            EndedSessions::All => {
                sessions::list(tx, user, environment.now(), &IdPage::default()).await?
            }
        };
        for session in &ended {
            end(tx, environment, session, Some(&request)).await?;
        }
        Ok(())
    };
    caller.write("sessions.end", write).await
}
