//! Publication of all pieces of a group.

use std::collections::BTreeSet;

use galley_domain::ContentGroupId;
use galley_storage::{self as storage, Tx, WriteTx, content_groups, ordering, published_pieces};

use crate::caller::Caller;
use crate::error::Error;
use crate::operations::content_groups::{self as groups, GroupView};
use crate::operations::content_pieces::{
    READ_PERMISSION, lock_slugs, lock_variants, publish_piece, unknown_field,
};
use crate::rejection::{Reason, Rejection};

/// The pieces of a group to publish.
#[derive(Debug, Clone, Copy)]
pub struct BulkPublication {
    /// The group.
    pub group: ContentGroupId,
    /// True to include the groups below it.
    pub subtree: bool,
}

/// The limit on pieces of a publication in bulk.
const BULK_MAX: i64 = 10_000;

/// The number of pieces that one transaction of it publishes.
const BULK_BATCH: usize = 50;

/// Publishes the latest revisions of the pieces of a group, in several transactions. An interrupted
/// publication is continued by the next one, as published revisions are left as they are.
pub async fn publish_group(
    caller: &Caller,
    publication: BulkPublication,
) -> Result<GroupView, Error> {
    caller.require(READ_PERMISSION)?;
    let (own, scope) = (caller.clone(), caller.scope());
    let BulkPublication { group, subtree } = publication;
    let find = async move |tx: &Tx<'_>| {
        let workspace = scope.workspace;
        scope.require_current_view()?;
        if !scope.contains(&content_groups::path(tx, workspace, group).await?) {
            Error::reject_issues(vec![unknown_field("contentGroupId", "content group")])?;
        }
        let limit = BULK_MAX + 1;
        Ok(published_pieces::unpublished_in(tx, workspace, group, subtree, limit).await?)
    };
    let found = caller.read_current("content_pieces.to_publish", find).await?;
    if i64::try_from(found.len()).is_ok_and(|count| count > BULK_MAX) {
        let detail = format!(
            "the group contains more than {BULK_MAX} pieces to publish: publish some subgroups first"
        );
        return Err(Rejection::new(Reason::TooLarge, detail).into());
    }
    for batch in found.chunks(BULK_BATCH) {
        let (own, scope, batch) = (own.clone(), own.scope(), batch.to_vec());
        let publish = async move |tx: &WriteTx<'_>| {
            ordering::lock(tx, scope.workspace).await?;
            // Variants are locked first, then pieces, then slugs, as by other changes.
            for &id in &batch {
                lock_variants(tx, &scope, id, None).await?;
            }
            let mut pieces = Vec::with_capacity(batch.len());
            for &id in &batch {
                let found = storage::content_pieces::find_for_update(tx, scope.workspace, id);
                // A piece may have been deleted or moved meanwhile.
                let Some((piece, path)) = found.await? else { continue };
                let is_in_group =
                    piece.content_group_id == group || subtree && path.contains(group);
                if scope.contains(&path) && is_in_group {
                    pieces.push(piece);
                }
            }
            let groups: BTreeSet<_> = pieces.iter().map(|piece| piece.content_group_id).collect();
            lock_slugs(tx, &scope, &groups.into_iter().collect::<Vec<_>>()).await?;
            for piece in &pieces {
                publish_piece(tx, own.environment(), &scope, piece, None).await?;
            }
            Ok::<_, Error>(())
        };
        caller.write("content_pieces.publish_group", publish).await?;
    }
    let scope = caller.scope();
    let read = async move |tx: &Tx<'_>| groups::get_in(tx, &scope, group, false).await;
    caller.read_current("content_pieces.published_group", read).await
}
