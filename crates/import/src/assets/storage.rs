//! The storage of imported assets. That of a server is in `server`.

use std::fmt::Debug;
use std::fs::File;
use std::path::Path;

use futures_util::future::BoxFuture;
use galley_api_types::asset::AssetBody;
use galley_application::operations::asset_import::{AssetDestination, file_chunks};
use galley_application::operations::assets::NewAsset;
use galley_domain::ContentGroupId;
use galley_domain::asset::{self, Asset, AssetFilename};

/// A stored asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredAsset {
    pub(crate) address: String,
    pub(crate) width: Option<i64>,
}

/// A place of assets. Errors are messages about the file.
pub(crate) trait AssetStorage: Debug + Send + Sync {
    /// Returns true for the address of an asset.
    fn is_own_address(&self, address: &str) -> bool;

    /// Returns the size limit of a file in bytes.
    fn size_limit(&self) -> u64;

    /// Finds an asset of the group, or of no group, with these bytes, preferably one with this
    /// name.
    fn find<'a>(
        &'a self,
        sha256: [u8; 32],
        filename: &'a AssetFilename,
    ) -> BoxFuture<'a, Result<Option<StoredAsset>, String>>;

    /// Stores a file.
    fn store<'a>(
        &'a self,
        filename: &'a AssetFilename,
        path: &'a Path,
    ) -> BoxFuture<'a, Result<StoredAsset, String>>;
}

/// The assets of a database.
#[derive(Debug)]
pub(crate) struct DatabaseAssets {
    pub(crate) destination: AssetDestination,
    /// The group of new assets.
    pub(crate) group: ContentGroupId,
}

impl DatabaseAssets {
    fn stored(&self, asset: &Asset) -> StoredAsset {
        StoredAsset {
            address: AssetBody::new(asset, self.destination.base_url()).url().to_owned(),
            width: asset.file.dimensions.map(|(width, _)| width),
        }
    }
}

impl AssetStorage for DatabaseAssets {
    fn is_own_address(&self, address: &str) -> bool {
        let base_url = self.destination.base_url().trim_end_matches('/');
        is_asset_below(base_url, address)
    }

    fn size_limit(&self) -> u64 {
        self.destination.size_limit()
    }

    fn find<'a>(
        &'a self,
        sha256: [u8; 32],
        filename: &'a AssetFilename,
    ) -> BoxFuture<'a, Result<Option<StoredAsset>, String>> {
        Box::pin(async move {
            let found = self.destination.list_by_hash(sha256).await;
            let mut found = found.map_err(|error| error.to_string())?;
            found.retain(|asset| asset.content_group_id.is_none_or(|group| group == self.group));
            let named = found.iter().find(|asset| asset.filename == *filename);
            Ok(named.or(found.first()).map(|asset| self.stored(asset)))
        })
    }

    fn store<'a>(
        &'a self,
        filename: &'a AssetFilename,
        path: &'a Path,
    ) -> BoxFuture<'a, Result<StoredAsset, String>> {
        Box::pin(async move {
            let file = File::open(path).map_err(|error| error.to_string())?;
            let new = NewAsset {
                filename: filename.clone(),
                alt: None,
                content_group_id: Some(self.group),
            };
            let stored = self.destination.store(new, file_chunks(file)).await;
            Ok(self.stored(&stored.map_err(|error| error.to_string())?))
        })
    }
}

/// Returns true for the address of an asset below a URL.
pub(crate) fn is_asset_below(base_url: &str, address: &str) -> bool {
    let path = address.strip_prefix(base_url).filter(|_| !base_url.is_empty());
    path.is_some_and(|path| !asset::referenced_keys(path).is_empty())
}
