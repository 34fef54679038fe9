//! The store of files: a local folder, or a bucket of an S3-compatible service.
//!
//! A file is never changed: its name is made for it, and its bytes are durable before a database
//! row names it. So a reader finds the file of each row, after a crash as well. A file without a
//! row is left by an interrupted upload or deletion, and is removed later.

use std::fmt;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use galley_domain::{AssetFileId, WorkspaceId};
use object_store::aws::AmazonS3Builder;
use object_store::buffered::BufWriter;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{GetOptions, GetRange, GetResultPayload, ObjectStore, ObjectStoreExt};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio::task::spawn_blocking;
use url::Url;

use crate::bucket_client::BucketConnector;
use crate::file_stream::file_stream;
use crate::file_type::HEAD_SIZE;

/// The size up to which a file is sent to a bucket in one request, and that of the parts of larger
/// ones: the smallest that buckets allow, as each upload has three of them in memory.
const PART_SIZE: usize = 5 * 1024 * 1024;

/// The parts of one file that are sent at once.
const PARTS_AT_ONCE: usize = 2;

/// The last part of the name of a file as it was uploaded.
const ORIGINAL: &str = "original";

/// The name of the object that tries the permissions of a bucket.
const CHECKED_NAME: &str = "galley-doctor";

/// The place of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// A folder of this machine.
    Folder(PathBuf),
    /// A bucket of an S3-compatible service.
    Bucket(BucketLocation),
}

/// Writes the folder's path, or the URL of the bucket.
impl fmt::Display for StoreLocation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(out),
            Self::Bucket(BucketLocation { bucket, prefix, .. }) => {
                write!(out, "s3://{bucket}/{prefix}")
            }
        }
    }
}

/// A bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketLocation {
    /// The name of the bucket.
    pub bucket: String,
    /// The first part of all names in it, or an empty text.
    pub prefix: String,
    /// The URL of the service, unless the environment or the region states it.
    pub endpoint: Option<String>,
    /// The region, unless the environment states it.
    pub region: Option<String>,
    /// The credentials, unless the environment has them, as for other programs:
    /// `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`.
    pub credentials: Option<BucketCredentials>,
}

/// The credentials of a bucket.
#[derive(Clone, PartialEq, Eq)]
pub struct BucketCredentials {
    /// The id of the key.
    pub access_key_id: String,
    /// The secret.
    pub secret_access_key: String,
}

impl fmt::Debug for BucketCredentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("BucketCredentials").finish_non_exhaustive()
    }
}

/// The error for a text that names no store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidLocation(String);

impl StoreLocation {
    /// Returns true if both have the same files, by different names perhaps. An existing folder is
    /// resolved.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Folder(one), Self::Folder(two)) => {
                let resolved =
                    |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
                resolved(one) == resolved(two)
            }
            (Self::Bucket(one), Self::Bucket(two)) => {
                (&one.bucket, &one.prefix) == (&two.bucket, &two.prefix)
                    && (one.endpoint == two.endpoint
                        || one.endpoint.is_none()
                        || two.endpoint.is_none())
            }
            _ => false,
        }
    }

    /// Parses a folder's path, or `s3://bucket/prefix` with the optional parameters `endpoint` and
    /// `region`.
    pub fn parse(
        text: &str,
        credentials: Option<BucketCredentials>,
    ) -> Result<Self, InvalidLocation> {
        let invalid = |message: &str| InvalidLocation(message.to_owned());
        if !text.starts_with("s3:") {
            return match text.split_once("://") {
                Some(_) => Err(invalid("must be the path of a folder, or s3://bucket/prefix")),
                None => Ok(Self::Folder(PathBuf::from(text))),
            };
        }
        let url = Url::parse(text).map_err(|error| invalid(&error.to_string()))?;
        let bucket = url.host_str().unwrap_or_default().to_owned();
        if bucket.is_empty() || !url.username().is_empty() || url.port().is_some() {
            return Err(invalid("must name a bucket, as s3://bucket/prefix"));
        }
        let prefix = url.path().trim_matches('/').to_owned();
        let mut location =
            BucketLocation { bucket, prefix, endpoint: None, region: None, credentials };
        for (name, value) in url.query_pairs() {
            let value = Some(value.into_owned());
            match &*name {
                "endpoint" => location.endpoint = value,
                "region" => location.region = value,
                _ => return Err(invalid("may have the parameters endpoint and region only")),
            }
        }
        Ok(Self::Bucket(location))
    }
}

/// The error of a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file does not exist.
    #[error("the file does not exist in the store")]
    NotFound,
    /// The store failed, after retries.
    #[error("the store of assets failed: {0}")]
    Failed(Box<object_store::Error>),
    /// A file could not be read or written.
    #[error("a file of the store could not be read or written: {0}")]
    Unreadable(#[from] std::io::Error),
}

impl From<object_store::Error> for StoreError {
    fn from(error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { .. } => Self::NotFound,
            other => Self::Failed(Box::new(other)),
        }
    }
}

/// The name of a stored file, or of one of its renditions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileName {
    /// The workspace that owns it.
    pub workspace: WorkspaceId,
    /// The file.
    pub file: AssetFileId,
    /// The name of a rendition; `None` for the file as it was uploaded.
    pub rendition: Option<String>,
}

impl FileName {
    /// Returns the name of a file as it was uploaded.
    pub const fn original(workspace: WorkspaceId, file: AssetFileId) -> Self {
        Self { workspace, file, rendition: None }
    }

    fn path(&self) -> Path {
        Path::from(self.to_string())
    }

    /// Returns the common part of the names of a file and its renditions.
    fn folder(&self) -> Path {
        Path::from(format!("{}/{}", self.workspace, self.file))
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.rendition.as_deref().unwrap_or(ORIGINAL);
        write!(out, "{}/{}/{last}", self.workspace, self.file)
    }
}

/// The error for a name that no file of Galley has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignName;

impl FromStr for FileName {
    type Err = ForeignName;

    fn from_str(text: &str) -> Result<Self, ForeignName> {
        let mut parts = text.split('/');
        let (Some(workspace), Some(file), Some(last), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(ForeignName);
        };
        Ok(Self {
            workspace: workspace.parse().map_err(|_| ForeignName)?,
            file: file.parse().map_err(|_| ForeignName)?,
            rendition: (last != ORIGINAL).then(|| last.to_owned()),
        })
    }
}

/// A file in a list of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Its name.
    pub name: FileName,
    /// Its size in bytes.
    pub size: u64,
    /// The time of its creation, in milliseconds since 1970, by the clock of the store.
    pub created_at_ms: i64,
}

/// A store of files. Clones share it.
#[derive(Debug, Clone)]
pub struct AssetStore {
    objects: Arc<dyn ObjectStore>,
    /// The folder of a local store.
    folder: Option<PathBuf>,
}

/// A store in memory, for a service without assets.
impl Default for AssetStore {
    fn default() -> Self {
        Self { objects: Arc::new(InMemory::new()), folder: None }
    }
}

impl AssetStore {
    /// Opens a store. A folder is created if it does not exist.
    pub fn open(location: &StoreLocation) -> Result<Self, StoreError> {
        match location {
            StoreLocation::Folder(path) => {
                // Other users of the machine read no files.
                DirBuilder::new().recursive(true).mode(0o700).create(path)?;
                let store = LocalFileSystem::new_with_prefix(path)?;
                let store = store.with_fsync(true).with_automatic_cleanup(true);
                Ok(Self { objects: Arc::new(store), folder: Some(path.clone()) })
            }
            StoreLocation::Bucket(location) => {
                let mut builder = AmazonS3Builder::from_env()
                    .with_bucket_name(&location.bucket)
                    .with_http_connector(BucketConnector);
                if let Some(endpoint) = &location.endpoint {
                    let is_plain = endpoint.starts_with("http://");
                    builder = builder.with_endpoint(endpoint).with_allow_http(is_plain);
                }
                if let Some(region) = &location.region {
                    builder = builder.with_region(region);
                }
                if let Some(credentials) = &location.credentials {
                    builder = builder
                        .with_access_key_id(&credentials.access_key_id)
                        .with_secret_access_key(&credentials.secret_access_key);
                }
                let bucket = builder.build()?;
                let bucket = PrefixStore::new(bucket, location.prefix.as_str());
                Ok(Self { objects: Arc::new(bucket), folder: None })
            }
        }
    }

    /// Checks that the store responds, so that a wrong setting is noticed at the start.
    pub async fn check(&self) -> Result<(), StoreError> {
        self.objects.list(None).next().await.transpose()?;
        Ok(())
    }

    /// Checks that files can be created and deleted, by an empty one whose name no file of Galley
    /// has.
    pub async fn check_writing(&self) -> Result<(), StoreError> {
        let name = Path::from(CHECKED_NAME);
        self.objects.put(&name, Bytes::new().into()).await?;
        Ok(self.objects.delete(&name).await?)
    }

    /// Begins a file. It exists once the writer has finished.
    pub fn writer(&self, name: &FileName) -> FileWriter {
        let store = Arc::clone(&self.objects);
        let writer = BufWriter::with_capacity(store, name.path(), PART_SIZE);
        FileWriter {
            writer: writer.with_max_concurrency(PARTS_AT_ONCE),
            hash: Sha256::new(),
            size: 0,
            head: Vec::new(),
        }
    }

    /// Stores a small file at once, such as a rendition. An equal one that exists is replaced.
    pub async fn put(&self, name: &FileName, bytes: Bytes) -> Result<(), StoreError> {
        self.objects.put(&name.path(), bytes.into()).await?;
        Ok(())
    }

    /// Returns the size of a file in bytes.
    pub async fn size(&self, name: &FileName) -> Result<u64, StoreError> {
        Ok(self.objects.head(&name.path()).await?.size)
    }

    /// Returns a whole file.
    pub async fn read(&self, name: &FileName) -> Result<Bytes, StoreError> {
        Ok(self.objects.get(&name.path()).await?.bytes().await?)
    }

    /// Returns the bytes of `range` as they arrive from the store.
    pub async fn stream(
        &self,
        name: &FileName,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, Result<Bytes, StoreError>>, StoreError> {
        if range.is_empty() {
            self.objects.head(&name.path()).await?;
            return Ok(futures_util::stream::empty().boxed());
        }
        let options = GetOptions::new().with_range(Some(GetRange::Bounded(range)));
        let found = self.objects.get_opts(&name.path(), options).await?;
        let range = found.range.clone();
        Ok(match found.payload {
            GetResultPayload::File(file, _) => file_stream(file, range).err_into().boxed(),
            GetResultPayload::Stream(stream) => stream.err_into().boxed(),
        })
    }

    /// Deletes a file and its renditions. A file that does not exist is deleted already.
    pub async fn delete(&self, name: &FileName) -> Result<(), StoreError> {
        if let Some(folder) = &self.folder {
            // A killed upload leaves a part that lists don't show.
            let folder = folder.join(name.folder().as_ref());
            let removed = spawn_blocking(move || std::fs::remove_dir_all(folder)).await;
            return match removed.map_err(std::io::Error::other)? {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
                _ => Ok(()),
            };
        }
        let found = self.objects.list(Some(&name.folder())).map_ok(|meta| meta.location).boxed();
        let mut deleted = self.objects.delete_stream(found);
        while let Some(result) = deleted.next().await {
            match result {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Lists all files and renditions. Names of other programs are left out.
    pub fn list(&self) -> BoxStream<'static, Result<ListedFile, StoreError>> {
        let listed = self.objects.list(None).try_filter_map(async |meta| {
            let name = meta.location.as_ref().parse().ok();
            Ok(name.map(|name| ListedFile {
                name,
                size: meta.size,
                created_at_ms: meta.last_modified.timestamp_millis(),
            }))
        });
        listed.err_into().boxed()
    }
}

/// The writer of a file. A file that is not finished does not exist.
#[derive(Debug)]
pub struct FileWriter {
    writer: BufWriter,
    hash: Sha256,
    size: u64,
    head: Vec<u8>,
}

/// A written file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFile {
    /// Its size in bytes.
    pub size: u64,
    /// Its SHA-256.
    pub sha256: [u8; 32],
    /// Its first bytes, for the detection of its type.
    pub head: Vec<u8>,
}

impl FileWriter {
    /// Returns the number of bytes that were written.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Appends bytes.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        self.size += bytes.len() as u64;
        self.hash.update(&bytes);
        let missing = HEAD_SIZE.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..missing]);
        Ok(self.writer.put(bytes).await?)
    }

    /// Completes the file. It is durable when this returns.
    pub async fn finish(mut self) -> Result<WrittenFile, StoreError> {
        self.writer.shutdown().await?;
        Ok(WrittenFile { size: self.size, sha256: self.hash.finalize().into(), head: self.head })
    }

    /// Completes the file if its bytes have this SHA-256. Otherwise removes them and returns
    /// false.
    pub async fn finish_if(self, sha256: &[u8; 32]) -> Result<bool, StoreError> {
        if self.hash.clone().finalize()[..] != sha256[..] {
            self.abort().await;
            return Ok(false);
        }
        self.finish().await.map(|_| true)
    }

    /// Removes the parts that were written.
    pub async fn abort(mut self) {
        if let Err(error) = self.writer.abort().await {
            tracing::warn!(%error, "the parts of an interrupted upload stay in the store");
        }
    }
}
