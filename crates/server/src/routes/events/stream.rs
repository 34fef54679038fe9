//! The feed as a stream of server-sent events. It ends when its token expires or is revoked.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use axum::http::request::Parts;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use galley_application::operations::events::{self, VisibleEvent};
use galley_application::{Error, Reason, Rejection};
use galley_domain::Invalid;
use galley_storage::authentication::Authentication;
use tokio::sync::watch;

use crate::app::App;
use crate::client_socket::ClientSocket;
use crate::describe::{HandlerArgument, HandlerFacts};
use crate::extract::query::whole_number;
use crate::problem::Problem;
use crate::resources::stream_limit::StreamPermit;

/// The interval after which an idle stream sends a heartbeat.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// The interval at which a stream polls for events that other processes committed.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The limit on events in one read.
const EVENTS_PER_READ: usize = 100;

/// The limit on bytes in one read, except for a single larger event. The events are buffered until
/// the client reads them.
const READ_BYTES_MAX: usize = 64 * 1024;

/// The client's request for a stream, and the position at which to resume it.
#[derive(Debug)]
pub(crate) struct StreamRequest {
    pub(super) is_wanted: bool,
    /// The last event that a reconnecting client received.
    pub(super) last_event_id: Option<i64>,
    /// The client's connection.
    socket: Option<ClientSocket>,
}

impl<S: Send + Sync> FromRequestParts<S> for StreamRequest {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let is_wanted = is_wanted(&parts.headers);
        let socket = parts.extensions.get::<ClientSocket>().cloned();
        let given = parts.headers.get("last-event-id").filter(|given| !given.is_empty());
        let Some(given) = given.filter(|_| is_wanted) else {
            return Ok(Self { is_wanted, last_event_id: None, socket });
        };
        match given.to_str().ok().and_then(|text| whole_number(text.trim())) {
            Some(number) => Ok(Self { is_wanted, last_event_id: Some(number), socket }),
            None => {
                let invalid = Invalid::new("invalid_number", "must be the sequence of an event");
                Err(Rejection::of_field("Last-Event-ID", &invalid).into())
            }
        }
    }
}

/// Returns true if the client accepts a stream, and prefers it to a page.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let kinds: Vec<&str> = accepted.flat_map(|value| value.split(',')).collect();
    let stream = media_type_quality(&kinds, "text/event-stream").unwrap_or_default();
    let page = media_type_quality(&kinds, "application/json").unwrap_or_default();
    stream > 0.0 && stream >= page
}

/// Returns the quality value of a media type, from 0 to 1, if `Accept` lists it.
fn media_type_quality(kinds: &[&str], name: &str) -> Option<f32> {
    kinds.iter().find_map(|kind| {
        let mut parts = kind.split(';').map(str::trim);
        let is_named = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case(name));
        let given = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        is_named.then(|| given.and_then(|given| given.trim().parse().ok()).unwrap_or(1.0))
    })
}

impl HandlerArgument for StreamRequest {
    fn add_facts(_: &mut HandlerFacts) {}
}

/// An open stream.
struct EventStream {
    app: App,
    reader: Authentication,
    after: i64,
    ready: VecDeque<VisibleEvent>,
    commits: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    /// Completes when the client closes its side of the connection, which ends the stream.
    closed: Pin<Box<dyn Future<Output = ()> + Send>>,
    _permit: StreamPermit,
}

/// Opens a stream of the events after `after`.
pub(super) fn open(
    app: &App,
    reader: Authentication,
    after: i64,
    request: StreamRequest,
) -> Result<Response, Problem> {
    let Some(permit) = app.stream_permit(reader.workspace) else {
        let detail = "too many event streams are open: retry later, or read pages";
        return Err(Rejection::new(Reason::Overloaded, detail).retry_after(5).into());
    };
    let stream = EventStream {
        app: app.clone(),
        reader,
        after,
        ready: VecDeque::new(),
        commits: app.database().subscribe_to_commits(),
        stopping: app.stopping(),
        closed: Box::pin(async move {
            match request.socket {
                Some(socket) => socket.closed().await,
                None => std::future::pending().await,
            }
        }),
        _permit: permit,
    };
    let events = stream::unfold(stream, |mut stream| async move {
        let event = stream.next().await?;
        Some((Ok::<_, Infallible>(event), stream))
    });
    let keep_alive = KeepAlive::new().interval(HEARTBEAT_INTERVAL);
    Ok(Sse::new(events).keep_alive(keep_alive).into_response())
}

impl EventStream {
    /// Returns the next event, or `None` at the end of the stream.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(seen) = self.ready.pop_front() {
                let event = Event::default()
                    .id(seen.sequence.to_string())
                    .event(seen.event_type.as_str())
                    .data(seen.json.get());
                return Some(event);
            }
            // A commit during the read below then counts as a change.
            self.commits.mark_unchanged();
            match self.read().await {
                Ok(Some(true)) => continue,
                Ok(Some(false)) => {}
                Ok(None) => return None,
                // The stream stays open, as the database may recover soon.
                Err(error) => tracing::debug!(%error, "a stream could not be read"),
            }
            let pause = self.pause();
            tokio::select! {
                _ = self.commits.changed() => {}
                () = &mut self.closed => return None,
                _ = self.stopping.wait_for(|stopping| *stopping) => return None,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Returns the timeout of the wait for a commit signal. It ends no later than the token.
    fn pause(&self) -> Duration {
        let now = self.app.environment().now();
        let left = self.reader.expires_at.map(|end| end.ms().saturating_sub(now.ms()));
        let left = left.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
        left.map_or(POLL_INTERVAL, |left| left.min(POLL_INTERVAL))
    }

    /// Reads new events into the buffer. Returns true if the position advanced, and `None` if the
    /// token is no longer valid.
    async fn read(&mut self) -> Result<Option<bool>, Error> {
        let followed = events::follow(
            self.app.service(),
            &self.reader,
            self.after,
            EVENTS_PER_READ,
            READ_BYTES_MAX,
        );
        let Some((reader, page)) = followed.await? else { return Ok(None) };
        let moved = page.looked_up_to > self.after;
        self.reader = reader;
        self.after = page.looked_up_to;
        self.ready.extend(page.seen);
        Ok(Some(moved))
    }
}
