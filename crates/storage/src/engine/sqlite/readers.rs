//! Connections for reads, and the threads for long reads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use galley_runtime::{AdmissionLimits, AdmissionQueue};
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::connection;
use super::files::FileWatch;
use crate::engine::erased::ErasedRead;
use crate::engine::error::{Error, Result};
use crate::engine::statement_log::StatementLog;
use crate::engine::transaction::Tx;

/// The time limit of a read on a request-serving thread.
const INLINE_READ_TIMEOUT: Duration = Duration::from_millis(20);

/// The time limit of a read on a thread of its own.
const THREAD_READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The limits of reads that wait for a thread.
const THREAD_LIMITS: AdmissionLimits =
    AdmissionLimits { timeout: THREAD_READ_TIMEOUT, burst: 4_096, sustained: 128 };

/// The number of virtual-machine instructions between two checks of the deadline.
const STEPS_BETWEEN_CHECKS: i32 = 1_000;

/// The connections for reads.
#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    watch: Arc<FileWatch>,
    idle: Mutex<Vec<Reader>>,
    threads: Arc<Semaphore>,
    admission: AdmissionQueue,
    log: Option<Arc<StatementLog>>,
}

/// A connection whose statements are interrupted at its deadline.
#[derive(Debug)]
struct Reader {
    connection: Connection,
    deadline: Deadline,
}

impl Readers {
    pub(super) fn new(
        path: &Path,
        watch: Arc<FileWatch>,
        threads: usize,
        log: Option<Arc<StatementLog>>,
    ) -> Self {
        let threads = Arc::new(Semaphore::new(threads.max(1)));
        let admission = AdmissionQueue::new(THREAD_LIMITS);
        Self { path: path.to_owned(), watch, idle: Mutex::default(), threads, admission, log }
    }

    /// Runs `read` in one snapshot on this thread, within the time limit of an inline read.
    pub(crate) fn run_inline(&self, read: &mut ErasedRead<'_>) -> Result<()> {
        self.run_unless(INLINE_READ_TIMEOUT, read, &Cancellation::default())
    }

    fn run_unless(
        &self,
        time_max: Duration,
        read: &mut ErasedRead<'_>,
        cancellation: &Cancellation,
    ) -> Result<()> {
        let mut reader = self.take()?;
        reader.deadline.set(time_max);
        cancellation.watch(&reader.deadline);
        begin(&reader.connection)?;
        read(&Tx::sqlite(&mut reader.connection, self.log.as_deref()));
        cancellation.release();
        reader.deadline.clear();
        // A connection that can't end its snapshot is closed.
        if end(&reader.connection).is_ok() {
            self.idle.lock().push(reader);
        }
        Ok(())
    }

    /// Runs `read` on a blocking thread; the number of concurrent runs is limited. A run is
    /// interrupted when the caller is dropped, and keeps its permit until it ends.
    pub(crate) async fn run_on_thread(
        readers: &Arc<Self>,
        mut read: Box<ErasedRead<'static>>,
    ) -> Result<()> {
        let admitted = readers.admission.wait(Arc::clone(&readers.threads).acquire_owned()).await;
        let permit = admitted.and_then(std::result::Result::ok).ok_or(Error::Overloaded)?;
        let readers = Arc::clone(readers);
        let cancellation = Arc::new(Cancellation::default());
        let _on_drop = CancelOnDrop(Arc::clone(&cancellation));
        let run = move || {
            let _permit = permit;
            readers.run_unless(THREAD_READ_TIMEOUT, &mut *read, &cancellation)
        };
        tokio::task::spawn_blocking(run).await.unwrap_or(Err(Error::Panicked))
    }

    /// Closes the idle connections.
    pub(super) fn close(&self) {
        self.idle.lock().clear();
    }

    fn take(&self) -> Result<Reader> {
        let idle = self.idle.lock().pop();
        if let Some(reader) = idle {
            return Ok(reader);
        }
        self.watch.check()?;
        let reader = Reader::open(&self.path)?;
        // The connection may have opened replaced files.
        self.watch.check()?;
        Ok(reader)
    }
}

impl Reader {
    fn open(path: &Path) -> Result<Self> {
        let mut connection = connection::open_reader(path)?;
        let deadline = Deadline::default();
        let watched = deadline.clone();
        connection.progress_handler(STEPS_BETWEEN_CHECKS, Some(move || watched.has_passed()))?;
        Ok(Self { connection, deadline })
    }
}

fn begin(connection: &Connection) -> Result<()> {
    Ok(connection.prepare_cached("BEGIN")?.raw_execute().map(drop)?)
}

fn end(connection: &Connection) -> Result<()> {
    Ok(connection.prepare_cached("COMMIT")?.raw_execute().map(drop)?)
}

/// A deadline that the connection's progress handler checks.
#[derive(Debug, Clone, Default)]
struct Deadline(Arc<AtomicU64>);

impl Deadline {
    fn set(&self, time_max: Duration) {
        self.0.store(now_us() + micros(time_max), Ordering::Relaxed);
    }

    fn expire(&self) {
        self.0.store(1, Ordering::Relaxed);
    }

    fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn has_passed(&self) -> bool {
        let deadline = self.0.load(Ordering::Relaxed);
        deadline != 0 && now_us() > deadline
    }
}

/// The cancellation of a read on a thread.
#[derive(Debug, Default)]
struct Cancellation(Mutex<Running>);

#[derive(Debug, Default)]
struct Running {
    is_cancelled: bool,
    /// The deadline of the connection that runs the read; afterwards another read uses the
    /// connection.
    deadline: Option<Deadline>,
}

impl Cancellation {
    fn watch(&self, deadline: &Deadline) {
        let mut running = self.0.lock();
        if running.is_cancelled {
            deadline.expire();
        }
        running.deadline = Some(deadline.clone());
    }

    fn release(&self) {
        self.0.lock().deadline = None;
    }
}

/// Cancels the read when dropped. A read that has ended is not affected.
struct CancelOnDrop(Arc<Cancellation>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let mut running = self.0.0.lock();
        running.is_cancelled = true;
        if let Some(deadline) = &running.deadline {
            deadline.expire();
        }
    }
}

/// Returns microseconds of a monotonic clock, above 0.
fn now_us() -> u64 {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    micros(START.elapsed()) + 1
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
