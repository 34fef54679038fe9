//! What every handler has at hand.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::HeaderValue;
use axum::response::Response;
use galley_application::secrets::SecretKey;
use galley_application::{Environment, LogLimit, Rejection, Service, ServiceSettings, TokenUse};
use galley_content::{ContentError, Loss, Tree};
use galley_domain::address_policy::AddressPolicy;
use galley_domain::{Invalid, WorkspaceId};
use galley_mail::Mailer;
use galley_runtime::{CpuPool, Overloaded};
use galley_storage::Database;
use serde::Serialize;
use tokio::sync::watch;

use crate::http::answers::Answers;
use crate::http::overload::{self, Overload};
use crate::http::rate_limit::RateLimit;
use crate::http::response;
use crate::http::room::{Bounded, WorkspaceMemory, WorkspaceReservation};
use crate::http::stream_places::{StreamPlace, StreamPlaces};
use crate::problem::Problem;

/// Bounds on what a client may do.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a request's head.
    pub head_max: usize,
    /// Bytes of a request's body.
    pub body_max: usize,
    /// Bytes of HTML as content.
    pub content_max: usize,
    /// Bytes of an answer, beyond which a page of a list has to have fewer items.
    pub page_max: usize,
    /// How long a client may take to send its head, or its body.
    pub receive_time_max: Duration,
    /// The origins whose scripts browsers may let in.
    pub cors_origins: Vec<HeaderValue>,
    /// Bytes of answers that are remembered; 0: none.
    pub answers_max: u64,
    /// Requests that a token may send in a minute; 0: as many as it likes.
    pub rate_limit: u32,
    /// Invites that a workspace may send in an hour.
    pub invites_per_hour: u32,
    /// The addresses that webhooks may call.
    pub webhook_addresses: AddressPolicy,
    /// Where others reach the service.
    pub public_url: String,
    /// What this program is called among those that serve the same database.
    pub node: String,
    /// How long it serves on when it is told to stop, so that a balancer notices first.
    pub stop_delay: Duration,
    /// Connections that are served at the same time.
    pub connections_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_max: 16 * 1024,
            body_max: 8 * 1024 * 1024,
            content_max: 2 * 1024 * 1024,
            page_max: 64 * 1024 * 1024,
            receive_time_max: Duration::from_secs(30),
            cors_origins: Vec::new(),
            answers_max: 64 * 1024 * 1024,
            rate_limit: 0,
            invites_per_hour: 100,
            webhook_addresses: AddressPolicy::default(),
            public_url: String::new(),
            node: String::new(),
            stop_delay: Duration::ZERO,
            connections_max: 10_000,
        }
    }
}

/// The running service. Clones are the same one.
#[derive(Debug, Clone)]
pub struct App(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    service: Service,
    limits: Limits,
    answers: Answers,
    rate_limit: RateLimit,
    token_use: TokenUse,
    is_leaving: AtomicBool,
    streams: StreamPlaces,
    cpu_pool: CpuPool,
    room: WorkspaceMemory,
    answer_room: WorkspaceMemory,
    overload: Overload,
    rejected_credentials: LogLimit<Option<IpAddr>>,
}

/// For how many bytes of bodies there is room at the least, and for how many of the largest.
const ROOM_MIN: usize = 64 * 1024 * 1024;
const BODIES_MIN: usize = 8;

/// For how many of the largest pages there is room.
const PAGES_MIN: usize = 4;

/// How often what a page shows is in memory: as it was read, and as it is sent.
const MADE_OF: usize = 2;

/// The most bytes of a tree as JSON: several times what the largest sensible HTML makes.
const TREE_MAX: usize = 16 * 1024 * 1024;

/// From this size on a document is worked on beside the threads that serve requests.
const INLINE_CONTENT_MAX: usize = 32 * 1024;

impl App {
    /// A service on `database`, whose secrets are encrypted with `key`, and whose mails `mailer` sends: without
    /// one they stay where they are.
    pub fn new(
        database: Database,
        environment: Environment,
        key: SecretKey,
        limits: Limits,
        mailer: Option<Mailer>,
    ) -> Self {
        let settings = ServiceSettings {
            webhook_addresses: limits.webhook_addresses.clone(),
            public_url: limits.public_url.clone(),
            node: limits.node.clone(),
        };
        let service = Service::new(database, environment, key, settings, mailer);
        let (rate_limit, token_use) = (RateLimit::new(limits.rate_limit), TokenUse::default());
        let room = WorkspaceMemory::new(ROOM_MIN.max(limits.body_max.saturating_mul(BODIES_MIN)));
        let answer_room = WorkspaceMemory::new(limits.page_max.saturating_mul(PAGES_MIN * MADE_OF));
        Self(Arc::new(Parts {
            service,
            answers: Answers::new(limits.answers_max),
            limits,
            rate_limit,
            token_use,
            is_leaving: AtomicBool::new(false),
            streams: StreamPlaces::default(),
            cpu_pool: CpuPool::default(),
            room,
            answer_room,
            overload: Overload::new(),
            rejected_credentials: LogLimit::default(),
        }))
    }

    /// Where everything is kept.
    pub fn database(&self) -> &Database {
        self.0.service.database()
    }

    /// Time and randomness.
    pub fn environment(&self) -> &Environment {
        self.0.service.environment()
    }

    /// What the database's secrets are encrypted with.
    pub(crate) fn key(&self) -> &SecretKey {
        self.0.service.key()
    }

    /// What was answered lately.
    pub(crate) fn answers(&self) -> &Answers {
        &self.0.answers
    }

    /// How many requests each token may send.
    pub(crate) fn rate_limit(&self) -> &RateLimit {
        &self.0.rate_limit
    }

    /// Bounds the log's lines about rejected credentials, by client.
    pub(crate) fn rejected_credentials(&self) -> &LogLimit<Option<IpAddr>> {
        &self.0.rejected_credentials
    }

    /// When tokens were last used.
    pub(crate) fn token_use(&self) -> &TokenUse {
        &self.0.token_use
    }

    /// From now on clients are asked to go elsewhere.
    pub(crate) fn leave(&self) {
        self.0.is_leaving.store(true, Ordering::Relaxed);
    }

    /// Whether clients are asked to go elsewhere.
    pub(crate) fn is_leaving(&self) -> bool {
        self.0.is_leaving.load(Ordering::Relaxed)
    }

    /// Says to whatever goes on by itself that the service stops.
    pub(crate) fn stop(&self) {
        self.0.service.stop();
    }

    /// Becomes true when the service stops.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.0.service.stopping()
    }

    /// A place among the open streams of events, if there is one.
    pub(crate) fn stream_place(&self, workspace: WorkspaceId) -> Option<StreamPlace> {
        self.0.streams.take(workspace)
    }

    /// Returns the parts without HTTP.
    pub(crate) fn service(&self) -> &Service {
        &self.0.service
    }

    /// Bounds on what a client may do.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Where the bodies of requests are.
    pub(super) fn room(&self) -> &WorkspaceMemory {
        &self.0.room
    }

    /// Where answers are until they are sent.
    pub(super) fn answer_room(&self) -> &WorkspaceMemory {
        &self.0.answer_room
    }

    /// WorkspaceReservation for an answer that shows so many bytes of a workspace, if there is some.
    pub(crate) fn space_for_answer(
        &self,
        workspace: WorkspaceId,
        bytes: usize,
    ) -> Result<WorkspaceReservation, Overloaded> {
        let mut space = self.0.answer_room.reservation(Some(workspace));
        space.resize(bytes.saturating_mul(MADE_OF))?;
        Ok(space)
    }

    /// The JSON of an answer in its space; nothing, where it has more bytes than an answer may.
    pub(crate) fn made_in(
        &self,
        mut space: WorkspaceReservation,
        body: &impl Serialize,
    ) -> Result<Option<Bytes>, Overloaded> {
        let Some(bytes) = Bounded::json(body, self.0.limits.page_max) else { return Ok(None) };
        // What it was made of is soon gone.
        space.resize(bytes.len())?;
        Ok(Some(space.attach(bytes)))
    }

    /// 200 with a resource of this version, or with a list, that may be large; refused by the parameter `field` where it has more
    /// bytes than an answer may.
    pub(crate) fn answer(
        &self,
        workspace: WorkspaceId,
        version: i64,
        body: &impl Serialize,
        field: &str,
    ) -> Result<Response, Problem> {
        let made = self.made_in(self.space_for_answer(workspace, 0)?, body)?;
        let made = made.ok_or_else(|| Rejection::too_much(field, self.0.limits.page_max))?;
        Ok(response::resource_in_space(version, made))
    }

    /// How much is under way.
    pub(super) fn overload(&self) -> &Overload {
        &self.0.overload
    }

    /// Runs `work` on a document of `size` bytes where it holds up nobody.
    pub(crate) async fn process<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Overloaded> {
        if size <= INLINE_CONTENT_MAX {
            return Ok(work());
        }
        self.process_apart(work).await
    }

    /// Does work that takes long where it holds up nobody.
    pub(crate) async fn process_apart<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Overloaded> {
        overload::aside(self.0.cpu_pool.run(work)).await
    }

    /// The JSON text of the tree that `html` says, and with `reports` what of it the tree lacks. To be
    /// called where it holds up nobody.
    pub(crate) fn content_from_html(
        &self,
        html: &str,
        reports: bool,
    ) -> Result<(String, Vec<Loss>), Invalid> {
        let max = self.limits().content_max;
        if html.len() > max {
            return Err(Invalid::too_long(max, "bytes of HTML"));
        }
        let limits = galley_content::Limits::default();
        let read = if reports {
            Tree::from_html_with_losses(html, &limits)
        } else {
            Tree::from_html(html, &limits).map(|tree| (tree, Vec::new()))
        };
        match read {
            Ok((tree, losses)) => {
                let json = tree.to_json_within(TREE_MAX).ok_or_else(|| {
                    let message =
                        format!("is not accepted: its tree would have over {TREE_MAX} bytes");
                    Invalid::new("content_too_complex", message)
                })?;
                Ok((json, losses))
            }
            Err(error @ ContentError::TooComplex) => {
                Err(Invalid::new("content_too_complex", format!("is not accepted: {error}")))
            }
            Err(error) => {
                Err(Invalid::new("content_too_deep", format!("is not accepted: {error}")))
            }
        }
    }
}
