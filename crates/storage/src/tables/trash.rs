//! The trash: deleted groups and pieces.
//!
//! An entry is a piece, or a group with all groups and pieces below it. A trashed piece is one row,
//! and one more for itself and for each variant in which it has overrides. Their values have the
//! form of a revision's, so that lists, filters and references of other pieces need no condition.
//! Its revisions stay in their table, as the values are still those after its latest change.

use std::collections::BTreeMap;

use galley_domain::content_group::ContentGroup;
use galley_domain::content_piece::ContentPiece;
use galley_domain::import_source::ImportSource;
use galley_domain::publication::{Publication, PublishedRevision};
use galley_domain::revision::PartState;
use galley_domain::trash::{TrashEntry, TrashPosition, TrashedId};
use galley_domain::{ContentGroupId, ContentPieceId, OrderKey, Timestamp, VariantId, WorkspaceId};

use crate::engine::{
    Affects, Error, Result, Row, Tx, Value, WriteTx, in_list, params, read_row, row,
};
use crate::tables::asset_references::{keys_of_content, keys_of_fields, keys_of_overrides};
use crate::tables::content_piece_revisions::part_key;
use crate::tables::content_piece_variants::Override;
use crate::tables::import_sources::PieceSource;
use crate::tables::revision_undo::Undo;
use crate::tables::{asset_references, content_piece_variants, content_pieces, import_sources};

/// The columns of the table `e` that [`read`] reads.
const COLUMNS: &str = "e.id, e.content_group_id, e.title, e.deleted_at_ms, e.deleted_by, e.pieces";

fn read(row: &Row<'_>) -> Result<TrashEntry> {
    Ok(read_row!(row, 0 => TrashEntry {
        id, content_group_id, title, deleted_at, deleted_by, pieces,
    }))
}

/// Inserts an entry.
pub async fn insert(tx: &WriteTx<'_>, workspace: WorkspaceId, entry: &TrashEntry) -> Result<()> {
    let sql = "INSERT INTO trash_entries
            (workspace_id, id, content_group_id, title, deleted_at_ms, deleted_by, pieces)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let params = params! {
        workspace, entry.id, entry.content_group_id, &entry.title, entry.deleted_at,
        entry.deleted_by, entry.pieces
    };
    tx.change(sql, params, Affects::Nothing).await
}

/// Adds to the number of pieces in an entry.
pub async fn add_pieces(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: TrashedId,
    pieces: i64,
) -> Result<()> {
    let sql = "UPDATE trash_entries SET pieces = pieces + ?3 WHERE workspace_id = ?1 AND id = ?2";
    tx.change(sql, params![workspace, id, pieces], Affects::Nothing).await
}

/// A deleted group, and its parent.
pub type TrashedGroup = (ContentGroup, Option<ContentGroupId>);

/// Inserts the groups of an entry, each after its parent.
pub async fn insert_groups(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    entry: TrashedId,
    groups: &[TrashedGroup],
) -> Result<()> {
    let sql = "INSERT INTO trashed_groups (workspace_id, entry_id, position, id, parent_id, name,
            unique_slugs, custom_data_schema, preview_url)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let rows = groups.iter().zip(0_i64..).map(|((group, parent), position)| {
        row! {
            workspace, entry, position, group.id, *parent, &group.name, group.unique_slugs,
            &group.custom_data_schema, &group.preview_url
        }
    });
    tx.insert_each(sql, rows, Affects::Nothing).await
}

/// A piece with its content, its overrides and its import sources.
pub type WholePiece = (ContentPiece, String, Vec<Override>, Vec<PieceSource>);

/// Copies a piece of the workspace into an entry.
pub async fn copy_piece(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    entry: TrashedId,
    piece: &ContentPiece,
) -> Result<()> {
    let sources = import_sources::list(tx, workspace, &[piece.id]).await?;
    let content = content_pieces::find_content(tx, workspace, piece.id, None).await?;
    let content = content.ok_or_else(|| Error::corrupt("a piece has no content"))?;
    let overrides = if piece.variants.is_empty() {
        Vec::new()
    } else {
        content_piece_variants::of_piece(tx, workspace, piece.id).await?
    };
    insert_piece(tx, workspace, entry, (piece.clone(), content, overrides, sources)).await
}

/// Inserts a piece into an entry.
pub async fn insert_piece(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    entry: TrashedId,
    (piece, content, overrides, sources): WholePiece,
) -> Result<()> {
    let sql = "INSERT INTO trashed_pieces (workspace_id, id, entry_id, content_group_id, order_key,
            placed_at_ms, version, created_at_ms, created_by, revision, published_revision,
            published_at_ms, published_by)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    let published = piece.publication.published;
    let params = params! {
        workspace, piece.id, entry, piece.content_group_id, &piece.order, piece.placed_at,
        piece.version, piece.created_at, piece.created_by, piece.revision.unwrap_or_default(),
        published.map(|one| one.number), published.map(|one| one.at), published.map(|one| one.by)
    };
    tx.execute(sql, params, Affects::Nothing).await?;
    let mut assets = keys_of_fields(&piece.fields);
    assets.append(&mut keys_of_content(Some(&content)));
    for (_, fields, content) in &overrides {
        assets.append(&mut keys_of_overrides(fields));
        assets.append(&mut keys_of_content(content.as_deref()));
    }
    asset_references::insert_trashed(tx, workspace, piece.id, assets).await?;
    let own = PartState { fields: piece.fields.clone().into(), content: Some(content) };
    insert_part(tx, workspace, piece.id, None, &own, &sources).await?;
    // A variant may have a source without an override.
    let mut parts: BTreeMap<VariantId, PartState> =
        sources.iter().filter_map(|source| Some((source.variant?, PartState::default()))).collect();
    parts.extend(
        overrides.into_iter().map(|(id, fields, content)| (id, PartState { fields, content })),
    );
    for (variant, part) in parts {
        insert_part(tx, workspace, piece.id, Some(variant), &part, &sources).await?;
    }
    Ok(())
}

async fn insert_part(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    variant: Option<VariantId>,
    part: &PartState,
    sources: &[PieceSource],
) -> Result<()> {
    let sql = "INSERT INTO trashed_parts
            (workspace_id, content_piece_id, variant_id, state, source_hash, imported_hash)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let source = sources.iter().find(|one| one.variant == variant).map(|one| &one.source);
    let state = Undo::complete(part)?;
    let params = row! {
        workspace, piece, part_key(variant), state.value(),
        source.map(|source| &source.source_hash), source.map(|source| &source.imported_hash)
    };
    tx.change(sql, &params, Affects::Nothing).await
}

/// Lists the entries that were deleted at `since` or later, latest first. If `within` is set, they
/// were in the subtree of one of its groups.
pub async fn list(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    within: Option<&[ContentGroupId]>,
    since: Timestamp,
    after: Option<TrashPosition>,
    limit: i64,
    offset: i64,
) -> Result<Vec<TrashEntry>> {
    let mut params =
        vec![Value::from(workspace), Value::from(since), Value::from(limit), Value::from(offset)];
    let mut filter = within.map_or_else(String::new, |roots| within_filter(roots, &mut params));
    if let Some(after) = after {
        params.extend(row![after.deleted_at, after.id]);
        let (at, id) = (params.len() - 1, params.len());
        filter.push_str(&format!(" AND (e.deleted_at_ms, e.id) < (?{at}, ?{id})"));
    }
    let sql = format!(
        "SELECT {COLUMNS} FROM trash_entries e
         WHERE e.workspace_id = ?1 AND e.deleted_at_ms >= ?2{filter}
         ORDER BY e.deleted_at_ms DESC, e.id DESC LIMIT ?3 OFFSET ?4"
    );
    tx.query(&sql, &params, read).await
}

/// Returns the condition that the entry's group exists in the subtree of one of `roots`.
fn within_filter(roots: &[ContentGroupId], params: &mut Vec<Value<'_>>) -> String {
    let list = in_list("g.ancestor_id", roots.iter().copied(), params);
    format!(
        " AND e.content_group_id IN (SELECT g.group_id FROM content_group_paths g
            WHERE g.workspace_id = ?1{list})"
    )
}

/// Finds an entry that was deleted at `since` or later. If `within` is set, it was in the subtree
/// of one of its groups.
pub async fn find(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: TrashedId,
    within: Option<&[ContentGroupId]>,
    since: Timestamp,
) -> Result<Option<TrashEntry>> {
    let mut params = row![workspace, id, since].to_vec();
    let filter = within.map_or_else(String::new, |roots| within_filter(roots, &mut params));
    let sql = format!(
        "SELECT {COLUMNS} FROM trash_entries e
         WHERE e.workspace_id = ?1 AND e.id = ?2 AND e.deleted_at_ms >= ?3{filter}"
    );
    tx.find(&sql, &params, read).await
}

/// Locks an entry until the transaction ends. Returns false if there is none.
pub async fn lock(tx: &WriteTx<'_>, workspace: WorkspaceId, id: TrashedId) -> Result<bool> {
    let sql = format!(
        "SELECT 1 FROM trash_entries WHERE workspace_id = ?1 AND id = ?2{}",
        tx.for_update()
    );
    tx.exists(&sql, params![workspace, id]).await
}

/// Returns the groups of an entry, each after its parent.
pub async fn groups(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    entry: TrashedId,
) -> Result<Vec<TrashedGroup>> {
    let sql = "SELECT parent_id, id, name, unique_slugs, custom_data_schema, preview_url
        FROM trashed_groups WHERE workspace_id = ?1 AND entry_id = ?2 ORDER BY position";
    let read = |row: &Row<'_>| {
        let group = read_row!(row, 1 => ContentGroup {
            id, name, unique_slugs, custom_data_schema, preview_url; version: 0
        });
        Ok((group, row.get(0)?))
    };
    tx.query(sql, params![workspace, entry], read).await
}

/// Returns the pieces of an entry in their order.
pub async fn pieces(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    entry: TrashedId,
) -> Result<Vec<ContentPieceId>> {
    let sql = "SELECT id FROM trashed_pieces WHERE workspace_id = ?1 AND entry_id = ?2
        ORDER BY order_key, id";
    tx.query(sql, params![workspace, entry], |row| row.get(0)).await
}

/// A deleted piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrashedPiece {
    /// The identifier.
    pub id: ContentPieceId,
    /// The group that contained it.
    pub content_group_id: ContentGroupId,
    /// Its former position.
    pub order: OrderKey,
    /// The time at which it was placed there.
    pub placed_at: Timestamp,
    /// The version before its deletion.
    pub version: i64,
    /// The time of its creation.
    pub created_at: Timestamp,
    /// The author of its creation.
    pub created_by: Option<galley_domain::Actor>,
    /// The number of its latest revision.
    pub revision: i64,
    /// Its published revision.
    pub published: Option<PublishedRevision>,
    /// The values of the piece itself and of its overrides. The piece itself comes first.
    pub parts: Vec<TrashedPart>,
}

impl TrashedPiece {
    /// Returns the piece as it was, without the last change's time and author.
    pub fn into_whole(self) -> Result<WholePiece> {
        let (mut own, mut overrides, mut sources) = (None, Vec::new(), Vec::new());
        for TrashedPart { variant, state, source } in self.parts {
            sources.extend(source.map(|source| PieceSource { piece: self.id, variant, source }));
            match variant {
                Some(variant) => overrides.push((variant, state.fields, state.content)),
                None => own = Some(state),
            }
        }
        let own = own.and_then(|own| Some((own.fields.into_fields()?, own.content?)));
        let (fields, content) = own.ok_or_else(|| Error::corrupt("a part of a trashed piece"))?;
        let piece = ContentPiece {
            id: self.id,
            content_group_id: self.content_group_id,
            order: self.order,
            placed_at: self.placed_at,
            fields,
            variants: Vec::new(),
            version: self.version,
            created_at: self.created_at,
            updated_at: self.created_at,
            created_by: self.created_by,
            updated_by: None,
            revision: Some(self.revision),
            publication: Publication { published: self.published, ..Publication::default() },
        };
        Ok((piece, content, overrides, sources))
    }
}

/// The values of a trashed piece itself, or of its overrides in a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrashedPart {
    /// The variant; `None` for the piece itself.
    pub variant: Option<VariantId>,
    /// The values.
    pub state: PartState,
    /// The import source.
    pub source: Option<ImportSource>,
}

/// Returns true if an entry has this piece.
pub async fn contains_piece(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: ContentPieceId,
) -> Result<bool> {
    let sql = "SELECT 1 FROM trashed_pieces WHERE workspace_id = ?1 AND id = ?2";
    tx.exists(sql, params![workspace, id]).await
}

/// Returns true if an entry has this group.
pub async fn contains_group(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: ContentGroupId,
) -> Result<bool> {
    let sql = "SELECT 1 FROM trashed_groups WHERE workspace_id = ?1 AND id = ?2";
    tx.exists(sql, params![workspace, id]).await
}

/// Finds a piece of an entry.
pub async fn find_piece(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    entry: TrashedId,
    id: ContentPieceId,
) -> Result<Option<TrashedPiece>> {
    let sql = "SELECT id, content_group_id, order_key, placed_at_ms, version, created_at_ms,
            created_by, revision, published_revision, published_at_ms, published_by
        FROM trashed_pieces WHERE workspace_id = ?1 AND id = ?2 AND entry_id = ?3";
    let read = |row: &Row<'_>| {
        let published = match row.get(8)? {
            Some(number) => Some(PublishedRevision { number, at: row.get(9)?, by: row.get(10)? }),
            None => None,
        };
        Ok(read_row!(row, 0 => TrashedPiece {
            id, content_group_id, order, placed_at, version, created_at, created_by, revision;
            published, parts: Vec::new()
        }))
    };
    let Some(mut piece) = tx.find(sql, params![workspace, id, entry], read).await? else {
        return Ok(None);
    };
    // Both engines sort an empty text first.
    let sql = "SELECT variant_id, state, source_hash, imported_hash FROM trashed_parts
        WHERE workspace_id = ?1 AND content_piece_id = ?2 ORDER BY variant_id";
    piece.parts = tx.query(sql, params![workspace, id], read_part).await?;
    Ok(Some(piece))
}

fn read_part(row: &Row<'_>) -> Result<TrashedPart> {
    let variant = match row.text(0)? {
        "" => None,
        _ => Some(row.get(0)?),
    };
    let mut state = PartState::default();
    Undo::from_stored(row.get(1)?).apply(&mut state)?;
    let source = match (row.get(2)?, row.get(3)?) {
        (Some(source_hash), Some(imported_hash)) => {
            Some(ImportSource { source_hash, imported_hash })
        }
        (None, None) => None,
        _ => return Err(Error::corrupt("one of two hashes of a source")),
    };
    Ok(TrashedPart { variant, state, source })
}

/// Deletes an entry with its groups and pieces. Their revisions are kept.
pub async fn delete(tx: &WriteTx<'_>, workspace: WorkspaceId, id: TrashedId) -> Result<()> {
    let sql = "DELETE FROM trash_entries WHERE workspace_id = ?1 AND id = ?2";
    tx.change(sql, params![workspace, id], Affects::Nothing).await
}

/// Returns entries that were deleted before a time.
pub async fn deleted_before(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    before: Timestamp,
    limit: i64,
) -> Result<Vec<TrashedId>> {
    let sql = "SELECT id FROM trash_entries WHERE workspace_id = ?1 AND deleted_at_ms < ?2
        ORDER BY deleted_at_ms LIMIT ?3";
    tx.query(sql, params![workspace, before, limit], |row| row.get(0)).await
}
