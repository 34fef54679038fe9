//! The thread that writes: it drains its queue and commits what it found as one group.
//!
//! One `COMMIT` makes the whole group durable, and only then is anybody answered. A closure that fails, or panics, undoes
//! itself alone: most of those have changed nothing by then, and the others have the group begin anew, this time with a
//! savepoint for each. Where SQLite itself rolled the group back (a full disk, an I/O error), everybody in it is told so.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{mpsc, oneshot};

use super::checkpoint::{CheckpointSignal, Gate};
use super::commit_counter::Commits;
use super::files::FileWatch;
use super::limits::NICENESS;
use super::{connection, poll_once};
use crate::engine::change_tracking::{Moment, Reach};
use crate::engine::commit_signal::CommitSignal;
use crate::engine::error::{Error, Failure, Result};
use crate::engine::options::Options;
use crate::engine::statement_log::StatementLog;
use crate::engine::transaction::{Tx, WriteTx};
use crate::engine::write_pressure::{Pressure, Slice};
use galley_runtime::{AdmissionLimits, AdmissionQueue, lower_priority};

/// How many writes may wait.
const QUEUE_MAX: usize = 1_024;

/// How many wait in all: of a crowd as many as come, but where the queue never empties few more than are committed together
/// once.
const BURST_LIMIT: usize = usize::MAX;
const SUSTAINED_LIMIT: usize = 192;

/// How many writes are committed together at the most.
const GROUP_MAX: usize = 128;

/// How long a group may grow before it is committed.
const GROUP_TIME_MAX: Duration = Duration::from_millis(20);

/// The writer thread's handle.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Mutex<Option<mpsc::Sender<Waiting>>>,
    admission: Arc<AdmissionQueue>,
    thread: Mutex<Option<JoinHandle<()>>>,
    wait_max: Duration,
}

#[derive(Debug)]
struct Waiting {
    job: Box<dyn Job>,
    deadline: Instant,
    /// What it stands back for, if it does.
    pressure: Option<Arc<Pressure>>,
}

/// One write, its closure's types erased.
trait Job: Send + std::fmt::Debug {
    /// Runs the closure and keeps its outcome; says whether its changes stand.
    fn run(
        &mut self,
        connection: &mut Connection,
        slice: Option<&Slice>,
    ) -> Result<(), Option<Error>>;

    /// Whether others wait for what the closure did.
    fn has_news(&self) -> bool;

    /// What the closure changed.
    fn take_reach(&mut self) -> Reach;

    /// Answers with the outcome, or with `failure` if there is one.
    fn answer(self: Box<Self>, failure: Option<&Error>);
}

struct Write<T, E, F> {
    name: &'static str,
    operation: F,
    outcome: Option<Result<T, E>>,
    has_news: bool,
    reach: Reach,
    reply: oneshot::Sender<Result<T, E>>,
    log: Option<Arc<StatementLog>>,
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        commits: Arc<Commits>,
        gate: Arc<Gate>,
        watch: Arc<FileWatch>,
        checkpoint: CheckpointSignal,
        commit_signal: CommitSignal,
        options: &Options,
    ) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE_MAX);
        let wait_max = options.write_wait_max;
        let limits =
            AdmissionLimits { timeout: wait_max, burst: BURST_LIMIT, sustained: SUSTAINED_LIMIT };
        let admission = Arc::new(AdmissionQueue::new(limits));
        let of_thread = Arc::clone(&admission);
        // One of a single thread may be left alone while somebody waits elsewhere.
        let has_threads =
            |runtime: &Handle| runtime.runtime_flavor() != RuntimeFlavor::CurrentThread;
        let runtime = Handle::try_current().ok().filter(has_threads);
        let thread = std::thread::Builder::new()
            .name("writer".to_owned())
            .spawn(move || {
                lower_priority(NICENESS);
                let admission = of_thread;
                Loop {
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

    /// Queues the write and waits for its group's commit.
    pub(super) async fn write<T, E, F>(
        &self,
        name: &'static str,
        operation: F,
        pressure: Option<Arc<Pressure>>,
        log: Option<Arc<StatementLog>>,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&WriteTx<'_>) -> Result<T, E> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let (has_news, reach) = (false, Reach::default());
        let job = Box::new(Write { name, operation, outcome: None, has_news, reach, reply, log });
        let waiting = Waiting { job, deadline: Instant::now() + self.wait_max, pressure };
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let queue = queue.ok_or(Error::Overloaded)?;
        // What nobody waits for can wait.
        let is_patient = waiting.pressure.is_some();
        if !is_patient && !self.admission.admits(queue.max_capacity() - queue.capacity()) {
            return Err(Error::Overloaded.into());
        }
        let sent = tokio::time::timeout(self.wait_max, queue.send(waiting)).await;
        if !matches!(sent, Ok(Ok(()))) {
            return Err(Error::Overloaded.into());
        }
        drop(queue);
        answer.await.unwrap_or_else(|_| Err(Error::Panicked.into()))
    }

    /// Lets the thread finish what is queued, and waits for it.
    pub(super) async fn close(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let joined = tokio::task::spawn_blocking(move || thread.map(JoinHandle::join)).await;
        if !matches!(joined, Ok(None | Some(Ok(())))) {
            tracing::error!("the writer thread panicked");
        }
    }
}

impl<T, E, F> Job for Write<T, E, F>
where
    T: Send,
    E: Failure,
    F: AsyncFn(&WriteTx<'_>) -> Result<T, E> + Send,
{
    fn run(
        &mut self,
        connection: &mut Connection,
        slice: Option<&Slice>,
    ) -> Result<(), Option<Error>> {
        let run = || {
            let tx = Tx::sqlite(connection, self.log.as_deref());
            let tx = WriteTx::new(tx, slice);
            let outcome = poll_once::finish_at_once(self.name, (self.operation)(&tx));
            (outcome, tx.has_news(), tx.reach())
        };
        // What it has changed is undone after a panic, so that nothing broken is seen.
        let (outcome, has_news, reach) = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
            tracing::error!(operation = self.name, "a write panicked; it was undone");
            (Err(Error::Panicked.into()), false, Reach::default())
        });
        if outcome.is_ok() {
            (self.has_news, self.reach) = (has_news, reach);
        }
        let verdict = match &outcome {
            Ok(_) => Ok(()),
            Err(error) => Err(error.storage_error().cloned()),
        };
        self.outcome = Some(outcome);
        verdict
    }

    fn has_news(&self) -> bool {
        self.has_news
    }

    fn take_reach(&mut self) -> Reach {
        std::mem::take(&mut self.reach)
    }

    fn answer(self: Box<Self>, failure: Option<&Error>) {
        let outcome = match failure {
            Some(error) => Err(error.clone().into()),
            None => self.outcome.unwrap_or_else(|| Err(Error::Overloaded.into())),
        };
        // Whoever asked may have gone; the write stands all the same.
        drop(self.reply.send(outcome));
    }
}

impl<T, E, F> std::fmt::Debug for Write<T, E, F> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Write").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Whether what a closure has changed before it failed is undone.
#[derive(Debug, PartialEq, Eq)]
enum Undone {
    /// It is, or there is nothing.
    Is,
    /// Only with all of its group.
    HasToBe,
}

/// A group's answers, given when this is dropped: also by a runtime that is about to end, and runs nothing more.
struct Answers {
    group: Vec<Waiting>,
    failure: Option<Error>,
}

impl Drop for Answers {
    fn drop(&mut self) {
        for waiting in std::mem::take(&mut self.group) {
            waiting.job.answer(self.failure.as_ref());
        }
    }
}

struct Loop {
    connection: Connection,
    commits: Arc<Commits>,
    gate: Arc<Gate>,
    watch: Arc<FileWatch>,
    checkpoint: CheckpointSignal,
    commit_signal: CommitSignal,
    waiting: mpsc::Receiver<Waiting>,
    admission: Arc<AdmissionQueue>,
    /// Where those who wait are: the runtime that the database was opened in.
    runtime: Option<Handle>,
}

impl Loop {
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

    /// Runs `first` and what waits behind it, and commits all of it as one group.
    fn run_group(&mut self, first: Waiting) {
        let gate = Arc::clone(&self.gate);
        let passed = gate.pass();
        if let Err(error) = self.check_files() {
            return self.answer_all(vec![first], Some(error));
        }
        let mut before = match self.begin() {
            Ok(before) => before,
            Err(error) => return self.answer_all(vec![first], Some(error)),
        };
        let started = Instant::now();
        let mut done: Vec<Waiting> = Vec::new();
        let mut next = Some(first);
        let mut has_savepoints = false;
        while let Some(waiting) = next.take() {
            if Instant::now() > waiting.deadline {
                waiting.job.answer(Some(&Error::Overloaded));
            } else {
                done.push(waiting);
                let mut ended = self.run_last(&mut done, has_savepoints);
                if matches!(ended, Ok(Undone::HasToBe)) {
                    has_savepoints = true;
                    ended = self.run_anew(&mut done).map(|anew| {
                        before = anew;
                        Undone::Is
                    });
                }
                if let Err(error) = ended {
                    self.recover();
                    self.answer_all(done, Some(error));
                    return;
                }
            }
            if done.len() < GROUP_MAX && started.elapsed() < GROUP_TIME_MAX {
                next = self.waiting.try_recv().ok();
            }
        }
        let mut reach = Reach::default();
        for waiting in &mut done {
            reach.add(waiting.job.take_reach());
        }
        let commit = || execute(&self.connection, "COMMIT");
        let mut failure = self.commits.commit(&self.connection, before, &reach, commit).err();
        if failure.is_some() {
            self.recover();
        } else if let Err(error) = self.check_files() {
            // The commit may be in a deleted file.
            failure = Some(error);
        } else {
            self.checkpoint.committed();
            if done.iter().any(|waiting| waiting.job.has_news()) {
                self.commit_signal.notify();
            }
        }
        drop(passed);
        self.answer_all(done, failure);
    }

    /// Answers a whole group from within the runtime. From here each answer would wake a sleeping thread of it for one
    /// request alone, which costs more than the request.
    fn answer_all(&self, group: Vec<Waiting>, failure: Option<Error>) {
        let answers = Answers { group, failure };
        match &self.runtime {
            Some(runtime) => drop(runtime.spawn(async move { drop(answers) })),
            None => drop(answers),
        }
    }

    /// Fails if a file of the database was unlinked or replaced, and has its contents rescued.
    fn check_files(&self) -> Result<()> {
        self.watch.check().inspect_err(|_| {
            connection::keep_off_files(&self.connection);
            self.checkpoint.committed();
        })
    }

    /// Begins a group; gives the moment before it.
    fn begin(&mut self) -> Result<Option<Moment>> {
        if let Err(error) = execute(&self.connection, "BEGIN IMMEDIATE") {
            self.recover();
            return Err(error);
        }
        // Here, so that what others have committed is known long before our commit is under way: who asks meanwhile
        // would have to wait until that is synced.
        Ok(self.commits.moment())
    }

    /// Runs what has come last. An error means that the whole group is gone.
    fn run_last(&mut self, group: &mut [Waiting], has_savepoints: bool) -> Result<Undone> {
        let Some(waiting) = group.last_mut() else { return Ok(Undone::Is) };
        let changes = self.connection.total_changes();
        if has_savepoints {
            execute(&self.connection, "SAVEPOINT one_write")?;
        }
        let slice = waiting.pressure.as_ref().map(Pressure::slice);
        let verdict = waiting.job.run(&mut self.connection, slice.as_ref());
        if self.connection.is_autocommit() {
            // SQLite rolled everything back by itself; going on would commit each statement alone.
            let cause = verdict.err().flatten();
            return Err(cause.unwrap_or(Error::StorageFull));
        }
        if !has_savepoints {
            let has_changed = self.connection.total_changes() != changes;
            return Ok(if verdict.is_err() && has_changed { Undone::HasToBe } else { Undone::Is });
        }
        if verdict.is_err() {
            execute(&self.connection, "ROLLBACK TO one_write")?;
        }
        execute(&self.connection, "RELEASE one_write")?;
        Ok(Undone::Is)
    }

    /// Runs a whole group once more, each closure in a savepoint, which costs a tenth more. Gives the moment before it.
    fn run_anew(&mut self, group: &mut [Waiting]) -> Result<Option<Moment>> {
        execute(&self.connection, "ROLLBACK")?;
        let before = self.begin()?;
        for count in 1..=group.len() {
            self.run_last(&mut group[..count], true)?;
        }
        Ok(before)
    }

    /// Ends a transaction that could not be committed.
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
