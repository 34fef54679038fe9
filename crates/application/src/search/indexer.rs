//! The worker that keeps search indexes up to date.
//!
//! It reads the events after the last indexed one, then the pieces that they name, and writes the
//! documents of these pieces in a transaction that locks the index. If the index has changed
//! meanwhile, another node has indexed the same events, and nothing is written. So each change is
//! indexed once in effect, by any node, and after a crash indexing continues where it was
//! committed.
//!
//! A rebuild goes through all pieces by id. It follows an upgrade of the analysis, and a change on
//! which the texts of many pieces depend, such as that of a tag. Documents whose texts are equal
//! stay.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use galley_domain::content_piece::ContentPiece;
use galley_domain::event::EventType;
use galley_domain::permission::Resource;
use galley_domain::publication::ContentView;
use galley_domain::{ContentGroupId, ContentPieceId, TagId, Timestamp, VariantId, WorkspaceId};
use galley_runtime::lower_priority;
use galley_search::Document;
use galley_storage::content_piece_filters::PieceFilters;
use galley_storage::content_piece_list::{self, PieceListQuery};
use galley_storage::content_pieces::View;
use galley_storage::custom_data_schemas::{self, EffectiveSchema};
use galley_storage::search_indexes::{
    self, DocumentTerms, IndexedChange, IndexedDocument, Partition, SearchIndex,
};
use galley_storage::{Database, Tx, WriteTx, tags, variants, workspaces};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::{PieceTexts, analyzer, language};
use crate::environment::Environment;
use crate::error::Error;
use crate::service::Service;

/// The version of the analysis. With another one, each document is indexed again.
const ANALYSIS: i64 = 1;

/// The niceness of the worker's thread, as that of deliveries.
const NICENESS: i32 = 10;

/// The interval between two scans: at least after a commit, and without commits.
const BUSY_INTERVAL: Duration = Duration::from_millis(20);
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// The part of time that scans of all workspaces may take.
const SCAN_SHARE: u32 = 20;

/// The limit of workspaces in a page of a scan.
const SCAN_PAGE: i64 = 256;

/// The limits of events and of pieces that are indexed together.
const CHANGES_LIMIT: i64 = 256;
const PIECES_LIMIT: i64 = 64;

/// The number of pieces that a transaction writes before it yields. With one at a time, the index
/// fell behind 500 new pieces a second, as each commit writes a segment of the index.
const PIECES_BEFORE_YIELD: usize = 8;

/// The limit on bytes of pieces that are read at once. A single piece may be larger.
const READ_SIZE: usize = 4 << 20;

/// The limit on steps in a workspace before other workspaces are served. Every fourth step goes on
/// with a rebuild, which would otherwise wait while there are always new events.
const STEPS_LIMIT: usize = 16;
const STEPS_PER_REBUILD: usize = 4;

/// The time after which a command itself rebuilds an index, as no server does.
const SERVER_TIMEOUT: Duration = Duration::from_secs(2);

/// The interval at which a command reads the progress of a rebuild.
const REBUILD_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Starts the worker, on a thread of its own, as the analysis takes CPU time. The returned receiver
/// resolves when the service has stopped.
///
/// Database work runs on the runtime that serves requests, as both share its connections.
pub fn start(service: Service) -> std::io::Result<oneshot::Receiver<()>> {
    let (ended, end) = oneshot::channel();
    let requests = Handle::current();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("search".to_owned()).spawn(move || {
        lower_priority(NICENESS);
        runtime.block_on(run(&service, &requests));
        let _ = ended.send(());
    })?;
    Ok(end)
}

async fn run(service: &Service, requests: &Handle) {
    let mut stop = service.stopping();
    let mut commits = service.database().subscribe_to_commits();
    let (database, environment) = (service.database().clone(), service.environment().clone());
    let indexer = Indexer { database, environment, requests: requests.clone() };
    while !*stop.borrow() {
        let (started, mut has_more) = (Instant::now(), false);
        match indexer.scan(&service.stopping()).await {
            Ok(scanned) => has_more = scanned,
            Err(error) => tracing::debug!(%error, "search indexes could not be updated"),
        }
        let pause = if has_more { Duration::ZERO } else { started.elapsed() * SCAN_SHARE };
        let wait = async {
            tokio::time::sleep(pause.clamp(BUSY_INTERVAL, IDLE_INTERVAL)).await;
            if !has_more {
                let _ = tokio::time::timeout(IDLE_INTERVAL, commits.changed()).await;
            }
        };
        tokio::select! {
            () = wait => {}
            _ = stop.wait_for(|stopping| *stopping) => return,
        }
    }
}

/// Rebuilds the index of a workspace, all documents of it: by the servers of the store, or here if
/// there are none. Reports the number of pieces so far.
pub async fn rebuild(
    database: &Database,
    environment: &Environment,
    workspace: WorkspaceId,
    mut progress: impl FnMut(i64),
) -> Result<i64, Error> {
    let (database, environment) = (database.clone(), environment.clone());
    let indexer = Indexer { database, environment, requests: Handle::current() };
    let database = &indexer.database;
    let begin = async move |tx: &WriteTx<'_>| {
        let Some(mut index) = search_indexes::find_for_update(tx, workspace).await? else {
            search_indexes::insert(tx, workspace, ANALYSIS).await?;
            return Ok::<_, Error>(());
        };
        index.revision += 1;
        (index.rebuild_after, index.rebuild_again) = (None, false);
        index.request_rebuild();
        Ok(search_indexes::update(tx, workspace, &index).await?)
    };
    database.write("search.rebuild", begin).await?;
    let (mut rebuilt, mut seen_at, mut is_own) = (0, Instant::now(), false);
    let mut failed_at = None;
    loop {
        let read =
            async move |tx: &Tx<'_>| Ok::<_, Error>(search_indexes::find(tx, workspace).await?);
        let index = database.read("search.index", read).await?;
        let Some(index) = index else { return Ok(rebuilt) };
        if index.rebuild_after.is_none() {
            return Ok(index.rebuilt);
        }
        // A change that affects many pieces begins the rebuild again.
        if index.rebuilt != rebuilt {
            (rebuilt, seen_at) = (index.rebuilt, Instant::now());
            progress(rebuilt);
        }
        is_own |= seen_at.elapsed() > SERVER_TIMEOUT;
        if !is_own {
            tokio::time::sleep(REBUILD_POLL_INTERVAL).await;
            continue;
        }
        match indexer.step(workspace, true).await {
            // A server writes, so it also rebuilds.
            Err(Error::Storage(galley_storage::Error::Overloaded))
                if failed_at.replace(rebuilt) != Some(rebuilt) =>
            {
                (is_own, seen_at) = (false, Instant::now());
            }
            done => _ = done?,
        }
    }
}

/// The worker's access to the database.
struct Indexer {
    database: Database,
    environment: Environment,
    requests: Handle,
}

/// A piece to index, and the state of the index after it.
#[derive(Debug)]
struct Item {
    piece: ContentPieceId,
    documents: Vec<NewDocument>,
    /// The last event, or the piece of the rebuild, that is indexed with it.
    progress: Progress,
}

#[derive(Debug)]
enum Progress {
    /// The event, and its time.
    Event(i64, Timestamp),
    Rebuild(ContentPieceId),
}

/// A document that a piece should have.
#[derive(Debug)]
struct NewDocument {
    partition: Partition,
    hash: Vec<u8>,
    /// The texts, until they are analysed; `None` for a document that is indexed already.
    texts: Option<(PieceTexts, Option<galley_search::Language>)>,
    terms: Option<DocumentTerms>,
}

/// A batch of pieces to index.
#[derive(Debug)]
struct Batch {
    index: SearchIndex,
    partitions: Vec<(Partition, i64)>,
    items: Vec<Item>,
    /// The documents of the pieces in the index.
    documents: Vec<IndexedDocument>,
    /// The last event of the batch, if there are no pieces after it.
    last_event: Option<i64>,
    /// True if a change affects many pieces.
    affects_many: bool,
    /// True if the rebuild has no more pieces.
    ends_rebuild: bool,
    /// True if there are events, or pieces of them, after the batch.
    has_more: bool,
}

impl Indexer {
    /// Indexes a part of the changes in each workspace that is behind. Returns true if there may be
    /// more.
    async fn scan(&self, stop: &tokio::sync::watch::Receiver<bool>) -> Result<bool, Error> {
        let (mut after, mut has_more, mut events) = (None, false, 0);
        loop {
            let list = async move |tx: &Tx<'_>| {
                Ok::<_, Error>(search_indexes::behind(tx, ANALYSIS, after, SCAN_PAGE).await?)
            };
            let database = self.database.clone();
            let behind =
                self.run(async move { database.read_long("search.behind", list).await }).await?;
            let Some(end) = behind.last() else { break };
            after = Some(end.workspace);
            for one in behind {
                events += one.events;
                if *stop.borrow() {
                    return Ok(false);
                }
                match self.index(one.workspace).await {
                    Ok(more) => has_more |= more,
                    Err(error) => {
                        let workspace = one.workspace;
                        tracing::warn!(%error, %workspace, "a search index could not be updated");
                    }
                }
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
        metrics::gauge!("galley_search_events_behind").set(events as f64);
        if events == 0 {
            metrics::gauge!("galley_search_lag_seconds").set(0.0);
        }
        Ok(has_more)
    }

    /// Indexes a part of a workspace. Returns true if there may be more.
    async fn index(&self, workspace: WorkspaceId) -> Result<bool, Error> {
        for number in 1..=STEPS_LIMIT {
            if !self.step(workspace, number % STEPS_PER_REBUILD == 0).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Indexes a batch, of a rebuild if `rebuilds` is set and there is one. Returns true if there
    /// may be more.
    async fn step(&self, workspace: WorkspaceId, rebuilds: bool) -> Result<bool, Error> {
        let plan = async move |tx: &Tx<'_>| plan(tx, workspace, rebuilds).await;
        let database = self.database.clone();
        let planned = async move { database.read_long("search.plan", plan).await };
        let Some(mut batch) = self.run(planned).await? else {
            return self.prepare(workspace).await;
        };
        if batch.items.is_empty() && batch.last_event.is_none() && !batch.ends_rebuild {
            return Ok(false);
        }
        batch.analyze(&self.database);
        let batch = Arc::new(batch);
        let (mut index, mut next) = (batch.index.clone(), 0);
        loop {
            let (own, expected) = (Arc::clone(&batch), index.clone());
            let write = async move |tx: &WriteTx<'_>| {
                write_from(tx, workspace, &own, &expected, next).await
            };
            let database = self.database.clone();
            let written = async move { database.write_in_background("search.index", write).await };
            let Some((written, reached)) = self.run(written).await? else {
                // Another node has indexed the same.
                return Ok(true);
            };
            self.measure_lag(&batch.items[next..reached]);
            (index, next) = (written, reached);
            if next == batch.items.len() {
                return Ok(batch.has_more || index.rebuild_after.is_some());
            }
        }
    }

    /// Sets the gauge of the lag: the age of the oldest event that was indexed just now.
    fn measure_lag(&self, indexed: &[Item]) {
        if let Some(Item { progress: Progress::Event(_, created_at), .. }) = indexed.first() {
            let age_ms = self.environment.now().ms() - created_at.ms();
            #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
            metrics::gauge!("galley_search_lag_seconds").set(age_ms as f64 / 1_000.0);
        }
    }

    /// Creates an index, or begins the rebuild of one from an older version of the analysis.
    async fn prepare(&self, workspace: WorkspaceId) -> Result<bool, Error> {
        let write = async move |tx: &WriteTx<'_>| {
            match search_indexes::find_for_update(tx, workspace).await? {
                None => search_indexes::insert(tx, workspace, ANALYSIS).await?,
                Some(mut index) if index.analysis < ANALYSIS => {
                    index.analysis = ANALYSIS;
                    index.request_rebuild();
                    search_indexes::update(tx, workspace, &index).await?;
                }
                Some(_) => {}
            }
            Ok::<_, Error>(true)
        };
        let database = self.database.clone();
        self.run(async move { database.write_in_background("search.prepare", write).await }).await
    }

    /// Runs work on the database on the runtime of requests.
    async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        self.requests.spawn(work).await.map_err(galley_storage::Error::corrupt)?
    }
}

impl Batch {
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

    /// Analyses the texts of all documents that are not indexed yet.
    fn analyze(&mut self, database: &Database) {
        let mut items = std::mem::take(&mut self.items);
        for document in items.iter_mut().flat_map(|item| &mut item.documents) {
            let Some((texts, language)) = document.texts.take() else { continue };
            let number = self.add_partition(document.partition);
            let analyzed = Document::new(analyzer(), language, &texts.as_texts());
            let prefix = self.index.prefix(number);
            let engine = database.full_text_engine();
            document.terms = Some(DocumentTerms::new(engine, &analyzed, &prefix));
        }
        self.items = items;
    }
}

/// Returns the next batch. `None` if the index doesn't exist, or has another version.
async fn plan(tx: &Tx<'_>, workspace: WorkspaceId, rebuilds: bool) -> Result<Option<Batch>, Error> {
    let index = search_indexes::find(tx, workspace).await?;
    let Some(index) = index.filter(|index| index.analysis == ANALYSIS) else { return Ok(None) };
    let changes = if rebuilds && index.rebuild_after.is_some() {
        Vec::new()
    } else {
        search_indexes::changes(tx, workspace, index.sequence, CHANGES_LIMIT).await?
    };
    let mut batch = Batch {
        partitions: search_indexes::partitions(tx, workspace).await?,
        items: Vec::new(),
        documents: Vec::new(),
        last_event: None,
        affects_many: false,
        ends_rebuild: false,
        has_more: changes.len() == usize::try_from(CHANGES_LIMIT).unwrap_or_default(),
        index,
    };
    let mut pieces: Vec<(ContentPieceId, Progress)> = Vec::new();
    if changes.is_empty() {
        let Some(after) = &batch.index.rebuild_after else { return Ok(Some(batch)) };
        let found = search_indexes::pieces(tx, workspace, after, PIECES_LIMIT).await?;
        batch.ends_rebuild = found.is_empty();
        pieces.extend(found.into_iter().map(|piece| (piece, Progress::Rebuild(piece))));
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
                pieces.push((piece, Progress::Event(change.sequence, change.created_at)));
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
    batch: &mut Batch,
    pieces: Vec<(ContentPieceId, Progress)>,
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

/// The reader of the texts of pieces.
struct PieceReader<'t, 'a> {
    tx: &'t Tx<'a>,
    workspace: WorkspaceId,
    language: Option<String>,
    revision: i64,
    /// The effective schemas of groups.
    schemas: HashMap<ContentGroupId, Option<EffectiveSchema>>,
    keys: HashMap<VariantId, String>,
    size: usize,
}

impl<'t, 'a> PieceReader<'t, 'a> {
    async fn new(tx: &'t Tx<'a>, workspace: WorkspaceId, revision: i64) -> Result<Self, Error> {
        let found = workspaces::find(tx, workspace).await?;
        let language = found.and_then(|one| one.language).map(|tag| tag.as_str().to_owned());
        let (schemas, keys) = (HashMap::new(), HashMap::new());
        Ok(Self { tx, workspace, language, revision, schemas, keys, size: 0 })
    }

    /// Returns the documents of pieces. `None` if they are too large to be read at once.
    async fn read(
        &mut self,
        ids: &[ContentPieceId],
    ) -> Result<Option<Vec<(ContentPieceId, NewDocument)>>, Error> {
        let mut found = Vec::new();
        for view in [ContentView::Current, ContentView::Published] {
            let pieces = self.list(ids, view, None).await?;
            let mut of_variants: BTreeMap<VariantId, Vec<ContentPieceId>> = BTreeMap::new();
            for (piece, _) in &pieces {
                for &variant in &piece.variants {
                    of_variants.entry(variant).or_default().push(piece.id);
                }
            }
            self.add(&mut found, view, None, pieces).await?;
            let variants: Vec<VariantId> = of_variants.keys().copied().collect();
            for variant in variants::find_all(self.tx, self.workspace, &variants).await? {
                self.keys.insert(variant.id, variant.key.as_str().to_owned());
            }
            for (variant, ids) in of_variants {
                if self.size > READ_SIZE && ids.len() > 1 {
                    break;
                }
                let pieces = self.list(&ids, view, Some(variant)).await?;
                self.add(&mut found, view, Some(variant), pieces).await?;
            }
            if self.size > READ_SIZE && ids.len() > 1 {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }

    /// Lists pieces, until they are too large.
    async fn list(
        &mut self,
        ids: &[ContentPieceId],
        of: ContentView,
        variant: Option<VariantId>,
    ) -> Result<Vec<(ContentPiece, Option<String>)>, Error> {
        let filters = PieceFilters { ids: Some(ids.to_vec()), ..PieceFilters::default() };
        let limit = i64::try_from(ids.len()).unwrap_or(i64::MAX);
        let view = View { of, variant, content: true, skips_custom_data: false };
        let query = PieceListQuery { filters, limit, view, ..PieceListQuery::default() };
        let left = (READ_SIZE + 1).saturating_sub(self.size).max(1);
        let (pieces, is_cut) =
            content_piece_list::list_until(self.tx, self.workspace, &query, left).await?;
        let sizes = pieces.iter().map(galley_storage::content_pieces::size);
        self.size += sizes.sum::<usize>() + usize::from(is_cut) * READ_SIZE;
        Ok(pieces)
    }

    async fn add(
        &mut self,
        found: &mut Vec<(ContentPieceId, NewDocument)>,
        view: ContentView,
        variant: Option<VariantId>,
        pieces: Vec<(ContentPiece, Option<String>)>,
    ) -> Result<(), Error> {
        let tags: BTreeSet<TagId> =
            pieces.iter().flat_map(|(piece, _)| piece.fields.tags.iter().copied()).collect();
        let tags: Vec<TagId> = tags.into_iter().collect();
        let tags = tags::find_all(self.tx, self.workspace, &tags).await?;
        let tag = match variant {
            Some(variant) => self.keys.get(&variant).cloned(),
            None => self.language.clone(),
        };
        let language = language(tag.as_deref());
        let name = language.map_or("", galley_search::Language::tag);
        let analysis = format!("{ANALYSIS} {} {name}", self.revision);
        for (piece, tree) in pieces {
            let texts = PieceTexts::new(&piece, tree.as_deref());
            // A damaged piece must not keep the others from being indexed.
            let mut texts = texts.or_else(|error| {
                let (workspace, piece_id) = (self.workspace, piece.id);
                tracing::error!(%error, %workspace, piece = %piece_id, "a piece is indexed without content");
                PieceTexts::new(&piece, None)
            })?;
            let own = tags.iter().filter(|tag| piece.fields.tags.contains(&tag.id));
            texts.add_tags(own.map(|tag| tag.label.as_str()));
            if let Some(data) = &piece.fields.custom_data
                && let Some(schema) = self.schema_of(piece.content_group_id).await?
            {
                texts.add_custom_data(&schema.schema, data.as_str());
            }
            let partition = Partition { view, variant };
            let hash = texts.hash(&analysis);
            let texts = Some((texts, language));
            found.push((piece.id, NewDocument { partition, hash, texts, terms: None }));
        }
        Ok(())
    }

    async fn schema_of(
        &mut self,
        group: ContentGroupId,
    ) -> Result<Option<&EffectiveSchema>, Error> {
        if !self.schemas.contains_key(&group) {
            let schema = custom_data_schemas::effective(self.tx, self.workspace, group).await?;
            self.schemas
                .insert(group, schema.filter(|one| one.schema.as_str().contains("x-search")));
        }
        Ok(self.schemas.get(&group).and_then(Option::as_ref))
    }
}

/// Writes the documents of a batch from an item on, until the transaction should yield. Returns the
/// state of the index and the next item; `None` if the index is not as expected.
async fn write_from(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    batch: &Batch,
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
        if batch.affects_many {
            index.request_rebuild();
        }
    }
    let mut next = first;
    for items in batch.items[first..].chunks(PIECES_BEFORE_YIELD) {
        write_items(tx, workspace, batch, items, &mut index).await?;
        next += items.len();
        for item in items {
            match &item.progress {
                Progress::Event(sequence, _) => index.sequence = *sequence,
                Progress::Rebuild(piece) => {
                    index.rebuild_after = Some(piece.to_string());
                    index.rebuilt += 1;
                }
            }
        }
        if tx.should_yield() {
            break;
        }
    }
    if next == batch.items.len() {
        index.sequence = batch.last_event.unwrap_or(index.sequence);
        if batch.ends_rebuild {
            index.end_rebuild();
        }
    }
    search_indexes::update(tx, workspace, &index).await?;
    Ok(Some((index, next)))
}

async fn write_items(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    batch: &Batch,
    items: &[Item],
    index: &mut SearchIndex,
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
            index.last_row += 1;
            let hash = document.hash.clone();
            let row_id = index.last_row;
            added.push((IndexedDocument { piece: item.piece, partition, row_id, hash }, terms));
        }
    }
    search_indexes::delete_documents(tx, workspace, &removed).await?;
    search_indexes::insert_documents(tx, workspace, &added).await?;
    Ok(())
}
