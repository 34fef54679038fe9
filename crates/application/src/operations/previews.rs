//! Previews: tokens with which a site shows one piece as it is in the current view.

use std::time::Duration;

use galley_domain::access_token::{AccessToken, TokenHash};
use galley_domain::audit::AuditAction;
use galley_domain::permission::Resource;
use galley_domain::publication::ContentView;
use galley_domain::{ContentPieceId, Permission, PermissionSet, Timestamp};
use galley_storage::authentication::{self, Authentication};
use galley_storage::content_piece_view::{self, View};
use galley_storage::preview_tokens::{self, PreviewToken};
use galley_storage::{Error as StorageError, Tx, WriteTx, content_groups};

use crate::audit::AuditChanges;
use crate::caller::Caller;
use crate::error::Error;
use crate::rejection::Rejection;

/// The time after its creation at which a preview token expires.
const LIFETIME: Duration = Duration::from_hours(1);

/// A new preview token. It has the format of an access token.
#[derive(Debug)]
pub struct IssuedPreview {
    /// The text of the token.
    pub token: AccessToken,
    /// The time at which it expires.
    pub expires_at: Timestamp,
    /// The URL that shows the piece, if its group or an ancestor has a preview page.
    pub url: Option<String>,
}

/// Creates a token that reads a piece of the caller's scope and nothing else, with the caller's
/// rights at each request.
pub async fn issue(caller: &Caller, id: ContentPieceId) -> Result<IssuedPreview, Error> {
    let (environment, scope) = (caller.environment(), caller.scope());
    let token = environment.new_access_token();
    let expires_at = environment.now().later(LIFETIME);
    let (hash, own) = (token.hash(), caller.clone());
    let insert = async move |tx: &WriteTx<'_>| {
        scope.require_current_view()?;
        let (workspace, within) = (scope.workspace, scope.content_groups.as_deref());
        let found =
            content_piece_view::find_visible(tx, workspace, id, within, View::default()).await?;
        let (piece, _) = found.ok_or_else(Error::not_found)?;
        // The credential may have ended since the authentication.
        let credential = own.token().credential;
        if authentication::find(tx, workspace, credential).await?.is_none() {
            return Err(Rejection::unauthorized("the access token was revoked").into());
        }
        let preview = PreviewToken { workspace, credential, piece: id, expires_at };
        let changes = AuditChanges::default();
        own.record(tx, AuditAction::ContentPiecePreview, id, changes);
        preview_tokens::insert(tx, &hash, &preview).await?;
        Ok(content_groups::find_preview_url(tx, workspace, piece.content_group_id).await?)
    };
    let template = caller.write("previews.create", insert).await?;
    let url = template.map(|template| template.of(&token, id));
    Ok(IssuedPreview { token, expires_at, url })
}

/// Finds the authentication of a preview token, expired or not: that of its creator, limited to
/// reading the piece.
pub async fn find_authentication(
    tx: &Tx<'_>,
    hash: &TokenHash,
) -> Result<Option<Authentication>, StorageError> {
    let Some(preview) = preview_tokens::find(tx, hash).await? else { return Ok(None) };
    let found = authentication::find(tx, preview.workspace, preview.credential).await?;
    // The creator may have been limited to the published view since.
    let found = found.filter(|creator| creator.view == ContentView::Current);
    let read: PermissionSet = [Permission::read(Resource::ContentPieces)].into_iter().collect();
    Ok(found.map(|creator| Authentication {
        permissions: creator.permissions.intersection(read),
        expires_at: Some(
            creator.expires_at.map_or(preview.expires_at, |end| end.min(preview.expires_at)),
        ),
        preview_of: Some(preview.piece),
        ..creator
    }))
}
