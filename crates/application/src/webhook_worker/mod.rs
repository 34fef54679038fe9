//! The worker that sends events to webhooks. It drives the dispatcher of `galley-delivery` with the
//! store and the network.
//!
//! The queue is in the database, and the worker holds only the deliveries that it has leased. The
//! commit signal of events wakes it ([`galley_storage::Database::subscribe_to_commits`]). It also
//! scans the store once a second, in case a signal was missed.

mod attempt_log;
mod session;
mod store_exchange;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use galley_api_types::event_envelope::{EventJson, without_emails};
use galley_delivery::{
    Action, AttemptError, AttemptReport, DeliveryJob, DeliveryRequest, Dispatcher,
    DispatcherLimits, StoreRequest, WebhookSender,
};
use galley_domain::WebhookId;
use galley_domain::delivery::{AttemptOutcome, DeliveryStep, next_step};
use galley_domain::webhook::WebhookSecret;
use galley_runtime::lower_priority;
use galley_storage::delivery_queue::{AttemptResult, ClaimedDelivery, ScanPosition};
use galley_storage::{Error as StorageError, TRACE_TARGET, WriteTx, delivery_queue};
use session::DeliverySession;
use store_exchange::StoreExchangeResult;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::environment::Environment;
use crate::operations::webhooks::secret_aad;
use crate::service::Service;

/// The interval between two checks for idle connections.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The events that the worker's tasks report.
enum WorkerEvent {
    /// An attempt has ended.
    AttemptEnded { webhook: WebhookId, is_failing: bool, result: Box<AttemptResult> },
    /// An attempt was abandoned, because another server may repeat it.
    AttemptAbandoned { is_failing: bool, leased: Box<ClaimedDelivery> },
    /// The exchange with the store succeeded.
    StoreResponded(StoreExchangeResult),
    /// The exchange with the store failed.
    StoreFailed(StoreRequest<AttemptResult>),
}

/// The interval between attempts to release leases, which are retried until the leases have
/// expired.
const RELEASE_INTERVAL: Duration = Duration::from_secs(1);
const RELEASE_ATTEMPTS_MAX: usize = 60;

/// The niceness of the worker's thread. If CPU time is scarce, the thread gets about a tenth of the
/// share of one that serves requests.
const NICENESS: i32 = 10;

/// Starts the worker, on a thread of its own, so that requests don't wait for it. The returned
/// receiver resolves when the service has stopped and the attempts under way have ended.
///
/// Database work runs on the runtime that serves requests, as both share its connections.
pub fn start(service: Service) -> std::io::Result<oneshot::Receiver<()>> {
    let (ended, end) = oneshot::channel();
    let request_runtime = Handle::current();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("deliveries".to_owned()).spawn(move || {
        lower_priority(NICENESS);
        runtime.block_on(run(service, request_runtime));
        let _ = ended.send(());
    })?;
    Ok(end)
}

/// Sends deliveries that are due until the service stops, then awaits the attempts under way.
async fn run(service: Service, request_runtime: Handle) {
    let mut stop = service.stopping();
    let environment = service.environment().clone();
    let mut commits = service.database().subscribe_to_commits();
    let Some(session) = open_session(&service, &request_runtime).await else { return };
    let heartbeat_session = Arc::clone(&session);
    let heartbeat_task =
        request_runtime.spawn(async move { heartbeat_session.run_heartbeats().await });
    let request_runtime_for_close = request_runtime.clone();
    // Without the runtime no exchange with the store completes, so the worker ends with it.
    let mut request_runtime_end = request_runtime.spawn(std::future::pending::<()>());
    let (events, mut received_events) = mpsc::unbounded_channel();
    let mut worker = WebhookWorker {
        dispatcher: Dispatcher::new(DispatcherLimits::default(), environment.now()),
        sender: Arc::clone(service.sender()),
        service,
        request_runtime,
        events,
        exchange_count: 0,
        scan_position: Arc::default(),
        session: Arc::clone(&session),
    };
    let mut idle_checked_at = Instant::now();
    let mut is_stopping = false;
    while !worker.dispatcher.has_stopped() {
        worker.perform_actions();
        if worker.dispatcher.can_begin_more() {
            // Lets tasks that are ready run first.
            tokio::task::yield_now().await;
            while let Ok(event) = received_events.try_recv() {
                worker.handle_event(event);
            }
            continue;
        }
        let now = environment.now();
        let wake_at = worker.dispatcher.wake_at().map(|at| at.ms().saturating_sub(now.ms()));
        // Bounds the sleep, in case the clock jumps.
        let pause = Duration::from_millis(u64::try_from(wake_at.unwrap_or(1_000)).unwrap_or(0))
            .min(Duration::from_secs(1));
        tokio::select! {
            Some(event) = received_events.recv() => {
                worker.handle_event(event);
                while let Ok(event) = received_events.try_recv() {
                    worker.handle_event(event);
                }
            }
            Ok(()) = commits.changed() => worker.dispatcher.commit_signalled(),
            _ = stop.wait_for(|stopping| *stopping), if !is_stopping => {
                is_stopping = true;
                worker.dispatcher.stop();
            }
            _ = &mut request_runtime_end => return,
            () = tokio::time::sleep(pause) => {}
        }
        if idle_checked_at.elapsed() > IDLE_CHECK_INTERVAL {
            worker.sender.close_idle_connections();
            idle_checked_at = Instant::now();
        }
    }
    heartbeat_task.abort();
    let _ = request_runtime_for_close.spawn(async move { session.close().await }).await;
}

/// Opens the session that leases belong to. Returns `None` if the service stops before.
async fn open_session(service: &Service, request_runtime: &Handle) -> Option<Arc<DeliverySession>> {
    let mut stop = service.stopping();
    let opening = request_runtime.spawn(DeliverySession::open(service.clone()));
    let abort = opening.abort_handle();
    tokio::select! {
        opened = opening => opened.ok().map(Arc::new),
        _ = stop.wait_for(|stopping| *stopping) => {
            abort.abort();
            None
        }
    }
}

struct WebhookWorker {
    service: Service,
    /// The runtime that serves requests.
    request_runtime: Handle,
    sender: Arc<WebhookSender>,
    dispatcher: Dispatcher<ClaimedDelivery, AttemptResult>,
    events: mpsc::UnboundedSender<WorkerEvent>,
    /// The number of exchanges with the store so far.
    exchange_count: usize,
    /// The position from which events are scanned for fan-out.
    scan_position: Arc<ScanPosition>,
    session: Arc<DeliverySession>,
}

impl WebhookWorker {
    fn perform_actions(&mut self) {
        let now = self.service.environment().now();
        for action in self.dispatcher.next_actions(now) {
            match action {
                Action::Attempt(job) => self.attempt(job),
                Action::StoreRequest(request) => self.start_exchange(request),
                Action::Release(leased) => self.release_leases(leased),
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "there are few")]
        metrics::gauge!("galley_webhook_attempts_in_flight")
            .set(self.dispatcher.under_way() as f64);
    }

    fn handle_event(&mut self, event: WorkerEvent) {
        let now = self.service.environment().now();
        match event {
            WorkerEvent::AttemptEnded { webhook, is_failing, result } => {
                self.dispatcher.attempt_ended(webhook, is_failing, *result, now);
            }
            WorkerEvent::AttemptAbandoned { is_failing, leased } => {
                self.dispatcher.attempt_abandoned(leased.webhook, is_failing);
                self.release_leases(vec![*leased]);
            }
            WorkerEvent::StoreResponded(StoreExchangeResult {
                leased,
                unrecorded: left,
                has_more: more,
            }) => {
                let unrecorded = left.into_iter().map(|one| (one.webhook, one)).collect();
                let jobs = leased.into_iter().map(|leased| DeliveryJob {
                    webhook: leased.webhook,
                    slots: leased.health.slots as usize,
                    is_failing: leased.health.is_failing(),
                    lease_until: leased.until,
                    payload: leased,
                });
                self.dispatcher.store_responded(jobs.collect(), unrecorded, more, now);
            }
            WorkerEvent::StoreFailed(request) => self.dispatcher.store_failed(request, now),
        }
    }

    fn start_exchange(&mut self, mut request: StoreRequest<AttemptResult>) {
        if !self.session.is_valid() {
            // Results of attempts may still be recorded.
            (request.claim_max, request.failing_claim_max) = (0, 0);
        }
        let (service, events, count) =
            (self.service.clone(), self.events.clone(), self.exchange_count);
        let (position, session) = (Arc::clone(&self.scan_position), self.session.id());
        let lease: Arc<str> = format!("{:032x}", service.environment().new_id()).into();
        self.exchange_count = count.wrapping_add(1);
        self.request_runtime.spawn(async move {
            let (of_session, of_lease) = (Arc::clone(&session), Arc::clone(&lease));
            let done = store_exchange::run_exchange(
                &service, &position, of_session, of_lease, request, count,
            );
            let event = match done.await {
                Ok(exchange) => WorkerEvent::StoreResponded(exchange),
                Err((error, request)) => {
                    tracing::warn!(%error, "deliveries could not be recorded or claimed");
                    // If the connection ended during the commit, the store may have the leases.
                    tokio::spawn(release(service, LeasesToRelease::Unknown { session, lease }));
                    WorkerEvent::StoreFailed(request)
                }
            };
            // The receiver is dropped only when the program ends.
            let _ = events.send(event);
        });
    }

    fn release_leases(&self, leased: Vec<ClaimedDelivery>) {
        self.request_runtime.spawn(release(self.service.clone(), LeasesToRelease::Claimed(leased)));
    }

    fn attempt(&self, job: DeliveryJob<ClaimedDelivery>) {
        let (service, sender, events) =
            (self.service.clone(), Arc::clone(&self.sender), self.events.clone());
        let session = Arc::clone(&self.session);
        tokio::spawn(async move {
            let DeliveryJob { webhook, is_failing, payload: leased, .. } = job;
            let attempted = tokio::select! {
                biased;
                () = session.until_invalid(&leased.session) => None,
                result = attempt(&service, &sender, &leased) => Some(Box::new(result)),
            };
            let _ = events.send(match attempted {
                Some(result) => WorkerEvent::AttemptEnded { webhook, is_failing, result },
                None => WorkerEvent::AttemptAbandoned { is_failing, leased: Box::new(leased) },
            });
        });
    }
}

/// The leases that a task releases.
enum LeasesToRelease {
    /// Leases on deliveries that won't be attempted.
    Claimed(Vec<ClaimedDelivery>),
    /// Leases of a failed exchange, if it was committed.
    Unknown { session: Arc<str>, lease: Arc<str> },
}

/// Releases leases. Retries until they have expired.
async fn release(service: Service, released: LeasesToRelease) {
    let (environment, released) = (service.environment().clone(), Arc::new(released));
    for _ in 0..RELEASE_ATTEMPTS_MAX {
        let (environment, released) = (environment.clone(), Arc::clone(&released));
        let write = async move |tx: &WriteTx<'_>| match &*released {
            LeasesToRelease::Claimed(leased) => {
                delivery_queue::release(tx, leased, environment.now()).await
            }
            LeasesToRelease::Unknown { session, lease } => {
                delivery_queue::release_unknown(tx, session, lease, environment.now()).await
            }
        };
        match service.database().write::<_, StorageError, _>("deliveries.release", write).await {
            Ok(()) => return,
            Err(error) => tracing::debug!(%error, "delivery leases could not be released"),
        }
        tokio::time::sleep(RELEASE_INTERVAL).await;
    }
}

/// Creates the span of an attempt, if spans are exported.
fn delivery_span(leased: &ClaimedDelivery, attempts: u32) -> Span {
    tracing::info_span!(
        target: TRACE_TARGET,
        "webhook delivery",
        otel.kind = "client",
        otel.status_code = Empty,
        http.request.method = "POST",
        http.request.resend_count = i64::from(attempts - 1),
        http.response.status_code = Empty,
        error.type = Empty,
        galley.webhook.id = %leased.webhook,
        galley.event.id = %leased.event,
    )
}

/// Makes an attempt and returns the result to record.
async fn attempt(
    service: &Service,
    sender: &WebhookSender,
    leased: &ClaimedDelivery,
) -> AttemptResult {
    let environment = service.environment();
    let (started_at, attempts) = (environment.now(), leased.attempts + 1);
    if leased.attempts == 0 {
        let lag = started_at.ms().saturating_sub(leased.happened_at.ms());
        let lag = Duration::from_millis(u64::try_from(lag).unwrap_or_default());
        metrics::histogram!("galley_webhook_lag_seconds").record(lag.as_secs_f64());
    }
    let attempt = match delivery_request(service, leased, environment) {
        Ok(request) => {
            let span = delivery_span(leased, attempts);
            let attempt = sender.attempt(&request).instrument(span.clone()).await;
            span.record("http.response.status_code", attempt.status.map(i64::from));
            if let Some(error) = &attempt.error {
                span.record("error.type", error.code());
                span.record("otel.status_code", "ERROR");
            }
            attempt
        }
        Err(error) => AttemptReport::failed(error, Duration::ZERO),
    };
    let outcome = attempt.outcome();
    let random = environment.random_fraction();
    let step = match next_step(attempts, outcome, environment.now(), random) {
        DeliveryStep::Retry(_) if leased.is_test => DeliveryStep::Failed,
        _ if attempt.error == Some(AttemptError::EventDeleted) => DeliveryStep::Failed,
        step => step,
    };
    let labels = [("outcome", metric_label(&attempt, outcome))];
    metrics::counter!("galley_webhook_attempts_total", &labels).increment(1);
    metrics::histogram!("galley_webhook_attempt_seconds").record(attempt.duration.as_secs_f64());
    tracing::debug!(
        webhook = %leased.webhook, event = %leased.event, delivery = %leased.id, attempts,
        status = attempt.status, error = attempt.error.as_ref().map(AttemptError::code), "attempted"
    );
    if !matches!(outcome, AttemptOutcome::Accepted) {
        log_failing(service, leased, &attempt, attempts);
    }
    AttemptResult {
        workspace: leased.workspace,
        webhook: leased.webhook,
        delivery: leased.id,
        lease: leased.lease.clone(),
        is_test: leased.is_test,
        outcome,
        step,
        attempts,
        log: attempt_log::with_attempt(leased.log.as_deref(), started_at, &attempt),
    }
}

/// Logs a failed attempt, rate-limited for each webhook.
fn log_failing(
    service: &Service,
    leased: &ClaimedDelivery,
    attempt: &AttemptReport,
    attempts: u32,
) {
    let Some(suppressed) = service.failing_webhooks().admit(leased.webhook) else { return };
    tracing::info!(
        webhook = %leased.webhook,
        workspace = %leased.workspace,
        delivery = %leased.id,
        attempts,
        status = attempt.status,
        error = attempt.error.as_ref().map(AttemptError::code),
        suppressed,
        "a webhook's receiver did not accept a delivery"
    );
}

/// Returns the label of an attempt in metrics.
fn metric_label(attempt: &AttemptReport, outcome: AttemptOutcome) -> &'static str {
    match (outcome, &attempt.error) {
        (AttemptOutcome::Accepted, _) => "succeeded",
        (AttemptOutcome::Gone, _) => "gone",
        (AttemptOutcome::Failed { .. }, Some(error)) => error.code(),
        (AttemptOutcome::Failed { .. }, None) => "rejected",
    }
}

fn delivery_request(
    service: &Service,
    leased: &ClaimedDelivery,
    environment: &Environment,
) -> Result<DeliveryRequest, AttemptError> {
    let data = leased.data.as_deref().ok_or(AttemptError::EventDeleted)?;
    let data = if leased.hides_emails {
        without_emails(leased.event_type, data)
    } else {
        Cow::Borrowed(data)
    };
    let body = EventJson::of_delivery(leased, &data).ok_or(AttemptError::EventDeleted)?.to_bytes();
    let sealed = leased.sealed_secrets.iter();
    let secrets = sealed.map(|sealed| decrypt_secret(service, leased.webhook, sealed));
    let secrets = secrets.collect::<Result<_, _>>()?;
    Ok(DeliveryRequest {
        url: leased.url.clone(),
        id: leased.event.to_string(),
        timestamp: environment.now().ms() / 1_000,
        body: body.into(),
        secrets,
    })
}

/// Decrypts a webhook's secret. On failure the attempt fails, so that no delivery is sent unsigned.
fn decrypt_secret(
    service: &Service,
    webhook: WebhookId,
    sealed: &[u8],
) -> Result<WebhookSecret, AttemptError> {
    let opened = service.key().decrypt(&secret_aad(webhook), sealed);
    let text = opened.ok().and_then(|text| String::from_utf8(text).ok());
    let secret = text.and_then(|text| WebhookSecret::parse(text).ok());
    secret.ok_or(AttemptError::SecretUnreadable)
}
