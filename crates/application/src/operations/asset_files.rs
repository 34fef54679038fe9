//! Files of assets: their arrival in the store, and their removal. A file without a row is a
//! leftover, which the housekeeping removes.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use galley_assets::image::ENCODED_SIZE_LIMIT;
use galley_assets::{AssetStore, FileName, FileType, FileWriter, WrittenFile};
use galley_domain::asset::AssetFile;
use galley_domain::{AssetFileId, WorkspaceId};
use galley_storage::{Database, Tx, WriteTx, assets};

use crate::asset_resources::{AssetImages, UploadMemory};
use crate::caller::Caller;
use crate::environment::Environment;
use crate::error::Error;
use crate::rejection::{Reason, Rejection};
use crate::service::Service;

/// The time after which the file of an upload without an end is removed.
pub(crate) const UPLOAD_LIMIT: Duration = Duration::from_hours(24);

/// An upload whose bytes are arriving.
#[derive(Debug)]
pub struct Upload {
    name: FileName,
    writer: FileWriter,
    size_limit: u64,
    /// The memory of the parts that are being sent to the store.
    _memory: UploadMemory,
}

impl Upload {
    /// Begins an upload. A size that the client states is checked first. Waits while other uploads
    /// have the memory.
    pub async fn begin(caller: &Caller, stated_size: Option<u64>) -> Result<Self, Error> {
        Self::begin_for(caller, stated_size, UPLOAD_LIMIT).await
    }

    /// Begins an upload whose file is removed after `limit`, if it has no row then.
    pub(crate) async fn begin_for(
        caller: &Caller,
        stated_size: Option<u64>,
        limit: Duration,
    ) -> Result<Self, Error> {
        let service = caller.service();
        let settings = &service.settings().assets;
        let size_limit = settings.size_limit;
        check_size(stated_size.unwrap_or_default(), size_limit)?;
        let memory = service.assets().upload_memory(stated_size).await?;
        let (database, environment) = (service.database(), caller.environment());
        let name = begin_file(database, environment, caller.workspace(), limit).await?;
        let writer = settings.store.writer(&name);
        Ok(Self { name, writer, size_limit, _memory: memory })
    }

    /// Returns the number of bytes that were written.
    pub(crate) const fn size(&self) -> u64 {
        self.writer.size()
    }

    /// Appends bytes.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), Error> {
        check_size(self.writer.size() + bytes.len() as u64, self.size_limit)?;
        Ok(self.writer.write(bytes).await?)
    }

    /// Ends an upload that is rejected, or whose client has disconnected.
    pub async fn abort(self, caller: &Caller) {
        self.writer.abort().await;
        delete_file(caller.service(), &self.name).await;
    }

    /// Completes the file. Returns its name.
    pub(crate) async fn store(self) -> Result<FileName, Error> {
        self.writer.finish().await?;
        Ok(self.name)
    }

    /// Completes the file, and detects its type.
    pub async fn finish(self, caller: &Caller) -> Result<UploadedFile, Error> {
        let Self { name, writer, .. } = self;
        let written = writer.finish().await?;
        let service = caller.service();
        let store = &service.settings().assets.store;
        let file = inspect(store, &service.assets().images, &name, written).await?;
        Ok(UploadedFile { name, file })
    }
}

/// Names a new file. From here on, an interruption leaves a file that the housekeeping knows, and
/// removes after `limit`.
pub(crate) async fn begin_file(
    database: &Database,
    environment: &Environment,
    workspace: WorkspaceId,
    limit: Duration,
) -> Result<FileName, Error> {
    let file = AssetFileId::new(environment.new_id());
    let remove_at = environment.now().later(limit);
    let insert = async move |tx: &WriteTx<'_>| {
        Ok::<_, Error>(assets::insert_leftover(tx, workspace, file, remove_at).await?)
    };
    database.write("assets.begin", insert).await?;
    Ok(FileName::original(workspace, file))
}

pub(crate) fn check_size(size: u64, limit: u64) -> Result<(), Error> {
    if size <= limit {
        return Ok(());
    }
    let detail = format!("an asset may have at most {limit} bytes");
    Err(Rejection::new(Reason::PayloadTooLarge, detail).into())
}

/// A file in the store that has no row yet.
#[derive(Debug, Clone)]
pub struct UploadedFile {
    pub(crate) name: FileName,
    pub(crate) file: AssetFile,
}

impl UploadedFile {
    /// Returns the SHA-256 of its bytes.
    pub const fn sha256(&self) -> &[u8; 32] {
        &self.file.sha256
    }

    /// Deletes the file. Without success, the housekeeping does it later.
    pub async fn discard(&self, caller: &Caller) {
        delete_file(caller.service(), &self.name).await;
    }
}

/// Returns the properties of a stored file.
pub(crate) async fn inspect(
    store: &AssetStore,
    images: &AssetImages,
    name: &FileName,
    written: WrittenFile,
) -> Result<AssetFile, Error> {
    let FileType { media_type, image } = FileType::detect(&written.head);
    let stored = galley_assets::image::stored_dimensions(&written.head);
    let mut dimensions = stored.filter(|_| media_type.starts_with("image/"));
    let mut placeholder = None;
    if let Some(format) = image.filter(|_| written.size <= ENCODED_SIZE_LIMIT) {
        let bytes = store.read(name).await?;
        match images.inspect(bytes, format).await? {
            Ok((found, hash)) => (dimensions, placeholder) = (Some(found), Some(hash)),
            // The file is stored as it is, and has no renditions.
            Err(error) => tracing::debug!(%error, %name, "an image can't be read"),
        }
    }
    Ok(AssetFile {
        id: name.file,
        sha256: written.sha256,
        size: i64::try_from(written.size).unwrap_or(i64::MAX),
        media_type: media_type.to_owned(),
        dimensions: dimensions.map(|found| (found.width.into(), found.height.into())),
        placeholder,
    })
}

/// Removes a stored file whose creation of an asset has ended, if it has got no row: an equal file,
/// a replayed response and a rejection leave it without one.
pub(crate) async fn remove_unused<T>(
    database: &Database,
    store: &AssetStore,
    name: &FileName,
    created: &Result<T, Error>,
) {
    // A failed transaction may still be committed. The housekeeping decides later.
    if !matches!(created, Err(Error::Storage(_)))
        && matches!(has_row(database, name).await, Ok(false))
    {
        warn_of_failure(remove_stored(database, store, name).await, name);
    }
}

/// Logs a removal without success, which the housekeeping repeats.
fn warn_of_failure(removed: Result<(), Error>, name: &FileName) {
    if let Err(error) = removed {
        tracing::warn!(%error, %name, "a file of an asset could not be removed yet");
    }
}

/// Removes a file and its renditions from the store. Without success, the housekeeping does it
/// later.
pub(crate) async fn delete_file(service: &Service, name: &FileName) {
    warn_of_failure(remove_file(service, name).await, name);
}

/// Removes a file from the cache, and from the store.
async fn remove_file(service: &Service, name: &FileName) -> Result<(), Error> {
    service.assets().images.remove(name);
    remove_stored(service.database(), &service.settings().assets.store, name).await
}

/// Removes a file and its renditions from the store, and then the leftover.
pub(crate) async fn remove_stored(
    database: &Database,
    store: &AssetStore,
    name: &FileName,
) -> Result<(), Error> {
    store.delete(name).await?;
    let (workspace, file) = (name.workspace, name.file);
    let delete = async move |tx: &WriteTx<'_>| {
        Ok::<_, Error>(assets::delete_leftover(tx, workspace, file).await?)
    };
    database.write("assets.removed", delete).await
}

/// Returns true if a file has a row.
pub async fn has_row(database: &Database, name: &FileName) -> Result<bool, Error> {
    let (workspace, id) = (name.workspace, name.file);
    let find = async move |tx: &Tx<'_>| {
        Ok::<_, Error>(assets::existing_files(tx, workspace, &[id]).await?)
    };
    Ok(!database.read("assets.file", find).await?.is_empty())
}

/// The leftovers that are removed at a time.
const LEFTOVERS_PER_READ: usize = 100;

/// The failed removals after which the store counts as unavailable.
const FAILURES_LIMIT: usize = 10;

/// Removes the files of interrupted uploads and deletions from the store. Returns their number. A
/// file that can't be removed does not keep the others.
pub async fn remove_leftovers(service: &Service) -> Result<usize, Error> {
    let now = service.environment().now();
    let (mut removed, mut failed) = (0, HashSet::new());
    loop {
        let limit = i64::try_from(LEFTOVERS_PER_READ + failed.len()).unwrap_or(i64::MAX);
        let read =
            async move |tx: &Tx<'_>| Ok::<_, Error>(assets::due_leftovers(tx, now, limit).await?);
        let mut due = service.database().read("assets.leftovers", read).await?;
        due.retain(|leftover| !failed.contains(leftover));
        if due.is_empty() {
            return Ok(removed);
        }
        for (workspace, file) in due {
            let claim = async move |tx: &WriteTx<'_>| {
                Ok::<_, Error>(assets::claim_leftover(tx, workspace, file).await?)
            };
            if !service.database().write("assets.claim", claim).await? {
                continue;
            }
            let name = FileName::original(workspace, file);
            match remove_file(service, &name).await {
                Ok(()) => removed += 1,
                Err(error) if failed.len() >= FAILURES_LIMIT => return Err(error),
                failure @ Err(_) => {
                    warn_of_failure(failure, &name);
                    failed.insert((workspace, file));
                }
            }
        }
    }
}
