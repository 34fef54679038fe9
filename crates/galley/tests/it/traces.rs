//! Traces: a collector of OpenTelemetry receives the spans of requests, transactions and
//! deliveries.

use std::collections::HashMap;

use galley_testing::{Behaviour, Receiver, TestStore, on_both_engines};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message;
use reqwest::Method;
use serde_json::{Value, json};

use crate::program::{Program, galley, init_token, piece};

/// The trace and span of a caller.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// Returns the spans that a collector has received.
fn spans(collector: &Receiver) -> Vec<Span> {
    let requests = collector.received().into_iter().map(|request| {
        assert!(request.request_line.starts_with("POST /v1/traces "));
        ExportTraceServiceRequest::decode(request.body.as_slice()).unwrap()
    });
    let resources = requests.flat_map(|request| request.resource_spans);
    resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
}

/// Returns the names of spans, for messages.
fn names(spans: &[Span]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_str()).collect()
}

/// Returns the text of each attribute.
fn attributes(span: &Span) -> HashMap<&str, String> {
    let pairs = span.attributes.iter().map(|pair| {
        let value = pair.value.as_ref().and_then(|value| value.value.as_ref()).unwrap();
        let text = match value {
            Attribute::StringValue(text) => text.clone(),
            Attribute::IntValue(number) => number.to_string(),
            other => format!("{other:?}"),
        };
        (pair.key.as_str(), text)
    });
    pairs.collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[on_both_engines]
async fn a_collector_receives_the_spans_of_requests_and_deliveries(store: TestStore) {
    let collector = Receiver::start(Behaviour::Status(200)).await;
    let hook = Receiver::start(Behaviour::Status(200)).await;
    let mut command = galley(&store);
    let endpoint = url::Url::parse(&collector.url).unwrap().origin().ascii_serialization();
    command.env("GALLEY_INIT_TOKEN", init_token()).env("GALLEY_OTLP_ENDPOINT", endpoint);
    command.env("GALLEY_ACCESS_LOG", "on");
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    let mut program = Program::start(command);
    let group = program.group().await;
    let webhook = json!({"url": hook.url, "name": "w", "event": "contentPieceAdded",
        "metadata": {"contentGroupId": group}});
    let made = program.request(Method::POST, "/webhooks").json(&webhook).send().await.unwrap();
    assert_eq!(made.status(), 201);
    let body = piece(&group, "a", "A");
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    let create = program.request(Method::POST, "/content-pieces").json(&body);
    let created = create.header("traceparent", &traceparent).send().await.unwrap();
    assert_eq!(created.status(), 201);
    hook.wait_for(1).await;
    // The first read fills the cache, and the second one is served from it.
    for _ in 0..2 {
        let list = program.request(Method::GET, "/tags/list?perPage=5");
        assert!(
            list.header("traceparent", &traceparent).send().await.unwrap().status().is_success()
        );
    }
    program.terminate();

    let spans = spans(&collector);
    let named =
        |name: &str| -> Vec<&Span> { spans.iter().filter(|span| span.name == name).collect() };
    let creates = named("POST /content-pieces");
    let [create] = creates[..] else { panic!("{:?}", names(&spans)) };
    assert_eq!(create.kind, SpanKind::Server as i32);
    assert_eq!((hex(&create.trace_id), hex(&create.parent_span_id)), (TRACE.into(), PARENT.into()));
    let found = attributes(create);
    for (name, value) in [
        ("http.request.method", "POST"),
        ("http.route", "/content-pieces"),
        ("http.response.status_code", "201"),
        ("url.path", "/content-pieces"),
        ("client.address", "127.0.0.1"),
    ] {
        assert_eq!(found.get(name).map(String::as_str), Some(value), "{found:?}");
    }
    let engine = store.engine().to_lowercase();
    let within = spans.iter().filter(|span| span.parent_span_id == create.span_id);
    let transactions: Vec<_> = within.filter(|span| span.name == "content_pieces.create").collect();
    let [transaction] = transactions[..] else { panic!("{:?}", names(&spans)) };
    assert_eq!(attributes(transaction)["db.system.name"], engine);
    assert_eq!(transaction.trace_id, create.trace_id);
    let lists = named("GET /tags/list");
    assert_eq!(lists.len(), 2, "{:?}", names(&spans));
    for list in lists {
        assert_eq!(attributes(list)["http.response.status_code"], "200");
        assert_eq!(hex(&list.trace_id), TRACE);
    }
    let deliveries = named("webhook delivery");
    let [delivery] = deliveries[..] else { panic!("{:?}", names(&spans)) };
    assert_eq!(attributes(delivery)["http.response.status_code"], "200");
    let texts = format!("{spans:?}");
    assert!(!texts.contains(&init_token()) && !texts.contains("perPage"), "{texts}");

    // Lines of the log have the id of the trace, and spans for the collector are not in the log.
    let log = program.rest_of_log();
    let line =
        log.lines().find(|line| line.contains("\"POST\"") && line.contains("/content-pieces"));
    let line: Value = serde_json::from_str(line.unwrap()).unwrap();
    assert_eq!(line["span"]["trace_id"], TRACE);
    assert!(!log.contains("otel.name") && !log.contains("db.system"), "{log}");
}

#[test]
fn a_missing_collector_does_not_disturb_the_service() {
    let store = TestStore::sqlite();
    let nowhere = format!("http://127.0.0.1:{}", crate::program::free_port());
    let mut command = galley(&store);
    command.env("GALLEY_INIT_TOKEN", init_token()).env("GALLEY_OTLP_ENDPOINT", nowhere);
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    let mut program = Program::start(command);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for _ in 0..10 {
            program.get("/tags/list").await;
        }
    });
    assert!(program.terminate().success());
    let log = program.rest_of_log();
    assert_eq!(log.matches("traces could not be exported").count(), 1, "{log}");
}
