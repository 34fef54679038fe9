//! Compression, and rate limits of tokens.

use std::time::Duration;

use galley_server::ServerLimits;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::Value;

use crate::service::{Service, TestResponse};

/// Sends a GET with this `Accept-Encoding` and `If-None-Match`.
async fn get(
    service: &Service,
    path: &str,
    accepts: Option<&str>,
    known: Option<&str>,
) -> TestResponse {
    let mut request = service.request(Method::GET, path).bearer_auth(&service.home.token);
    for (name, value) in [("accept-encoding", accepts), ("if-none-match", known)] {
        if let Some(value) = value {
            request = request.header(name, value);
        }
    }
    TestResponse::of(request).await
}

#[on_both_engines]
async fn large_responses_are_compressed_by_accept_encoding(store: TestStore) {
    let service = Service::start(store).await;
    for number in 0..20 {
        service.create("/content-pieces", &service.piece(&format!("piece-{number}"))).await;
    }
    let list = "/content-pieces/list";
    let plain = get(&service, list, None, None).await;
    assert_eq!(plain.header("content-encoding"), "");
    assert!(plain.header("vary").to_lowercase().contains("accept-encoding"));
    let mut tags = vec![plain.header("etag").to_owned()];
    for (accepts, coding) in [
        ("gzip", "gzip"),
        ("br", "br"),
        ("gzip, br", "br"),
        ("gzip;q=1, br;q=0.5", "gzip"),
        ("*", "*"),
        ("identity", ""),
        ("gzip;q=0", ""),
        ("deflate, zstd", ""),
        ("GZIP", "gzip"),
    ] {
        let answer = get(&service, list, Some(accepts), None).await;
        assert_eq!(answer.status, 200);
        if coding != "*" {
            assert_eq!(answer.header("content-encoding"), coding, "{accepts}");
        }
        assert_eq!(answer.body, plain.body, "{accepts}");
        let tag = answer.header("etag").to_owned();
        assert!(tag.starts_with('"') && tag.ends_with('"'), "a strong tag: {tag}");
        // Each coding has its own entity tag, which works for `If-None-Match`.
        let again = get(&service, list, Some(accepts), Some(&tag)).await;
        assert_eq!((again.status.as_u16(), again.header("etag")), (304, tag.as_str()), "{accepts}");
        assert_eq!(again.header("content-encoding"), "");
        let request = service.request(Method::HEAD, list).bearer_auth(&service.home.token);
        let head = TestResponse::of(request.header("accept-encoding", accepts)).await;
        // The length of a compressed response is known only from the cache.
        let answer = get(&service, list, Some(accepts), None).await;
        for name in ["etag", "content-encoding", "content-type", "content-length", "vary", "link"] {
            assert_eq!(head.header(name), answer.header(name), "{accepts} {name}");
        }
        tags.push(tag);
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 3, "as it is, gzip and br: {tags:?}");
}

#[on_both_engines]
async fn the_entity_tag_of_a_compressed_response_works_for_updates(store: TestStore) {
    let service = Service::start(store).await;
    let mut body = service.piece("long");
    body["description"] = Value::String("long ".repeat(1_000));
    let id = service.create("/content-pieces", &body).await;
    let path = format!("/content-pieces?id={id}");
    let got = get(&service, &path, Some("br"), None).await;
    assert!(got.header("etag").ends_with("-br\""), "{got:?}");
    for status in [204, 412] {
        let change = serde_json::json!({"id": id, "title": format!("for {status}")});
        let request =
            service.request(Method::PUT, "/content-pieces").bearer_auth(&service.home.token);
        let put =
            TestResponse::of(request.header("if-match", got.header("etag")).json(&change)).await;
        assert_eq!(put.status, status, "{put:?}");
    }
}

#[on_both_engines]
async fn small_responses_are_not_compressed(store: TestStore) {
    let service = Service::start(store).await;
    let answer = get(&service, "/profile", Some("gzip, br"), None).await;
    assert_eq!(answer.header("content-encoding"), "");
    assert!(answer.header("vary").to_lowercase().contains("accept-encoding"));
}

#[on_both_engines]
async fn requests_over_a_tokens_rate_limit_are_rejected(store: TestStore) {
    let limits = ServerLimits { rate_limit: 5, ..ServerLimits::default() };
    let service = Service::start_with(store, limits).await;
    let second = service.token("tags:read", None).await;
    let ask = async |token: &str| service.send_as(token, Method::GET, "/tags/list", None).await;
    for left in (0..5).rev() {
        let answer = ask(&service.home.token).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("ratelimit-policy"), "\"default\";q=5;w=60");
        let standing = answer.header("ratelimit");
        assert!(standing.starts_with(&format!("\"default\";r={left};t=")), "{standing}");
    }
    let refused = ask(&service.home.token).await;
    refused.assert_problem(429, "rate_limited", &[]);
    assert!(refused.header("ratelimit").starts_with("\"default\";r=0;t="), "{refused:?}");
    let seconds: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=12).contains(&seconds), "{seconds}");
    // Other tokens are not affected, and an unknown token still gets 401.
    assert_eq!(ask(&second).await.status, 200);
    assert_eq!(ask("galley_x").await.status, 401);
    assert_eq!(TestResponse::of(service.request(Method::GET, "/healthz")).await.status, 200);
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    assert_eq!(ask(&service.home.token).await.status, 200);
}

#[on_both_engines]
async fn without_a_rate_limit_there_are_no_headers(store: TestStore) {
    let service = Service::start(store).await;
    let answer = service.get("/tags/list").await;
    assert_eq!((answer.header("ratelimit"), answer.header("ratelimit-policy")), ("", ""));
}
