//! The storage of imported assets. That of a server is in `server`.

use std::fmt::Debug;
use std::fs::File;
use std::path::Path;

use futures_util::future::BoxFuture;
use galley_api_types::asset::AssetBody;
use galley_application::operations::asset_import::{AssetDestination, file_chunks};
use galley_application::operations::assets::NewAsset;
use galley_domain::ContentGroupId;
use galley_domain::asset::{Asset, AssetFilename, FileHash};

/// A stored asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredAsset {
    pub(crate) address: String,
    pub(crate) filename: String,
    pub(crate) group: Option<ContentGroupId>,
    pub(crate) width: Option<i64>,
}

/// A place of assets. Errors are messages about the file.
pub(crate) trait AssetStorage: Debug + Send + Sync {
    /// Returns the URL below which the addresses are.
    fn base_url(&self) -> &str;

    /// Returns the size limit of a file in bytes.
    fn size_limit(&self) -> u64;

    /// Lists the assets with these bytes.
    fn list(&self, hash: FileHash) -> BoxFuture<'_, Result<Vec<StoredAsset>, String>>;

    /// Stores a file as an asset of a group.
    fn store<'a>(
        &'a self,
        filename: &'a AssetFilename,
        group: ContentGroupId,
        path: &'a Path,
    ) -> BoxFuture<'a, Result<StoredAsset, String>>;
}

/// The assets of a database.
#[derive(Debug)]
pub(crate) struct DatabaseAssets(pub(crate) AssetDestination);

impl DatabaseAssets {
    fn stored(&self, asset: &Asset) -> StoredAsset {
        StoredAsset {
            address: AssetBody::new(asset, self.0.base_url()).url().to_owned(),
            filename: asset.filename.as_str().to_owned(),
            group: asset.content_group_id,
            width: asset.file.dimensions.map(|(width, _)| width),
        }
    }
}

impl AssetStorage for DatabaseAssets {
    fn base_url(&self) -> &str {
        self.0.base_url()
    }

    fn size_limit(&self) -> u64 {
        self.0.size_limit()
    }

    fn list(&self, hash: FileHash) -> BoxFuture<'_, Result<Vec<StoredAsset>, String>> {
        Box::pin(async move {
            let found = self.0.list_by_hash(hash.0).await.map_err(|error| error.to_string())?;
            Ok(found.iter().map(|asset| self.stored(asset)).collect())
        })
    }

    fn store<'a>(
        &'a self,
        filename: &'a AssetFilename,
        group: ContentGroupId,
        path: &'a Path,
    ) -> BoxFuture<'a, Result<StoredAsset, String>> {
        Box::pin(async move {
            let file = File::open(path).map_err(|error| error.to_string())?;
            let (filename, content_group_id) = (filename.clone(), Some(group));
            let new = NewAsset { filename, alt: None, content_group_id };
            let stored = self.0.store(new, file_chunks(file)).await;
            Ok(self.stored(&stored.map_err(|error| error.to_string())?))
        })
    }
}
