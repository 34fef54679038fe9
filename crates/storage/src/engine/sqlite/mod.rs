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
mod readers;
mod seal;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;

use crate::engine::error::Result;
use crate::engine::migrate;
use crate::engine::options::{Options, ProcessRole};
use crate::engine::statement_log::StatementLog;
use checkpoint::{Checkpointer, Gate};
use commit_counter::CommitCounter;
pub(crate) use connection::open_reader;
pub use file::StagedFile;
pub(crate) use file::{back_up, check, restore};
use files::FileWatch;
pub(crate) use lock::ServerLock;
pub(crate) use readers::Readers;
pub(crate) use seal::{check as check_seal, seal};
use writer::WriterThread;

/// An open SQLite file.
#[derive(Debug)]
pub(crate) struct Sqlite {
    pub(crate) path: PathBuf,
    pub(crate) readers: Arc<Readers>,
    pub(crate) writer: WriterThread,
    checkpointer: Checkpointer,
    pub(crate) commits: Arc<CommitCounter>,
    pub(crate) watch: Arc<FileWatch>,
    pub(crate) log: Option<Arc<StatementLog>>,
    lock: Option<ServerLock>,
}

impl Sqlite {
    pub(crate) fn open(
        path: &Path,
        options: &Options,
        commit_signal: watch::Sender<u64>,
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

    /// Returns true if a server, such as this one, has the file open.
    pub(crate) fn is_served(&self) -> bool {
        self.lock.is_some() || ServerLock::take(&self.path).is_err()
    }

    pub(crate) async fn close(&self) {
        self.writer.close().await;
        self.readers.close();
        self.checkpointer.stop();
    }
}
