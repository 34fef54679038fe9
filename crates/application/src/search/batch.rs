//! Batches of pieces to index: the plan, the analysis, and the writing.

use std::collections::{BTreeSet, HashMap};

use galley_domain::event::EventType;
use galley_domain::permission::Resource;
use galley_domain::{ContentPieceId, Timestamp, WorkspaceId};
use galley_search::AnalyzedDocument;
use galley_storage::search_indexes::{
    self, DocumentTerms, IndexedChange, IndexedDocument, Partition, SearchIndex,
};
use galley_storage::{Database, Tx, WriteTx};

use super::piece_documents::{NewDocument, PieceReader};
use super::{ANALYSIS, analyzer};
use crate::error::Error;

/// The limits of events and of pieces that are indexed together.
const CHANGES_LIMIT: i64 = 256;
const PIECES_LIMIT: i64 = 64;

/// The number of pieces that a transaction writes before it yields. Each commit writes a segment of
/// the index: beside writes at their full rate, 560 pieces a second in place of 296 with 8.
const PIECES_BEFORE_YIELD: usize = 32;

/// A piece to index, and the state of the index after it.
#[derive(Debug)]
pub(super) struct Item {
    piece: ContentPieceId,
    documents: Vec<NewDocument>,
    /// The last event, or the piece of the rebuild, that is indexed with it.
    pub(super) progress: IndexProgress,
}

#[derive(Debug)]
pub(super) enum IndexProgress {
    /// The event, and its time.
    Event(i64, Timestamp),
    Rebuild(ContentPieceId),
}

/// A batch of pieces to index.
#[derive(Debug)]
pub(super) struct IndexBatch {
    pub(super) index: SearchIndex,
    pub(super) partitions: Vec<(Partition, i64)>,
    pub(super) items: Vec<Item>,
    /// The documents of the pieces in the index.
    documents: Vec<IndexedDocument>,
    /// The last event of the batch, if there are no pieces after it.
    pub(super) last_event: Option<i64>,
    /// True if a change affects many pieces.
    affects_many: bool,
    /// True if the rebuild has no more pieces.
    pub(super) ends_rebuild: bool,
    /// True if there are events, or pieces of them, after the batch.
    pub(super) has_more: bool,
}

impl Item {
    /// Changes the state of the index as the writing of the item does.
    fn advance(&self, index: &mut SearchIndex) {
        let added = self.documents.iter().filter(|document| document.terms.is_some()).count();
        index.last_row += i64::try_from(added).unwrap_or_default();
        match &self.progress {
            IndexProgress::Event(sequence, _) => index.sequence = *sequence,
            IndexProgress::Rebuild(piece) => {
                index.rebuild_after = Some(piece.to_string());
                index.rebuilt += 1;
            }
        }
    }
}

impl IndexBatch {
    /// Returns the number of a partition, unless it is new.
    fn number_of(&self, partition: Partition) -> Option<i64> {
        let found = self.partitions.iter().find(|(known, _)| *known == partition);
        found.map(|(_, number)| *number)
    }

    /// Adds a partition with the next number, unless it is known. Returns its number.
    fn add_partition(&mut self, partition: Partition) -> i64 {
        self.number_of(partition).unwrap_or_else(|| {
            let numbers = self.partitions.iter().map(|(_, number)| number + 1);
            let number = numbers.max().unwrap_or_default();
            self.partitions.push((partition, number));
            number
        })
    }

    /// Changes the state of the index as the begin of the batch does.
    fn begin_in(&self, index: &mut SearchIndex) {
        if self.affects_many {
            index.request_rebuild();
        }
    }

    /// Changes the state of the index as the end of the batch does.
    fn end_in(&self, index: &mut SearchIndex) {
        index.sequence = self.last_event.unwrap_or(index.sequence);
        if self.ends_rebuild {
            index.end_rebuild();
        }
    }

    /// Returns the state of the index after the batch.
    pub(super) fn end(&self) -> SearchIndex {
        let mut index = self.index.clone();
        self.begin_in(&mut index);
        for item in &self.items {
            item.advance(&mut index);
        }
        self.end_in(&mut index);
        index
    }

    /// Returns true for a part of a rebuild that another one follows.
    pub(super) fn continues_rebuild(&self) -> bool {
        let last = self.items.last().map(|item| &item.progress);
        matches!(last, Some(IndexProgress::Rebuild(_))) && !self.ends_rebuild
    }

    /// Analyses the texts of all documents that are not indexed yet.
    pub(super) fn analyze(&mut self, database: &Database) {
        let mut items = std::mem::take(&mut self.items);
        for document in items.iter_mut().flat_map(|item| &mut item.documents) {
            let Some((texts, language)) = document.texts.take() else { continue };
            let number = self.add_partition(document.partition);
            let analyzed = AnalyzedDocument::new(analyzer(), language, &texts.as_texts());
            let prefix = self.index.prefix(number);
            let engine = database.full_text_engine();
            document.terms = Some(DocumentTerms::new(engine, &analyzed, &prefix));
        }
        self.items = items;
    }
}

/// Returns the next batch. `None` if the index doesn't exist, or has another version.
///
/// With the index and the partitions after a previous batch, which is being written, the next one
/// of the rebuild is returned. `None` if there are events, as their pieces may be in both.
pub(super) async fn plan(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    rebuilds: bool,
    previous: Option<(SearchIndex, Vec<(Partition, i64)>)>,
) -> Result<Option<IndexBatch>, Error> {
    let is_ahead = previous.is_some();
    let (index, partitions) = match previous {
        Some((index, partitions)) => (Some(index), partitions),
        None => (
            search_indexes::find(tx, workspace).await?,
            search_indexes::partitions(tx, workspace).await?,
        ),
    };
    let Some(index) = index.filter(|index| index.analysis == ANALYSIS) else { return Ok(None) };
    let changes = if rebuilds && index.rebuild_after.is_some() {
        Vec::new()
    } else {
        search_indexes::changes(tx, workspace, index.sequence, CHANGES_LIMIT).await?
    };
    if is_ahead && !changes.is_empty() {
        return Ok(None);
    }
    let mut batch = IndexBatch {
        partitions,
        items: Vec::new(),
        documents: Vec::new(),
        last_event: None,
        affects_many: false,
        ends_rebuild: false,
        has_more: changes.len() == usize::try_from(CHANGES_LIMIT).unwrap_or_default(),
        index,
    };
    let mut pieces: Vec<(ContentPieceId, IndexProgress)> = Vec::new();
    if changes.is_empty() {
        let Some(after) = &batch.index.rebuild_after else { return Ok(Some(batch)) };
        let found = search_indexes::pieces(tx, workspace, after, PIECES_LIMIT).await?;
        batch.ends_rebuild = found.is_empty();
        pieces.extend(found.into_iter().map(|piece| (piece, IndexProgress::Rebuild(piece))));
    } else {
        // Events that were deleted before they were indexed have left a gap.
        batch.affects_many = changes[0].sequence != batch.index.sequence + 1;
        let mut seen = BTreeSet::new();
        for change in &changes {
            batch.affects_many |= affects_many(change);
            if let Some(piece) = piece_of(change)
                && seen.insert(piece)
            {
                if seen.len() > usize::try_from(PIECES_LIMIT).unwrap_or_default() {
                    batch.has_more = true;
                    break;
                }
                pieces.push((piece, IndexProgress::Event(change.sequence, change.created_at)));
            }
            batch.last_event = Some(change.sequence);
        }
    }
    read_pieces(tx, workspace, &mut batch, pieces).await?;
    Ok(Some(batch))
}

/// Returns the piece that a change affects.
fn piece_of(change: &IndexedChange) -> Option<ContentPieceId> {
    if change.event_type.resource() != Resource::ContentPieces {
        return None;
    }
    let id = change.data.strip_prefix("{\"id\":\"")?;
    id.split('"').next()?.parse().ok()
}

/// Returns true if the texts of many pieces may depend on a change: labels of tags, languages of
/// variants, and schemas of groups.
fn affects_many(change: &IndexedChange) -> bool {
    let is_new = change.data.ends_with("\"change\":\"added\"}");
    match change.event_type {
        EventType::TagChanged | EventType::VariantChanged => !is_new,
        EventType::ContentGroupMoved | EventType::ContentGroupChanged => true,
        _ => false,
    }
}

/// Reads pieces in both views and all variants, as many as fit.
async fn read_pieces(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    batch: &mut IndexBatch,
    pieces: Vec<(ContentPieceId, IndexProgress)>,
) -> Result<(), Error> {
    let ids: Vec<ContentPieceId> = pieces.iter().map(|(piece, _)| *piece).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let mut count = ids.len();
    let texts = loop {
        let mut reader = PieceReader::new(tx, workspace, batch.index.revision).await?;
        match reader.read(&ids[..count]).await? {
            Some(texts) => break texts,
            None => count = count.div_ceil(2),
        }
    };
    batch.documents = search_indexes::documents(tx, workspace, &ids[..count]).await?;
    if count < pieces.len() {
        (batch.last_event, batch.has_more) = (None, true);
    }
    let mut by_piece: HashMap<ContentPieceId, Vec<NewDocument>> = HashMap::new();
    for (piece, document) in texts {
        by_piece.entry(piece).or_default().push(document);
    }
    for (piece, progress) in pieces.into_iter().take(count) {
        let mut documents = by_piece.remove(&piece).unwrap_or_default();
        for document in &mut documents {
            let number = batch.number_of(document.partition);
            let is_indexed = |indexed: &IndexedDocument| {
                indexed.piece == piece
                    && Some(indexed.partition) == number
                    && indexed.hash == document.hash
            };
            if batch.documents.iter().any(is_indexed) {
                document.texts = None;
            }
        }
        batch.items.push(Item { piece, documents, progress });
    }
    Ok(())
}

/// Writes the documents of a batch from an item on, until the transaction should yield. Returns the
/// state of the index and the next item; `None` if the index is not as expected.
pub(super) async fn write_from(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    batch: &IndexBatch,
    expected: &SearchIndex,
    first: usize,
) -> Result<Option<(SearchIndex, usize)>, Error> {
    let found = search_indexes::find_for_update(tx, workspace).await?;
    let Some(mut index) = found.filter(|index| index == expected) else { return Ok(None) };
    if first == 0 {
        let known = search_indexes::partitions(tx, workspace).await?.len();
        for (partition, number) in batch.partitions.iter().skip(known) {
            search_indexes::insert_partition(tx, workspace, *partition, *number).await?;
        }
        batch.begin_in(&mut index);
    }
    let mut next = first;
    for items in batch.items[first..].chunks(PIECES_BEFORE_YIELD) {
        write_items(tx, workspace, batch, items, index.last_row).await?;
        next += items.len();
        for item in items {
            item.advance(&mut index);
        }
        if tx.should_yield() {
            break;
        }
    }
    if next == batch.items.len() {
        batch.end_in(&mut index);
        if !batch.has_more && index.rebuild_after.is_none() {
            search_indexes::merge_pending_terms(tx).await?;
        }
    }
    search_indexes::update(tx, workspace, &index).await?;
    Ok(Some((index, next)))
}

async fn write_items(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    batch: &IndexBatch,
    items: &[Item],
    mut last_row: i64,
) -> Result<(), Error> {
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    for item in items {
        let kept: Vec<i64> = item
            .documents
            .iter()
            .filter(|document| document.terms.is_none())
            .filter_map(|document| batch.number_of(document.partition))
            .collect();
        let old = batch.documents.iter().filter(|old| old.piece == item.piece);
        removed.extend(old.filter(|old| !kept.contains(&old.partition)).cloned());
        for document in &item.documents {
            let number = batch.number_of(document.partition);
            let (Some(terms), Some(partition)) = (&document.terms, number) else { continue };
            last_row += 1;
            let (hash, row_id) = (document.hash.clone(), last_row);
            added.push((IndexedDocument { piece: item.piece, partition, row_id, hash }, terms));
        }
    }
    search_indexes::delete_documents(tx, workspace, &removed).await?;
    search_indexes::insert_documents(tx, workspace, &added).await?;
    Ok(())
}
