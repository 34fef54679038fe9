//! Reads of the files of assets by their public addresses, and of their renditions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use galley_assets::{FileName, ImageFormat, StoreError};
use galley_domain::asset::Rendition;
use galley_domain::{AssetKey, Invalid};
use galley_storage::{Tx, assets};

use crate::asset_resources::{CACHED_SIZE_LIMIT, ServedAsset};
use crate::error::Error;
use crate::operations::asset_files::has_row;
use crate::rejection::Rejection;
use crate::service::Service;

/// The time for which the properties of an asset are cached. Another node serves a deleted asset
/// for this time.
const LOOKUP_RETENTION: Duration = Duration::from_secs(1);

/// Finds the asset with this key.
pub async fn find_served(service: &Service, key: AssetKey) -> Result<Arc<ServedAsset>, Error> {
    if let Some(found) = find_cached(service, key) {
        return Ok(found);
    }
    let find =
        async move |tx: &Tx<'_>| assets::find_by_key(tx, key).await?.ok_or_else(Error::not_found);
    let (workspace, asset) = service.database().read("assets.served", find).await?;
    let name = FileName::original(workspace, asset.file.id);
    let served = Arc::new(ServedAsset { asset, name });
    service.assets().by_key.insert(key, (Instant::now(), Arc::clone(&served)));
    Ok(served)
}

fn find_cached(service: &Service, key: AssetKey) -> Option<Arc<ServedAsset>> {
    let found = service.assets().by_key.get(&key);
    found.filter(|(at, _)| at.elapsed() < LOOKUP_RETENTION).map(|(_, served)| served)
}

/// Returns a small file, if it and its properties are cached.
pub fn cached(service: &Service, key: AssetKey) -> Option<(Arc<ServedAsset>, Bytes)> {
    let served = find_cached(service, key)?;
    let bytes = service.assets().images.get(&served.name)?;
    Some((served, bytes))
}

/// The bytes of a file: in memory, or as they arrive from the store.
pub enum ServedBytes {
    /// All bytes of the file.
    Whole(Bytes),
    /// The requested part.
    Part(BoxStream<'static, Result<Bytes, StoreError>>),
}

impl std::fmt::Debug for ServedBytes {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ServedBytes").finish_non_exhaustive()
    }
}

/// Reads a part of the file of an asset. A small file is cached as a whole.
pub async fn read(
    service: &Service,
    served: &ServedAsset,
    range: std::ops::Range<u64>,
) -> Result<ServedBytes, Error> {
    let (store, name) = (&service.settings().assets.store, &served.name);
    let is_small = served.asset.file.bytes() <= CACHED_SIZE_LIMIT;
    if is_small {
        let read = async { Ok(store.read(name).await?) };
        return Ok(ServedBytes::Whole(service.assets().images.cached(name, read).await?));
    }
    Ok(ServedBytes::Part(store.stream(name, range).await?))
}

/// Returns a rendition of an image, which is rendered and stored at its first request.
pub async fn rendition(
    service: &Service,
    served: &ServedAsset,
    rendition: Rendition,
) -> Result<Bytes, Error> {
    let Some(format) = ImageFormat::of(&served.asset.file.media_type) else {
        return Err(no_rendition(rendition, "names no image that can be rendered"));
    };
    let name = FileName { rendition: Some(rendition.to_string()), ..served.name.clone() };
    let (store, images) = (&service.settings().assets.store, &service.assets().images);
    let render = async {
        match store.read(&name).await {
            Err(StoreError::NotFound) => {}
            found => return Ok(found?),
        }
        let original = store.read(&served.name).await?;
        let rendered = images.render(original, format, rendition).await?;
        let rendered = rendered.map_err(|error| no_rendition(rendition, &error.to_string()))?;
        let bytes = Bytes::from(rendered);
        store.put(&name, bytes.clone()).await?;
        // A deletion meanwhile has removed the file, perhaps before this rendition was there.
        if !has_row(service.database(), &served.name).await? {
            store.delete(&served.name).await?;
            return Err(Error::not_found());
        }
        Ok(bytes)
    };
    images.cached(&name, render).await
}

/// Returns the rejection of a request for a rendition that can't be made.
fn no_rendition(rendition: Rendition, message: &str) -> Error {
    let parameter = if rendition.width.is_some() { "w" } else { "f" };
    Rejection::of_field(parameter, &Invalid::new("invalid_image", message)).into()
}
