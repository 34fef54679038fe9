//! The SQLite engine: one writer thread that commits in groups, and readers that run on the
//! caller's thread.
//!
//! Every commit is synced (`synchronous=FULL`) before the write returns. Checkpoints run on a
//! thread of their own, so that no write waits for one.

mod checkpoint;
mod commit_counter;
pub(crate) mod connection;
pub(crate) mod file;
mod files;
mod limits;
mod lock;
mod poll_once;
mod readers;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use galley_domain::WorkspaceId;

use crate::engine::change_tracking::{DataVersion, LastModified};
use crate::engine::commit_signal::CommitSignal;
use crate::engine::error::{Failure, Result};
use crate::engine::migrate;
use crate::engine::options::{Options, ProcessRole};
use crate::engine::statement_log::StatementLog;
use crate::engine::transaction::{Tx, WriteTx};
use crate::engine::write_pressure::WritePressure;
use checkpoint::{Checkpointer, Gate};
use commit_counter::CommitCounter;
pub(crate) use connection::open_reader;
pub(crate) use file::{StagedFile, back_up, check};
use files::FileWatch;
pub(crate) use lock::ServerLock;
pub(crate) use poll_once::finish_at_once;
use readers::Readers;
use writer::WriterThread;

/// An open SQLite file.
#[derive(Debug)]
pub(crate) struct Sqlite {
    path: PathBuf,
    readers: Arc<Readers>,
    writer: WriterThread,
    checkpointer: Checkpointer,
    commits: Arc<CommitCounter>,
    watch: Arc<FileWatch>,
    log: Option<Arc<StatementLog>>,
    lock: Option<ServerLock>,
}

impl Sqlite {
    pub(crate) fn open(
        path: &Path,
        options: &Options,
        commit_signal: CommitSignal,
    ) -> Result<Self> {
        let lock = match options.role {
            ProcessRole::Server => Some(ServerLock::take(path)?),
            ProcessRole::Command => None,
        };
        files::create_private(path)?;
        // SQLite creates its other files beside the target of a link.
        let (given, path) = (path, &files::resolved(path)?);
        if options.role == ProcessRole::Server {
            files::warn_of_rescued(path);
        }
        let mut connection = connection::open_writer(path)?;
        connection::warn_of_memory_statistics(&connection);
        migrate::bring_up_to_date(&mut connection, options)?;
        let watch = Arc::new(FileWatch::of(path, given)?);
        let gate = Arc::new(Gate::default());
        let checkpointer =
            Checkpointer::start(path, Arc::clone(&gate), Arc::clone(&watch), options.now)?;
        let commits = Arc::new(CommitCounter::of(path));
        let log = options.statement_log.clone();
        Ok(Self {
            path: path.to_owned(),
            readers: Arc::new(Readers::new(
                path,
                Arc::clone(&watch),
                options.connections,
                log.clone(),
            )),
            writer: WriterThread::start(
                connection,
                Arc::clone(&commits),
                gate,
                Arc::clone(&watch),
                checkpointer.signal(),
                commit_signal,
                options,
            ),
            checkpointer,
            commits,
            watch,
            log,
            lock,
        })
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Fails with [`crate::Error::Detached`] once a file of the database was unlinked or replaced.
    pub(crate) fn check_files(&self) -> Result<()> {
        self.watch.check()
    }

    /// Returns the current data version, if it can be read without a query.
    pub(crate) fn data_version(&self) -> Option<DataVersion> {
        self.commits.data_version()
    }

    /// Returns when `workspace` was last modified.
    pub(crate) fn last_modified(&self, workspace: WorkspaceId) -> LastModified {
        self.commits.last_modified(workspace)
    }

    /// Returns true if a server, such as this one, has the file open.
    pub(crate) fn is_served(&self) -> bool {
        self.lock.is_some() || ServerLock::take(&self.path).is_err()
    }

    /// Runs `operation` on this thread, within the time limit of an inline read.
    pub(crate) fn read_inline<T, E, F>(&self, name: &'static str, operation: &F) -> Result<T, E>
    where
        E: Failure,
        F: AsyncFn(&Tx<'_>) -> Result<T, E>,
    {
        self.readers.run(name, readers::INLINE_READ_TIMEOUT, operation)
    }

    /// Runs `operation` on a thread of its own, once one is free.
    pub(crate) async fn read_on_thread<T, E, F>(
        &self,
        name: &'static str,
        operation: F,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&Tx<'_>) -> Result<T, E> + Send + 'static,
    {
        Readers::run_on_thread(&self.readers, name, operation).await
    }

    pub(crate) async fn write<T, E, F>(
        &self,
        name: &'static str,
        operation: F,
        pressure: Option<Arc<WritePressure>>,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&WriteTx<'_>) -> Result<T, E> + Send + 'static,
    {
        self.writer.write(name, operation, pressure, self.log.clone()).await
    }

    pub(crate) async fn close(&self) {
        self.writer.close().await;
        self.readers.close();
        self.checkpointer.stop();
    }
}
