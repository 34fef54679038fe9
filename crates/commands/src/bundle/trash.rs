//! The trash of a bundle: `trash.json` with the entries, and a file for each piece in them.

use std::path::Path;

use anyhow::{Context, bail};
use galley_application::operations::import_sources::NewSource;
use galley_application::operations::trash::{restore_entry, restore_piece};
use galley_application::{Error, Scope, custom_data_schema};
use galley_domain::content_group::ContentGroup;
use galley_domain::trash::{TrashEntry, TrashedId};
use galley_domain::variant::VariantRef;
use galley_domain::{Timestamp, VariantId, WorkspaceId};
use galley_storage::import_sources::PieceSource;
use galley_storage::trash::{self, TrashedGroup};
use galley_storage::{Database, Snapshot, Tx, WriteTx};

use super::encode::{bundle_piece, text};
use super::files::{BundledPiece, file, json_files, parse_file, sanitized};
use super::format::{BundleGroup, BundleTrashEntry, BundleTrashedPiece};
use super::revisions::{self, PartStates};
use crate::export::folder::ExportFolder;

/// The file with the entries.
const FILE: &str = "trash.json";

/// The folder of the pieces.
const FOLDER: &str = "trash";

/// Writes the trash. A bundle without an entry has no file of it.
pub(super) async fn export(
    snapshot: &Snapshot,
    workspace: WorkspaceId,
    variants: &[VariantId],
    folder: &mut ExportFolder,
) -> anyhow::Result<()> {
    let read = async move |tx: &Tx<'_>| {
        let since = Timestamp::from_ms(0);
        let mut all = Vec::new();
        for entry in trash::list(tx, workspace, None, since, None, i64::MAX, 0).await? {
            let groups = trash::groups(tx, workspace, entry.id).await?;
            let pieces = trash::pieces(tx, workspace, entry.id).await?;
            all.push((entry, groups, pieces));
        }
        Ok::<_, Error>(all)
    };
    let all = snapshot.read("export.trash", read).await?;
    let mut entries = Vec::with_capacity(all.len());
    for (entry, groups, pieces) in all {
        for id in pieces {
            let find = async move |tx: &Tx<'_>| {
                Ok::<_, Error>(trash::find_piece(tx, workspace, id).await?)
            };
            let found = snapshot.read("export.trashed_piece", find).await?;
            let (piece, content, overrides, sources) = found.context("a piece")?.into_whole()?;
            let states = PartStates::of(&piece, &content, &overrides);
            let piece = bundle_piece((piece, Some(content)), overrides, sources)?;
            let piece = BundleTrashedPiece { entry: entry.id.to_string(), piece };
            folder.write(&format!("{FOLDER}/{}/{id}.json", revisions::shelf(id)), &text(&piece)?);
            revisions::export(snapshot, workspace, id, states, variants, folder).await?;
        }
        entries.push(bundle_entry(entry, groups));
    }
    if !entries.is_empty() {
        folder.write(FILE, &text(&entries)?);
    }
    Ok(())
}

fn bundle_entry(entry: TrashEntry, groups: Vec<TrashedGroup>) -> BundleTrashEntry {
    let groups = groups.into_iter().map(|(group, ancestor)| BundleGroup {
        id: group.id,
        name: group.name,
        unique_slugs: group.unique_slugs,
        custom_data_schema: group.custom_data_schema,
        ancestor,
    });
    BundleTrashEntry {
        id: entry.id.to_string(),
        title: entry.title,
        content_group_id: entry.content_group_id,
        deleted_at: entry.deleted_at,
        deleted_by: entry.deleted_by,
        groups: groups.collect(),
    }
}

/// The trash of a bundle, without its pieces.
#[derive(Debug)]
pub(super) struct BundledTrash {
    entries: Vec<(TrashEntry, Vec<TrashedGroup>)>,
}

impl BundledTrash {
    /// Reads the entries.
    pub(super) fn read(bundle: &Path) -> anyhow::Result<Self> {
        let path = bundle.join(FILE);
        let mut entries = Vec::new();
        if path.exists() {
            for entry in file::<Vec<BundleTrashEntry>>(&path)? {
                let id = entry.id.clone();
                let read = trash_entry(entry);
                entries.push(read.with_context(|| format!("{}: {id}", path.display()))?);
            }
        }
        Ok(Self { entries })
    }

    /// Restores the entries and their pieces. Returns the number of pieces, and messages about
    /// those with problems.
    pub(super) async fn restore(
        self,
        database: &Database,
        scope: &Scope,
        bundle: &Path,
    ) -> anyhow::Result<(usize, Vec<String>)> {
        for (entry, groups) in self.entries {
            let scope = scope.clone();
            let write =
                async move |tx: &WriteTx<'_>| restore_entry(tx, &scope, &entry, &groups).await;
            database.write("bundle.trash", write).await?;
        }
        let (mut restored, mut problems) = (0, Vec::new());
        for path in json_files(&bundle.join(FOLDER))? {
            match piece(bundle, &path) {
                Ok((entry, one)) => {
                    let scope = scope.clone();
                    let write = async move |tx: &WriteTx<'_>| {
                        let sources = one.sources.iter().filter_map(piece_source).collect();
                        let BundledPiece { piece, content, overrides, revisions, .. } = one.clone();
                        let whole = (piece, content, overrides, sources);
                        restore_piece(tx, &scope, entry, whole, &revisions).await
                    };
                    restored += usize::from(database.write("bundle.trashed_piece", write).await?);
                }
                Err(problem) => problems.push(format!("{}{problem}", path.display())),
            }
        }
        Ok((restored, problems))
    }
}

fn piece_source(source: &NewSource) -> Option<PieceSource> {
    let variant = match &source.variant {
        None => None,
        Some(VariantRef::Id(id)) => Some(*id),
        Some(_) => return None,
    };
    Some(PieceSource { piece: source.piece, variant, source: source.source.clone() })
}

fn trash_entry(entry: BundleTrashEntry) -> anyhow::Result<(TrashEntry, Vec<TrashedGroup>)> {
    let id: TrashedId = entry.id.parse().context("is no id of a piece or a group")?;
    let mut groups = Vec::with_capacity(entry.groups.len());
    for group in entry.groups {
        if let Some(Err(issues)) = group.custom_data_schema.as_ref().map(custom_data_schema::check)
        {
            let messages: Vec<_> = issues.into_iter().map(|issue| issue.message).collect();
            bail!("{}: {}", group.id, messages.join("; "));
        }
        let restored = ContentGroup {
            id: group.id,
            name: group.name,
            unique_slugs: group.unique_slugs,
            custom_data_schema: group.custom_data_schema,
            version: 0,
        };
        groups.push((restored, group.ancestor));
    }
    if let TrashedId::Group(root) = id
        && groups.first().is_none_or(|(first, _)| first.id != root)
    {
        bail!("its groups must begin with the group itself");
    }
    let entry = TrashEntry {
        id,
        content_group_id: entry.content_group_id,
        title: entry.title,
        deleted_at: entry.deleted_at,
        deleted_by: entry.deleted_by,
        pieces: 0,
    };
    Ok((entry, groups))
}

/// Reads a piece, its entry and its revisions.
fn piece(bundle: &Path, path: &Path) -> Result<(TrashedId, BundledPiece), String> {
    let BundleTrashedPiece { entry, piece } = parse_file(path)?;
    let entry = entry.parse().map_err(|error| format!(": entry: {error}"))?;
    Ok((entry, sanitized(bundle, piece)?))
}
