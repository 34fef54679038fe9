//! The token cache: the rights of tokens and sessions, valid while no access right of their
//! workspace changes.

use std::sync::Arc;

use galley_domain::access_token::TokenHash;
use galley_domain::{Credential, Timestamp};
use galley_storage::authentication::Authentication;
use galley_storage::{DataVersion, Database, LastModified};
use quick_cache::sync::Cache;

/// The limit on cached tokens.
const ENTRIES_LIMIT: usize = 10_000;

/// The cached tokens by hash.
#[derive(Debug)]
pub(crate) struct TokenCache(Cache<TokenHash, Arc<CachedToken>>);

/// A token with the data version at which it was read.
#[derive(Debug)]
pub(crate) struct CachedToken {
    pub(crate) authentication: Arc<Authentication>,
    pub(crate) last_change: LastModified,
    version: DataVersion,
}

impl CachedToken {
    /// Returns true if no access right of the workspace changed since the credential was read, and,
    /// for a session, no session ended.
    pub(crate) fn is_current(&self) -> bool {
        self.last_change.permissions_are_unchanged_since(self.version) && self.is_open()
    }

    /// Returns true unless a session ended since this one was read.
    pub(crate) fn is_open(&self) -> bool {
        match self.authentication.credential {
            Credential::Token(_) => true,
            Credential::Session(_) => self.last_change.sessions_are_unchanged_since(self.version),
        }
    }

    /// Returns true if the token has expired at `now`.
    pub(crate) fn has_expired(&self, now: Timestamp) -> bool {
        self.authentication.expires_at.is_some_and(|end| end <= now)
    }
}

impl TokenCache {
    /// Creates an empty cache.
    pub(crate) fn new() -> Self {
        Self(Cache::new(ENTRIES_LIMIT))
    }

    /// Returns a cached credential that is still current. The use of a session extends it, so an
    /// expired one is read again.
    pub(crate) fn get(
        &self,
        database: &Database,
        hash: &TokenHash,
        now: Timestamp,
    ) -> Option<Arc<Authentication>> {
        database.data_version()?;
        let cached = self.current(hash).filter(|cached| !cached.has_expired(now))?;
        Some(Arc::clone(&cached.authentication))
    }

    /// Returns the entry of a token that is still current.
    pub(crate) fn current(&self, hash: &TokenHash) -> Option<Arc<CachedToken>> {
        self.0.get(hash).filter(|cached| cached.is_current())
    }

    /// Inserts a token that was read after `data_version`, unless the cache has a newer entry.
    pub(crate) fn insert(
        &self,
        database: &Database,
        hash: TokenHash,
        version: Option<DataVersion>,
        authentication: &Arc<Authentication>,
    ) {
        let last_change = database.last_modified(authentication.workspace);
        let last_change = last_change.map(|last| last.in_view(authentication.view));
        let Some((version, last_change)) = version.zip(last_change) else { return };
        if self.0.get(&hash).is_some_and(|cached| cached.version > version) {
            return;
        }
        let authentication = Arc::clone(authentication);
        self.0.insert(hash, Arc::new(CachedToken { authentication, last_change, version }));
    }
}
