//! The assets behind a server.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use galley_domain::ContentGroupId;
use galley_domain::asset::{AssetFilename, FileHash};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::assets::{AssetStorage, StoredAsset};
use crate::destination::WriteFailure;
use crate::server::client::ApiClient;

/// The size limit of a file. An upload has the whole file in memory.
const SIZE_LIMIT: u64 = 128 * 1024 * 1024;

/// The assets of a server.
#[derive(Debug)]
pub(crate) struct ServerAssets(pub(crate) Arc<ApiClient>);

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
        let RemoteAsset { url, filename, content_group_id, width } = asset;
        Self { address: url, filename, group: content_group_id, width }
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
    fn base_url(&self) -> &str {
        self.0.base()
    }

    fn size_limit(&self) -> u64 {
        SIZE_LIMIT
    }

    fn list(&self, hash: FileHash) -> BoxFuture<'_, Result<Vec<StoredAsset>, String>> {
        Box::pin(async move {
            let path = format!("/assets/list?hash={hash}&perPage=1000");
            let found: Vec<RemoteAsset> = self.0.get(&path).await.map_err(message)?;
            Ok(found.into_iter().map(Into::into).collect())
        })
    }

    fn store<'a>(
        &'a self,
        filename: &'a AssetFilename,
        group: ContentGroupId,
        path: &'a Path,
    ) -> BoxFuture<'a, Result<StoredAsset, String>> {
        Box::pin(async move {
            let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
            let name = utf8_percent_encode(filename.as_str(), NON_ALPHANUMERIC);
            let path = format!("/assets?filename={name}&contentGroupId={group}");
            let created: RemoteId = self.0.upload(&path, bytes.into()).await.map_err(message)?;
            let path = format!("/assets?id={}", created.id);
            let asset: RemoteAsset = self.0.get(&path).await.map_err(message)?;
            Ok(asset.into())
        })
    }
}
