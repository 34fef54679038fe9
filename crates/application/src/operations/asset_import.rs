//! Files that an import stores as assets, beside the requests of a server or without one.

use std::fs::File;
use std::io::Read;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use galley_assets::{FileName, StoreError};
use galley_domain::asset::{Asset, AssetFile, AssetFilename};
use galley_domain::text::ShortText;
use galley_domain::{AssetId, AssetKey, ContentGroupId, Timestamp};
use galley_storage::assets::{self, AssetFilter};
use galley_storage::{Database, Tx, WriteTx};

use crate::asset_resources::{AssetResources, AssetSettings};
use crate::environment::Environment;
use crate::error::Error;
use crate::operations::asset_files::{
    UPLOAD_LIMIT, begin_file, check_size, inspect, remove_stored, remove_unused,
};
use crate::operations::asset_maintenance::{ALL, AssetList};
use crate::operations::assets::{NewAsset, create_in, share_file};
use crate::operations::restored_version;
use crate::rejection::{Reason, Rejection};
use crate::scope::Scope;

/// The place of imported assets: a workspace of a database, and the store of the files.
#[derive(Debug, Clone)]
pub struct AssetDestination {
    database: Database,
    environment: Environment,
    scope: Scope,
    settings: AssetSettings,
    resources: Arc<AssetResources>,
}

impl AssetDestination {
    /// Creates the destination. The author of the assets is that of `scope`.
    pub fn new(
        database: Database,
        environment: Environment,
        scope: Scope,
        settings: AssetSettings,
    ) -> Self {
        let resources = Arc::new(AssetResources::default());
        Self { database, environment, scope, settings, resources }
    }

    /// Returns the URL below which the addresses are.
    pub fn base_url(&self) -> &str {
        &self.settings.base_url
    }

    /// Returns the size limit of a file in bytes.
    pub fn size_limit(&self) -> u64 {
        self.settings.size_limit
    }

    /// Lists the assets with these bytes.
    pub async fn list_by_hash(&self, sha256: [u8; 32]) -> Result<Vec<Asset>, Error> {
        let filter = AssetFilter { sha256: Some(sha256), ..AssetFilter::default() };
        let mut list = AssetList::new(&self.database, self.scope.workspace, filter);
        let mut found = Vec::new();
        while let Some(asset) = list.next().await? {
            found.push(asset);
        }
        Ok(found)
    }

    /// Stores a file as a new asset.
    pub async fn store(
        &self,
        new: NewAsset,
        bytes: impl Stream<Item = std::io::Result<Bytes>> + Send,
    ) -> Result<Asset, Error> {
        let (name, file) = self.write_file(bytes).await?;
        let own = self.clone();
        let create = async move |tx: &WriteTx<'_>| {
            let Self { environment, scope, settings, .. } = &own;
            let id = AssetId::new(environment.new_id());
            create_in(tx, environment, scope, settings, id, new.clone(), file.clone()).await
        };
        let created = self.database.write("assets.import", create).await;
        remove_unused(&self.database, &self.settings.store, &name, &created).await;
        created
    }

    /// Restores an asset with its id and address. Returns false if it exists.
    pub async fn restore(
        &self,
        asset: RestoredAsset,
        bytes: impl Stream<Item = std::io::Result<Bytes>> + Send,
    ) -> Result<bool, Error> {
        let (workspace, id) = (self.scope.workspace, asset.id);
        let exists = async move |tx: &Tx<'_>| {
            Ok::<_, Error>(assets::find(tx, workspace, id, ALL).await?.is_some())
        };
        if self.database.read("assets.exists", exists).await? {
            return Ok(false);
        }
        let (name, file) = self.write_file(bytes).await?;
        if file.sha256 != asset.sha256 {
            remove_stored(&self.database, &self.settings.store, &name).await?;
            let detail = "the SHA-256 of the file differs from that of the asset";
            return Err(Rejection::new(Reason::DigestMismatch, detail).into());
        }
        let own = self.clone();
        let restore = async move |tx: &WriteTx<'_>| {
            let limit = own.settings.workspace_limit;
            let file = share_file(tx, workspace, limit, file.clone()).await?;
            let asset = Asset {
                id: asset.id,
                key: asset.key,
                filename: asset.filename.clone(),
                alt: asset.alt.clone(),
                content_group_id: asset.content_group_id,
                version: restored_version(&own.environment),
                created_at: asset.created_at,
                file,
            };
            Ok::<_, Error>(assets::insert(tx, workspace, &asset).await?)
        };
        let restored = self.database.write("assets.restore", restore).await;
        remove_unused(&self.database, &self.settings.store, &name, &restored).await;
        restored.map(|()| true)
    }

    /// Writes a file into the store. After an error, nothing is left of it.
    async fn write_file(
        &self,
        bytes: impl Stream<Item = std::io::Result<Bytes>> + Send,
    ) -> Result<(FileName, AssetFile), Error> {
        let Self { database, environment, scope, settings, resources } = self;
        let store = &settings.store;
        let name = begin_file(database, environment, scope.workspace, UPLOAD_LIMIT).await?;
        let mut writer = store.writer(&name);
        let mut bytes = pin!(bytes);
        while let Some(chunk) = bytes.next().await {
            let written = match chunk.map_err(StoreError::from) {
                Ok(chunk) => {
                    let size = writer.size() + chunk.len() as u64;
                    match check_size(size, settings.size_limit) {
                        Ok(()) => writer.write(chunk).await.map_err(Error::from),
                        Err(error) => Err(error),
                    }
                }
                Err(error) => Err(error.into()),
            };
            if let Err(error) = written {
                writer.abort().await;
                remove_stored(database, store, &name).await?;
                return Err(error);
            }
        }
        let written = writer.finish().await?;
        let file = inspect(store, &resources.images, &name, written).await?;
        Ok((name, file))
    }
}

/// An asset of a bundle.
#[derive(Debug, Clone)]
pub struct RestoredAsset {
    /// The identifier.
    pub id: AssetId,
    /// The unguessable part of its address.
    pub key: AssetKey,
    /// The name of the file.
    pub filename: AssetFilename,
    /// The text in place of an image.
    pub alt: Option<ShortText>,
    /// The group; `None` for the whole workspace.
    pub content_group_id: Option<ContentGroupId>,
    /// The time of its creation.
    pub created_at: Timestamp,
    /// The SHA-256 of the file.
    pub sha256: [u8; 32],
}

/// The size of the parts in which a file is read.
const CHUNK_SIZE: usize = 256 * 1024;

/// Returns the bytes of a local file, which are read on the thread that polls the stream.
pub fn file_chunks(mut file: File) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
    stream::iter(std::iter::from_fn(move || {
        let mut chunk = vec![0; CHUNK_SIZE];
        match file.read(&mut chunk) {
            Ok(0) => None,
            Ok(read) => {
                chunk.truncate(read);
                Some(Ok(chunk.into()))
            }
            Err(error) => Some(Err(error)),
        }
    }))
}
