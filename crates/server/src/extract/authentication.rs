//! The lookup of a request's access token.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use galley_application::operations::previews;
use galley_domain::access_token::{AccessToken, TokenHash};
use galley_storage::tokens::{self, Authentication};
use galley_storage::{Error, Generation, Tx};

use crate::app::App;

/// The result of a token lookup that a middleware already did for the request.
#[derive(Debug, Clone)]
pub(crate) struct TokenLookup(pub(crate) Result<Option<Arc<Authentication>>, Error>);

/// Returns the token with this hash, from the token cache or from the database.
pub(crate) async fn find(app: &App, hash: TokenHash) -> Result<Option<Arc<Authentication>>, Error> {
    let database = app.database();
    if let Some(cached) = app.token_cache().get(database, &hash) {
        return Ok(Some(cached));
    }
    let version = database.data_version();
    let read = async move |tx: &Tx<'_>| match tokens::find_by_hash(tx, &hash).await? {
        Some(found) => Ok(Some(found)),
        None => previews::find_authentication(tx, &hash).await,
    };
    let found = database.read_row::<_, Error, _>("tokens.find_by_hash", read).await?;
    let found = found.map(Arc::new);
    if let Some(found) = &found {
        app.token_cache().insert(database, hash, version, found);
    }
    Ok(found)
}

/// Returns the token with this hash from the database, and the generation of its workspace. A
/// preview token has none, so its responses are not cached.
pub(crate) async fn find_with_generation(
    app: &App,
    hash: TokenHash,
) -> Result<Option<(Arc<Authentication>, Option<Generation>)>, Error> {
    let read = async move |tx: &Tx<'_>| {
        if let Some((found, generation)) = tokens::find_by_hash_with_generation(tx, &hash).await? {
            return Ok(Some((found, Some(generation))));
        }
        let preview = previews::find_authentication(tx, &hash).await?;
        Ok(preview.map(|preview| (preview, None)))
    };
    let name = "tokens.find_by_hash_with_generation";
    let found = app.database().read_row::<_, Error, _>(name, read).await?;
    Ok(found.map(|(authentication, generation)| (Arc::new(authentication), generation)))
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
