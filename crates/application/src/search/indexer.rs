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

use std::sync::Arc;
use std::time::{Duration, Instant};

use galley_domain::WorkspaceId;
use galley_runtime::lower_priority;
use galley_storage::{BackgroundShare, Database, Tx, WriteTx, search_indexes};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::ANALYSIS;
use super::batch::{IndexBatch, IndexProgress, Item, plan, write_from};
use crate::environment::Environment;
use crate::error::Error;
use crate::service::Service;

/// The niceness of the worker's thread, as that of deliveries.
const NICENESS: i32 = 10;

/// The interval between two scans: at least after a commit, and without commits.
const BUSY_INTERVAL: Duration = Duration::from_millis(20);
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// The part of time that scans of all workspaces may take.
const SCAN_SHARE: u32 = 20;

/// The limit of workspaces in a page of a scan.
const SCAN_PAGE: i64 = 256;

/// The limit on steps in a workspace before other workspaces are served. Every fourth step goes on
/// with a rebuild, which would otherwise wait while there are always new events.
const STEPS_LIMIT: usize = 16;
const STEPS_PER_REBUILD: usize = 4;

/// The lag from which on the index takes an equal share of the time for writes.
const PRIORITY_LAG: Duration = Duration::from_secs(30);

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

/// Returns true if the index of a workspace lacks changes, or is being built.
pub async fn is_behind(tx: &Tx<'_>, workspace: WorkspaceId) -> Result<bool, Error> {
    let behind = search_indexes::behind(tx, ANALYSIS, None, i64::MAX).await?;
    Ok(behind.iter().any(|one| one.workspace == workspace))
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
    let (mut failed_at, mut ahead) = (None, None);
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
        match indexer.step(workspace, true, &mut ahead).await {
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
#[derive(Clone)]
struct Indexer {
    database: Database,
    environment: Environment,
    requests: Handle,
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
        let mut ahead = None;
        for number in 1..=STEPS_LIMIT {
            if !self.step(workspace, number % STEPS_PER_REBUILD == 0, &mut ahead).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Indexes a batch: that in `ahead`, or one of a rebuild if `rebuilds` is set and there is one.
    /// Returns true if there may be more.
    ///
    /// The next batch of a rebuild is read and analysed while this one is written, and is then in
    /// `ahead`.
    async fn step(
        &self,
        workspace: WorkspaceId,
        rebuilds: bool,
        ahead: &mut Option<IndexBatch>,
    ) -> Result<bool, Error> {
        let batch = match ahead.take() {
            Some(batch) => batch,
            None => match self.plan(workspace, rebuilds, None).await? {
                Some(batch) => batch,
                None => return self.prepare(workspace).await,
            },
        };
        if batch.items.is_empty() && batch.last_event.is_none() && !batch.ends_rebuild {
            return Ok(false);
        }
        let batch = Arc::new(batch);
        let (indexer, own) = (self.clone(), Arc::clone(&batch));
        let writing = self.requests.spawn(async move { indexer.write(workspace, &own).await });
        let planned = if batch.continues_rebuild() {
            self.plan(workspace, rebuilds, Some(&batch)).await
        } else {
            Ok(None)
        };
        let written = writing.await.map_err(galley_storage::Error::corrupt)??;
        *ahead = planned?.filter(|_| written);
        Ok(!written || batch.has_more || batch.end().rebuild_after.is_some())
    }

    /// Reads and analyses the next batch, or that of a rebuild after another one.
    async fn plan(
        &self,
        workspace: WorkspaceId,
        rebuilds: bool,
        previous: Option<&IndexBatch>,
    ) -> Result<Option<IndexBatch>, Error> {
        let previous = previous.map(|batch| (batch.end(), batch.partitions.clone()));
        let plan = async move |tx: &Tx<'_>| plan(tx, workspace, rebuilds, previous.clone()).await;
        let database = self.database.clone();
        let planned = async move { database.read_long("search.plan", plan).await };
        let mut batch = self.run(planned).await?;
        if let Some(batch) = &mut batch {
            batch.analyze(&self.database);
        }
        Ok(batch)
    }

    /// Writes a batch. Returns false if the index is not as expected, as another node has indexed
    /// the same.
    async fn write(&self, workspace: WorkspaceId, batch: &Arc<IndexBatch>) -> Result<bool, Error> {
        let (mut index, mut next) = (batch.index.clone(), 0);
        loop {
            let (own, expected) = (Arc::clone(batch), index.clone());
            let write = async move |tx: &WriteTx<'_>| {
                write_from(tx, workspace, &own, &expected, next).await
            };
            let lag = self.lag(batch.items.get(next));
            // Before the write, so that a database that accepts none shows, too.
            if let Some(lag) = lag {
                metrics::gauge!("galley_search_lag_seconds").set(lag.as_secs_f64());
            }
            let is_late = lag.is_some_and(|lag| lag >= PRIORITY_LAG);
            let share = if is_late { BackgroundShare::Equal } else { BackgroundShare::Small };
            let written = self.database.write_with_share("search.index", share, write).await?;
            let Some((written, reached)) = written else { return Ok(false) };
            (index, next) = (written, reached);
            if next == batch.items.len() {
                return Ok(true);
            }
        }
    }

    /// Returns the age of an item's event; `None` for a piece of a rebuild.
    fn lag(&self, item: Option<&Item>) -> Option<Duration> {
        let IndexProgress::Event(_, created_at) = &item?.progress else { return None };
        let age_ms = self.environment.now().ms() - created_at.ms();
        Some(Duration::from_millis(u64::try_from(age_ms).unwrap_or_default()))
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
