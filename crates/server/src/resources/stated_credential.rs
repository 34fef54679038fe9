//! The credential that a request states, before it is looked up.

use galley_domain::WorkspaceId;
use galley_domain::access_token::{self, TokenHash};
use sha2::{Digest, Sha256};

/// The credential that a request states.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StatedCredential {
    /// An access token, or a preview token, by its hash.
    Token(TokenHash),
    /// A session by the hash of its cookie, in a workspace.
    Session(TokenHash, Option<WorkspaceId>),
}

impl StatedCredential {
    /// Returns the key of its rights in caches.
    pub(crate) fn cache_key(self) -> TokenHash {
        match self {
            Self::Token(hash) => hash,
            Self::Session(hash, workspace) => {
                let workspace = workspace.map(|id| id.to_string()).unwrap_or_default();
                Sha256::new().chain_update(hash).chain_update(workspace).finalize().into()
            }
        }
    }

    /// Creates the credential of a session's cookie.
    pub(crate) fn session(cookie: &str, workspace: Option<WorkspaceId>) -> Self {
        Self::Session(access_token::hash(cookie), workspace)
    }
}
