//! Webhooks never reach a private network. This holds for every spelling of an address, and for
//! names whose address changes between check and request.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use galley_server::{Resolve, Resolving, ServerLimits};
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::service::{Service, TestResponse};

/// Hosts that are, or resolve to, this machine or a private network.
const HOSTS: &[&str] = &[
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "127.0.0.2",
    "127.255.255.254",
    "127.000.000.001",
    "2130706433",
    "0x7f000001",
    "0x7F000001",
    "017700000001",
    "0x7f.1",
    "0177.0.0.1",
    "0x7f.0x0.0x0.0x1",
    "0177.0x0.0.01",
    "127.0x1",
    "0",
    "0.0.0.0",
    "0x0",
    "00000000000",
    "%31%32%37.0.0.1",
    "127%2e0%2e0%2e1",
    "\u{ff11}\u{ff12}\u{ff17}.\u{ff10}.\u{ff10}.\u{ff11}",
    "127\u{3002}0\u{3002}0\u{3002}1",
    "\u{2460}\u{2461}\u{2466}.0.0.1",
    "127\u{ff0e}0\u{ff0e}0\u{ff0e}1",
    "127.\u{ad}0.0.1",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000::0001]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::FFFF:127.0.0.1]",
    "[0:0:0:0:0:ffff:7f00:0001]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2002:7f00:0001::1]",
    "[::ffff:0:127.0.0.1]",
    "[2001:0:7f00:1::]",
    "[fe80::1]",
    "[fc00::1]",
    "[fd12:3456:789a::1]",
    "[ff02::1]",
    "[fec0::1]",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "LocalHost",
    "loc\u{ad}alhost",
    "\u{24db}ocalhost",
    "%6cocalhost",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "100.64.0.1",
    "192.0.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[::ffff:169.254.169.254]",
    "[fd00:ec2::254]",
    "home.test",
    "both.test",
    "six.test",
    "mapped.test",
    "turns.test",
    "turns-back.test",
];

/// Other forms of a URL; `{}` is the host and the port.
const SHAPES: &[&str] =
    &["http://{}/", "HTTP://{}/a?b#c", "https://{}/", "http:{}", "http:\\\\{}\\", " http://{}/\t"];

/// A resolver with names that resolve to this machine, some of them only at times.
#[derive(Debug, Default)]
struct ChangingResolver(AtomicUsize);

/// A public address. Nothing listens there on a test's port.
const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(9, 9, 9, 9));

impl Resolve for ChangingResolver {
    fn resolve(&self, name: String) -> Resolving {
        let turn = self.0.fetch_add(1, Ordering::Relaxed) % 2;
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let found = match name.trim_end_matches('.') {
            "localhost" | "home.test" => vec![here],
            "both.test" => vec![PUBLIC, here],
            "six.test" => vec![Ipv6Addr::LOCALHOST.into()],
            "mapped.test" => vec![Ipv4Addr::LOCALHOST.to_ipv6_mapped().into()],
            "turns.test" => vec![[PUBLIC, here][turn]],
            "turns-back.test" => vec![[here, PUBLIC][turn]],
            _ => return Box::pin(std::future::ready(Err(std::io::Error::other("no such name")))),
        };
        Box::pin(std::future::ready(Ok(found)))
    }
}

/// Listens on all addresses of this machine, and counts connections.
async fn start_connection_counter() -> (u16, Arc<AtomicUsize>) {
    let hits = Arc::new(AtomicUsize::new(0));
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let of_v6 = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await;
    for listener in std::iter::once(listener).chain(of_v6) {
        let hits = Arc::clone(&hits);
        tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                hits.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    (port, hits)
}

fn spellings(port: u16) -> Vec<String> {
    let of_host = |host: &&str| {
        let place = format!("{host}:{port}");
        SHAPES.iter().map(move |shape| shape.replace("{}", &place)).collect::<Vec<_>>()
    };
    HOSTS.iter().flat_map(of_host).collect()
}

#[on_both_engines]
async fn webhooks_never_reach_private_addresses(store: TestStore) {
    let service = Service::start_with_resolver(
        store,
        ServerLimits::default(),
        Arc::new(ChangingResolver::default()),
    )
    .await;
    let (port, hits) = start_connection_counter().await;
    // This checks that the counter works.
    drop(tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap());
    let first =
        json!({"url": "https://9.9.9.9/", "name": "w", "event": "memberAdded", "enabled": false});
    let updated = service.create("/webhooks", &first).await;
    let (mut taken, mut refused) = (Vec::new(), 0);
    for url in spellings(port) {
        let body = json!({"url": url, "name": "w", "event": "contentGroupAdded"});
        let made = service.post("/webhooks", &body).await;
        let change = service
            .request(Method::PUT, "/webhooks")
            .bearer_auth(&service.home.token)
            .header("prefer", "return=representation");
        let changed = TestResponse::of(change.json(&json!({"id": updated, "url": url}))).await;
        match made.status.as_u16() {
            201 => {
                assert_eq!(changed.status, 200, "{url}: {changed:?}");
                for answer in [&made, &changed] {
                    let is_warned = answer.body["warning"].is_string();
                    assert!(is_warned || url.contains("turns"), "{url}: {answer:?}");
                }
                let tested = service.post("/webhooks/test", &json!({"id": made.id()})).await;
                assert_eq!(tested.status, 202, "{url}: {tested:?}");
                taken.push((url, made.id()));
            }
            _ => {
                made.assert_problem(400, "validation", &["url"]);
                changed.assert_problem(400, "validation", &["url"]);
                refused += 1;
            }
        }
    }
    assert!(taken.len() >= 200, "{} taken, {refused} refused", taken.len());
    service.create("/content-groups", &json!({"name": "News"})).await;
    for (url, id) in &taken {
        for attempt in attempts(&service, id).await {
            let error = attempt["error"].as_str().unwrap_or_else(|| panic!("{url}: {attempt}"));
            let may_be_elsewhere = url.contains("turns");
            assert!(error == "address_refused" || may_be_elsewhere, "{url}: {attempt}");
        }
    }
    assert_eq!(hits.load(Ordering::Relaxed), 1, "the test's own");
}

/// Returns the attempts of the sample and of the event, once each has one.
async fn attempts(service: &Service, webhook: &str) -> Vec<Value> {
    let mut found = Value::Null;
    for _ in 0..3_000 {
        found = service.get(&format!("/webhooks/deliveries?webhookId={webhook}")).await.body;
        let all = found.as_array().unwrap();
        let attempts: Vec<Value> =
            all.iter().filter_map(|one| one["attempts"].get(0)).cloned().collect();
        if attempts.len() == 2 {
            return attempts;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it was never attempted: {found:#}");
}
