//! Authentication and authorization.
//!
//! A handler's first argument is an [`Actor`] with the permission that it needs. Only an actor has
//! the workspace in which the handler works.

use std::marker::PhantomData;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use galley_application::operations::events;
use galley_application::{Caller, Error, Reason, Rejection, StalenessBound};
use galley_domain::Permission;
use galley_domain::permission::Resource;
use galley_domain::publication::ContentView;
use galley_storage::authentication::Authentication;

use crate::app::App;
use crate::describe::{HandlerArgument, HandlerFacts};
use crate::extract::authentication::{self, CredentialLookup, FoundCredential};
use crate::extract::{known_parameters, request_origin};
use crate::middleware::request_log;
use crate::problem::Problem;
use crate::resources::request_memory::RequestReservation;
use crate::resources::sessions;
use crate::resources::stated_credential::StatedCredential;

/// Permissions as a type.
pub(crate) trait RequiredPermission: Send {
    /// The permissions, of which one is enough. If there are none, any token is enough.
    const PERMISSIONS: &'static [Permission];

    /// True if a preview token is enough, too.
    const ALLOWS_PREVIEW: bool = false;

    /// True if a request with a session names its workspace.
    const NEEDS_WORKSPACE: bool = true;
}

macro_rules! permissions {
    ($($name:ident = $access:ident $resource:ident;)*) => {$(
        /// The permission of this name.
        #[derive(Debug)]
        pub(crate) struct $name;

        impl RequiredPermission for $name {
            const PERMISSIONS: &'static [Permission] =
                &[Permission::$access(Resource::$resource)];
        }
    )*};
}

permissions! {
    ReadContentPieces = read ContentPieces;
    WriteContentPieces = write ContentPieces;
    ReadContentGroups = read ContentGroups;
    WriteContentGroups = write ContentGroups;
    ReadTags = read Tags;
    WriteTags = write Tags;
    ReadVariants = read Variants;
    WriteVariants = write Variants;
    ReadAssets = read Assets;
    WriteAssets = write Assets;
    ReadRoles = read Roles;
    WriteRoles = write Roles;
    ReadWorkspaceMemberships = read WorkspaceMemberships;
    WriteWorkspaceMemberships = write WorkspaceMemberships;
    ReadWorkspace = read Workspace;
    WriteWorkspace = write Workspace;
    ReadWebhooks = read Webhooks;
    WriteWebhooks = write Webhooks;
    ReadTokens = read Tokens;
    WriteTokens = write Tokens;
    ReadProfile = read Profile;
    WriteProfile = write Profile;
    WriteTrash = write Trash;
    WritePublishing = write Publishing;
    ReadAudit = read Audit;
}

/// The permission to read pieces, or a preview token.
#[derive(Debug)]
pub(crate) struct PreviewContentPieces;

impl RequiredPermission for PreviewContentPieces {
    const PERMISSIONS: &'static [Permission] = ReadContentPieces::PERMISSIONS;
    const ALLOWS_PREVIEW: bool = true;
}

/// No permission, and no workspace: requests about the caller's user.
#[derive(Debug)]
pub(crate) struct AnyUser;

impl RequiredPermission for AnyUser {
    const PERMISSIONS: &'static [Permission] = &[];
    const NEEDS_WORKSPACE: bool = false;
}

macro_rules! permissions_of_user {
    ($($name:ident = $permissions:ident;)*) => {$(
        /// The permission of this name, for requests about the caller's user.
        #[derive(Debug)]
        pub(crate) struct $name;

        impl RequiredPermission for $name {
            const PERMISSIONS: &'static [Permission] = $permissions::PERMISSIONS;
            const NEEDS_WORKSPACE: bool = false;
        }
    )*};
}

permissions_of_user! {
    ReadOwnProfile = ReadProfile;
    WriteOwnProfile = WriteProfile;
}

/// No permission: any token is enough, or the permission depends on the request.
#[derive(Debug)]
pub(crate) struct AnyToken;

impl RequiredPermission for AnyToken {
    const PERMISSIONS: &'static [Permission] = &[];
}

/// The permission to read the resource of an event.
#[derive(Debug)]
pub(crate) struct ReadEvents;

impl RequiredPermission for ReadEvents {
    const PERMISSIONS: &'static [Permission] = events::READ_PERMISSIONS;
}

/// The detail of the rejection of an access token.
const UNKNOWN_TOKEN: &str = "the access token is unknown, was revoked, or has expired";

/// The detail of the rejection of a session.
const ENDED_SESSION: &str = "the session is unknown, was ended, or has expired: sign in";

/// The detail of the rejection of a preview token.
const PREVIEW_ONLY: &str = "a preview token only gets and lists its content piece";

/// The holder of a valid token with permission `P`.
#[derive(Debug)]
pub(crate) struct Actor<P> {
    caller: Caller,
    permission: PhantomData<P>,
}

impl<P> Actor<P> {
    /// Returns the caller of operations.
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns the caller of operations that may read stale data.
    pub(crate) fn stale_caller(&self, staleness: StalenessBound) -> Caller {
        self.caller.clone().with_staleness(staleness)
    }

    /// Returns the authentication, for operations that check it again.
    pub(crate) fn into_authentication(self) -> Authentication {
        self.caller.token().clone()
    }
}

impl<P> Deref for Actor<P> {
    type Target = Authentication;

    fn deref(&self) -> &Authentication {
        self.caller.token()
    }
}

impl<P: RequiredPermission> Actor<P> {
    /// Checks an authentication's expiry, permissions and rate limit, and the query's parameters.
    /// `unknown` is the detail of the rejection if it was not found or has expired.
    pub(crate) fn admit(
        parts: &Parts,
        app: &App,
        found: Option<Arc<Authentication>>,
        unknown: &str,
    ) -> Result<Self, Problem> {
        let authentication = admit(parts, app, found, unknown)?;
        if authentication.preview_of.is_some() && !P::ALLOWS_PREVIEW {
            return Err(Rejection::new(Reason::InsufficientPermissions, PREVIEW_ONLY).into());
        }
        if !authentication.permissions.allows_one_of(P::PERMISSIONS) {
            return Err(Rejection::insufficient_permissions(P::PERMISSIONS).into());
        }
        known_parameters::check(parts, app)?;
        let mut caller = Caller::new(app.service().clone(), authentication);
        if !parts.method.is_safe() {
            caller = caller.with_request(request_origin::origin(parts, app));
        }
        Ok(Self { caller, permission: PhantomData })
    }
}

impl<P: RequiredPermission> FromRequestParts<App> for Actor<P> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        if !parts.headers.contains_key(AUTHORIZATION)
            && let Some(cookie) = app.sessions().session(&parts.headers)
        {
            let cookie = cookie.to_owned();
            let found = find_session(parts, app, &cookie, P::NEEDS_WORKSPACE).await?;
            return Self::admit(parts, app, Some(found), ENDED_SESSION);
        }
        let found = find_token(parts, app).await?;
        Self::admit(parts, app, found, UNKNOWN_TOKEN)
    }
}

impl<P: RequiredPermission> HandlerArgument for Actor<P> {
    fn add_facts(facts: &mut HandlerFacts) {
        facts.service = true;
        facts.token = true;
        facts.permissions = P::PERMISSIONS;
    }
}

/// Finds a credential, unless a middleware has already done so.
async fn find(
    parts: &Parts,
    app: &App,
    stated: StatedCredential,
) -> Result<Option<FoundCredential>, Error> {
    let found = match parts.extensions.get() {
        Some(CredentialLookup(found)) => found.clone(),
        None => authentication::find(app, stated).await,
    };
    Ok(found?)
}

/// Finds the session of a cookie, in the workspace that the request names. The checks of the
/// session, of the origin and of the workspace follow one another, so that a page of another origin
/// learns nothing.
async fn find_session(
    parts: &Parts,
    app: &App,
    cookie: &str,
    needs_workspace: bool,
) -> Result<Arc<Authentication>, Error> {
    let workspace = sessions::workspace(&parts.headers);
    let named = workspace.as_ref().ok().copied().flatten();
    let found = find(parts, app, StatedCredential::session(cookie, named)).await?;
    let now = app.environment().now();
    let Some(found) = found.filter(|found| !found.has_expired(now)) else {
        count_rejected(parts, app);
        return Err(Rejection::unauthorized(ENDED_SESSION).into());
    };
    app.sessions().require_own_request(parts)?;
    if workspace?.is_none() && needs_workspace {
        return Err(sessions::workspace_header("is required with a session"));
    }
    match found.authentication {
        Some(authentication) => Ok(authentication),
        None if named.is_some() => {
            let detail = "the workspace does not exist, or you are no member of it";
            Err(Rejection::new(Reason::NotFound, detail).into())
        }
        None => {
            let detail = "the session's user is no member of any workspace";
            Err(Rejection::unauthorized(detail).into())
        }
    }
}

/// Finds the token of the header `Authorization`.
async fn find_token(parts: &Parts, app: &App) -> Result<Option<Arc<Authentication>>, Error> {
    let token = authentication::bearer(&parts.headers).ok_or_else(|| {
        if parts.headers.contains_key(AUTHORIZATION) {
            count_rejected(parts, app);
        }
        Rejection::unauthorized(
            "send the header Authorization: Bearer <ACCESS_TOKEN> with a valid token",
        )
    })?;
    let found = find(parts, app, StatedCredential::Token(token.hash())).await?;
    Ok(found.and_then(|found| found.authentication))
}

/// Admits the request of a token that has not expired.
fn admit(
    parts: &Parts,
    app: &App,
    found: Option<Arc<Authentication>>,
    unknown: &str,
) -> Result<Arc<Authentication>, Error> {
    let now = app.environment().now();
    match found {
        Some(found) if found.expires_at.is_none_or(|end| end > now) => {
            if let Some(reservation) = parts.extensions.get::<RequestReservation>() {
                reservation.set_workspace(found.workspace);
            }
            request_log::record_caller(&found);
            app.credential_use().record(app.database(), &found, now);
            app.rate_limit().check(found.credential, parts.extensions.get())?;
            if let Some(staleness) = parts.extensions.get::<StalenessBound>()
                && (found.content_groups.is_some() || found.view == ContentView::Published)
            {
                staleness.forbid_stale();
            }
            Ok(found)
        }
        rejected => {
            let client = count_rejected(parts, app);
            log_rejected(client, app, rejected.as_deref());
            Err(Rejection::unauthorized(unknown).into())
        }
    }
}

/// Counts rejected credentials, and returns the address of the client.
fn count_rejected(parts: &Parts, app: &App) -> Option<IpAddr> {
    let client = request_origin::client_address(parts, app);
    app.service().rejected_credentials().count(client, app.environment().now());
    client
}

/// Logs rejected credentials, for each client at most once in an interval. The line doesn't contain
/// the token.
fn log_rejected(client: Option<IpAddr>, app: &App, expired: Option<&Authentication>) {
    let Some(suppressed) = app.rejected_credentials().admit(client) else { return };
    let client = client.map(tracing::field::display);
    let token = expired.map(|expired| tracing::field::display(expired.credential));
    let reason = if expired.is_some() { "expired" } else { "unknown or revoked" };
    tracing::info!(client, token, reason, suppressed, "rejected an access token");
}
