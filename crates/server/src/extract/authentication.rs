//! The lookup of a request's credential: its access token, or the session of its cookie.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use galley_application::operations::previews;
use galley_domain::Timestamp;
use galley_domain::access_token::AccessToken;
use galley_storage::authentication::{self, Authentication, SessionAuthentication};
use galley_storage::{Error, Generation, Tx};

use crate::app::App;
use crate::resources::stated_credential::StatedCredential;

/// A credential that was found.
#[derive(Debug, Clone)]
pub(crate) struct FoundCredential {
    /// The time at which it expires.
    pub(crate) expires_at: Option<Timestamp>,
    /// Its rights. The user of a session may be no member of the workspace.
    pub(crate) authentication: Option<Arc<Authentication>>,
}

impl FoundCredential {
    /// Returns true if the credential has expired at `now`.
    pub(crate) fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

impl From<Authentication> for FoundCredential {
    fn from(found: Authentication) -> Self {
        Self { expires_at: found.expires_at, authentication: Some(Arc::new(found)) }
    }
}

impl From<SessionAuthentication> for FoundCredential {
    fn from(found: SessionAuthentication) -> Self {
        let authentication = found.authentication.map(Arc::new);
        Self { expires_at: Some(found.expires_at), authentication }
    }
}

/// The result of a lookup that a middleware already did for the request.
#[derive(Debug, Clone)]
pub(crate) struct CredentialLookup(pub(crate) Result<Option<FoundCredential>, Error>);

/// Finds a credential in the token cache or in the database.
pub(crate) async fn find(
    app: &App,
    stated: StatedCredential,
) -> Result<Option<FoundCredential>, Error> {
    let (database, key) = (app.database(), stated.cache_key());
    if let Some(cached) = app.token_cache().get(database, &key, app.environment().now()) {
        let expires_at = cached.expires_at;
        return Ok(Some(FoundCredential { expires_at, authentication: Some(cached) }));
    }
    let version = database.data_version();
    let read = async move |tx: &Tx<'_>| match stated {
        StatedCredential::Token(hash) => {
            let found = match authentication::find_by_token_hash(tx, &hash).await? {
                Some(found) => Some(found),
                None => previews::find_authentication(tx, &hash).await?,
            };
            Ok(found.map(FoundCredential::from))
        }
        StatedCredential::Session(hash, workspace) => {
            let found = authentication::find_by_session_hash(tx, &hash, workspace).await?;
            Ok(found.map(FoundCredential::from))
        }
    };
    let found = database.read_row::<_, Error, _>("authentication.find", read).await?;
    if let Some(FoundCredential { authentication: Some(found), .. }) = &found {
        app.token_cache().insert(database, key, version, found);
    }
    Ok(found)
}

/// Finds a credential in the database, with the generation of its workspace. A preview token has
/// none, so its responses are not cached.
pub(crate) async fn find_with_generation(
    app: &App,
    stated: StatedCredential,
) -> Result<Option<(FoundCredential, Option<Generation>)>, Error> {
    let read = async move |tx: &Tx<'_>| match stated {
        StatedCredential::Token(hash) => {
            let found = authentication::find_by_token_hash_with_generation(tx, &hash).await?;
            if let Some((found, generation)) = found {
                return Ok(Some((found.into(), Some(generation))));
            }
            let preview = previews::find_authentication(tx, &hash).await?;
            Ok(preview.map(|preview| (preview.into(), None)))
        }
        StatedCredential::Session(hash, Some(workspace)) => {
            let found =
                authentication::find_by_session_hash_with_generation(tx, &hash, workspace).await?;
            Ok(found.map(|(found, generation)| (found.into(), generation)))
        }
        StatedCredential::Session(hash, None) => {
            let found = authentication::find_by_session_hash(tx, &hash, None).await?;
            Ok(found.map(|found| (found.into(), None)))
        }
    };
    app.database().read_row("authentication.find_with_generation", read).await
}

/// Returns the well-formed token of the `Authorization` header, which must be the only one.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<AccessToken> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    AccessToken::parse(token.trim()).ok()
}
