//! Making access tokens.

use galley_domain::access_token::AccessToken;
use galley_domain::{PermissionSet, Timestamp, TokenId, UserId, WorkspaceId};
use galley_storage::WriteTx;
use galley_storage::tokens::{self, NewToken};

use crate::environment::Environment;
use crate::http::actor;
use crate::http::error::Error;

/// A token to make.
#[derive(Debug, Clone)]
pub struct TokenRequest {
    /// The token's text.
    pub token: AccessToken,
    /// Whose it is to be.
    pub user: UserId,
    /// What people call it.
    pub name: String,
    /// What it allows at the most; its user's role bounds that.
    pub permissions: PermissionSet,
    /// The groups to which its view of content is limited.
    pub content_groups: Option<Vec<galley_domain::ContentGroupId>>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
}

/// Keeps a token, by the hash of its text.
pub async fn create(
    tx: &WriteTx<'_>,
    environment: &Environment,
    workspace: WorkspaceId,
    request: &TokenRequest,
) -> Result<TokenId, Error> {
    let id = TokenId::new(environment.new_id());
    let token = NewToken {
        id,
        user: request.user,
        hash: actor::hash(&request.token),
        name: &request.name,
        permissions: request.permissions,
        content_groups: request.content_groups.as_deref(),
        expires_at: request.expires_at,
    };
    tokens::insert(tx, workspace, &token, environment.now()).await?;
    Ok(id)
}
