//! Removal of expired revisions.
//!
//! A removed revision is merged into the next one of its part, which then has the values before
//! both. So all other states stay readable.

use std::collections::BTreeSet;

use galley_domain::content_piece::ContentPiece;
use galley_domain::revision::PartState;
use galley_domain::revision_retention::{ExpiredRevisions, RevisionRetention};
use galley_domain::variant::VariantRef;
use galley_domain::{ContentPieceId, Timestamp, VariantId, WorkspaceId};
use galley_storage::content_piece_revisions::{self, StoredRevision, Undo};
use galley_storage::{Database, Tx, WriteTx, content_pieces, variants, workspaces};

use crate::environment::Environment;
use crate::error::Error;
use crate::operations::content_pieces::revision_reads::latest_part;

/// The number of pieces in one read.
const PIECES: i64 = 100;

/// Removes the expired revisions of all pieces, each piece in its own transaction.
pub async fn remove_expired_revisions(
    database: &Database,
    environment: &Environment,
    retention: RevisionRetention,
) -> Result<(), Error> {
    let list = async |tx: &Tx<'_>| Ok::<_, Error>(workspaces::list(tx).await?);
    for (workspace, _) in database.read_long("workspaces.list", list).await? {
        let mut after = None;
        loop {
            let before = retention.all_since(environment.now());
            let list = async move |tx: &Tx<'_>| {
                let old = content_piece_revisions::pieces_with_older(
                    tx, workspace, before, after, PIECES,
                );
                Ok::<_, Error>(old.await?)
            };
            let pieces = database.read_long("revisions.older", list).await?;
            if pieces.is_empty() {
                break;
            }
            after = pieces.last().copied();
            for piece in pieces {
                let now = environment.now();
                let removed = remove_expired(database, now, retention, workspace, piece).await;
                if let Err(error) = removed {
                    tracing::warn!(%error, %piece, "expired revisions could not be removed");
                }
            }
        }
    }
    Ok(())
}

/// Removes the expired revisions of a piece, if there are any.
async fn remove_expired(
    database: &Database,
    now: Timestamp,
    retention: RevisionRetention,
    workspace: WorkspaceId,
    piece: ContentPieceId,
) -> Result<(), Error> {
    let read = async move |tx: &Tx<'_>| {
        Ok::<_, Error>(content_piece_revisions::ages(tx, workspace, piece).await?)
    };
    let ages = database.read("revisions.ages", read).await?;
    if retention.expired(&ages, now) == ExpiredRevisions::default() {
        return Ok(());
    }
    let remove =
        async move |tx: &WriteTx<'_>| remove_of_piece(tx, now, retention, workspace, piece).await;
    database.write_in_background("revisions.remove_expired", remove).await
}

async fn remove_of_piece(
    tx: &WriteTx<'_>,
    now: Timestamp,
    retention: RevisionRetention,
    workspace: WorkspaceId,
    piece: ContentPieceId,
) -> Result<(), Error> {
    // The deletion of a variant locks it first, too, and removes the values of its revisions.
    let ages = content_piece_revisions::ages(tx, workspace, piece).await?;
    let variants: BTreeSet<_> = ages.iter().filter_map(|age| age.variant).collect();
    for variant in variants {
        variants::find_named_for_override(tx, workspace, &VariantRef::Id(variant)).await?;
    }
    let Some((piece, _)) = content_pieces::find_for_update(tx, workspace, piece).await? else {
        return Ok(());
    };
    let ages = content_piece_revisions::ages(tx, workspace, piece.id).await?;
    let ExpiredRevisions { removed, hidden } = retention.expired(&ages, now);
    content_piece_revisions::hide(tx, workspace, piece.id, &hidden).await?;
    let expired = ages.iter().filter(|age| removed.contains(&age.number));
    let parts: BTreeSet<_> = expired.map(|age| age.variant).collect();
    for variant in parts {
        merge(tx, workspace, &piece, variant, &removed).await?;
    }
    Ok(content_piece_revisions::delete(tx, workspace, piece.id, &removed).await?)
}

/// Merges the removed revisions of a part into those that follow them. If those before a piece's
/// oldest kept revision are removed, it becomes the first one, and their values are lost.
pub(super) async fn merge(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: &ContentPiece,
    variant: Option<VariantId>,
    removed: &BTreeSet<i64>,
) -> Result<(), Error> {
    let mut state = latest_part(tx, workspace, piece, variant).await?;
    let mut open: Option<OpenMerge> = None;
    let mut before = None;
    loop {
        let page =
            content_piece_revisions::list_of_part(tx, workspace, piece.id, variant, before, PAGE);
        let page = page.await?;
        let Some(last) = page.last() else { break };
        before = Some(last.revision.number);
        for stored in page {
            let (number, is_complete) = (stored.revision.number, stored.depth == 0);
            if removed.contains(&number) {
                stored.undo.apply(&mut state)?;
                if let Some(open) = &mut open {
                    open.is_changed = true;
                    open.is_complete |= is_complete && !stored.revision.fields.is_empty();
                }
                continue;
            }
            if let Some(open) = open.take() {
                open.store(tx, workspace, piece.id, &state).await?;
            }
            let after = state.clone();
            stored.undo.apply(&mut state)?;
            open = Some(OpenMerge { stored, after, is_changed: false, is_complete });
        }
    }
    match open {
        Some(open) if variant.is_none() => open.store_first(tx, workspace, piece.id).await,
        Some(open) => open.store(tx, workspace, piece.id, &state).await,
        None => Ok(()),
    }
}

/// The number of revisions in one read.
const PAGE: i64 = 8;

/// A revision into which earlier ones may be merged.
struct OpenMerge {
    stored: StoredRevision,
    /// The state after its change.
    after: PartState,
    is_changed: bool,
    is_complete: bool,
}

impl OpenMerge {
    /// Stores the revision as the first one of a piece, which has no values before it.
    async fn store_first(
        self,
        tx: &WriteTx<'_>,
        workspace: WorkspaceId,
        piece: ContentPieceId,
    ) -> Result<(), Error> {
        if !self.is_changed {
            return Ok(());
        }
        let mut first = self.stored;
        first.revision.fields.clear();
        // A depth of 0 would state that it has all values.
        (first.depth, first.undo) = (1, Undo::nothing()?);
        Ok(content_piece_revisions::replace(tx, workspace, piece, &first).await?)
    }

    /// Stores the merged revision, whose change begins with `before`.
    async fn store(
        self,
        tx: &WriteTx<'_>,
        workspace: WorkspaceId,
        piece: ContentPieceId,
        before: &PartState,
    ) -> Result<(), Error> {
        if !self.is_changed {
            return Ok(());
        }
        let mut merged = self.stored;
        merged.revision.fields = before.differences(&self.after);
        (merged.depth, merged.undo) = if self.is_complete {
            (0, Undo::complete(before)?)
        } else {
            (merged.depth.max(1), Undo::of(before, &self.after, &merged.revision.fields)?)
        };
        Ok(content_piece_revisions::replace(tx, workspace, piece, &merged).await?)
    }
}
