//! The writer thread: it drains its queue and commits the queued writes as one group.
//!
//! One `COMMIT` makes the whole group durable, and only then are its outcomes sent. A closure that
//! fails or panics affects no other write. Usually it has changed nothing, and the group continues.
//! Otherwise the group is rolled back and retried, with a savepoint for each closure. If SQLite
//! itself rolled the group back (a full disk, an I/O error), all its writes fail.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use galley_runtime::{AdmissionLimits, AdmissionQueue, lower_priority};
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{mpsc, oneshot, watch};

use super::checkpoint::{CheckpointSignal, Gate};
use super::commit_counter::CommitCounter;
use super::connection;
use super::files::FileWatch;
use super::limits::NICENESS;
use crate::engine::change_tracking::{ChangeScope, DataVersion};
use crate::engine::erased::{ErasedWrite, OperationFailure};
use crate::engine::error::{Error, Result};
use crate::engine::options::Options;
use crate::engine::poll_once::finish_at_once;
use crate::engine::statement_log::StatementLog;
use crate::engine::transaction::Tx;
use crate::engine::write_pressure::WritePressure;
use crate::engine::write_transaction::{CommittedState, WriteTx};
use crate::tables::event_append::insert_appended;

/// The capacity of the queue.
const QUEUE_CAPACITY: usize = 1_024;

/// The limits of waiting foreground writes. Only the queue's capacity limits a burst. Under
/// sustained load, one and a half groups may wait.
const BURST_LIMIT: usize = usize::MAX;
const SUSTAINED_LIMIT: usize = 192;

/// The limit of writes in a group.
const GROUP_SIZE_LIMIT: usize = 128;

/// The time for which a group may grow before it is committed.
const GROUP_TIME_LIMIT: Duration = Duration::from_millis(20);

/// The writer thread's handle.
#[derive(Debug)]
pub(crate) struct WriterThread {
    queue: Mutex<Option<mpsc::Sender<QueuedWrite>>>,
    admission: Arc<AdmissionQueue>,
    thread: Mutex<Option<JoinHandle<()>>>,
    wait_max: Duration,
}

struct QueuedWrite {
    name: &'static str,
    operation: Box<ErasedWrite>,
    /// The outcome of the last run; `None` until it has run.
    outcome: Option<Result<(), OperationFailure>>,
    must_notify: bool,
    reply: oneshot::Sender<Result<(), OperationFailure>>,
    log: Option<Arc<StatementLog>>,
    deadline: Instant,
    /// The write pressure to which a background write yields; `None` for a foreground write.
    pressure: Option<Arc<WritePressure>>,
}

impl WriterThread {
    pub(super) fn start(
        connection: Connection,
        commits: Arc<CommitCounter>,
        gate: Arc<Gate>,
        watch: Arc<FileWatch>,
        checkpoint: CheckpointSignal,
        commit_signal: watch::Sender<u64>,
        options: &Options,
    ) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE_CAPACITY);
        let wait_max = options.write_timeout;
        let limits =
            AdmissionLimits { timeout: wait_max, burst: BURST_LIMIT, sustained: SUSTAINED_LIMIT };
        let admission = Arc::new(AdmissionQueue::new(limits));
        let of_thread = Arc::clone(&admission);
        // A single-threaded runtime runs nothing while its thread is blocked, so this thread sends
        // the outcomes.
        let has_threads =
            |runtime: &Handle| runtime.runtime_flavor() != RuntimeFlavor::CurrentThread;
        let runtime = Handle::try_current().ok().filter(has_threads);
        let thread = std::thread::Builder::new()
            .name("writer".to_owned())
            .spawn(move || {
                lower_priority(NICENESS);
                let admission = of_thread;
                WriterLoop {
                    connection,
                    commits,
                    gate,
                    watch,
                    checkpoint,
                    commit_signal,
                    waiting,
                    admission,
                    runtime,
                }
                .run();
            })
            .expect("the system starts a thread at the program's start");
        Self {
            queue: Mutex::new(Some(queue)),
            admission,
            thread: Mutex::new(Some(thread)),
            wait_max,
        }
    }

    /// Queues a write, and waits for the commit of its group.
    pub(crate) async fn write(
        &self,
        name: &'static str,
        operation: Box<ErasedWrite>,
        pressure: Option<Arc<WritePressure>>,
        log: Option<Arc<StatementLog>>,
    ) -> Result<(), OperationFailure> {
        let overloaded = || OperationFailure::Failed(Error::Overloaded);
        let (reply, response) = oneshot::channel();
        let waiting = QueuedWrite {
            name,
            operation,
            outcome: None,
            must_notify: false,
            reply,
            log,
            deadline: Instant::now() + self.wait_max,
            pressure,
        };
        let queue = self.queue.lock().clone();
        let queue = queue.ok_or_else(overloaded)?;
        // Admission control rejects no background write; these wait for a place in the queue.
        let is_background = waiting.pressure.is_some();
        if !is_background && !self.admission.admits(queue.max_capacity() - queue.capacity()) {
            return Err(overloaded());
        }
        let sent = tokio::time::timeout(self.wait_max, queue.send(waiting)).await;
        if !matches!(sent, Ok(Ok(()))) {
            return Err(overloaded());
        }
        drop(queue);
        response.await.unwrap_or(Err(OperationFailure::Failed(Error::Panicked)))
    }

    /// Completes the queued writes, and stops the thread.
    pub(super) async fn close(&self) {
        self.queue.lock().take();
        let thread = self.thread.lock().take();
        let joined = tokio::task::spawn_blocking(move || thread.map(JoinHandle::join)).await;
        if !matches!(joined, Ok(None | Some(Ok(())))) {
            tracing::error!("the writer thread panicked");
        }
    }
}

impl QueuedWrite {
    /// Runs the operation, and returns the scope of its changes. Returns an error if they must be
    /// undone, with the store's error if that is the cause.
    fn run(
        &mut self,
        connection: &mut Connection,
        committed: Option<CommittedState<'_>>,
    ) -> Result<ChangeScope, Option<Error>> {
        let slice = self.pressure.as_ref().map(WritePressure::slice);
        let (name, operation, log) = (self.name, &mut self.operation, self.log.as_deref());
        let run = || {
            let tx = WriteTx::new(Tx::sqlite(connection, log), slice.as_ref());
            let tx = tx.with_committed_state(committed);
            let result = operation(&tx).and_then(|()| {
                let inserted = finish_at_once(name, insert_appended(&tx));
                inserted.map_err(OperationFailure::Failed)
            });
            (result, tx.must_notify(), tx.change_scope())
        };
        // After a panic, the changes are rolled back, so that no broken state is visible.
        let (result, must_notify, scope) =
            catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
                tracing::error!(operation = name, "a write panicked and was rolled back");
                let panicked = OperationFailure::Failed(Error::Panicked);
                (Err(panicked), false, ChangeScope::default())
            });
        if result.is_ok() {
            self.must_notify = must_notify;
        }
        let ended = result.clone().map_err(OperationFailure::into_storage_error);
        self.outcome = Some(result);
        ended.map(|()| scope)
    }

    /// Sends the outcome, or `failure` if there is one.
    fn send_outcome(self, failure: Option<&Error>) {
        let failed = |error| Err(OperationFailure::Failed(error));
        let outcome = match failure {
            Some(error) => failed(error.clone()),
            None => self.outcome.unwrap_or_else(|| failed(Error::Overloaded)),
        };
        // The caller may have been dropped; its write is committed regardless.
        drop(self.reply.send(outcome));
    }
}

/// Writes that are committed together.
struct WriteGroup {
    writes: Vec<QueuedWrite>,
    /// The data version before the group.
    before: Option<DataVersion>,
    /// The scope of the changes so far.
    scope: ChangeScope,
    /// True if each write has a savepoint.
    has_savepoints: bool,
}

/// The state of a group after one of its closures.
#[derive(Debug, PartialEq, Eq)]
enum GroupIntegrity {
    /// The group has no changes of failed closures.
    Intact,
    /// The closure failed, and its changes can only be rolled back with the whole group.
    NeedsRollback,
}

/// A group's outcomes, sent when this is dropped. A runtime that shuts down drops its tasks without
/// running them, and so sends them, too.
struct GroupOutcomes {
    group: Vec<QueuedWrite>,
    failure: Option<Error>,
}

impl Drop for GroupOutcomes {
    fn drop(&mut self) {
        for waiting in std::mem::take(&mut self.group) {
            waiting.send_outcome(self.failure.as_ref());
        }
    }
}

struct WriterLoop {
    connection: Connection,
    commits: Arc<CommitCounter>,
    gate: Arc<Gate>,
    watch: Arc<FileWatch>,
    checkpoint: CheckpointSignal,
    commit_signal: watch::Sender<u64>,
    waiting: mpsc::Receiver<QueuedWrite>,
    admission: Arc<AdmissionQueue>,
    /// The runtime in which the database was opened, if it has several threads.
    runtime: Option<Handle>,
}

impl WriterLoop {
    fn run(mut self) {
        loop {
            let first = self.waiting.try_recv().ok().or_else(|| {
                let first = self.waiting.blocking_recv();
                self.admission.note_drained();
                first
            });
            let Some(first) = first else { return };
            self.run_group(first);
        }
    }

    /// Runs `first` and the writes queued behind it, and commits them as one group.
    fn run_group(&mut self, first: QueuedWrite) {
        // Waits while the checkpointer restarts the log.
        let gate = Arc::clone(&self.gate);
        let gate_guard = gate.enter();
        if let Err(error) = self.check_files() {
            return self.send_outcomes(vec![first], Some(error));
        }
        let mut group = match self.begin() {
            Ok(before) => {
                let (writes, scope) = (Vec::new(), ChangeScope::default());
                WriteGroup { writes, before, scope, has_savepoints: false }
            }
            Err(error) => return self.send_outcomes(vec![first], Some(error)),
        };
        let started = Instant::now();
        let mut next = Some(first);
        while let Some(waiting) = next.take() {
            if Instant::now() > waiting.deadline {
                waiting.send_outcome(Some(&Error::Overloaded));
            } else {
                group.writes.push(waiting);
                let last = group.writes.len() - 1;
                let mut ended = self.run_write(&mut group, last);
                if matches!(ended, Ok(GroupIntegrity::NeedsRollback)) {
                    ended = self.retry_with_savepoints(&mut group);
                }
                if let Err(error) = ended {
                    self.recover();
                    self.send_outcomes(group.writes, Some(error));
                    return;
                }
            }
            if group.writes.len() < GROUP_SIZE_LIMIT && started.elapsed() < GROUP_TIME_LIMIT {
                next = self.waiting.try_recv().ok();
            }
        }
        let commit = || execute(&self.connection, "COMMIT");
        let WriteGroup { writes: done, before, scope, .. } = group;
        let mut failure = self.commits.commit(&self.connection, before, &scope, commit).err();
        if failure.is_some() {
            self.recover();
        } else if let Err(error) = self.check_files() {
            // The commit may be in a deleted file.
            failure = Some(error);
        } else {
            self.checkpoint.committed();
            if done.iter().any(|waiting| waiting.must_notify) {
                self.commit_signal.send_modify(|count| *count += 1);
            }
        }
        drop(gate_guard);
        self.send_outcomes(done, failure);
    }

    /// Sends a group's outcomes by a task. Sent from this thread, each outcome would wake a thread
    /// of the runtime, which costs more than the request itself.
    fn send_outcomes(&self, group: Vec<QueuedWrite>, failure: Option<Error>) {
        let outcomes = GroupOutcomes { group, failure };
        match &self.runtime {
            Some(runtime) => drop(runtime.spawn(async move { drop(outcomes) })),
            None => drop(outcomes),
        }
    }

    /// Fails if a file of the database was unlinked or replaced, and signals the checkpointer,
    /// which then copies the contents to another file.
    fn check_files(&self) -> Result<()> {
        self.watch.check().inspect_err(|_| {
            connection::disable_checkpoint_on_close(&self.connection);
            self.checkpoint.committed();
        })
    }

    /// Begins a group. Returns the data version before it.
    fn begin(&mut self) -> Result<Option<DataVersion>> {
        if let Err(error) = execute(&self.connection, "BEGIN IMMEDIATE") {
            self.recover();
            return Err(error);
        }
        // Records commits of other processes now. Recorded during this commit, they would block
        // readers of the data version until the sync.
        Ok(self.commits.data_version())
    }

    /// Runs one write of the group, after those before it. An error means that the whole group is
    /// lost.
    fn run_write(&mut self, group: &mut WriteGroup, index: usize) -> Result<GroupIntegrity> {
        let WriteGroup { writes, before, scope, has_savepoints } = group;
        let Some(waiting) = writes.get_mut(index) else { return Ok(GroupIntegrity::Intact) };
        let changes = self.connection.total_changes();
        if *has_savepoints {
            execute(&self.connection, "SAVEPOINT one_write")?;
        }
        let last_modified = self.commits.last_modified_map();
        let committed =
            before.map(|version| CommittedState { version, last_modified, earlier: scope });
        let result = waiting.run(&mut self.connection, committed);
        let result = result.map(|changed| scope.add(changed));
        if self.connection.is_autocommit() {
            // SQLite rolled back the transaction itself; further statements would each be committed
            // alone.
            let cause = result.err().flatten();
            return Err(cause.unwrap_or(Error::StorageFull));
        }
        if !*has_savepoints {
            let has_changed = self.connection.total_changes() != changes;
            return Ok(if result.is_err() && has_changed {
                GroupIntegrity::NeedsRollback
            } else {
                GroupIntegrity::Intact
            });
        }
        if result.is_err() {
            execute(&self.connection, "ROLLBACK TO one_write")?;
        }
        execute(&self.connection, "RELEASE one_write")?;
        Ok(GroupIntegrity::Intact)
    }

    /// Rolls back a group and retries it with a savepoint for each closure, which makes its writes
    /// a tenth slower.
    fn retry_with_savepoints(&mut self, group: &mut WriteGroup) -> Result<GroupIntegrity> {
        execute(&self.connection, "ROLLBACK")?;
        group.before = self.begin()?;
        group.scope = ChangeScope::default();
        group.has_savepoints = true;
        for index in 0..group.writes.len() {
            self.run_write(group, index)?;
        }
        Ok(GroupIntegrity::Intact)
    }

    /// Rolls back a transaction that could not be committed.
    fn recover(&mut self) {
        if !self.connection.is_autocommit()
            && let Err(error) = execute(&self.connection, "ROLLBACK")
        {
            tracing::error!(%error, "a failed transaction could not be rolled back");
        }
    }
}

fn execute(connection: &Connection, sql: &str) -> Result<()> {
    Ok(connection.prepare_cached(sql)?.raw_execute().map(drop)?)
}
