//! Content pieces: one row each, their content in a separate table, and rows that index tags and
//! members.
//!
//! Lists are in [`crate::tables::content_piece_list`], order keys in [`crate::tables::ordering`],
//! and overrides in [`crate::tables::content_piece_variants`]. Reads with content, or in a variant,
//! are in [`crate::tables::content_piece_view`].

use futures_util::future::try_join;
use galley_domain::content_group::GroupPath;
use galley_domain::content_piece::{ContentPiece, ContentPieceFields, Description};
use galley_domain::publication::{ContentView, Publication, PublishedRevision};
use galley_domain::text::{ShortText, WebReference};
use galley_domain::{ContentGroupId, ContentPieceId, Timestamp, VariantId, WorkspaceId};

use crate::engine::{Affects, Result, Row, Tx, Value, WriteTx, in_list, params, read_row};
use crate::tables::asset_references::{ReferringPart, keys_of_content};
use crate::tables::content_piece_revisions::{LatestRevision, part_key};
use crate::tables::piece_rows::{delete_in, insert_in, part_of, update_in};
use crate::tables::piece_tables::tables;

macro_rules! columns {
    ($($custom_data:literal),*) => {
        concat!(
            "p.id, p.content_group_id, p.order_key, p.version, p.created_at_ms, p.updated_at_ms, \
             p.date_ms, p.title, p.description, p.slug, p.cover_url, p.cover_alt, p.cover_width, \
             p.canonical_link, p.filename, ",
            $($custom_data,)*
            ", p.tag_ids, p.member_ids, p.placed_at_ms, p.variant_ids, p.created_by, p.updated_by, \
             p.revision, p.published_revision, p.publish_at_ms, p.unpublish_at_ms, \
             p.published_at_ms, p.published_by, p.publish_revision"
        )
    };
}

macro_rules! columns_with {
    ($table:literal) => {
        columns!(
            "(SELECT x.custom_data FROM ",
            $table,
            " x WHERE x.workspace_id = ?1 AND x.content_piece_id = p.id)"
        )
    };
}

/// Returns the columns of the table `p` that [`read`] reads. The statement's first parameter is the
/// workspace.
pub(crate) const fn columns(view: ContentView) -> &'static str {
    match view {
        ContentView::Current => columns_with!("content_piece_custom_data"),
        ContentView::Published => columns_with!("published_piece_custom_data"),
    }
}

/// The columns of the current view.
const COLUMNS: &str = columns(ContentView::Current);

/// The same columns without custom data.
pub(crate) const COLUMNS_WITHOUT_CUSTOM_DATA: &str = columns!("NULL");

/// The first column after these.
pub(super) const COLUMNS_END: usize = 29;

pub(crate) fn read(row: &Row<'_>) -> Result<ContentPiece> {
    let fields = read_row!(row, 6 => ContentPieceFields {
        date, title, description, slug, cover_url, cover_alt, cover_width, canonical_link, filename,
        custom_data, tags, members,
    });
    let (placed_at, variants) = (row.get(18)?, row.get(19)?);
    let (created_by, updated_by, revision) = (row.get(20)?, row.get(21)?, row.get(22)?);
    Ok(read_row!(row, 0 => ContentPiece {
        id, content_group_id, order, version, created_at, updated_at;
        placed_at, variants, fields, created_by, updated_by, revision,
        publication: read_publication(row)?
    }))
}

/// Reads the publication, of which most pieces have few values.
fn read_publication(row: &Row<'_>) -> Result<Publication> {
    let published = match row.get::<Option<i64>>(23)? {
        Some(number) => Some(PublishedRevision { number, at: row.get(26)?, by: row.get(27)? }),
        None => None,
    };
    let publish_at: Option<Timestamp> = row.get(24)?;
    let publish_revision = if publish_at.is_some() { row.get(28)? } else { None };
    Ok(Publication { published, publish_at, publish_revision, unpublish_at: row.get(25)? })
}

/// Finds a piece.
pub async fn find(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: ContentPieceId,
) -> Result<Option<ContentPiece>> {
    find_in(tx, workspace, ContentView::Current, id).await
}

/// Finds a piece in a view.
pub(super) async fn find_in(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    view: ContentView,
    id: ContentPieceId,
) -> Result<Option<ContentPiece>> {
    let (columns, pieces) = (columns(view), tables(view).pieces);
    let sql = format!("SELECT {columns} FROM {pieces} p WHERE p.workspace_id = ?1 AND p.id = ?2");
    tx.find(&sql, params![workspace, id], read).await
}

/// The path to the group of the piece `p`. The statement's first parameter is the workspace.
///
/// The subquery reads the key in order. SQLite would sort an aggregate's own ORDER BY in a table.
const PATH: &str = "(SELECT string_agg(l.ancestor_id, ',') FROM (
    SELECT g.ancestor_id FROM content_group_paths g
    WHERE g.workspace_id = ?1 AND g.group_id = p.content_group_id ORDER BY g.depth DESC) l)";

/// A piece with the path to its group.
pub type PieceWithPath = (ContentPiece, GroupPath);

/// A piece that is locked for an update, with all that its next revision needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedPiece {
    /// The piece.
    pub piece: ContentPiece,
    /// The path to its group.
    pub path: GroupPath,
    /// The latest revision.
    pub latest: LatestRevision,
    /// The content of the piece itself, if it was requested.
    pub content: Option<String>,
    /// The variant's own content, if it was requested and there is any.
    pub variant_content: Option<String>,
}

/// Finds a piece for update, with the path to its group, and locks the piece until the transaction
/// ends.
pub async fn find_for_update(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: ContentPieceId,
) -> Result<Option<PieceWithPath>> {
    let read = |row: &Row<'_>| Ok((read(row)?, row.get(COLUMNS_END)?));
    find_locked(tx, workspace, id, "", &[], read).await
}

/// Like [`find_for_update`], for a change of the piece itself or of its overrides in `variant`. If
/// `with_content` is set, the content is read, too.
pub async fn find_for_revision(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: ContentPieceId,
    variant: Option<VariantId>,
    with_content: bool,
) -> Result<Option<LockedPiece>> {
    let mut columns = format!(", {}", LatestRevision::SELECT);
    if with_content {
        columns.push_str(
            ", (SELECT c.tree FROM content_piece_contents c
                WHERE c.workspace_id = ?1 AND c.content_piece_id = p.id)",
        );
    }
    if with_content && variant.is_some() {
        columns.push_str(
            ", (SELECT vc.tree FROM content_piece_variant_contents vc
                WHERE vc.workspace_id = ?1 AND vc.content_piece_id = p.id AND vc.variant_id = ?3)",
        );
    }
    let read = |row: &Row<'_>| {
        let next = COLUMNS_END + 3;
        Ok(LockedPiece {
            piece: read(row)?,
            path: row.get(COLUMNS_END)?,
            latest: LatestRevision::read(row, COLUMNS_END + 2)?,
            content: if with_content { row.get(next)? } else { None },
            variant_content: match variant {
                Some(_) if with_content => row.get(next + 1)?,
                _ => None,
            },
        })
    };
    let part = [Value::from(part_key(variant))];
    find_locked(tx, workspace, id, &columns, &part, read).await
}

/// Finds a piece, and locks it until the transaction ends. `columns` are selected after the path
/// and a version; their parameters follow the workspace and the piece.
async fn find_locked<T: HasVersion + Send>(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: ContentPieceId,
    columns: &str,
    more: &[Value<'_>],
    read: impl Fn(&Row<'_>) -> Result<T> + Send,
) -> Result<Option<T>> {
    let mut params = vec![Value::from(workspace), Value::from(id)];
    params.extend(more.iter().cloned());
    if tx.is_shared() {
        return find_if_unlocked(tx, &params, columns, read).await;
    }
    let found = format!(
        "SELECT {COLUMNS}, {PATH}, p.version{columns} FROM content_pieces p
         WHERE p.workspace_id = ?1 AND p.id = ?2"
    );
    if !tx.has_other_writers() {
        return tx.find(&found, &params, read).await;
    }
    // The lock is a statement of its own, sent together with the read. A single statement that
    // waits for the lock would then read the other tables as they were before.
    let lock = format!(
        "SELECT 1 FROM content_pieces WHERE workspace_id = ?1 AND id = ?2{}",
        tx.for_update()
    );
    tx.prepare(&lock).await?;
    let key = params![workspace, id];
    let (_, found) = try_join(tx.exists(&lock, key), tx.find(&found, &params, read)).await?;
    Ok(found)
}

/// The version of the piece as the statement's snapshot has it.
const VERSION: &str =
    "(SELECT q.version FROM content_pieces q WHERE q.workspace_id = ?1 AND q.id = ?2)";

/// A row that contains a piece.
trait HasVersion {
    fn version(&self) -> i64;
}

impl HasVersion for PieceWithPath {
    fn version(&self) -> i64 {
        self.0.version
    }
}

impl HasVersion for LockedPiece {
    fn version(&self) -> i64 {
        self.piece.version
    }
}

/// Finds a piece and locks it for a write of a group. If another transaction has locked it, or has
/// changed it during the statement, the write leaves the group.
///
/// The version as the statement's snapshot has it reveals such a change: only the locked row itself
/// is then read anew.
async fn find_if_unlocked<T: HasVersion + Send>(
    tx: &WriteTx<'_>,
    params: &[Value<'_>],
    columns: &str,
    read: impl Fn(&Row<'_>) -> Result<T> + Send,
) -> Result<Option<T>> {
    let sql = format!(
        "SELECT {COLUMNS}, {PATH}, {VERSION}{columns}
         FROM content_pieces p WHERE p.workspace_id = ?1 AND p.id = ?2{}",
        tx.for_update_skip_locked()
    );
    let read = move |row: &Row<'_>| Ok((read(row)?, row.get::<Option<i64>>(COLUMNS_END + 1)?));
    match tx.find(&sql, params, read).await? {
        Some((found, version)) if version == Some(found.version()) => Ok(Some(found)),
        _ => tx.leave_group().map(|()| None),
    }
}

/// Returns an upper bound of the bytes written when a piece gets another order key. These are its
/// row and its event, which includes the tags and members of the piece.
pub(crate) fn spread_size(piece: &ContentPiece) -> usize {
    /// Ids, times, names of members, and numbers.
    const REST: usize = 1_024;
    /// A label of 255 characters, and a profile with its avatar, each as JSON.
    const TAG: usize = 1_280;
    const MEMBER: usize = 4_096;
    let fields = &piece.fields;
    let texts = [
        fields.description.as_ref().map(Description::as_str),
        fields.cover_url.as_ref().map(WebReference::as_str),
        fields.cover_alt.as_ref().map(ShortText::as_str),
        fields.cover_width.as_ref().map(ShortText::as_str),
        fields.canonical_link.as_ref().map(WebReference::as_str),
        fields.filename.as_ref().map(ShortText::as_str),
        Some(fields.title.as_str()),
        Some(fields.slug.as_str()),
    ];
    let texts: usize = texts.into_iter().flatten().map(str::len).sum();
    // JSON escapes quotes and line breaks with two bytes.
    REST + 3 * texts + fields.tags.len() * TAG + fields.members.len() * MEMBER
}

/// Returns the condition that the piece is in the subtree of one of `roots`.
pub(crate) fn under_filter(roots: &[ContentGroupId], params: &mut Vec<Value<'_>>) -> String {
    let list = in_list("g.ancestor_id", roots.iter().copied(), params);
    format!(
        " AND p.content_group_id IN (SELECT g.group_id FROM content_group_paths g
            WHERE g.workspace_id = ?1{list})"
    )
}

/// Inserts a new piece and its content, the JSON text of the tree.
pub async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: &ContentPiece,
    tree: &str,
) -> Result<()> {
    insert_in(tx, workspace, ContentView::Current, piece, tree).await
}

/// Updates a piece. `before` is its state in the database.
pub async fn update(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    before: &ContentPiece,
    piece: &ContentPiece,
) -> Result<()> {
    update_in(tx, workspace, ContentView::Current, before, piece).await
}

/// Finds the content of a piece, as seen in a variant.
pub async fn find_content(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: ContentPieceId,
    variant: Option<VariantId>,
) -> Result<Option<String>> {
    let Some(variant) = variant else {
        let sql = "SELECT tree FROM content_piece_contents
            WHERE workspace_id = ?1 AND content_piece_id = ?2";
        return tx.find(sql, params![workspace, id], |row| row.get(0)).await;
    };
    let sql = "SELECT COALESCE(vc.tree, c.tree) FROM content_piece_contents c
        LEFT JOIN content_piece_variant_contents vc ON vc.workspace_id = c.workspace_id
            AND vc.content_piece_id = c.content_piece_id AND vc.variant_id = ?3
        WHERE c.workspace_id = ?1 AND c.content_piece_id = ?2";
    tx.find(sql, params![workspace, id, variant], |row| row.get(0)).await
}

/// Updates the content. `before` is that in the database.
pub async fn update_content(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: ContentPieceId,
    before: Option<&str>,
    tree: &str,
) -> Result<()> {
    let part = part_of(workspace, ContentView::Current, id);
    let content = ReferringPart { is_content: true, ..part };
    content.update(tx, &keys_of_content(before), &keys_of_content(Some(tree))).await?;
    let sql = "UPDATE content_piece_contents SET tree = ?3
        WHERE workspace_id = ?1 AND content_piece_id = ?2";
    tx.change(sql, params![workspace, id, tree], Affects::Piece(workspace, id)).await
}

/// Deletes a piece with its dependent rows. Foreign keys delete its overrides. Its revisions are
/// kept.
pub async fn delete(tx: &WriteTx<'_>, workspace: WorkspaceId, piece: &ContentPiece) -> Result<()> {
    delete_in(tx, workspace, ContentView::Current, piece).await
}

/// Returns the first pieces directly in a group, by `order`, for deletion. They are locked against
/// moves until the transaction ends.
pub async fn list_in_group_for_deletion(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    group: ContentGroupId,
    limit: i64,
) -> Result<Vec<ContentPiece>> {
    let lock = format!(
        "SELECT id FROM content_pieces WHERE workspace_id = ?1 AND content_group_id = ?2
         ORDER BY order_key LIMIT ?3{}",
        tx.for_update()
    );
    let read_id = |row: &Row<'_>| row.get::<ContentPieceId>(0);
    let ids = tx.query(&lock, params![workspace, group, limit], read_id).await?;
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut params = vec![Value::from(workspace)];
    let listed = in_list("p.id", ids.iter().copied(), &mut params);
    let sql = format!(
        "SELECT {COLUMNS} FROM content_pieces p WHERE p.workspace_id = ?1{listed}
         ORDER BY p.order_key"
    );
    tx.query(&sql, &params, read).await
}

/// Returns true if a group and its subtree contain more than `count` pieces.
pub async fn has_more_than(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    group: ContentGroupId,
    count: i64,
) -> Result<bool> {
    let sql = "SELECT 1 FROM content_pieces p WHERE p.workspace_id = ?1 AND p.content_group_id IN (
            SELECT g.group_id FROM content_group_paths g
            WHERE g.workspace_id = ?1 AND g.ancestor_id = ?2)
        LIMIT 1 OFFSET ?3";
    tx.exists(sql, params![workspace, group, count]).await
}
