//! Answers that are given again while nothing has changed.
//!
//! What is read of content is remembered as it was answered, head and body, by the token, the address and the headers
//! that shape an answer. It is of a moment of the store, and is given again only if nothing of the workspace was
//! changed since ([`galley_storage::Database::moment`]): whoever reads after a write was answered never gets what
//! was before. The same holds for what a token may do.
//!
//! Where others write the store, too, it is asked each time: whoever looks up the token of a request learns the
//! generation of its workspace ([`galley_storage::Generation`]), and an answer of the same one still holds.

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

/// The paths whose answers depend on the store, the token and the address alone, and which
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

/// The methods, whose answers are the same but for the body.
const METHODS: [Method; 2] = [Method::GET, Method::HEAD];

/// How many tokens are known at the most.
const TOKENS_MAX: usize = 10_000;

/// The greatest body that is remembered.
const BODY_MAX: u64 = 1024 * 1024;

/// About how many bytes an answer has, to begin with.
const BODY_USUAL: u64 = 4 * 1024;

/// What an entry takes beside its body.
const ENTRY_SIZE: u64 = 1_024;

/// The SHA-256 of a token.
pub(crate) type TokenHash = [u8; 32];

/// What was answered, and to whom.
pub(crate) struct Answers {
    tokens: Cache<TokenHash, Arc<KnownToken>>,
    known: Option<Cache<Key, Arc<Answer>, Weight>>,
    /// Where they are, also those that are forgotten and still sent to somebody.
    room: WorkspaceMemory,
    asked: Asked,
    /// By route, and then by method.
    metrics: [[OnceLock<RouteMetrics>; METHODS.len()]; REMEMBERED.len()],
}

/// A token as it was found.
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

/// The same, of a request.
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

/// What was asked lately, by a part of its hash: an answer is remembered when it is asked for again. To remember one costs a
/// fifth of what it takes to read it, and those that read everything once, as builds of sites do, ask for most of it never again.
struct Asked {
    hasher: RandomState,
    hashes: Box<[AtomicU32]>,
}

/// More than there is room for answers.
const ASKED_MAX: usize = 1 << 16;

impl Default for Asked {
    fn default() -> Self {
        let hashes = (0..ASKED_MAX).map(|_| AtomicU32::new(0)).collect();
        Self { hasher: RandomState::new(), hashes }
    }
}

impl Asked {
    /// Notes that it is asked for; says whether it was before.
    fn again(&self, key: &impl Hash) -> bool {
        let hash = self.hasher.hash_one(key);
        let bytes = hash.to_le_bytes();
        let place = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
        // Never 0, which stands for nothing.
        let mark = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) | 1;
        self.hashes[place % ASKED_MAX].swap(mark, Ordering::Relaxed) == mark
    }
}

/// The state of the store that an answer is of.
#[derive(Debug)]
enum State {
    /// A moment, known without asking.
    Moment {
        token: Arc<KnownToken>,
        moment: Moment,
        /// The piece that it is of, if it is of one.
        piece: Option<ContentPieceId>,
    },
    /// What the store said.
    Generation(Generation),
}

impl Answer {
    /// The token as it was, if the answer is known to hold without asking.
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

/// What an answer that is about to be made is remembered by.
#[derive(Debug)]
pub(crate) struct Ticket {
    key: Key,
    since: Since,
}

/// Since when nothing may have changed for an answer to hold.
#[derive(Debug, Clone, Copy)]
enum Since {
    Moment(Moment),
    Generation(Generation),
}

/// What is known of a request's answer.
pub(crate) enum LookedUp {
    /// All of it.
    Known(Response),
    /// Nothing, but what it may be remembered by.
    New(Option<Ticket>),
}

/// What was found of a request's token in the store already.
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
    /// At most so many bytes of answers; of none, none is remembered.
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

    /// The answer to a request, if it is known and still holds; or what the answer may be remembered by.
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
        // Before anything is looked up: what holds at this moment is no older than the request.
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
        // The database isn't asked for what is no token.
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
        // Whoever asks for the token next has it.
        let found = found.map(|found| found.map(|(authentication, _)| authentication));
        request.extensions_mut().insert(Found(found));
        Some(LookedUp::New(ticket))
    }

    /// The answer once more, with what is the request's own.
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

    /// Remembers an answer, which must be whole but for what is a request's own.
    pub(crate) async fn keep(&self, ticket: Ticket, response: Response) -> Response {
        let Some(known) = &self.known else { return response };
        let Ticket { key, since } = ticket;
        let state = match since {
            Since::Generation(generation) => State::Generation(generation),
            Since::Moment(moment) => {
                // What was known of the token may be older than the answer.
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
        // Bytes of its own: those that were to be sent have another space, which is for others at once.
        if space.resize(body.len()).is_err() {
            return Response::from_parts(head, Body::from(body));
        }
        let kept = space.attach(body.to_vec());
        let answer = Answer { state, headers: head.headers.clone(), body: kept.clone() };
        known.insert(key, Arc::new(answer));
        Response::from_parts(head, Body::from(kept))
    }

    /// Whether an answer can be remembered.
    pub(crate) fn is_worth(response: &Response) -> bool {
        let size = response.body().size_hint().exact();
        response.status() == StatusCode::OK && size.is_some_and(|size| size <= BODY_MAX)
    }

    /// What is known of a token, if that still holds.
    pub(crate) fn token(
        &self,
        database: &Database,
        hash: &TokenHash,
    ) -> Option<Arc<Authentication>> {
        database.moment()?;
        let known = self.tokens.get(hash)?;
        known.is_current().then(|| Arc::clone(&known.authentication))
    }

    /// Remembers a token, which was read after `moment`.
    pub(crate) fn keep_token(
        &self,
        database: &Database,
        hash: TokenHash,
        moment: Option<Moment>,
        authentication: &Arc<Authentication>,
    ) {
        let last_change = database.last_change(authentication.workspace);
        let Some((moment, last_change)) = moment.zip(last_change) else { return };
        // Who was slow to read it doesn't take the place of what is newer.
        if self.tokens.get(&hash).is_some_and(|known| known.moment > moment) {
            return;
        }
        let authentication = Arc::clone(authentication);
        self.tokens.insert(hash, Arc::new(KnownToken { authentication, moment, last_change }));
    }
}

/// The piece that is asked for at this address, if it is one.
fn piece_of(target: &str) -> Option<ContentPieceId> {
    let query = target.strip_prefix("/content-pieces?")?;
    let mut ids = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "id");
    match (ids.next(), ids.next()) {
        (Some((_, id)), None) => id.parse().ok(),
        _ => None,
    }
}

/// Which route a request takes, if its answer may be remembered.
fn route_of(request: &Request) -> Option<usize> {
    if !METHODS.contains(request.method()) || request.version() < Version::HTTP_11 {
        return None;
    }
    let path = request.uri().path();
    REMEMBERED.iter().position(|known| *known == path)
}

/// By what the answer to a request is known.
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
