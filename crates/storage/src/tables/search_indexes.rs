//! The state of search indexes, and their documents with the terms.
//!
//! An index is derived from the pieces, so copies leave it out, and it is built again. A worker
//! reads pieces after their events, and then inserts their documents in a transaction that locks
//! the index.

use galley_domain::event::EventType;
use galley_domain::language::LanguageTag;
use galley_domain::publication::ContentView;
use galley_domain::{ContentPieceId, Timestamp, VariantId, WorkspaceId};
use galley_search::{AnalyzedDocument, TermPrefix, Tsvectors};

use crate::engine::{
    Affects, FullTextEngine, Result, Row, Tx, WriteTx, in_list, params, read_row, row,
};
use crate::tables::events::last_sequence;

/// The bits of a row's id that count within the workspace. Those above have the index's number, so
/// that ids are unique in the database.
const ROW_BITS: u32 = 40;

/// The search index of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchIndex {
    /// The number by which its terms begin.
    pub number: i64,
    /// The version of the analysis of texts.
    pub analysis: i64,
    /// The number of its forced rebuilds. All documents of an earlier one are indexed again.
    pub revision: i64,
    /// The last event whose change is indexed.
    pub sequence: i64,
    /// The id of its last row.
    pub last_row: i64,
    /// The last piece of a rebuild, empty at its start; `None` if there is no rebuild.
    pub rebuild_after: Option<String>,
    /// True if another rebuild follows this one.
    pub rebuild_again: bool,
    /// True once the index was built completely.
    pub is_complete: bool,
    /// The number of pieces in the rebuild so far.
    pub rebuilt: i64,
}

const COLUMNS: &str = "i.number, i.analysis, i.revision, i.sequence, i.last_row, i.rebuild_after, \
    i.rebuild_again, i.is_complete, i.rebuilt";

fn read(row: &Row<'_>) -> Result<SearchIndex> {
    Ok(SearchIndex {
        number: row.get(0)?,
        analysis: row.get(1)?,
        revision: row.get(2)?,
        sequence: row.get(3)?,
        last_row: row.get(4)?,
        rebuild_after: row.get(5)?,
        rebuild_again: row.get(6)?,
        is_complete: row.get(7)?,
        rebuilt: row.get(8)?,
    })
}

impl SearchIndex {
    /// Returns the prefix of the terms in a partition.
    pub fn prefix(&self, partition: i64) -> TermPrefix {
        TermPrefix::new(self.number, partition)
    }

    /// Returns the last event whose change searches find; 0 while the index is built.
    pub fn searched_sequence(&self) -> i64 {
        if self.is_complete { self.sequence } else { 0 }
    }

    /// Requests a rebuild. A running one is completed before.
    pub fn request_rebuild(&mut self) {
        if self.rebuild_after.is_some() {
            self.rebuild_again = true;
        } else {
            (self.rebuild_after, self.rebuilt) = (Some(String::new()), 0);
        }
    }

    /// Ends the rebuild, and begins the next one if it was requested.
    pub fn end_rebuild(&mut self) {
        (self.rebuild_after, self.is_complete) = (None, true);
        if std::mem::take(&mut self.rebuild_again) {
            self.request_rebuild();
        }
    }
}

/// A workspace whose index is behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The number of events that are not indexed; 0 for an index that is built.
    pub events: i64,
}

/// Lists workspaces whose index is behind, by id, after one if given. The index of an older version
/// of the analysis counts as behind. That of a newer version is left to newer programs.
pub async fn behind(
    tx: &Tx<'_>,
    analysis: i64,
    after: Option<WorkspaceId>,
    limit: i64,
) -> Result<Vec<Behind>> {
    let last = last_sequence("s.workspace_id");
    let sql = format!(
        "SELECT s.workspace_id, COALESCE({last} - i.sequence, 0) FROM workspace_sequences s
         LEFT JOIN search_indexes i ON i.workspace_id = s.workspace_id
         WHERE s.workspace_id > ?1 AND COALESCE(i.analysis, 0) <= ?2
            AND (i.workspace_id IS NULL OR i.rebuild_after IS NOT NULL OR i.analysis < ?2
                OR i.sequence < {last})
         ORDER BY s.workspace_id LIMIT ?3"
    );
    let after = after.map_or_else(String::new, |workspace| workspace.to_string());
    tx.query(&sql, params![after, analysis, limit], |row| {
        Ok(read_row!(row, 0 => Behind { workspace, events }))
    })
    .await
}

/// Finds the index of a workspace.
pub async fn find(tx: &Tx<'_>, workspace: WorkspaceId) -> Result<Option<SearchIndex>> {
    let sql = format!("SELECT {COLUMNS} FROM search_indexes i WHERE i.workspace_id = ?1");
    tx.find(&sql, params![workspace], read).await
}

/// An index, with the data that searches in a view and a variant need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchedIndex {
    /// The index.
    pub index: SearchIndex,
    /// The language of the workspace.
    pub language: Option<LanguageTag>,
    /// The number of the partition of pieces themselves, if there is any document in it.
    pub own: Option<i64>,
    /// The number of the partition of the variant, likewise.
    pub of_variant: Option<i64>,
}

/// Finds the index of a workspace for a search.
pub async fn find_searched(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    view: ContentView,
    variant: Option<VariantId>,
) -> Result<Option<SearchedIndex>> {
    let sql = format!(
        "SELECT {COLUMNS}, w.language, o.number, v.number FROM search_indexes i
         JOIN workspaces w ON w.id = ?1
         LEFT JOIN search_partitions o
            ON o.workspace_id = ?1 AND o.view = ?2 AND o.variant_id = ''
         LEFT JOIN search_partitions v
            ON v.workspace_id = ?1 AND v.view = ?2 AND v.variant_id = ?3
         WHERE i.workspace_id = ?1"
    );
    tx.find(&sql, params![workspace, view, variant], |row| {
        let (language, own, of_variant) = (row.get(9)?, row.get(10)?, row.get(11)?);
        Ok(SearchedIndex { index: read(row)?, language, own, of_variant })
    })
    .await
}

/// Finds the index of a workspace, and locks it until the transaction ends.
pub async fn find_for_update(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
) -> Result<Option<SearchIndex>> {
    let lock = tx.for_update();
    let sql = format!("SELECT {COLUMNS} FROM search_indexes i WHERE i.workspace_id = ?1{lock}");
    tx.find(&sql, params![workspace], read).await
}

/// Inserts an empty index, whose rebuild begins. The events up to the last one need no indexing of
/// their own.
pub async fn insert(tx: &WriteTx<'_>, workspace: WorkspaceId, analysis: i64) -> Result<()> {
    let highest = "SELECT i.number FROM search_indexes i ORDER BY i.number DESC LIMIT 1";
    let number = tx.find(highest, &[], |row| row.get::<i64>(0)).await?.unwrap_or_default() + 1;
    let last = last_sequence("?1");
    let last = format!("SELECT {last} FROM workspace_sequences s WHERE s.workspace_id = ?1");
    let last: i64 = tx.get(&last, params![workspace], |row| row.get(0)).await?;
    let sql = "INSERT INTO search_indexes (workspace_id, number, analysis, revision, sequence,
            last_row, rebuild_after, rebuild_again, is_complete, rebuilt)
        VALUES (?1, ?2, ?3, 0, ?4, ?5, '', FALSE, FALSE, 0)";
    let params = params![workspace, number, analysis, last, number << ROW_BITS];
    tx.change(sql, params, Affects::Nothing).await
}

/// Updates an index.
pub async fn update(tx: &WriteTx<'_>, workspace: WorkspaceId, index: &SearchIndex) -> Result<()> {
    let sql =
        "UPDATE search_indexes SET analysis = ?2, revision = ?3, sequence = ?4, last_row = ?5,
            rebuild_after = ?6, rebuild_again = ?7, is_complete = ?8, rebuilt = ?9
        WHERE workspace_id = ?1";
    let params = params! {
        workspace, index.analysis, index.revision, index.sequence, index.last_row,
        index.rebuild_after.as_deref(), index.rebuild_again, index.is_complete,
        index.rebuilt
    };
    tx.change(sql, params, Affects::Nothing).await
}

/// Requests the rebuild of an index, if there is one. A running one is completed before.
pub async fn request_rebuild(tx: &WriteTx<'_>, workspace: WorkspaceId) -> Result<()> {
    let sql = "UPDATE search_indexes SET rebuild_again = rebuild_after IS NOT NULL,
            rebuilt = CASE WHEN rebuild_after IS NULL THEN 0 ELSE rebuilt END,
            rebuild_after = COALESCE(rebuild_after, '')
        WHERE workspace_id = ?1";
    tx.notify_on_commit();
    tx.change(sql, params![workspace], Affects::Nothing).await
}

/// A change whose event is not indexed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedChange {
    /// The number of the event.
    pub sequence: i64,
    /// The type of the event.
    pub event_type: EventType,
    /// The time of the event.
    pub created_at: Timestamp,
    /// The resource as JSON; of a piece, only its begin.
    pub data: String,
}

/// Lists the changes after an event, at most `limit`.
pub async fn changes(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    after: i64,
    limit: i64,
) -> Result<Vec<IndexedChange>> {
    // The id is the first member of the data.
    let sql = "SELECT e.sequence, e.type, e.created_at_ms,
            CASE WHEN e.type LIKE 'contentPiece%' THEN substr(e.data, 1, 80) ELSE e.data END
        FROM events e
        WHERE e.workspace_id = ?1 AND e.sequence > ?2 ORDER BY e.sequence LIMIT ?3";
    tx.query(sql, params![workspace, after, limit], |row| {
        Ok(read_row!(row, 0 => IndexedChange { sequence, event_type, created_at, data }))
    })
    .await
}

/// Lists the pieces that exist or are indexed, by id, after one.
pub async fn pieces(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    after: &str,
    limit: i64,
) -> Result<Vec<ContentPieceId>> {
    let mut found = Vec::new();
    for sql in [
        "SELECT p.id FROM content_pieces p WHERE p.workspace_id = ?1 AND p.id > ?2
            ORDER BY p.id LIMIT ?3",
        "SELECT DISTINCT d.content_piece_id FROM search_documents d
            WHERE d.workspace_id = ?1 AND d.content_piece_id > ?2
            ORDER BY d.content_piece_id LIMIT ?3",
    ] {
        let params = params![workspace, after, limit];
        found.extend(tx.query(sql, params, |row| row.get::<ContentPieceId>(0)).await?);
    }
    found.sort_unstable();
    found.dedup();
    found.truncate(usize::try_from(limit).unwrap_or_default());
    Ok(found)
}

/// A part of an index that is searched apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Partition {
    /// The view.
    pub view: ContentView,
    /// The variant; `None` for pieces themselves.
    pub variant: Option<VariantId>,
}

/// Lists the partitions of an index, with their numbers.
pub async fn partitions(tx: &Tx<'_>, workspace: WorkspaceId) -> Result<Vec<(Partition, i64)>> {
    let sql = "SELECT s.view, s.variant_id, s.number FROM search_partitions s
        WHERE s.workspace_id = ?1 ORDER BY s.number LIMIT 100000";
    tx.query(sql, params![workspace], |row| {
        let variant = if row.text(1)?.is_empty() { None } else { Some(row.get(1)?) };
        Ok((Partition { view: row.get(0)?, variant }, row.get(2)?))
    })
    .await
}

/// Inserts a partition. The index is locked.
pub async fn insert_partition(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    partition: Partition,
    number: i64,
) -> Result<()> {
    let sql = "INSERT INTO search_partitions (workspace_id, view, variant_id, number)
        VALUES (?1, ?2, ?3, ?4)";
    let variant = partition.variant.map_or_else(String::new, |variant| variant.to_string());
    tx.change(sql, params![workspace, partition.view, variant, number], Affects::Nothing).await
}

/// A document in an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedDocument {
    /// The piece.
    pub piece: ContentPieceId,
    /// The partition.
    pub partition: i64,
    /// The row with its terms.
    pub row_id: i64,
    /// The hash of its texts and of their analysis.
    pub hash: Vec<u8>,
}

/// Lists the documents of some pieces.
pub async fn documents(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    pieces: &[ContentPieceId],
) -> Result<Vec<IndexedDocument>> {
    let mut params = params![workspace].to_vec();
    let listed = in_list("d.content_piece_id", pieces.iter().copied(), &mut params);
    let sql = format!(
        "SELECT d.content_piece_id, d.partition_number, d.row_id, d.hash FROM search_documents d
         WHERE d.workspace_id = ?1{listed}"
    );
    tx.query(&sql, &params, |row| {
        let (piece, partition) = (row.get(0)?, row.get(1)?);
        Ok(IndexedDocument { piece, partition, row_id: row.get(2)?, hash: row.get(3)? })
    })
    .await
}

/// Deletes documents.
pub async fn delete_documents(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    documents: &[IndexedDocument],
) -> Result<()> {
    let rows = documents.iter().map(|one| row![workspace, one.piece, one.partition]);
    let sql = "DELETE FROM search_documents
        WHERE workspace_id = ?1 AND content_piece_id = ?2 AND partition_number = ?3";
    tx.change_each(sql, rows, Affects::Nothing).await?;
    match tx.full_text_engine() {
        FullTextEngine::Fts5 => {
            // FTS5 writes a segment whenever a row is before the last one.
            let mut rows: Vec<i64> = documents.iter().map(|one| one.row_id).collect();
            rows.sort_unstable();
            let rows = rows.into_iter().map(|row_id| row![row_id]);
            let sql = "DELETE FROM search_terms WHERE rowid = ?1";
            tx.change_each(sql, rows, Affects::Nothing).await
        }
        FullTextEngine::Tsvector => {
            let rows = documents.iter().map(|one| row![workspace, one.row_id]);
            let sql = "DELETE FROM search_terms WHERE workspace_id = ?1 AND row_id = ?2";
            tx.change_each(sql, rows, Affects::Nothing).await
        }
    }
}

/// The terms of a document, in the form that the engine stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentTerms {
    /// The columns of FTS5.
    Fts5([String; 4]),
    /// Texts of type `tsvector`.
    Tsvector(Tsvectors),
}

impl DocumentTerms {
    /// Returns the terms of a document.
    pub fn new(engine: FullTextEngine, document: &AnalyzedDocument, prefix: &TermPrefix) -> Self {
        match engine {
            FullTextEngine::Fts5 => Self::Fts5(document.fts5_columns(prefix)),
            FullTextEngine::Tsvector => Self::Tsvector(document.tsvectors(prefix)),
        }
    }
}

/// Inserts documents, which have no rows yet.
pub async fn insert_documents(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    documents: &[(IndexedDocument, &DocumentTerms)],
) -> Result<()> {
    let sql = "INSERT INTO search_documents (workspace_id, content_piece_id, partition_number,
            row_id, hash)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    let rows = documents.iter().map(|(document, _)| {
        row![workspace, document.piece, document.partition, document.row_id, &document.hash]
    });
    tx.change_each(sql, rows, Affects::Nothing).await?;
    let (mut columns, mut parts) = (Vec::new(), Vec::new());
    for (IndexedDocument { row_id, .. }, terms) in documents {
        match terms {
            DocumentTerms::Fts5([title, description, content, others]) => {
                columns.push(row![*row_id, title, description, content, others]);
            }
            DocumentTerms::Tsvector(Tsvectors { head, parts: texts }) => {
                let is_split = texts.len() > 1;
                parts.extend(texts.iter().zip(0_i64..).map(|(terms, part)| {
                    let head = Some(head.as_str()).filter(|_| part == 0);
                    row![workspace, *row_id, part, is_split, head, terms]
                }));
            }
        }
    }
    let sql = "INSERT INTO search_terms (rowid, title, description, content, others)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    tx.change_each(sql, columns, Affects::Nothing).await?;
    let sql = "INSERT INTO search_terms (workspace_id, row_id, part, is_split, head, terms)
        VALUES (?1, ?2, ?3, ?4, CAST(CAST(?5 AS TEXT) AS tsvector),
            CAST(CAST(?6 AS TEXT) AS tsvector))";
    tx.change_each(sql, parts, Affects::Nothing).await
}

/// Moves new terms from the pending list of PostgreSQL's index to their places. Each search reads
/// the list, which has up to 4 MiB otherwise.
pub async fn merge_pending_terms(tx: &WriteTx<'_>) -> Result<()> {
    match tx.full_text_engine() {
        FullTextEngine::Fts5 => Ok(()),
        FullTextEngine::Tsvector => {
            let sql = "SELECT gin_clean_pending_list('search_terms_whole'),
                gin_clean_pending_list('search_terms_split')";
            tx.find(sql, &[], |_| Ok(())).await.map(drop)
        }
    }
}
