//! The assets behind a server.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use galley_domain::ContentGroupId;
use galley_domain::asset::{AssetFilename, FileHash};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::assets::{AssetStorage, StoredAsset, is_asset_below};
use crate::destination::WriteFailure;
use crate::server::client::ApiClient;

/// The size limit of a file. An upload has the whole file in memory.
const SIZE_LIMIT: u64 = 128 * 1024 * 1024;

/// The assets of a server.
#[derive(Debug)]
pub(crate) struct ServerAssets {
    pub(crate) api: Arc<ApiClient>,
    /// The group of new assets.
    pub(crate) group: ContentGroupId,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RemoteAsset {
    url: String,
    filename: String,
    content_group_id: Option<ContentGroupId>,
    width: Option<i64>,
}

impl From<RemoteAsset> for StoredAsset {
    fn from(asset: RemoteAsset) -> Self {
        Self { address: asset.url, width: asset.width }
    }
}

#[derive(Debug, Deserialize)]
struct RemoteId {
    id: String,
}

fn message(failure: WriteFailure) -> String {
    match failure {
        WriteFailure::Rejected(message) => message,
        WriteFailure::Conflict => "the server rejected it".to_owned(),
        WriteFailure::Failed(error) => format!("{error:#}"),
    }
}

impl AssetStorage for ServerAssets {
    fn is_own_address(&self, address: &str) -> bool {
        is_asset_below(self.api.base(), address)
    }

    fn size_limit(&self) -> u64 {
        SIZE_LIMIT
    }

    fn find<'a>(
        &'a self,
        sha256: [u8; 32],
        filename: &'a AssetFilename,
    ) -> BoxFuture<'a, Result<Option<StoredAsset>, String>> {
        Box::pin(async move {
            let path = format!("/assets/list?hash={}&perPage=1000", FileHash(sha256));
            let mut found: Vec<RemoteAsset> = self.api.get(&path).await.map_err(message)?;
            found.retain(|asset| asset.content_group_id.is_none_or(|group| group == self.group));
            let named = found.iter().position(|asset| asset.filename == filename.as_str());
            let place = named.unwrap_or(0);
            Ok((place < found.len()).then(|| found.swap_remove(place).into()))
        })
    }

    fn store<'a>(
        &'a self,
        filename: &'a AssetFilename,
        path: &'a Path,
    ) -> BoxFuture<'a, Result<StoredAsset, String>> {
        Box::pin(async move {
            let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
            let name = utf8_percent_encode(filename.as_str(), NON_ALPHANUMERIC);
            let path = format!("/assets?filename={name}&contentGroupId={}", self.group);
            let created: RemoteId = self.api.upload(&path, bytes.into()).await.map_err(message)?;
            let path = format!("/assets?id={}", created.id);
            let asset: RemoteAsset = self.api.get(&path).await.map_err(message)?;
            Ok(asset.into())
        })
    }
}
