//! The trash of a bundle: a file for each deleted group, and one for each deleted piece.

use std::path::Path;

use anyhow::{Context, bail};
use galley_application::operations::import_sources::NewSource;
use galley_application::operations::trash::{EntryOfPiece, restore_group_entry, restore_piece};
use galley_application::{Error, Scope, custom_data_schema};
use galley_domain::content_group::ContentGroup;
use galley_domain::trash::{TrashEntry, TrashedId};
use galley_domain::variant::VariantRef;
use galley_domain::{ContentGroupId, Timestamp, VariantId, WorkspaceId};
use galley_storage::import_sources::PieceSource;
use galley_storage::trash::{self, TrashedGroup};
use galley_storage::{Database, Failure, Snapshot, Tx, WriteTx};

use super::encode::{bundle_piece, text};
use super::files::{BundledPiece, file, json_files, parse_file, sanitized};
use super::format::{BundleGroup, BundleTrashedGroup, BundleTrashedPiece};
use super::revisions::{self, PartStates};
use crate::export::folder::ExportFolder;

/// The folder of the deleted groups.
const GROUPS: &str = "trash/groups";

/// The folder of the deleted pieces.
const PIECES: &str = "trash/pieces";

/// Writes the trash.
pub(super) async fn export(
    snapshot: &Snapshot,
    workspace: WorkspaceId,
    variants: &[VariantId],
    folder: &mut ExportFolder,
) -> anyhow::Result<()> {
    let read = async move |tx: &Tx<'_>| {
        let since = Timestamp::from_ms(0);
        Ok::<_, Error>(trash::list(tx, workspace, None, since, None, i64::MAX, 0).await?)
    };
    for entry in snapshot.read("export.trash", read).await? {
        let of = entry.id;
        let read = async move |tx: &Tx<'_>| {
            let groups = trash::groups(tx, workspace, of).await?;
            Ok::<_, Error>((groups, trash::pieces(tx, workspace, of).await?))
        };
        let (groups, pieces) = snapshot.read("export.trash_entry", read).await?;
        let deleted_with = match entry.id {
            TrashedId::Piece(_) => None,
            TrashedId::Group(id) => {
                let group = bundle_group(&entry, groups);
                folder.write(&format!("{GROUPS}/{id}.json"), &text(&group)?);
                Some(id)
            }
        };
        for id in pieces {
            let find = async move |tx: &Tx<'_>| {
                Ok::<_, Error>(trash::find_piece(tx, workspace, of, id).await?)
            };
            let found = snapshot.read("export.trashed_piece", find).await?;
            let (piece, content, overrides, sources) = found.context("a piece")?.into_whole()?;
            let states = PartStates::of(&piece, &content, &overrides);
            let piece = bundle_piece((piece, Some(content)), overrides, sources)?;
            let (deleted_at, deleted_by) = (entry.deleted_at, entry.deleted_by);
            let piece = BundleTrashedPiece { deleted_with, deleted_at, deleted_by, piece };
            folder.write(&format!("{PIECES}/{}/{id}.json", revisions::shelf(id)), &text(&piece)?);
            revisions::export(snapshot, workspace, id, states, variants, folder).await?;
        }
    }
    Ok(())
}

fn bundle_group(entry: &TrashEntry, groups: Vec<TrashedGroup>) -> BundleTrashedGroup {
    let groups = groups.into_iter().map(|(group, ancestor)| BundleGroup {
        id: group.id,
        name: group.name,
        unique_slugs: group.unique_slugs,
        custom_data_schema: group.custom_data_schema,
        preview_url: group.preview_url,
        ancestor,
    });
    BundleTrashedGroup {
        content_group_id: entry.content_group_id,
        deleted_at: entry.deleted_at,
        deleted_by: entry.deleted_by,
        groups: groups.collect(),
    }
}

/// Restores the trash of a bundle. Returns the number of restored pieces, and messages about files
/// with problems.
pub(super) async fn restore(
    database: &Database,
    scope: &Scope,
    bundle: &Path,
) -> anyhow::Result<(usize, Vec<String>)> {
    let (mut restored, mut problems) = (0, Vec::new());
    for path in json_files(&bundle.join(GROUPS))? {
        match file(&path).and_then(|group| group_entry(group).context(path.display().to_string())) {
            Ok((entry, groups)) => {
                let scope = scope.clone();
                let write = async move |tx: &WriteTx<'_>| {
                    restore_group_entry(tx, &scope, &entry, &groups).await
                };
                database.write("bundle.trashed_group", write).await?;
            }
            Err(problem) => problems.push(format!("{problem:#}")),
        }
    }
    for path in json_files(&bundle.join(PIECES))? {
        let one = match piece(bundle, &path) {
            Ok(one) => one,
            Err(problem) => {
                problems.push(format!("{}{problem}", path.display()));
                continue;
            }
        };
        let scope = scope.clone();
        let write = async move |tx: &WriteTx<'_>| {
            let sources = one.piece.sources.iter().filter_map(piece_source).collect();
            let BundledPiece { piece, content, overrides, revisions, .. } = one.piece.clone();
            let entry =
                one.deleted_with.map_or(EntryOfPiece::Own(&one.entry), EntryOfPiece::OfGroup);
            let whole = (piece, content, overrides, sources);
            restore_piece(tx, &scope, entry, whole, &revisions).await
        };
        match database.write("bundle.trashed_piece", write).await {
            Ok(is_new) => restored += usize::from(is_new),
            Err(error) if error.storage_error().is_some() => return Err(error.into()),
            Err(error) => problems.push(format!("{}: {error}", path.display())),
        }
    }
    Ok((restored, problems))
}

fn piece_source(source: &NewSource) -> Option<PieceSource> {
    let variant = match &source.variant {
        None => None,
        Some(VariantRef::Id(id)) => Some(*id),
        Some(_) => return None,
    };
    Some(PieceSource { piece: source.piece, variant, source: source.source.clone() })
}

/// Returns the entry of a deleted group, and its groups.
fn group_entry(deleted: BundleTrashedGroup) -> anyhow::Result<(TrashEntry, Vec<TrashedGroup>)> {
    let mut groups: Vec<TrashedGroup> = Vec::with_capacity(deleted.groups.len());
    for group in deleted.groups {
        if let Some(Err(issues)) = group.custom_data_schema.as_ref().map(custom_data_schema::check)
        {
            let messages: Vec<_> = issues.into_iter().map(|issue| issue.message).collect();
            bail!("{}: {}", group.id, messages.join("; "));
        }
        let is_known = |id: ContentGroupId| groups.iter().any(|(known, _)| known.id == id);
        if is_known(group.id) || (!groups.is_empty() && !group.ancestor.is_some_and(is_known)) {
            bail!("{}: each group must occur once and follow its ancestor", group.id);
        }
        let restored = ContentGroup {
            id: group.id,
            name: group.name,
            unique_slugs: group.unique_slugs,
            custom_data_schema: group.custom_data_schema,
            preview_url: group.preview_url,
            version: 0,
        };
        groups.push((restored, group.ancestor));
    }
    let (root, _) = groups.first().context("groups is empty")?;
    let entry = TrashEntry {
        id: TrashedId::Group(root.id),
        content_group_id: deleted.content_group_id,
        title: root.name.as_str().to_owned(),
        deleted_at: deleted.deleted_at,
        deleted_by: deleted.deleted_by,
        pieces: 0,
    };
    Ok((entry, groups))
}

/// A deleted piece of a bundle.
struct DeletedPiece {
    piece: BundledPiece,
    /// The group with which it was deleted, unless it was deleted alone.
    deleted_with: Option<ContentGroupId>,
    /// Its own entry, if it was deleted alone.
    entry: TrashEntry,
}

/// Reads a piece and its revisions.
fn piece(bundle: &Path, path: &Path) -> Result<DeletedPiece, String> {
    let BundleTrashedPiece { deleted_with, deleted_at, deleted_by, piece } = parse_file(path)?;
    let piece = sanitized(bundle, piece)?;
    let entry = TrashEntry {
        id: TrashedId::Piece(piece.piece.id),
        content_group_id: Some(piece.piece.content_group_id),
        title: piece.piece.fields.title.as_str().to_owned(),
        deleted_at,
        deleted_by,
        pieces: 1,
    };
    Ok(DeletedPiece { piece, deleted_with, entry })
}
