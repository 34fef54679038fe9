//! The files that an import brings along: images and linked files become assets, and their
//! addresses in the documents are replaced.
//!
//! A file with the same name and bytes as an asset becomes that asset. So a repeated import changes
//! nothing.

mod fetch;
mod search;
mod storage;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use galley_application::operations::asset_import::AssetDestination;
use galley_assets::{FileType, HEAD_SIZE, HashingReader};
use galley_domain::ContentGroupId;
use galley_domain::address_policy::AddressPolicy;
use galley_domain::asset::{AssetFilename, FileHash, referenced_keys};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::runtime::Handle;

use fetch::Fetcher;
pub(crate) use search::SourceLocation;
use storage::DatabaseAssets;
pub(crate) use storage::{AssetStorage, StoredAsset};

/// A check of a path, such as that of a file of the database.
pub type PathCheck = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// The component that stores files as assets. Its methods block, and run on threads of the parser.
pub struct AssetImporter {
    storage: Arc<dyn AssetStorage>,
    /// The group of new assets.
    group: ContentGroupId,
    /// The folders in which files are searched, besides those of the sources.
    folders: Vec<PathBuf>,
    is_own: PathCheck,
    fetcher: Option<Fetcher>,
    is_dry_run: bool,
    runtime: Handle,
    /// The files that a request names, by their names in composed form.
    named: HashMap<String, NamedFile>,
    /// The named files that are no assets.
    missing: Mutex<HashSet<String>>,
    /// The result of each address, which concurrent documents wait for.
    resolved: Mutex<HashMap<(FileSource, AddressKind), PendingResult>>,
    counts: Counts,
}

/// The result of a file, or `None` while it is being stored.
type PendingResult = Arc<Mutex<Option<Resolved>>>;

#[derive(Debug, Default)]
struct Counts {
    stored: AtomicU64,
    bytes: AtomicU64,
    existing: AtomicU64,
}

/// The numbers of files that an import has brought along.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AssetCounts {
    /// The files that became new assets.
    pub stored: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The files whose assets existed already.
    pub existing: u64,
}

/// A file that a request names.
#[derive(Debug)]
struct NamedFile {
    name: String,
    hash: FileHash,
}

/// The source of a file. A named one has the key of its map.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum FileSource {
    Path(PathBuf),
    Named(String),
    Url(String),
}

/// The result for an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resolved {
    /// The file is an asset.
    Asset(ResolvedAsset),
    /// The address stays as it is.
    Kept,
    /// The address is that of an upload in the source's site, and no folder has its file.
    Missing,
    /// The file can't be stored, for this reason.
    Failed(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedAsset {
    /// The address of the asset.
    pub(crate) address: String,
    /// The width of an image.
    pub(crate) width: Option<i64>,
    /// The SHA-256 of the file, in hexadecimal digits.
    pub(crate) hash: String,
}

/// The kind of an address in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum AddressKind {
    Image,
    Link,
}

impl fmt::Debug for AssetImporter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AssetImporter").field("folders", &self.folders).finish_non_exhaustive()
    }
}

impl AssetImporter {
    /// Creates an importer into a database and its store.
    pub fn into_database(destination: AssetDestination, group: ContentGroupId) -> Self {
        Self::new(Arc::new(DatabaseAssets(destination)), group)
    }

    /// Creates an importer into this storage.
    pub(crate) fn new(storage: Arc<dyn AssetStorage>, group: ContentGroupId) -> Self {
        Self {
            storage,
            group,
            folders: Vec::new(),
            is_own: Arc::new(|_| false),
            fetcher: None,
            is_dry_run: false,
            named: HashMap::new(),
            missing: Mutex::default(),
            runtime: Handle::current(),
            resolved: Mutex::default(),
            counts: Counts::default(),
        }
    }

    /// Searches files in these folders, too.
    #[must_use]
    pub fn with_folders(self, folders: Vec<PathBuf>) -> Self {
        Self { folders, ..self }
    }

    /// Never opens the files for which `is_own` returns true.
    #[must_use]
    pub fn without(self, is_own: PathCheck) -> Self {
        Self { is_own, ..self }
    }

    /// Fetches images at absolute addresses, from hosts that `policy` allows.
    #[must_use]
    pub fn with_fetching(self, policy: AddressPolicy) -> Self {
        Self { fetcher: Some(Fetcher::new(policy)), ..self }
    }

    /// Stores nothing.
    #[must_use]
    pub fn as_dry_run(self, is_dry_run: bool) -> Self {
        Self { is_dry_run, ..self }
    }

    /// Finds the assets of these files, which are not stored by the import.
    #[must_use]
    pub fn with_named(self, files: impl IntoIterator<Item = (String, FileHash)>) -> Self {
        let named = files.into_iter().map(|(name, hash)| {
            let composed = search::composed(&name);
            (composed, NamedFile { name, hash })
        });
        Self { named: named.collect(), ..self }
    }

    /// Returns the named files to which documents refer, and true for those that are no assets.
    pub(crate) fn referred_names(&self) -> BTreeMap<String, bool> {
        let (resolved, missing) = (self.resolved.lock(), self.missing.lock());
        let named = resolved.keys().filter_map(|(source, _)| match source {
            FileSource::Named(key) => {
                self.named.get(key).map(|file| (file.name.clone(), missing.contains(key)))
            }
            _ => None,
        });
        named.collect()
    }

    /// Returns the numbers of files so far.
    pub fn counts(&self) -> AssetCounts {
        let Counts { stored, bytes, existing } = &self.counts;
        let [stored, bytes, existing] =
            [stored, bytes, existing].map(|count| count.load(Ordering::Relaxed));
        AssetCounts { stored, bytes, existing }
    }

    /// Returns the paths of the files that became assets.
    pub(crate) fn brought_files(&self) -> HashSet<PathBuf> {
        let resolved = self.resolved.lock();
        let brought = resolved.iter().filter_map(|((source, _), result)| match source {
            FileSource::Path(path) if matches!(*result.lock(), Some(Resolved::Asset(_))) => {
                Some(path.clone())
            }
            _ => None,
        });
        brought.collect()
    }

    /// Stores the file at an address, unless it is an asset already.
    pub(crate) fn resolve(
        &self,
        address: &str,
        kind: AddressKind,
        location: &SourceLocation,
    ) -> Resolved {
        let nowhere = SourceLocation::default();
        let is_searched = kind == AddressKind::Image || location.has_links;
        let location = if is_searched { location } else { &nowhere };
        let named = location.name.as_ref().and_then(|source| {
            search::find_name(address, source, |name| self.named.contains_key(name))
        });
        let found = named
            .map(FileSource::Named)
            .or_else(|| search::find(address, location, &self.folders).map(FileSource::Path));
        let source = match found {
            Some(source) => source,
            None if self.fetcher.is_some() && kind == AddressKind::Image => {
                let is_web = address.starts_with("http://") || address.starts_with("https://");
                if !is_web || self.is_own_address(address) {
                    return Resolved::Kept;
                }
                FileSource::Url(address.to_owned())
            }
            None if kind == AddressKind::Image && search::is_uploaded(address) => {
                return Resolved::Missing;
            }
            None => return Resolved::Kept,
        };
        let key = (source.clone(), kind);
        let result = Arc::clone(self.resolved.lock().entry(key).or_default());
        let mut result = result.lock();
        let resolved = result
            .get_or_insert_with(|| {
                self.store(&source, kind).unwrap_or_else(|problem| {
                    Resolved::Failed(match &source {
                        FileSource::Path(path) => format!("{}: {problem}", path.display()),
                        FileSource::Named(text) | FileSource::Url(text) => {
                            format!("{text}: {problem}")
                        }
                    })
                })
            })
            .clone();
        match resolved {
            Resolved::Asset(mut asset) => {
                asset.address.push_str(kept_suffix(address));
                Resolved::Asset(asset)
            }
            other => other,
        }
    }

    /// Returns true for the address of an asset of the same place.
    fn is_own_address(&self, address: &str) -> bool {
        let base_url = self.storage.base_url().trim_end_matches('/');
        let path = address.strip_prefix(base_url).filter(|_| !base_url.is_empty());
        path.is_some_and(|path| !referenced_keys(path).is_empty())
    }

    /// Finds an asset of the group, or of no group, with these bytes, preferably one with this
    /// name.
    fn find(&self, hash: FileHash, name: &AssetFilename) -> Result<Option<StoredAsset>, String> {
        let mut found = self.runtime.block_on(self.storage.list(hash))?;
        found.retain(|asset| asset.group.is_none_or(|group| group == self.group));
        let named = found.iter().position(|asset| asset.filename == name.as_str());
        let place = named.unwrap_or(0);
        Ok((place < found.len()).then(|| found.swap_remove(place)))
    }

    /// Finds the asset of a named file. In a dry run, a missing one counts as uploaded.
    fn find_named(&self, key: &str) -> Result<Resolved, String> {
        let Some(NamedFile { name, hash }) = self.named.get(key) else { return Ok(Resolved::Kept) };
        let filename = name.rsplit('/').next().unwrap_or(name).to_owned();
        let filename =
            AssetFilename::parse(filename).map_err(|invalid| format!("its name {invalid}"))?;
        let (address, width) = match self.find(*hash, &filename)? {
            Some(found) => (found.address, found.width),
            None => {
                self.missing.lock().insert(key.to_owned());
                if !self.is_dry_run {
                    return Ok(Resolved::Kept);
                }
                (new_address(*hash), None)
            }
        };
        Ok(Resolved::Asset(ResolvedAsset { address, width, hash: hash.to_string() }))
    }

    fn store(&self, source: &FileSource, kind: AddressKind) -> Result<Resolved, String> {
        let download;
        let (path, name) = match (source, &self.fetcher) {
            (FileSource::Named(name), _) => return self.find_named(name),
            (FileSource::Path(path), _) if (self.is_own)(path) => return Ok(Resolved::Kept),
            (FileSource::Path(path), _) => {
                (&**path, path.file_name().unwrap_or_default().to_string_lossy().into_owned())
            }
            (FileSource::Url(url), Some(fetcher)) => {
                download = self.runtime.block_on(fetcher.fetch(url))?;
                (download.path(), fetch::filename(url))
            }
            (FileSource::Url(_), None) => return Ok(Resolved::Kept),
        };
        let size = path.metadata().map_err(|error| error.to_string())?.len();
        let limit = self.storage.size_limit();
        if size > limit {
            return Err(format!("has {size} bytes, more than the limit of {limit}"));
        }
        let read = read_file(path).map_err(|error| error.to_string())?;
        let is_wanted = match kind {
            AddressKind::Image => read.media_type.starts_with("image/"),
            AddressKind::Link => is_linked_type(read.media_type),
        };
        if !is_wanted {
            return match source {
                FileSource::Path(_) | FileSource::Named(_) => Ok(Resolved::Kept),
                FileSource::Url(_) => Err(format!("is no image, but {}", read.media_type)),
            };
        }
        let name = AssetFilename::parse(name).map_err(|invalid| format!("its name {invalid}"))?;
        let stored = match self.find(read.hash, &name)? {
            Some(found) => {
                self.counts.existing.fetch_add(1, Ordering::Relaxed);
                found
            }
            None => {
                let stored = if self.is_dry_run {
                    let address = new_address(read.hash);
                    let (filename, group) = (name.as_str().to_owned(), Some(self.group));
                    StoredAsset { address, filename, group, width: None }
                } else {
                    self.runtime.block_on(self.storage.store(&name, self.group, path))?
                };
                self.counts.stored.fetch_add(1, Ordering::Relaxed);
                self.counts.bytes.fetch_add(read.size, Ordering::Relaxed);
                stored
            }
        };
        let StoredAsset { address, width, .. } = stored;
        Ok(Resolved::Asset(ResolvedAsset { address, width, hash: read.hash.to_string() }))
    }
}

/// Returns an address that no piece has yet, for a dry run.
fn new_address(hash: FileHash) -> String {
    format!("https://new.invalid/{hash}")
}

/// Returns the query of a rendition, or the fragment, which the address of the asset gets as well.
fn kept_suffix(address: &str) -> &str {
    let Some(at) = address.find(['?', '#']) else { return "" };
    let suffix = &address[at..];
    let is_rendition = suffix.starts_with("?w=") || suffix.starts_with("?f=");
    if is_rendition || suffix.starts_with('#') { suffix } else { "" }
}

/// Returns true for the types of files that a link brings along: media and documents. Other files,
/// such as programs and keys, become public only if a person uploads them.
fn is_linked_type(media_type: &str) -> bool {
    let documents = [
        "application/epub+zip",
        "application/msword",
        "application/pdf",
        "application/vnd.ms-excel",
        "application/vnd.ms-powerpoint",
        "application/zip",
    ];
    ["image/", "audio/", "video/"].iter().any(|kind| media_type.starts_with(kind))
        || media_type.starts_with("application/vnd.oasis.opendocument.")
        || media_type.starts_with("application/vnd.openxmlformats-officedocument.")
        || documents.contains(&media_type)
}

/// The properties of a file.
struct ReadFile {
    hash: FileHash,
    size: u64,
    media_type: &'static str,
}

fn read_file(path: &Path) -> std::io::Result<ReadFile> {
    let mut file = HashingReader::new(File::open(path)?);
    let mut head = Vec::new();
    (&mut file).take(HEAD_SIZE as u64).read_to_end(&mut head)?;
    let rest = std::io::copy(&mut file, &mut std::io::sink())?;
    let media_type = FileType::detect(&head).media_type;
    Ok(ReadFile { hash: FileHash(file.into_sha256()), size: head.len() as u64 + rest, media_type })
}
