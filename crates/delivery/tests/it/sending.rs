//! One delivery attempt to a receiver of each behaviour.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use galley_delivery::signature::is_signed;
use galley_delivery::{
    AttemptReport, DeliveryRequest, Resolve, Resolving, SenderTimeouts, SystemResolver,
    WebhookSender,
};
use galley_domain::address_policy::AddressPolicy;
use galley_domain::delivery::AttemptOutcome;
use galley_domain::webhook::WebhookSecret;
use galley_testing::{Behaviour, Receiver};
use tokio::time::Instant;

/// Short timeouts, so that a stalled receiver delays a test little.
const LIMITS: SenderTimeouts = SenderTimeouts {
    total: Duration::from_millis(1_500),
    connect: Duration::from_millis(700),
    body: Duration::from_millis(500),
};

pub(crate) fn sender() -> WebhookSender {
    sender_with(Arc::new(SystemResolver::default()), loopback())
}

fn sender_with(resolver: Arc<dyn Resolve>, policy: AddressPolicy) -> WebhookSender {
    WebhookSender::new(resolver, policy, LIMITS, "1.2.3")
}

fn loopback() -> AddressPolicy {
    AddressPolicy { allowed: Vec::new(), allows_loopback: true }
}

pub(crate) fn request(url: &str) -> DeliveryRequest {
    DeliveryRequest {
        url: url.to_owned(),
        id: "evt_1".to_owned(),
        timestamp: 1_763_631_000,
        body: Bytes::from_static(b"{\"a\":1}"),
        secrets: Vec::new(),
    }
}

async fn attempt_at(sender: &WebhookSender, behaviour: Behaviour) -> AttemptReport {
    let receiver = Receiver::start(behaviour).await;
    sender.attempt(&request(&receiver.url)).await
}

/// Returns the status, or the error's code.
fn result_code(attempt: &AttemptReport) -> String {
    match (attempt.status, &attempt.error) {
        (Some(status), None) => status.to_string(),
        (None, Some(error)) => error.code().to_owned(),
        other => panic!("one of both: {other:?}"),
    }
}

#[tokio::test]
async fn a_misbehaving_receiver_fails_only_its_own_delivery() {
    let catalog = Behaviour::catalog();
    // The sender is shared: each one reads the system's root certificates.
    let sender = Arc::new(sender());
    let attempts = catalog.iter().map(|(behaviour, _)| {
        let (sender, behaviour) = (Arc::clone(&sender), behaviour.clone());
        tokio::spawn(async move { attempt_at(&sender, behaviour).await })
    });
    let attempts: Vec<_> = attempts.collect();
    for ((behaviour, expected), attempt) in catalog.iter().zip(attempts) {
        let attempt = attempt.await.expect("nothing panics");
        assert_eq!(result_code(&attempt), *expected, "{behaviour:?}");
        let late = LIMITS.total + Duration::from_secs(1);
        assert!(attempt.duration <= late, "{behaviour:?} took {:?}", attempt.duration);
        let succeeded = attempt.outcome() == AttemptOutcome::Accepted;
        assert_eq!(succeeded, expected.starts_with('2'), "{behaviour:?}");
    }
}

#[tokio::test]
async fn connection_and_url_errors_have_codes() {
    // The listener is dropped at once, so the port is free.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{address}/");
    assert_eq!(result_code(&sender().attempt(&request(&url)).await), "connect_failed");
    for greeting in ["HTTP/1.1 400 x\r\n\r\n", "\u{16}\u{3}\u{1}\0\u{5}bad", ""] {
        let plain = Receiver::start(Behaviour::Greet(greeting.as_bytes().to_vec())).await;
        let https = plain.url.replace("http:", "https:");
        assert_eq!(
            result_code(&sender().attempt(&request(&https)).await),
            "tls_failed",
            "{greeting:?}"
        );
    }
    for odd in ["", "x", "ftp://example.org/", "http://", "http://a b/"] {
        assert_eq!(result_code(&sender().attempt(&request(odd)).await), "invalid_url", "{odd:?}");
    }
}

#[tokio::test]
async fn requests_follow_standard_webhooks() {
    let receiver = Receiver::start(Behaviour::Status(200)).await;
    let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let url = format!("{}/a?b=c%20d#e", receiver.url);
    let signed = DeliveryRequest { secrets: vec![secret.clone()], ..request(&url) };
    assert_eq!(result_code(&sender().attempt(&signed).await), "200");
    assert_eq!(result_code(&sender().attempt(&request(&receiver.url)).await), "200");
    let [first, second] = &receiver.received()[..] else { panic!("two requests") };
    assert_eq!(first.request_line, "POST /hook/a?b=c%20d HTTP/1.1");
    let host = receiver.url.trim_start_matches("http://").trim_end_matches("/hook");
    assert_eq!(first.field("host"), host);
    assert_eq!(first.field("content-type"), "application/json");
    assert_eq!(first.field("user-agent"), "Galley-Webhooks/1.2.3");
    assert_eq!(first.field("accept-encoding"), "identity");
    assert_eq!(first.field("webhook-id"), "evt_1");
    assert_eq!(first.field("webhook-timestamp"), "1763631000");
    assert_eq!(first.body, b"{\"a\":1}");
    let signature = first.field("webhook-signature");
    assert!(is_signed(&secret.key(), "evt_1", 1_763_631_000, &first.body, signature));
    assert_eq!(second.field("webhook-signature"), "", "there is no secret");
}

/// A resolver that returns these lists of addresses in rotation, for every name.
#[derive(Debug)]
struct RebindingResolver {
    addresses: Vec<Vec<IpAddr>>,
    resolutions: AtomicUsize,
}

impl RebindingResolver {
    fn new(addresses: &[&[&str]]) -> Arc<Self> {
        let parse =
            |list: &&[&str]| list.iter().map(|one| one.parse().expect("an address")).collect();
        Arc::new(Self {
            addresses: addresses.iter().map(parse).collect(),
            resolutions: AtomicUsize::new(0),
        })
    }
}

impl Resolve for RebindingResolver {
    fn resolve(&self, _: String) -> Resolving {
        let turn = self.resolutions.fetch_add(1, Ordering::Relaxed);
        let found = self.addresses[turn % self.addresses.len()].clone();
        Box::pin(async move { Ok(found) })
    }
}

#[tokio::test]
async fn an_attempt_connects_only_to_checked_addresses() {
    let receiver = Receiver::start(Behaviour::Body(b"inside".to_vec())).await;
    let port = receiver.url.rsplit(':').next().unwrap();
    let url = format!("http://rebinding.example:{port}");
    // Each attempt resolves the name once, so a different second resolution has no effect.
    let resolver = RebindingResolver::new(&[&["203.0.113.1"], &["127.0.0.1"]]);
    let sender = sender_with(Arc::clone(&resolver) as _, AddressPolicy::default());
    for _ in 0..4 {
        assert_eq!(result_code(&sender.attempt(&request(&url)).await), "address_refused");
    }
    assert_eq!(resolver.resolutions.load(Ordering::Relaxed), 4);
    // One rejected address suffices, at any position.
    for mixed in [&["8.8.8.8", "127.0.0.1"][..], &["::1", "8.8.8.8"], &["8.8.8.8", "10.0.0.1"]] {
        let sender = sender_with(RebindingResolver::new(&[mixed]), AddressPolicy::default());
        let attempt = sender.attempt(&request(&url)).await;
        assert_eq!(result_code(&attempt), "address_refused");
        let said = attempt.error.unwrap().to_string();
        assert!(said.contains("GALLEY_WEBHOOKS_ALLOW"), "{said}");
        assert!(!said.contains("127.0.0.1") && !said.contains("10.0.0.1"), "{said}");
    }
    assert_eq!((receiver.connections(), receiver.count()), (0, 0));
}

#[tokio::test]
async fn a_pooled_connection_is_reused_for_the_same_address_only() {
    let receiver = Receiver::start(Behaviour::Status(200)).await;
    let port = receiver.url.rsplit(':').next().unwrap().trim_end_matches("/hook").to_owned();
    let url = format!("http://moving.example:{port}/");
    let resolver = RebindingResolver::new(&[&["127.0.0.1"], &["127.0.0.1"], &["127.0.0.2"]]);
    let sender = sender_with(resolver, loopback());
    let mut codes = Vec::new();
    for _ in 0..3 {
        codes.push(result_code(&sender.attempt(&request(&url)).await));
    }
    assert_eq!(codes, ["200", "200", "connect_failed"], "nobody listens on 127.0.0.2");
    assert_eq!((receiver.connections(), receiver.count()), (1, 2));
}

#[tokio::test]
async fn a_closed_pooled_connection_is_replaced() {
    let receiver = Receiver::start(Behaviour::CloseAfterAnswer).await;
    let sender = sender();
    for _ in 0..20 {
        assert_eq!(result_code(&sender.attempt(&request(&receiver.url)).await), "200");
    }
    assert_eq!(receiver.count(), 20, "nothing came twice");
}

#[tokio::test]
async fn no_response_body_is_stored_from_exempt_addresses() {
    let receiver = Receiver::start(Behaviour::Body(b"what the machine says".to_vec())).await;
    assert_eq!(sender().attempt(&request(&receiver.url)).await.response_body, None);
}

#[tokio::test]
async fn two_hundred_concurrent_attempts_end_in_time() {
    let behaviours: Vec<_> =
        Behaviour::catalog().into_iter().map(|(behaviour, _)| behaviour).collect();
    let sender = Arc::new(sender());
    let started = Instant::now();
    let tasks: Vec<_> = (0..200)
        .map(|number| {
            let (sender, behaviour) =
                (Arc::clone(&sender), behaviours[number % behaviours.len()].clone());
            tokio::spawn(async move {
                let receiver = Receiver::start(behaviour).await;
                sender.attempt(&request(&receiver.url)).await
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("nothing panics");
    }
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}
