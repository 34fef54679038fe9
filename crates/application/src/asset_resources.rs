//! The settings of assets, the caches of their files, and the work on images, which has threads of
//! its own and bounds on memory.
//!
//! A decoded image takes many times the memory of its file. So each work reserves what it needs,
//! and waits while others have the memory. Renditions are rendered once: concurrent requests for
//! the same one wait for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use galley_assets::image::{self, Dimensions, ENCODED_SIZE_LIMIT, ImageError};
use galley_assets::{AssetStore, FileName, ImageFormat};
use galley_domain::AssetKey;
use galley_domain::asset::{Asset, Rendition, RenditionWidth};
use galley_runtime::{CpuPool, Overloaded};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::default_limits::ASSET_SIZE;
use crate::error::Error;
use crate::running_appends::RunningAppends;

/// The settings of assets.
#[derive(Debug, Clone)]
pub struct AssetSettings {
    /// The store of their files.
    pub store: AssetStore,
    /// The URL below which their addresses are.
    pub base_url: String,
    /// The size limit of a file in bytes.
    pub size_limit: u64,
    /// The size limit of all files of a workspace in bytes; `None` for unlimited.
    pub workspace_limit: Option<u64>,
}

impl Default for AssetSettings {
    fn default() -> Self {
        Self {
            store: AssetStore::default(),
            base_url: String::new(),
            size_limit: ASSET_SIZE,
            workspace_limit: None,
        }
    }
}

/// An asset as it is served.
#[derive(Debug, Clone)]
pub struct ServedAsset {
    /// The asset.
    pub asset: Asset,
    /// The name of its file.
    pub(crate) name: FileName,
}

/// The caches of assets, and the workers of images.
#[derive(Debug)]
pub(crate) struct AssetResources {
    /// The workers, and the cache of files.
    pub(crate) images: AssetImages,
    /// The assets that were served lately, with the times at which they were found.
    pub(crate) by_key: Cache<AssetKey, (Instant, Arc<ServedAsset>)>,
    /// The requests that append to resumable uploads.
    pub(crate) running_appends: RunningAppends,
    uploads: Arc<Semaphore>,
}

/// The memory of an upload, released when it is dropped.
pub(crate) type UploadMemory = OwnedSemaphorePermit;

/// The memory of all uploads at a time, in units of [`UNIT`].
const UPLOAD_UNITS: u32 = 96;

/// The memory of the largest upload: a part that arrives, and those that are sent to the store.
const UNITS_PER_UPLOAD: u32 = 16;

/// The time for which an upload waits for memory.
const UPLOAD_TIMEOUT: Duration = Duration::from_mins(1);

/// The limit on assets whose properties are cached.
const LOOKUPS_LIMIT: usize = 10_000;

impl Default for AssetResources {
    fn default() -> Self {
        Self {
            images: AssetImages::default(),
            by_key: Cache::new(LOOKUPS_LIMIT),
            running_appends: RunningAppends::default(),
            uploads: Arc::new(Semaphore::new(UPLOAD_UNITS as usize)),
        }
    }
}

impl AssetResources {
    /// Returns the memory for an upload of so many bytes.
    pub(crate) async fn upload_memory(
        &self,
        size: Option<u64>,
    ) -> Result<UploadMemory, Overloaded> {
        let needed = size.map_or(UNITS_PER_UPLOAD, |size| units(size).clamp(1, UNITS_PER_UPLOAD));
        let memory = Arc::clone(&self.uploads).acquire_many_owned(needed);
        let memory = tokio::time::timeout(UPLOAD_TIMEOUT, memory).await;
        memory.ok().and_then(Result::ok).ok_or(Overloaded)
    }
}

/// The memory of all decoded images at a time, in units of [`UNIT`]: one image may need
/// [`image::DECODED_SIZE_LIMIT`] and [`ENCODED_SIZE_LIMIT`].
const MEMORY_UNITS: u32 = 224;

/// The unit of memory in bytes.
const UNIT: u64 = 1024 * 1024;

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

/// The size of the cache of files and renditions in bytes.
const CACHE_SIZE: u64 = 64 * 1024 * 1024;

/// The size in bytes up to which a file is cached.
pub(crate) const CACHED_SIZE_LIMIT: u64 = 1024 * 1024;

/// The workers and the cache.
#[derive(Debug)]
pub(crate) struct AssetImages {
    pool: CpuPool,
    memory: Arc<Semaphore>,
    cache: Cache<FileName, Bytes, FileWeighter>,
}

#[derive(Debug, Clone)]
struct FileWeighter;

impl Weighter<FileName, Bytes> for FileWeighter {
    fn weight(&self, _: &FileName, bytes: &Bytes) -> u64 {
        // An entry takes some memory besides its bytes.
        bytes.len() as u64 + 200
    }
}

impl Default for AssetImages {
    fn default() -> Self {
        let files = usize::try_from(CACHE_SIZE / (64 * 1024)).unwrap_or(usize::MAX);
        Self {
            pool: CpuPool::default(),
            memory: Arc::new(Semaphore::new(MEMORY_UNITS as usize)),
            cache: Cache::with_weighter(files, CACHE_SIZE, FileWeighter),
        }
    }
}

impl AssetImages {
    /// Returns a small file from the cache, or reads it.
    pub(crate) async fn cached(
        &self,
        name: &FileName,
        read: impl Future<Output = Result<Bytes, Error>>,
    ) -> Result<Bytes, Error> {
        self.cache.get_or_insert_async(name, read).await
    }

    /// Returns a file from the cache.
    pub(crate) fn get(&self, name: &FileName) -> Option<Bytes> {
        self.cache.get(name)
    }

    /// Removes a file and its renditions from the cache.
    pub(crate) fn remove(&self, name: &FileName) {
        self.cache.retain(|cached, _| cached.file != name.file);
    }

    /// Returns the size of an image, and its placeholder.
    pub(crate) async fn inspect(
        &self,
        bytes: Bytes,
        format: ImageFormat,
    ) -> Result<Result<(Dimensions, Vec<u8>), ImageError>, Overloaded> {
        self.run(bytes, format, image::inspect).await
    }

    /// Renders an image.
    pub(crate) async fn render(
        &self,
        bytes: Bytes,
        format: ImageFormat,
        rendition: Rendition,
    ) -> Result<Result<Vec<u8>, ImageError>, Overloaded> {
        let width = rendition.width.map(RenditionWidth::pixels);
        let work =
            move |bytes: &[u8], format| image::render(bytes, format, width, rendition.format);
        self.run(bytes, format, work).await
    }

    async fn run<T: Send + 'static>(
        &self,
        bytes: Bytes,
        format: ImageFormat,
        work: impl FnOnce(&[u8], ImageFormat) -> Result<T, ImageError> + Send + 'static,
    ) -> Result<Result<T, ImageError>, Overloaded> {
        if bytes.len() as u64 > ENCODED_SIZE_LIMIT {
            return Ok(Err(ImageError::TooLarge));
        }
        let needed = match image::memory_needed(&bytes, format) {
            Ok(needed) => units(needed + bytes.len() as u64),
            Err(error) => return Ok(Err(error)),
        };
        let memory = Arc::clone(&self.memory).acquire_many_owned(needed).await;
        let memory = memory.map_err(|_| Overloaded)?;
        let work = move || {
            let done = work(&bytes, format);
            drop((bytes, memory));
            done
        };
        self.pool.run(work).await
    }
}
