//! Resumable uploads of assets.
//!
//! The bytes of each request are stored as parts, which are files of their own. The last request
//! joins them to the file of the asset, and creates it in the transaction that ends the upload. So
//! the last part is never recorded: an interruption until then leaves an upload that continues.

use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use galley_assets::{FileName, StoreError};
use galley_domain::asset::{Asset, AssetUpload, UploadPart};
use galley_domain::publication::ContentView;
use galley_domain::{AssetId, Timestamp};
use galley_storage::{Tx, WriteTx, asset_uploads, assets};

use crate::caller::Caller;
use crate::error::Error;
use crate::operations::asset_files::{
    Upload, UploadedFile, check_size, delete_file, remove_unused,
};
use crate::operations::assets::{
    NewAsset, check_group, check_workspace_size, create_in, is_own, visible,
};
use crate::rejection::{Reason, Rejection};
use crate::running_appends::RunningAppend;
use crate::service::Service;

/// The time for which an upload can be continued.
const RETENTION: Duration = Duration::from_hours(7 * 24);

/// The limit on uploads of a workspace that have not ended.
const UPLOADS_LIMIT: i64 = 1_000;

/// The limit on parts of an upload.
const PARTS_LIMIT: i64 = 10_000;

/// The size of a part in bytes from which on the next one begins. An interruption of the server
/// loses the bytes of one part at most.
const PART_SIZE: u64 = 64 * 1024 * 1024;

/// The state of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadState {
    /// The size of the file in bytes.
    pub size: i64,
    /// The number of bytes that are stored.
    pub received: i64,
    /// The time of the upload's removal; `None` for one that is complete.
    pub expires_at: Option<Timestamp>,
    /// The client's description of the file; empty for an upload that is complete.
    pub metadata: String,
}

impl UploadState {
    fn of(upload: &AssetUpload) -> Self {
        Self {
            size: upload.size,
            received: upload.received,
            expires_at: Some(upload.expires_at),
            metadata: upload.metadata.clone(),
        }
    }

    const fn complete(size: i64) -> Self {
        Self { size, received: size, expires_at: None, metadata: String::new() }
    }
}

/// Begins an upload of a file of this size, whose first part comes at once. The upload of an empty
/// file is complete.
pub async fn create(
    caller: &Caller,
    new: NewAsset,
    size: u64,
    part_size: u64,
    metadata: String,
) -> Result<(AssetId, UploadState), Error> {
    let settings = &caller.service().settings().assets;
    check_size(size, settings.size_limit)?;
    let whole = i64::try_from(size).unwrap_or(i64::MAX);
    check_rest(whole, part_size)?;
    let environment = caller.environment();
    let upload = AssetUpload {
        id: AssetId::new(environment.new_id()),
        filename: new.filename,
        alt: new.alt,
        content_group_id: new.content_group_id,
        metadata,
        size: whole,
        received: 0,
        part_count: 0,
        expires_at: environment.now().later(RETENTION),
    };
    let (own, inserted) = (caller.clone(), upload.clone());
    let insert = async move |tx: &WriteTx<'_>| {
        let scope = own.scope();
        let workspace_limit = own.service().settings().assets.workspace_limit;
        check_group(tx, &scope, inserted.content_group_id).await?;
        let (count, expected) = asset_uploads::count(tx, scope.workspace, UPLOADS_LIMIT).await?;
        if count >= UPLOADS_LIMIT {
            let detail = "complete or delete other uploads first; they expire after seven days";
            return Err(Rejection::new(Reason::TooManyUploads, detail).into());
        }
        let size = expected.saturating_add(inserted.size);
        check_workspace_size(tx, scope.workspace, workspace_limit, size).await?;
        Ok(asset_uploads::insert(tx, scope.workspace, &inserted).await?)
    };
    caller.write("asset_uploads.create", insert).await?;
    let (id, state) = (upload.id, UploadState::of(&upload));
    if size > 0 {
        return Ok((id, state));
    }
    let running = caller.service().assets().running_appends.add(id);
    let append = Append { upload, part: None, running };
    Ok((id, append.finish(caller).await?))
}

/// An upload that has not ended, or the asset of one that is complete.
enum FoundUpload {
    Upload(AssetUpload),
    Asset(Asset),
}

/// Finds an upload whose asset the caller may change.
async fn find(caller: &Caller, id: AssetId) -> Result<FoundUpload, Error> {
    let (scope, now) = (caller.scope(), caller.environment().now());
    let read = async move |tx: &Tx<'_>| {
        let (found, group) = match asset_uploads::find(tx, scope.workspace, id, now).await? {
            Some(upload) => (Some(FoundUpload::Upload(upload.clone())), upload.content_group_id),
            None => {
                let asset = assets::find(tx, scope.workspace, id, visible(&scope)).await?;
                let group = asset.as_ref().and_then(|asset| asset.content_group_id);
                (asset.map(FoundUpload::Asset), group)
            }
        };
        match found {
            // Readers of the published view see the assets of published pieces only.
            Some(found)
                if scope.view == ContentView::Current && is_own(tx, &scope, group).await? =>
            {
                Ok(found)
            }
            _ => Err(Error::not_found()),
        }
    };
    caller.read("asset_uploads.find", read).await
}

/// Ends the request on this node that appends to an upload. Its bytes are stored, so a client whose
/// connection was lost continues behind them.
pub async fn interrupt(caller: &Caller, id: AssetId) -> Result<(), Error> {
    find(caller, id).await?;
    caller.service().assets().running_appends.interrupt(id).await;
    Ok(())
}

/// Returns the state of an upload.
pub async fn state(caller: &Caller, id: AssetId) -> Result<UploadState, Error> {
    Ok(match find(caller, id).await? {
        FoundUpload::Upload(upload) => UploadState::of(&upload),
        FoundUpload::Asset(asset) => UploadState::complete(asset.file.size),
    })
}

/// Deletes an upload that is not complete. A request that appends to it is ended first.
pub async fn delete(caller: &Caller, id: AssetId) -> Result<(), Error> {
    interrupt(caller, id).await?;
    let FoundUpload::Upload(upload) = find(caller, id).await? else {
        let detail = "the upload is complete: DELETE /assets deletes its asset";
        return Err(Rejection::new(Reason::UploadOffsetMismatch, detail).into());
    };
    end(caller, &upload).await
}

/// Ends an upload without an asset, and removes its parts.
async fn end(caller: &Caller, upload: &AssetUpload) -> Result<(), Error> {
    let (own, id, received) = (caller.clone(), upload.id, upload.received);
    let delete = async move |tx: &WriteTx<'_>| {
        let (workspace, now) = (own.workspace(), own.environment().now());
        let parts = asset_uploads::list_parts(tx, workspace, id).await?;
        if !asset_uploads::delete(tx, workspace, id, received, now).await? {
            return Err(continues_elsewhere().into());
        }
        Ok(parts)
    };
    let parts = caller.write("asset_uploads.delete", delete).await?;
    remove_parts(caller, &parts).await;
    Ok(())
}

/// Removes the files of parts. Without success, the housekeeping does it later.
async fn remove_parts(caller: &Caller, parts: &[UploadPart]) {
    for part in parts {
        delete_file(caller.service(), &part_name(caller, part)).await;
    }
}

fn part_name(caller: &Caller, part: &UploadPart) -> FileName {
    FileName::original(caller.workspace(), part.file)
}

/// Returns the rejection of bytes at another position than that of the upload.
fn continues_elsewhere() -> Rejection {
    let detail = "another request has continued or ended the upload: request its position";
    Rejection::new(Reason::UploadOffsetMismatch, detail)
}

/// The bytes of a request, which are appended to an upload.
#[derive(Debug)]
pub struct Append {
    upload: AssetUpload,
    part: Option<Upload>,
    running: RunningAppend,
}

/// The result of the begin of an append.
#[derive(Debug)]
pub enum Begun {
    /// The upload takes bytes.
    Append(Box<Append>),
    /// The upload is complete, and takes none.
    Complete(UploadState),
}

impl Append {
    /// Continues an upload at the position `first_byte`. A size that the client states is checked
    /// first.
    pub async fn begin(
        caller: &Caller,
        id: AssetId,
        first_byte: i64,
        stated_size: Option<u64>,
    ) -> Result<Begun, Error> {
        let (upload, size, received) = match find(caller, id).await? {
            FoundUpload::Asset(asset) => (None, asset.file.size, asset.file.size),
            FoundUpload::Upload(upload) => {
                let (size, received) = (upload.size, upload.received);
                (Some(upload), size, received)
            }
        };
        if first_byte != received {
            let detail = format!("the upload continues at {received}");
            return Err(Rejection::new(Reason::UploadOffsetMismatch, detail).into());
        }
        check_rest(size - received, stated_size.unwrap_or_default())?;
        let Some(upload) = upload else { return Ok(Begun::Complete(UploadState::complete(size))) };
        if upload.part_count >= PARTS_LIMIT {
            let detail = format!("an upload has at most {PARTS_LIMIT} parts: send larger ones");
            return Err(Rejection::new(Reason::PayloadTooLarge, detail).into());
        }
        let running = caller.service().assets().running_appends.add(id);
        Ok(Begun::Append(Box::new(Self { upload, part: None, running })))
    }

    /// Waits until another request interrupts this one.
    pub fn interrupted(&self) -> impl Future<Output = ()> + Send + use<> {
        self.running.interrupted()
    }

    fn part_size(&self) -> u64 {
        self.part.as_ref().map_or(0, Upload::size)
    }

    /// Returns the number of bytes that the upload lacks.
    fn missing(&self) -> i64 {
        let part = i64::try_from(self.part_size()).unwrap_or(i64::MAX);
        self.upload.size - self.upload.received - part
    }

    /// Appends bytes.
    pub async fn write(&mut self, caller: &Caller, bytes: Bytes) -> Result<(), Error> {
        check_rest(self.missing(), bytes.len() as u64)?;
        let part = match &mut self.part {
            Some(part) => part,
            None => self.part.insert(Self::begin_part(caller).await?),
        };
        part.write(bytes).await?;
        if self.part_size() >= PART_SIZE && self.missing() > 0 {
            self.store_part(caller).await?;
        }
        Ok(())
    }

    async fn begin_part(caller: &Caller) -> Result<Upload, Error> {
        Upload::begin_for(caller, None, RETENTION).await
    }

    /// Stores the part that has arrived, and records it.
    async fn store_part(&mut self, caller: &Caller) -> Result<(), Error> {
        let Some(part) = self.part.take() else { return Ok(()) };
        let size = i64::try_from(part.size()).unwrap_or(i64::MAX);
        let name = part.store().await?;
        let part = UploadPart { file: name.file, first_byte: self.upload.received, size };
        let (workspace, id) = (caller.workspace(), self.upload.id);
        let append = async move |tx: &WriteTx<'_>| {
            Ok::<_, Error>(asset_uploads::append_part(tx, workspace, id, part).await?)
        };
        if !caller.write("asset_uploads.append", append).await? {
            delete_file(caller.service(), &name).await;
            return Err(continues_elsewhere().into());
        }
        self.upload.received += size;
        self.upload.part_count += 1;
        Ok(())
    }

    /// Ends a request whose body was interrupted. The bytes that have arrived are kept, except for
    /// the last part of the file.
    pub async fn interrupt(mut self, caller: &Caller) -> Result<(), Error> {
        if self.missing() > 0 && self.part_size() > 0 {
            return self.store_part(caller).await;
        }
        if let Some(part) = self.part.take() {
            part.abort(caller).await;
        }
        Ok(())
    }

    /// Ends a request whose body has arrived. The asset is created if the file is complete.
    pub async fn finish(mut self, caller: &Caller) -> Result<UploadState, Error> {
        if self.missing() > 0 {
            self.store_part(caller).await?;
            return Ok(UploadState::of(&self.upload));
        }
        let last = match self.part.take() {
            Some(part) => part,
            None => Self::begin_part(caller).await?,
        };
        let file = if self.upload.received == 0 {
            last.finish(caller).await?
        } else {
            let last = last.store().await?;
            let joined = join(caller, &self.upload, &last).await;
            delete_file(caller.service(), &last).await;
            joined?
        };
        create_asset(caller, self.upload, file).await
    }
}

/// Joins all parts to a file.
async fn join(
    caller: &Caller,
    upload: &AssetUpload,
    last: &FileName,
) -> Result<UploadedFile, Error> {
    let (workspace, id) = (caller.workspace(), upload.id);
    let read = async move |tx: &Tx<'_>| {
        Ok::<_, Error>(asset_uploads::list_parts(tx, workspace, id).await?)
    };
    let parts = caller.read("asset_uploads.parts", read).await?;
    let mut names: Vec<_> = parts.iter().map(|part| part_name(caller, part)).collect();
    names.push(last.clone());
    let mut joined = Upload::begin(caller, u64::try_from(upload.size).ok()).await?;
    for name in names {
        match copy_part(caller.service(), &name, &mut joined).await {
            Ok(()) => {}
            Err(CopyError::Lost) => {
                // A restored database, or another store, has uploads without their parts.
                joined.abort(caller).await;
                end(caller, upload).await?;
                return Err(Error::not_found());
            }
            Err(CopyError::Failed(error)) => {
                joined.abort(caller).await;
                return Err(error);
            }
        }
    }
    if i64::try_from(joined.size()).ok() != Some(upload.size) {
        joined.abort(caller).await;
        return Err(continues_elsewhere().into());
    }
    joined.finish(caller).await
}

/// Ends the upload, and creates the asset of its file.
async fn create_asset(
    caller: &Caller,
    upload: AssetUpload,
    file: UploadedFile,
) -> Result<UploadState, Error> {
    let (own, stored, upload) = (caller.clone(), file.file.clone(), upload.clone());
    let create = async move |tx: &WriteTx<'_>| {
        let (scope, environment) = (own.scope(), own.environment());
        let parts = asset_uploads::list_parts(tx, scope.workspace, upload.id).await?;
        let (received, now) = (upload.received, environment.now());
        if !asset_uploads::delete(tx, scope.workspace, upload.id, received, now).await? {
            return Err(continues_elsewhere().into());
        }
        let settings = &own.service().settings().assets;
        let new = NewAsset {
            filename: upload.filename.clone(),
            alt: upload.alt.clone(),
            content_group_id: upload.content_group_id,
        };
        create_in(tx, environment, &scope, settings, upload.id, new, stored.clone()).await?;
        Ok(parts)
    };
    let created = caller.write("asset_uploads.finish", create).await;
    let service = caller.service();
    let store = &service.settings().assets.store;
    remove_unused(service.database(), store, &file.name, &created).await;
    remove_parts(caller, &created?).await;
    Ok(UploadState::complete(upload.size))
}

/// Rejects more bytes than an upload lacks.
fn check_rest(missing: i64, size: u64) -> Result<(), Error> {
    if i64::try_from(size).is_ok_and(|size| size <= missing) {
        return Ok(());
    }
    let detail = format!("the upload lacks only {missing} bytes");
    Err(Rejection::new(Reason::PayloadTooLarge, detail).into())
}

enum CopyError {
    /// The store has no such part.
    Lost,
    Failed(Error),
}

impl From<StoreError> for CopyError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound => Self::Lost,
            other => Self::Failed(other.into()),
        }
    }
}

async fn copy_part(service: &Service, part: &FileName, to: &mut Upload) -> Result<(), CopyError> {
    let store = &service.settings().assets.store;
    let size = store.size(part).await?;
    let mut bytes = store.stream(part, 0..size).await?;
    while let Some(chunk) = bytes.try_next().await? {
        to.write(chunk).await.map_err(CopyError::Failed)?;
    }
    Ok(())
}

/// The uploads that are removed at a time.
const EXPIRED_PER_READ: i64 = 100;

/// Removes expired uploads. The housekeeping removes their parts, which are leftovers.
pub async fn remove_expired(service: &Service) -> Result<(), Error> {
    let now = service.environment().now();
    loop {
        let read = async move |tx: &Tx<'_>| {
            Ok::<_, Error>(asset_uploads::expired(tx, now, EXPIRED_PER_READ).await?)
        };
        let expired = service.database().read("asset_uploads.expired", read).await?;
        if expired.is_empty() {
            return Ok(());
        }
        for (workspace, id, received) in expired {
            let delete = async move |tx: &WriteTx<'_>| {
                let deleted = asset_uploads::delete(tx, workspace, id, received, now);
                Ok::<_, Error>(deleted.await?)
            };
            service.database().write("asset_uploads.expire", delete).await?;
        }
    }
}
