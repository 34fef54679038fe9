//! The response cache: complete responses to reads of content, head and body.
//!
//! The key is the token, the address and the headers that shape a response. An entry is valid while
//! nothing of the workspace has changed since it was read, so a read after a write's response never
//! returns an older state.
//!
//! A process that is the only writer of its database compares data versions in memory
//! ([`Database::data_version`]). With several writers, the lookup of the request's token also
//! returns the generation of its workspace ([`Generation`]); an entry of the same generation is
//! valid.
//!
//! [`Database::data_version`]: galley_storage::Database::data_version

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::header::{ACCEPT_ENCODING, AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use galley_domain::ContentPieceId;
use galley_domain::access_token::{self, TokenHash};
use galley_storage::{DataVersion, Generation};
use quick_cache::sync::Cache;
use quick_cache::{Equivalent, Weighter};

use crate::extract::prefer::{Handling, handling};
use crate::resources::request_memory::WorkspaceMemory;
use crate::resources::sessions::{self, SessionSettings};
use crate::resources::stated_credential::StatedCredential;
use crate::resources::token_cache::{CachedToken, TokenCache};
use crate::respond::response::UncompressedSize;

/// The cacheable routes: their responses depend only on the database, the token and the address,
/// and the data version covers the tables that they read.
pub(crate) const ROUTES: [&str; 8] = [
    "/content-pieces",
    "/content-pieces/list",
    "/content-groups",
    "/content-groups/list",
    "/tags",
    "/tags/list",
    "/variants",
    "/variants/list",
];

/// The cacheable methods. Their responses differ in the body only.
const CACHEABLE_METHODS: [Method; 2] = [Method::GET, Method::HEAD];

/// The limit on bytes of a cached body.
const BODY_LIMIT: u64 = 1024 * 1024;

/// The limit of bytes by which a content coding makes a body larger.
const CODING_OVERHEAD: usize = 16 * 1024;

/// The expected bytes of a body, for the initial capacity.
const EXPECTED_BODY: u64 = 4 * 1024;

/// The limit of entries for which the cache allocates its tables at the start. They grow.
const INITIAL_CAPACITY_LIMIT: usize = 1 << 14;

/// The bytes that an entry takes besides its body, its address and the values of its headers.
const ENTRY_OVERHEAD: u64 = 1_024;

/// The responses, within a limit of bytes.
pub(crate) struct ResponseCache {
    entries: Option<Cache<CacheKey, Arc<CachedResponse>, ResponseWeight>>,
    /// The memory of all bodies, including evicted ones that are still being sent.
    memory: WorkspaceMemory,
    recent_requests: RecentRequests,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CacheKey {
    token: TokenHash,
    target: String,
    accept_encoding: Option<HeaderValue>,
    origin: Option<HeaderValue>,
    handling: Option<Handling>,
}

/// The key of a request, which borrows from it.
pub(crate) struct RequestKey<'r> {
    pub(crate) credential: StatedCredential,
    token: TokenHash,
    target: &'r str,
    accept_encoding: Option<&'r HeaderValue>,
    origin: Option<&'r HeaderValue>,
    handling: Option<Handling>,
}

/// The same as the hash of the [`CacheKey`].
impl Hash for RequestKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.token.hash(state);
        self.target.hash(state);
        self.accept_encoding.hash(state);
        self.origin.hash(state);
        self.handling.hash(state);
    }
}

impl Equivalent<CacheKey> for RequestKey<'_> {
    fn equivalent(&self, key: &CacheKey) -> bool {
        self.token == key.token
            && self.target == key.target
            && self.accept_encoding == key.accept_encoding.as_ref()
            && self.origin == key.origin.as_ref()
            && self.handling == key.handling
    }
}

impl<'r> RequestKey<'r> {
    /// Returns the key of a request. A request without a single bearer token or the session of an
    /// own page has none.
    pub(crate) fn of(sessions: &SessionSettings, request: &'r Request) -> Option<Self> {
        let headers = request.headers();
        let only = |name| {
            let mut values = headers.get_all(name).iter();
            match (values.next(), values.next()) {
                (value, None) => Ok(value),
                _ => Err(()),
            }
        };
        only(HOST).ok()??;
        let credential = match only(AUTHORIZATION).ok()? {
            Some(value) => {
                let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
                if !scheme.eq_ignore_ascii_case("bearer") {
                    return None;
                }
                StatedCredential::Token(access_token::hash(token.trim()))
            }
            None => {
                let cookie = sessions.session(headers)?;
                let workspace = sessions::workspace(headers).ok().flatten()?;
                if !sessions.is_own_request(request.method(), headers) {
                    return None;
                }
                StatedCredential::session(cookie, Some(workspace))
            }
        };
        Some(Self {
            credential,
            token: credential.cache_key(),
            target: request.uri().path_and_query()?.as_str(),
            accept_encoding: only(ACCEPT_ENCODING).ok()?,
            origin: only(ORIGIN).ok()?,
            handling: handling(headers),
        })
    }

    /// Copies the key. A clone of a header value would keep the connection's whole read buffer.
    fn to_key(&self) -> CacheKey {
        let copy = |value: Option<&HeaderValue>| HeaderValue::from_bytes(value?.as_bytes()).ok();
        CacheKey {
            token: self.token,
            target: self.target.to_owned(),
            accept_encoding: copy(self.accept_encoding),
            origin: copy(self.origin),
            handling: self.handling,
        }
    }
}

/// A cached response.
#[derive(Debug)]
pub(crate) struct CachedResponse {
    validity: Validity,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// The state of the database at which a response was read.
#[derive(Debug)]
enum Validity {
    /// A data version, which is compared in memory.
    Version {
        token: Arc<CachedToken>,
        version: DataVersion,
        /// The piece, for a response that shows a single one.
        piece: Option<ContentPieceId>,
    },
    /// A generation, which is compared with the database's.
    Generation(Generation),
}

impl CachedResponse {
    /// Returns the token of a response that is valid by its data version.
    pub(crate) fn token_if_valid(&self) -> Option<&CachedToken> {
        let Validity::Version { token, version, piece } = &self.validity else { return None };
        let is_valid = match *piece {
            Some(piece) => token.last_change.piece_is_unchanged_since(piece, *version),
            None => token.last_change.is_unchanged_since(*version),
        };
        (is_valid && token.is_open()).then_some(token)
    }

    /// Returns true if the response was read in this generation.
    pub(crate) fn has_generation(&self, generation: Generation) -> bool {
        matches!(self.validity, Validity::Generation(own) if own == generation)
    }
}

/// The recent requests, by a part of the hash of their keys. Caching costs about 20 % of a read,
/// and site builds request most pages once. So responses are cached on the second request.
struct RecentRequests {
    hasher: RandomState,
    slots: usize,
    /// Allocated at the first request, so that an idle server stays small.
    hashes: OnceLock<Box<[AtomicU32]>>,
}

/// The range of the number of slots.
const RECENT_REQUESTS: RangeInclusive<usize> = 1 << 16..=1 << 20;

impl RecentRequests {
    /// Creates slots for a cache of `entries` entries: more than the cache has, or requests would
    /// replace one another before they are repeated.
    fn new(entries: usize) -> Self {
        let slots = entries.next_power_of_two();
        let slots = slots.clamp(*RECENT_REQUESTS.start(), *RECENT_REQUESTS.end());
        Self { hasher: RandomState::new(), slots, hashes: OnceLock::new() }
    }

    /// Records a request, and returns true if its slot already had it.
    fn is_repeated(&self, key: &RequestKey<'_>) -> bool {
        let hash = self.hasher.hash_one(key);
        let bytes = hash.to_le_bytes();
        let halves = [0, 4].map(|at| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte])));
        let slot = usize::try_from(halves[0]).unwrap_or_default() % self.slots;
        // Zero marks an empty slot.
        let fingerprint = halves[1] | 1;
        let empty = || (0..self.slots).map(|_| AtomicU32::new(0)).collect();
        let hashes = self.hashes.get_or_init(empty);
        hashes[slot].swap(fingerprint, Ordering::Relaxed) == fingerprint
    }
}

#[derive(Debug, Clone)]
struct ResponseWeight;

impl Weighter<CacheKey, Arc<CachedResponse>> for ResponseWeight {
    fn weight(&self, key: &CacheKey, response: &Arc<CachedResponse>) -> u64 {
        let values = [&key.accept_encoding, &key.origin].into_iter().flatten();
        let headers: usize = values.chain(response.headers.values()).map(HeaderValue::len).sum();
        (key.target.len() + headers + response.body.len()) as u64 + ENTRY_OVERHEAD
    }
}

/// An entry whose response is not made yet.
#[derive(Debug, Clone)]
pub(crate) struct PendingEntry {
    key: CacheKey,
    read_after: ReadAfter,
}

/// A state of the database that a response is not older than.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReadAfter {
    /// The data version.
    Version(DataVersion),
    /// The generation of the workspace.
    Generation(Generation),
}

impl ResponseCache {
    /// Creates a cache of at most `bytes_limit` bytes; 0 disables it.
    pub(crate) fn new(bytes_limit: u64) -> Self {
        let count = usize::try_from(bytes_limit / (EXPECTED_BODY + ENTRY_OVERHEAD)).unwrap_or(0);
        let capacity = count.clamp(16, INITIAL_CAPACITY_LIMIT);
        let cache = || Cache::with_weighter(capacity, bytes_limit, ResponseWeight);
        let memory_limit = usize::try_from(bytes_limit.saturating_mul(2)).unwrap_or(usize::MAX);
        Self {
            entries: (bytes_limit > 0).then(cache),
            memory: WorkspaceMemory::new(memory_limit),
            recent_requests: RecentRequests::new(count),
        }
    }

    /// Returns the index in [`ROUTES`] of a request whose response may be in the cache.
    pub(crate) fn route_of(&self, request: &Request) -> Option<usize> {
        self.entries.as_ref()?;
        if !CACHEABLE_METHODS.contains(request.method()) || request.version() < Version::HTTP_11 {
            return None;
        }
        let path = request.uri().path();
        ROUTES.iter().position(|route| *route == path)
    }

    /// Returns the entry of a key. Its validity is left to the caller.
    pub(crate) fn get(&self, key: &RequestKey<'_>) -> Option<Arc<CachedResponse>> {
        self.entries.as_ref()?.get(key)
    }

    /// Returns the entry for the response to a repeated request.
    pub(crate) fn pending(
        &self,
        key: &RequestKey<'_>,
        read_after: ReadAfter,
    ) -> Option<PendingEntry> {
        self.recent_requests
            .is_repeated(key)
            .then(|| PendingEntry { key: key.to_key(), read_after })
    }

    /// Stores a response, which must be complete except for the headers of the single request.
    pub(crate) async fn store(
        &self,
        tokens: &TokenCache,
        PendingEntry { key, read_after }: PendingEntry,
        response: Response,
    ) -> Response {
        let Some(entries) = &self.entries else { return response };
        let validity = match read_after {
            ReadAfter::Generation(generation) => Validity::Generation(generation),
            ReadAfter::Version(version) => {
                // A token that is no longer current may be older than the response.
                let Some(token) = tokens.current(&key.token) else { return response };
                Validity::Version { token, version, piece: piece_of(&key.target) }
            }
        };
        // A coding may make a body slightly larger.
        let limit = usize::try_from(BODY_LIMIT).unwrap_or(usize::MAX) + CODING_OVERHEAD;
        let mut reservation = self.memory.reservation(None);
        if reservation.resize(limit).is_err() {
            return response;
        }
        let (head, body) = response.into_parts();
        let body = match to_bytes(body, limit).await {
            Ok(body) => body,
            Err(error) => {
                tracing::error!(%error, "a response body could not be collected");
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            }
        };
        // The copy has its own reservation, so the response's memory is free for other requests.
        if reservation.resize(body.len()).is_err() {
            return Response::from_parts(head, Body::from(body));
        }
        let body = reservation.attach(body.to_vec());
        let cached = CachedResponse { validity, headers: head.headers.clone(), body: body.clone() };
        entries.insert(key, Arc::new(cached));
        Response::from_parts(head, Body::from(body))
    }
}

/// Returns true if a response can be cached. A body that is compressed while it is sent counts with
/// its size before the compression.
pub(crate) fn is_cacheable(response: &Response) -> bool {
    let uncompressed = response.extensions().get().map(|&UncompressedSize(size)| size);
    let size = uncompressed.or_else(|| response.body().size_hint().exact());
    response.status() == StatusCode::OK && size.is_some_and(|size| size <= BODY_LIMIT)
}

/// Returns the piece of a request for a single one.
fn piece_of(target: &str) -> Option<ContentPieceId> {
    let query = target.strip_prefix("/content-pieces?")?;
    let mut ids = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "id");
    match (ids.next(), ids.next()) {
        (Some((_, id)), None) => id.parse().ok(),
        _ => None,
    }
}

impl std::fmt::Debug for ResponseCache {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ResponseCache").finish_non_exhaustive()
    }
}
