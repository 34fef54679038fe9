//! The response cache.
//!
//! A response to a read of content is cached with its headers and body. Its key is the token, the
//! address and the headers that shape a response. It belongs to a data version of the store
//! ([`galley_storage::Database::moment`]). It is served only if its scope has not changed
//! since that version: the workspace, or one piece and the rows that are shown with it. So a client
//! that reads after the response to a write never gets older data. The same holds for the
//! permissions of a token.
//!
//! If other programs write to the store as well, each look-up queries it. The query of the
//! request's token also returns the generation of its workspace ([`galley_storage::Generation`]). A
//! cached response of the same generation is still valid.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::header::{ACCEPT_ENCODING, AUTHORIZATION, ETAG, HOST, ORIGIN, VARY};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use galley_domain::{ContentPieceId, Timestamp};
use galley_storage::tokens::Authentication;
use galley_storage::{Database, Error, Generation, LastChange, Moment};
use metrics::{Counter, Histogram};
use quick_cache::sync::Cache;
use quick_cache::{Equivalent, Weighter};
use sha2::{Digest, Sha256};

use crate::http::app::App;
use crate::http::rate_limit::Standing;
use crate::http::room::WorkspaceMemory;
use crate::http::{actor, conditional, edge};
use crate::problem::Problem;

/// The cacheable paths. Their responses depend only on the token, the address and data that
/// [`Database::moment`] covers.
const REMEMBERED: [&str; 8] = [
    "/content-pieces",
    "/content-pieces/list",
    "/content-groups",
    "/content-groups/list",
    "/tags",
    "/tags/list",
    "/variants",
    "/variants/list",
];

/// The cacheable methods. Their responses differ only in the body.
const METHODS: [Method; 2] = [Method::GET, Method::HEAD];

/// The limit of cached tokens.
const TOKENS_MAX: usize = 10_000;

/// The size limit of a cached body, in bytes.
const BODY_MAX: u64 = 1024 * 1024;

/// The estimated size of a response, in bytes. It sets the initial capacity.
const BODY_USUAL: u64 = 4 * 1024;

/// The estimated size of an entry without its body, in bytes.
const ENTRY_SIZE: u64 = 1_024;

/// The SHA-256 of a token.
pub(crate) type TokenHash = [u8; 32];

/// The cache of responses and of tokens.
pub(crate) struct Answers {
    tokens: Cache<TokenHash, Arc<KnownToken>>,
    known: Option<Cache<Key, Arc<Answer>, Weight>>,
    /// The memory of cached bodies, also of evicted ones that are still being sent.
    room: WorkspaceMemory,
    asked: Asked,
    /// The metrics by route, and then by method.
    metrics: [[OnceLock<RouteMetrics>; METHODS.len()]; REMEMBERED.len()],
}

/// A cached token, as read at `moment`.
#[derive(Debug)]
struct KnownToken {
    authentication: Arc<Authentication>,
    moment: Moment,
    last_change: LastChange,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    token: TokenHash,
    target: String,
    accept_encoding: Option<HeaderValue>,
    origin: Option<HeaderValue>,
}

/// The borrowed form of a `Key`.
#[derive(Hash)]
struct KeyRef<'r> {
    token: TokenHash,
    target: &'r str,
    accept_encoding: Option<&'r HeaderValue>,
    origin: Option<&'r HeaderValue>,
}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.token == key.token
            && self.target == key.target
            && self.accept_encoding == key.accept_encoding.as_ref()
            && self.origin == key.origin.as_ref()
    }
}

impl KeyRef<'_> {
    fn to_key(&self) -> Key {
        Key {
            token: self.token,
            target: self.target.to_owned(),
            accept_encoding: self.accept_encoding.cloned(),
            origin: self.origin.cloned(),
        }
    }
}

#[derive(Debug)]
struct Answer {
    state: State,
    headers: HeaderMap,
    body: Bytes,
}

/// The recently requested keys, by a part of their hash. A response is cached on the second request
/// of its key. Caching costs about 20 % of a read, and clients that read everything once, such as
/// site builds, request most pages never again.
struct Asked {
    hasher: RandomState,
    hashes: Box<[AtomicU32]>,
}

/// The number of slots. A response cache of the default size has fewer entries.
const ASKED_MAX: usize = 1 << 16;

impl Default for Asked {
    fn default() -> Self {
        let hashes = (0..ASKED_MAX).map(|_| AtomicU32::new(0)).collect();
        Self { hasher: RandomState::new(), hashes }
    }
}

impl Asked {
    /// Records a request of `key`. Returns true if its slot held the same key before.
    fn again(&self, key: &impl Hash) -> bool {
        let hash = self.hasher.hash_one(key);
        let bytes = hash.to_le_bytes();
        let place = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
        // Never 0, the value of an empty slot.
        let mark = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) | 1;
        self.hashes[place % ASKED_MAX].swap(mark, Ordering::Relaxed) == mark
    }
}

/// The version of the data that a cached response shows.
#[derive(Debug)]
enum State {
    /// A data version, compared without a query.
    Moment {
        token: Arc<KnownToken>,
        moment: Moment,
        /// The piece that the response shows, if it shows only one.
        piece: Option<ContentPieceId>,
    },
    /// The generation that the database returned.
    Generation(Generation),
}

impl Answer {
    /// Returns the cached token if the response is known to be valid without a query.
    fn holds(&self) -> Option<&KnownToken> {
        let State::Moment { token, moment, piece } = &self.state else { return None };
        let is_current = match *piece {
            Some(piece) => token.last_change.of_piece_is_before(piece, *moment),
            None => token.last_change.is_before(*moment),
        };
        is_current.then_some(token)
    }

    fn is_of(&self, generation: Generation) -> bool {
        matches!(self.state, State::Generation(own) if own == generation)
    }
}

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<Key, Arc<Answer>> for Weight {
    fn weight(&self, key: &Key, answer: &Arc<Answer>) -> u64 {
        (key.target.len() + answer.body.len()) as u64 + ENTRY_SIZE
    }
}

/// A pending entry of the cache: the key and version of a response that is being produced.
#[derive(Debug)]
pub(crate) struct Ticket {
    key: Key,
    since: Since,
}

/// The version at which a pending entry's response was read, or earlier. A later change makes it
/// invalid.
#[derive(Debug, Clone, Copy)]
enum Since {
    Moment(Moment),
    Generation(Generation),
}

/// The result of a look-up in the response cache.
pub(crate) enum LookedUp {
    /// A cached response.
    Known(Response),
    /// No cached response. The response to come may be cached under the pending entry.
    New(Option<Ticket>),
}

/// The result of the token look-up, for the authentication of the same request.
#[derive(Debug, Clone)]
pub(crate) struct Found(pub(crate) Result<Option<Arc<Authentication>>, Error>);

struct RouteMetrics {
    whole: Counter,
    not_modified: Counter,
    seconds: Histogram,
}

impl RouteMetrics {
    fn of(method: &Method, route: &'static str) -> Self {
        let counter = |status: &'static str| {
            let method = method.to_string();
            metrics::counter!(
                "galley_http_requests_total", "method" => method, "route" => route, "status" => status
            )
        };
        Self {
            whole: counter("200"),
            not_modified: counter("304"),
            seconds: metrics::histogram!("galley_http_request_seconds", "route" => route),
        }
    }
}

impl KnownToken {
    fn is_current(&self) -> bool {
        self.last_change.of_access_is_before(self.moment)
    }

    fn has_expired(&self, now: Timestamp) -> bool {
        self.authentication.expires_at.is_some_and(|end| end <= now)
    }
}

impl Answers {
    /// Creates a cache of at most so many bytes of responses. With 0, no response is cached.
    pub(crate) fn new(bytes_max: u64) -> Self {
        let cache = |bytes_max: u64| {
            let count = usize::try_from(bytes_max / (BODY_USUAL + ENTRY_SIZE)).unwrap_or(0);
            Cache::with_weighter(count.max(16), bytes_max, Weight)
        };
        Self {
            tokens: Cache::new(TOKENS_MAX),
            known: (bytes_max > 0).then(|| cache(bytes_max)),
            room: WorkspaceMemory::new(
                usize::try_from(bytes_max.saturating_mul(2)).unwrap_or(usize::MAX),
            ),
            asked: Asked::default(),
            metrics: Default::default(),
        }
    }

    /// Returns the response to a request if a valid one is cached, or else a pending entry if its
    /// response may be cached.
    pub(crate) async fn look_up(&self, app: &App, request: &mut Request) -> LookedUp {
        let looked_up = if app.database().has_generations() {
            self.look_up_by_generation(app, request).await
        } else {
            self.look_up_by_moment(app, request)
        };
        looked_up.unwrap_or(LookedUp::New(None))
    }

    fn look_up_by_moment(&self, app: &App, request: &Request) -> Option<LookedUp> {
        let known = self.known.as_ref()?;
        let route = route_of(request)?;
        // Read before the look-up: a response that is valid at this version is no older than the
        // request.
        let moment = app.database().moment()?;
        let key = key_of(request)?;
        let now = app.environment().now();
        if let Some(answer) = known.get(&key)
            && let Some(token) = answer.holds()
            && !token.has_expired(now)
        {
            let given = self.give(app, request, route, &answer, &token.authentication, now);
            return Some(LookedUp::Known(given));
        }
        let since = Since::Moment(moment);
        let ticket = self.asked.again(&key).then(|| Ticket { key: key.to_key(), since });
        Some(LookedUp::New(ticket))
    }

    async fn look_up_by_generation(&self, app: &App, request: &mut Request) -> Option<LookedUp> {
        let known = self.known.as_ref()?;
        let route = route_of(request)?;
        let key = key_of(request)?.to_key();
        // A malformed token causes no query.
        actor::bearer(request.headers())?;
        let found = actor::find_with_generation(app, key.token).await;
        let now = app.environment().now();
        let mut ticket = None;
        if let Ok(Some((authentication, generation))) = &found {
            if authentication.expires_at.is_none_or(|end| end > now)
                && let Some(answer) = known.get(&key).filter(|answer| answer.is_of(*generation))
            {
                let given = self.give(app, request, route, &answer, authentication, now);
                return Some(LookedUp::Known(given));
            }
            let since = Since::Generation(*generation);
            ticket = self.asked.again(&key).then_some(Ticket { key, since });
        }
        // Authentication then needs no second query.
        let found = found.map(|found| found.map(|(authentication, _)| authentication));
        request.extensions_mut().insert(Found(found));
        Some(LookedUp::New(ticket))
    }

    /// Returns the cached response with the headers of this request, such as its id.
    fn give(
        &self,
        app: &App,
        request: &Request,
        route: usize,
        answer: &Answer,
        authentication: &Authentication,
        now: Timestamp,
    ) -> Response {
        let started = Instant::now();
        let standing = Standing::default();
        if let Err(error) = app.rate_limit().check(authentication.token, Some(&standing)) {
            let mut refused =
                edge::finish_alone(Problem::from(error).into_response(), request, app, &standing);
            refused.headers_mut().remove(VARY);
            edge::keep_headers_of_origin(refused.headers_mut(), &answer.headers);
            return refused;
        }
        app.token_use().note(app.database(), authentication, now);
        let own = answer.headers.get(ETAG);
        let is_known = own.is_some_and(|own| conditional::names(request.headers(), own));
        let body = if is_known { Body::empty() } else { Body::from(answer.body.clone()) };
        let mut response = Response::new(body);
        *response.headers_mut() = answer.headers.clone();
        if is_known {
            response = edge::not_modified(response);
        }
        edge::identify(&mut response, request.headers(), app.environment());
        standing.write(response.headers_mut());
        let method = usize::from(*request.method() == Method::HEAD);
        let of_route = || RouteMetrics::of(request.method(), REMEMBERED[route]);
        let metrics = self.metrics[route][method].get_or_init(of_route);
        if is_known { &metrics.not_modified } else { &metrics.whole }.increment(1);
        metrics.seconds.record(started.elapsed());
        edge::log_alone(request, &response, started, REMEMBERED[route], authentication);
        response
    }

    /// Caches a response, which must be complete but for the headers of its request. Returns the
    /// response to send.
    pub(crate) async fn keep(&self, ticket: Ticket, response: Response) -> Response {
        let Some(known) = &self.known else { return response };
        let Ticket { key, since } = ticket;
        let state = match since {
            Since::Generation(generation) => State::Generation(generation),
            Since::Moment(moment) => {
                // The cached token may be older than the response.
                let token = self.tokens.get(&key.token).filter(|token| token.is_current());
                let Some(token) = token else { return response };
                State::Moment { token, moment, piece: piece_of(&key.target) }
            }
        };
        let most = usize::try_from(BODY_MAX).unwrap_or(usize::MAX);
        let mut space = self.room.reservation(None);
        if space.resize(most).is_err() {
            return response;
        }
        let (head, body) = response.into_parts();
        let body = match to_bytes(body, most).await {
            Ok(body) => body,
            Err(error) => {
                tracing::error!(%error, "an answer could not be put together");
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            }
        };
        // The bytes are copied. The original ones have a reservation in the budget of responses,
        // which their drop releases at once.
        if space.resize(body.len()).is_err() {
            return Response::from_parts(head, Body::from(body));
        }
        let kept = space.attach(body.to_vec());
        let answer = Answer { state, headers: head.headers.clone(), body: kept.clone() };
        known.insert(key, Arc::new(answer));
        Response::from_parts(head, Body::from(kept))
    }

    /// Returns true if a response is cacheable: 200, with a body of a known size up to the limit.
    pub(crate) fn is_worth(response: &Response) -> bool {
        let size = response.body().size_hint().exact();
        response.status() == StatusCode::OK && size.is_some_and(|size| size <= BODY_MAX)
    }

    /// Returns the cached authentication of a token if it is still valid.
    pub(crate) fn token(
        &self,
        database: &Database,
        hash: &TokenHash,
    ) -> Option<Arc<Authentication>> {
        database.moment()?;
        let known = self.tokens.get(hash)?;
        known.is_current().then(|| Arc::clone(&known.authentication))
    }

    /// Caches a token, which was read after `moment`.
    pub(crate) fn keep_token(
        &self,
        database: &Database,
        hash: TokenHash,
        moment: Option<Moment>,
        authentication: &Arc<Authentication>,
    ) {
        let last_change = database.last_change(authentication.workspace);
        let Some((moment, last_change)) = moment.zip(last_change) else { return };
        // A slow read does not replace a newer entry.
        if self.tokens.get(&hash).is_some_and(|known| known.moment > moment) {
            return;
        }
        let authentication = Arc::clone(authentication);
        self.tokens.insert(hash, Arc::new(KnownToken { authentication, moment, last_change }));
    }
}

/// Returns the piece that a request target names, if it names one by its id.
fn piece_of(target: &str) -> Option<ContentPieceId> {
    let query = target.strip_prefix("/content-pieces?")?;
    let mut ids = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "id");
    match (ids.next(), ids.next()) {
        (Some((_, id)), None) => id.parse().ok(),
        _ => None,
    }
}

/// Returns the index of a request's path among the cacheable ones, if its response may be cached.
fn route_of(request: &Request) -> Option<usize> {
    if !METHODS.contains(request.method()) || request.version() < Version::HTTP_11 {
        return None;
    }
    let path = request.uri().path();
    REMEMBERED.iter().position(|known| *known == path)
}

/// Returns the cache key of a request, unless a header of the key is malformed or repeated.
fn key_of(request: &Request) -> Option<KeyRef<'_>> {
    let headers = request.headers();
    let only = |name| {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            _ => Err(()),
        }
    };
    only(HOST).ok()??;
    let (scheme, token) = only(AUTHORIZATION).ok()??.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    Some(KeyRef {
        token: Sha256::digest(token.trim().as_bytes()).into(),
        target: request.uri().path_and_query()?.as_str(),
        accept_encoding: only(ACCEPT_ENCODING).ok()?,
        origin: only(ORIGIN).ok()?,
    })
}

impl std::fmt::Debug for Answers {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Answers").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::router;
    use crate::openapi::endpoint::Fact;

    #[test]
    fn what_is_remembered_is_there_to_be_read() {
        let (_, facts) = router::table().into_descriptions();
        for path in REMEMBERED {
            let is_there = |fact: &Fact| fact.path == path && fact.method == "get";
            assert!(facts.iter().any(is_there), "{path}");
        }
    }
}
