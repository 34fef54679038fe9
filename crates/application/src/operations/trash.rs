//! The trash: its list, restoration, and removal for good.
//!
//! A deletion creates an entry: a piece, or a group with everything below it. Nothing but these
//! operations sees it. The rows of the entry are locked last, after those of groups, of order and
//! of slugs.

use galley_api_types::content_piece::ReferencedResources;
use galley_domain::audit::AuditAction;
use galley_domain::permission::{PERMANENT_PERMISSION, Resource};
use galley_domain::trash::{Deletion, TrashEntry, TrashedId};
use galley_domain::{ContentGroupId, ContentPieceId, Invalid, Permission, Timestamp, WorkspaceId};
use galley_storage::content_piece_revisions::StoredRevision;
use galley_storage::trash::{TrashedGroup, WholePiece};
use galley_storage::{
    Database, IdPage, Tx, WriteTx, content_groups as groups, content_piece_revisions,
    content_pieces as pieces, trash, workspaces,
};
use serde_json::json;

use crate::audit::{self, AuditChanges};
use crate::caller::Caller;
use crate::environment::Environment;
use crate::error::Error;
use crate::idempotency::{self, CreatedResponse, IdempotentRequest, Respond};
use crate::operations::content_groups::{self, GroupView};
use crate::operations::content_pieces::{self, StoredPiece, unknown_field};
use crate::precondition::VersionPrecondition;
use crate::references::{self, members_and_actors};
use crate::rejection::{Reason, Rejection};
use crate::scope::Scope;

/// The milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Returns the start of the time whose deletions can be undone.
fn kept_since(now: Timestamp, retention_days: u32) -> Timestamp {
    Timestamp::from_ms(now.ms() - i64::from(retention_days) * DAY_MS)
}

/// A page of the trash, latest first.
#[derive(Debug)]
pub struct TrashList {
    /// The entries.
    pub entries: Vec<TrashEntry>,
    /// The authors of the deletions.
    pub referenced: ReferencedResources,
}

/// Lists the entries of the trash in the caller's scope, latest first.
pub async fn list(caller: &Caller, page: IdPage) -> Result<TrashList, Error> {
    let (scope, since) = (caller.scope(), since(caller));
    scope.require_current_view()?;
    let read = async move |tx: &Tx<'_>| {
        let IdPage { limit, offset, ref after } = page;
        let after = after.as_deref().and_then(|position| position.parse().ok());
        let (workspace, within) = (scope.workspace, scope.content_groups.as_deref());
        let entries = trash::list(tx, workspace, within, since, after, limit, offset).await?;
        let members = members_and_actors(&[], entries.iter().map(|entry| entry.deleted_by));
        let mut referenced = references::find(tx, workspace, &[], &members, &[]).await?;
        referenced.hides_emails = scope.hides_emails;
        Ok(TrashList { entries, referenced })
    };
    caller.read_current("trash.list", read).await
}

fn since(caller: &Caller) -> Timestamp {
    kept_since(caller.environment().now(), caller.service().settings().trash_retention_days)
}

/// An entry to restore.
#[derive(Debug, Clone, Copy)]
pub struct Undeletion {
    /// The entry.
    pub id: TrashedId,
    /// The group to restore it into; `None` for its former group.
    pub content_group_id: Option<ContentGroupId>,
}

/// A restored entry.
#[derive(Debug)]
pub enum Undeleted {
    /// A piece.
    Piece(Box<StoredPiece>),
    /// A group, with everything in it.
    Group(GroupView),
}

/// Restores an entry. A group's groups and pieces get their ids and positions back.
pub async fn undelete(
    caller: &Caller,
    undeletion: Undeletion,
    request: IdempotentRequest,
    respond: Respond<Undeleted>,
) -> Result<CreatedResponse, Error> {
    if matches!(undeletion.id, TrashedId::Group(_)) {
        caller.require(Permission::write(Resource::ContentGroups))?;
    }
    let (own, scope, since) = (caller.clone(), caller.scope(), since(caller));
    let undelete = async move |tx: &WriteTx<'_>| {
        Box::pin(undelete_in(tx, own.environment(), &scope, undeletion, since)).await
    };
    idempotency::create(caller, "trash.undelete", request, None, undelete, respond).await
}

async fn undelete_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    undeletion: Undeletion,
    since: Timestamp,
) -> Result<Undeleted, Error> {
    let Undeletion { id, content_group_id: requested } = undeletion;
    let workspace = scope.workspace;
    if matches!(id, TrashedId::Group(_)) {
        workspaces::lock(tx, workspace).await?;
    }
    let entry = find(tx, scope, id, since).await?;
    let group = requested.or(entry.content_group_id);
    if let Some(group) = group
        && !scope.contains(&groups::path(tx, workspace, group).await?)
    {
        return Err(group_is_required(requested));
    }
    let undeleted = match id {
        TrashedId::Piece(piece) => {
            content_pieces::lock_slugs(tx, scope, group.as_slice()).await?;
            lock(tx, workspace, id).await?;
            let restored =
                content_pieces::restore_from_trash(tx, environment, scope, id, piece, requested);
            Undeleted::Piece(Box::new(restored.await?))
        }
        TrashedId::Group(root) => {
            let groups = trash::groups(tx, workspace, id).await?;
            let ids: Vec<_> = groups.iter().map(|(group, _)| group.id).collect();
            for (restored, parent) in groups {
                let parent = if restored.id == root { group } else { parent };
                content_groups::restore_if_missing(tx, environment, scope, restored, parent)
                    .await?;
            }
            content_pieces::lock_slugs(tx, scope, &ids).await?;
            lock(tx, workspace, id).await?;
            // The last piece comes first. A piece whose position is taken is placed after that
            // position, and then stays before the later pieces of the entry.
            for piece in trash::pieces(tx, workspace, id).await?.into_iter().rev() {
                Box::pin(content_pieces::restore_from_trash(
                    tx,
                    environment,
                    scope,
                    id,
                    piece,
                    None,
                ))
                .await?;
            }
            Undeleted::Group(content_groups::get_in(tx, scope, root, false).await?)
        }
    };
    trash::delete(tx, workspace, id).await?;
    let action = match id {
        TrashedId::Piece(_) => AuditAction::ContentPieceUndelete,
        TrashedId::Group(_) => AuditAction::ContentGroupUndelete,
    };
    let changes = AuditChanges::created(json!({"contentGroupId": group}));
    audit::record(tx, environment, scope, action, id, changes);
    Ok(undeleted)
}

/// Returns the rejection of a restoration whose group does not exist.
fn group_is_required(requested: Option<ContentGroupId>) -> Error {
    if requested.is_some() {
        return Rejection::of_issues(vec![unknown_field("contentGroupId", "content group")]).into();
    }
    let message = "is required, as the former group does not exist any more";
    let invalid = Invalid::new("unknown_reference", message);
    Rejection::of_field("contentGroupId", &invalid).into()
}

async fn find(
    tx: &Tx<'_>,
    scope: &Scope,
    id: TrashedId,
    since: Timestamp,
) -> Result<TrashEntry, Error> {
    let within = scope.content_groups.as_deref();
    let found = trash::find(tx, scope.workspace, id, within, since).await?;
    found.ok_or_else(Error::not_found)
}

/// Locks an entry. Another request may have removed it meanwhile.
async fn lock(tx: &WriteTx<'_>, workspace: WorkspaceId, id: TrashedId) -> Result<(), Error> {
    if trash::lock(tx, workspace, id).await? { Ok(()) } else { Err(Error::not_found()) }
}

/// Deletes a piece for good, from the trash or from the workspace.
pub async fn delete_piece(
    caller: &Caller,
    id: ContentPieceId,
    expected: VersionPrecondition,
) -> Result<(), Error> {
    caller.require(PERMANENT_PERMISSION)?;
    let (own, scope, since) = (caller.clone(), caller.scope(), since(caller));
    let delete = async move |tx: &WriteTx<'_>| {
        let environment = own.environment();
        let entry = TrashedId::Piece(id);
        if delete_entry(tx, environment, &scope, entry, since, &expected).await? {
            return Ok(());
        }
        content_pieces::delete_in(tx, environment, &scope, id, &expected, Deletion::Permanent).await
    };
    caller.write("trash.delete_piece", delete).await
}

/// Deletes a group for good, from the trash or from the workspace.
pub async fn delete_group(
    caller: &Caller,
    id: ContentGroupId,
    recursive: bool,
    expected: VersionPrecondition,
) -> Result<(), Error> {
    caller.require(PERMANENT_PERMISSION)?;
    let (own, scope, since) = (caller.clone(), caller.scope(), since(caller));
    let delete = async move |tx: &WriteTx<'_>| {
        let (environment, kind) = (own.environment(), Deletion::Permanent);
        let entry = TrashedId::Group(id);
        if delete_entry(tx, environment, &scope, entry, since, &expected).await? {
            return Ok(());
        }
        content_groups::delete_in(tx, environment, &scope, id, recursive, &expected, kind).await
    };
    caller.write("trash.delete_group", delete).await
}

/// Deletes an entry with all that belongs to it. Returns false if there is none.
async fn delete_entry(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    id: TrashedId,
    since: Timestamp,
    expected: &VersionPrecondition,
) -> Result<bool, Error> {
    let within = scope.content_groups.as_deref();
    if trash::find(tx, scope.workspace, id, within, since).await?.is_none() {
        return Ok(false);
    }
    if *expected != VersionPrecondition::Any {
        let detail = "the resource is in the trash, where it has no entity tag";
        return Err(Rejection::new(Reason::PreconditionFailed, detail).into());
    }
    lock(tx, scope.workspace, id).await?;
    purge(tx, environment, scope, id).await?;
    Ok(true)
}

/// Deletes an entry with its pieces and their revisions.
async fn purge(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    id: TrashedId,
) -> Result<(), Error> {
    let workspace = scope.workspace;
    let action = match id {
        TrashedId::Piece(_) => AuditAction::ContentPiecePurge,
        TrashedId::Group(_) => AuditAction::ContentGroupPurge,
    };
    audit::record(tx, environment, scope, action, id, AuditChanges::default());
    for piece in trash::pieces(tx, workspace, id).await? {
        content_piece_revisions::delete_of_piece(tx, workspace, piece).await?;
    }
    Ok(trash::delete(tx, workspace, id).await?)
}

/// The number of entries in one read.
const ENTRIES: i64 = 100;

/// Deletes the expired entries of all workspaces, each in its own transaction.
pub async fn remove_expired(
    database: &Database,
    environment: &Environment,
    retention_days: u32,
) -> Result<(), Error> {
    let list = async |tx: &Tx<'_>| Ok::<_, Error>(workspaces::list(tx).await?);
    for (workspace, _) in database.read_long("workspaces.list", list).await? {
        loop {
            let before = kept_since(environment.now(), retention_days);
            let list = async move |tx: &Tx<'_>| {
                Ok::<_, Error>(trash::deleted_before(tx, workspace, before, ENTRIES).await?)
            };
            let entries = database.read("trash.expired", list).await?;
            if entries.is_empty() {
                break;
            }
            let mut failed = false;
            for id in entries {
                let own = environment.clone();
                let remove = async move |tx: &WriteTx<'_>| {
                    if trash::lock(tx, workspace, id).await? {
                        purge(tx, &own, &Scope::whole(workspace), id).await?;
                    }
                    Ok::<_, Error>(())
                };
                let removed = database.write_in_background("trash.remove_expired", remove).await;
                if let Err(error) = removed {
                    tracing::warn!(%error, %id, "an expired entry of the trash was not removed");
                    failed = true;
                }
            }
            if failed {
                break;
            }
        }
    }
    Ok(())
}

/// Returns true if the piece is in the trash.
pub async fn contains_piece(tx: &Tx<'_>, scope: &Scope, id: ContentPieceId) -> Result<bool, Error> {
    Ok(trash::contains_piece(tx, scope.workspace, id).await?)
}

/// Returns true if the group is in the trash.
pub async fn contains_group(tx: &Tx<'_>, scope: &Scope, id: ContentGroupId) -> Result<bool, Error> {
    Ok(trash::contains_group(tx, scope.workspace, id).await?)
}

/// Restores a group of another store's trash as an entry, without its pieces. Returns false if one
/// of its groups exists, in the trash or not, and changes nothing then.
pub async fn restore_group_entry(
    tx: &WriteTx<'_>,
    scope: &Scope,
    entry: &TrashEntry,
    groups: &[TrashedGroup],
) -> Result<bool, Error> {
    let workspace = scope.workspace;
    for (group, _) in groups {
        if groups::find(tx, workspace, group.id).await?.is_some()
            || trash::contains_group(tx, workspace, group.id).await?
        {
            return Ok(false);
        }
    }
    trash::insert(tx, workspace, entry).await?;
    trash::insert_groups(tx, workspace, entry.id, groups).await?;
    Ok(true)
}

/// The entry of a trashed piece from another store.
#[derive(Debug, Clone, Copy)]
pub enum EntryOfPiece<'e> {
    /// An entry of its own, which does not exist yet.
    Own(&'e TrashEntry),
    /// The entry of a group with which it was deleted.
    OfGroup(ContentGroupId),
}

/// Restores a piece of another store's trash: as an entry of its own, or into that of a group.
/// Returns false if the piece exists, in the trash or not, or if the group's entry does not.
pub async fn restore_piece(
    tx: &WriteTx<'_>,
    scope: &Scope,
    entry: EntryOfPiece<'_>,
    piece: WholePiece,
    revisions: &[StoredRevision],
) -> Result<bool, Error> {
    let (workspace, id) = (scope.workspace, piece.0.id);
    if pieces::find(tx, workspace, id).await?.is_some()
        || trash::contains_piece(tx, workspace, id).await?
    {
        return Ok(false);
    }
    let entry_id = match entry {
        EntryOfPiece::Own(entry) => {
            trash::insert(tx, workspace, entry).await?;
            entry.id
        }
        EntryOfPiece::OfGroup(group) => {
            let entry_id = TrashedId::Group(group);
            if !trash::lock(tx, workspace, entry_id).await? {
                return Ok(false);
            }
            let groups = trash::groups(tx, workspace, entry_id).await?;
            if !groups.iter().any(|(group, _)| group.id == piece.0.content_group_id) {
                Error::reject_issues(vec![unknown_field("contentGroupId", "content group")])?;
            }
            trash::add_pieces(tx, workspace, entry_id, 1).await?;
            entry_id
        }
    };
    trash::insert_piece(tx, workspace, entry_id, piece).await?;
    content_piece_revisions::insert(tx, workspace, id, revisions).await?;
    Ok(true)
}
