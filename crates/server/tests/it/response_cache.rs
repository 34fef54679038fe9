//! Cached responses: none is served after a change of a resource that it shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use galley_domain::content_piece::Title;
use galley_domain::{ContentPieceId, TokenId};
use galley_server::ServerLimits;
use galley_storage::{Database, Error, WriteTx, content_pieces, tokens, variants};
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, TestResponse};

/// Returns the parts of a response that must not differ between requests.
fn comparable(mut answer: TestResponse) -> (u16, Value, Vec<(String, String)>) {
    if let Some(problem) = answer.body.as_object_mut() {
        problem.remove("requestId");
    }
    let headers =
        answer.headers.iter().filter(|(name, _)| *name != "x-request-id" && *name != "date");
    let headers =
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    (answer.status.as_u16(), answer.body, headers.collect())
}

async fn get_as(service: &Service, token: &str, path: &str, origin: Option<&str>) -> TestResponse {
    let request = service.request(Method::GET, path).bearer_auth(token);
    TestResponse::of(match origin {
        Some(origin) => request.header("origin", origin),
        None => request,
    })
    .await
}

/// Gets each path three times, so that the response is cached and served from the cache. Another
/// `Origin` header then forces an uncached read for comparison.
async fn assert_fresh(service: &Service, token: &str, paths: &[String], after: &str) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    for path in paths {
        let origin = format!("https://{}.example", NEXT.fetch_add(1, Ordering::Relaxed));
        let first = comparable(get_as(service, token, path, None).await);
        let second = comparable(get_as(service, token, path, None).await);
        let third = comparable(get_as(service, token, path, None).await);
        let own = comparable(get_as(service, token, path, Some(&origin)).await);
        assert_eq!(first, own, "{path} after {after}");
        assert_eq!(second, own, "{path} after {after}, again");
        assert_eq!(third, own, "{path} after {after}, from memory");
    }
}

/// Returns the number of look-ups of tokens and of pieces since the last call, or since the
/// statements were last taken.
fn read(service: &Service) -> (usize, usize) {
    let statements = service.statements.take();
    let of = |table: &str| {
        let read = statements.iter().filter(|(sql, _)| sql.contains(table));
        read.map(|(_, &count)| usize::try_from(count).unwrap()).sum()
    };
    (of("FROM tokens t"), of("FROM content_pieces p"))
}

/// Returns the look-ups of a read from the cache. The token is looked up if only the database can
/// tell its validity.
fn lookups_of_a_cached_read(service: &Service) -> (usize, usize) {
    (usize::from(service.database.has_generations()), 0)
}

async fn retitle(database: &Database, service: &Service, id: ContentPieceId, title: String) {
    let (workspace, now) = (service.home.made.workspace, service.environment.now());
    let write = async move |tx: &WriteTx<'_>| {
        let (before, _) = content_pieces::find_for_update(tx, workspace, id).await?.unwrap();
        let mut piece = before.clone();
        piece.fields.title = Title::parse(&title).unwrap();
        piece.updated_at = now;
        piece.version += 1;
        content_pieces::update(tx, workspace, &before, &piece).await
    };
    database.write::<_, Error, _>("retitle", write).await.unwrap();
}

#[on_both_engines]
async fn a_read_after_any_write_is_fresh(store: TestStore) {
    let service = Service::start(store).await;
    let person = service.person("ann", &service.roles()[1]).await;
    let group = service
        .create("/content-groups", &json!({"name": "Below", "ancestor": service.home.group}))
        .await;
    let spare = service.create("/content-groups", &json!({"name": "Spare"})).await;
    let tag = service.create("/tags", &json!({"label": "a"})).await;
    let variant = service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let mut body = service.piece("a");
    body["tags"] = json!([tag]);
    body["members"] = json!([person.member]);
    body["content"] = json!("<p>one</p>");
    let piece = service.create("/content-pieces", &body).await;
    body["slug"] = json!("b");
    let other = service.create("/content-pieces", &body).await;
    let paths: Vec<String> = [
        format!("/content-pieces?id={piece}&content=true"),
        format!("/content-pieces?id={piece}&variant=de"),
        format!("/content-pieces?id={other}"),
        "/content-pieces/list?content=true&contentFormat=html".to_owned(),
        format!("/content-pieces?id={piece}&customData=object"),
        format!("/content-pieces/list?tagId={tag}"),
        format!("/content-pieces/list?ids={piece},{other}&updatedSince=2026-01-01"),
        "/content-pieces/list?slug=a&variant=de".to_owned(),
        "/content-pieces/list?sort=-updatedAt&perPage=1".to_owned(),
        format!("/content-groups?id={group}"),
        "/content-groups/list?subtree=true".to_owned(),
        format!("/tags?id={tag}"),
        "/tags/list".to_owned(),
        format!("/variants?id={variant}"),
        "/variants/list".to_owned(),
    ]
    .into();
    let limited = service.token("contentPieces:read tags:read", Some(&[&group])).await;
    let writes: Vec<(Method, &str, Value)> = vec![
        (Method::PUT, "/content-pieces", json!({"id": piece, "title": "New"})),
        (
            Method::PUT,
            "/content-pieces",
            json!({"id": piece, "variant": "de", "title": "Neu", "content": "<p>eins</p>"}),
        ),
        (Method::PUT, "/content-pieces", json!({"id": piece, "content": "<p>two</p>"})),
        (Method::PUT, "/content-pieces", json!({"id": other, "referenceId": null})),
        (Method::PUT, "/content-pieces", json!({"id": piece, "contentGroupId": group})),
        (Method::PUT, "/tags", json!({"id": tag, "label": "b", "color": "teal"})),
        (Method::PUT, "/variants", json!({"id": variant, "label": "Deutsch"})),
        (Method::PUT, "/content-groups", json!({"id": group, "name": "Under"})),
        (Method::PUT, "/content-groups", json!({"id": group, "ancestor": null})),
        (Method::POST, "/content-pieces", service.piece("c")),
        (
            Method::POST,
            "/content-pieces/batch",
            json!({"pieces": [service.piece("d"), service.piece("e")]}),
        ),
        (Method::POST, "/tags", json!({"label": "c"})),
        (Method::POST, "/content-groups", json!({"name": "More"})),
        (Method::POST, "/variants", json!({"key": "fr", "label": "French"})),
    ];
    let all = [service.home.token.clone(), limited];
    for (method, path, body) in writes {
        for token in &all {
            assert_fresh(&service, token, &paths, "nothing").await;
        }
        let answer = service.send(method, path, Some(&body)).await;
        assert!(answer.status.is_success(), "{path} {body}: {:?}", answer.body);
        for token in &all {
            assert_fresh(&service, token, &paths, &format!("{path} {body}")).await;
        }
    }
    // A user belongs to no workspace.
    let renamed = service
        .send_as(&person.token, Method::PUT, "/profile", Some(&json!({"fullName": "Ann New"})))
        .await;
    assert_eq!(renamed.status, 204);
    assert_fresh(&service, &service.home.token, &paths, "a new name").await;
    let shown = service.get(&paths[0]).await.body;
    assert_eq!(shown["members"][0]["profile"]["fullName"], "Ann New");
    for path in [
        format!("/workspace-memberships?id={}", person.member),
        format!("/tags?id={tag}"),
        format!("/variants?id={variant}"),
        format!("/content-pieces?id={other}"),
        format!("/content-groups?id={spare}"),
    ] {
        assert!(service.delete(&path).await.status.is_success(), "{path}");
        assert_fresh(&service, &service.home.token, &paths, &path).await;
    }
}

#[on_both_engines]
async fn unchanged_resources_are_served_from_the_cache(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let path = format!("/content-pieces?id={id}");
    let first = comparable(service.get(&path).await);
    // A response is cached only on the second request.
    service.forget_statements().await;
    assert_eq!(comparable(service.get(&path).await), first);
    assert_eq!(read(&service).1, 1);
    service.forget_statements().await;
    assert_eq!(comparable(service.get(&path).await), first);
    assert_eq!(read(&service), lookups_of_a_cached_read(&service));
    // A change in another workspace invalidates nothing, either.
    let tag =
        service.send_as(&other.token, Method::POST, "/tags", Some(&json!({"label": "x"}))).await;
    assert_eq!(tag.status, 201);
    service.forget_statements().await;
    assert_eq!(comparable(service.get(&path).await), first);
    assert_eq!(read(&service), lookups_of_a_cached_read(&service));
    // A response that is not cached takes one query.
    service.forget_statements().await;
    assert_eq!(service.get(&format!("{path}&content=true")).await.status, 200);
    assert_eq!(read(&service), (lookups_of_a_cached_read(&service).0, 1));
    // A cached response keeps the request id of its own request, and HEAD gets the same entity
    // tag.
    let request = service
        .request(Method::GET, &path)
        .bearer_auth(&service.home.token)
        .header("x-request-id", "mine");
    assert_eq!(TestResponse::of(request).await.header("x-request-id"), "mine");
    let head =
        TestResponse::of(service.request(Method::HEAD, &path).bearer_auth(&service.home.token))
            .await;
    assert_eq!(
        (head.status.as_u16(), head.header("etag")),
        (200, first.2.iter().find(|(name, _)| name == "etag").unwrap().1.as_str())
    );
    // The cached response is not served to another token.
    let outside = service.token("contentPieces:read", Some(&[])).await;
    assert_eq!(get_as(&service, &outside, &path, None).await.status, 404);
    assert_eq!(get_as(&service, &other.token, &path, None).await.status, 404);
    assert_eq!(service.send_as("galley_x", Method::GET, &path, None).await.status, 401);
    // A request with two authorization headers is rejected.
    let twice = service
        .request(Method::GET, &path)
        .bearer_auth(&service.home.token)
        .bearer_auth(&service.home.token);
    assert_eq!(TestResponse::of(twice).await.status, 401);
}

#[on_both_engines]
async fn compressed_responses_are_served_from_the_cache(store: TestStore) {
    let service = Service::start(store).await;
    let mut piece = service.piece("a");
    piece["content"] = json!(format!("<p>{}</p>", "compressible ".repeat(400)));
    let id = service.create("/content-pieces", &piece).await;
    let path = format!("/content-pieces?id={id}&content=true");
    for coding in ["gzip", "br"] {
        let get = async || {
            let request = service.request(Method::GET, &path).bearer_auth(&service.home.token);
            TestResponse::of(request.header("accept-encoding", coding)).await
        };
        let first = get().await;
        assert_eq!(first.header("content-encoding"), coding);
        assert_eq!(get().await.body, first.body);
        service.forget_statements().await;
        let cached = get().await;
        assert_eq!(read(&service), lookups_of_a_cached_read(&service), "{coding}");
        assert_eq!(cached.body, first.body);
        assert_eq!(cached.header("content-encoding"), coding);
        assert_eq!(cached.header("etag"), first.header("etag"));
    }
}

#[on_both_engines]
async fn cached_responses_are_not_served_to_ended_tokens(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let path = format!("/content-pieces?id={id}");
    let person = service.person("ann", &service.roles()[1]).await;
    let revoked = service.token("contentPieces:read", None).await;
    let lowered = service.token("contentPieces:read", None).await;
    for token in [&revoked, &lowered, &person.token] {
        assert_eq!(get_as(&service, token, &path, None).await.status, 200);
        assert_eq!(get_as(&service, token, &path, None).await.status, 200);
    }
    let revoked_id = service.token_id(&revoked).await;
    assert_eq!(service.delete(&format!("/tokens?id={revoked_id}")).await.status, 204);
    assert_eq!(get_as(&service, &revoked, &path, None).await.status, 401);
    let change = json!({"id": service.token_id(&lowered).await, "permissions": ["tags:read"]});
    assert_eq!(service.put("/tokens", &change).await.status, 204);
    assert_eq!(get_as(&service, &lowered, &path, None).await.status, 403);
    assert_eq!(
        service.delete(&format!("/workspace-memberships?id={}", person.member)).await.status,
        204
    );
    assert_eq!(get_as(&service, &person.token, &path, None).await.status, 401);

    let ends = crate::service::TokenKind {
        permissions: "contentPieces:read",
        groups: None,
        view: galley_domain::publication::ContentView::Current,
        extension: None,
        expires_at: Some(galley_domain::Timestamp::from_ms(
            service.environment.now().ms() + 60_000,
        )),
    };
    let token = service.token_of(service.home.made.user, ends).await;
    assert_eq!(get_as(&service, &token, &path, None).await.status, 200);
    service.advance_clock(Duration::from_secs(59));
    assert_eq!(get_as(&service, &token, &path, None).await.status, 200);
    service.advance_clock(Duration::from_secs(1));
    assert_eq!(get_as(&service, &token, &path, None).await.status, 401);
}

#[on_both_engines]
async fn cached_responses_count_towards_the_rate_limit(store: TestStore) {
    let limits = ServerLimits { rate_limit: 20, ..ServerLimits::default() };
    let service = Service::start_with(store, limits).await;
    let token = service.token("tags:read", None).await;
    for left in (0..20).rev() {
        let answer = get_as(&service, &token, "/tags/list", None).await;
        assert_eq!(answer.status, 200);
        assert!(
            answer.header("ratelimit").contains(&format!("r={left};")),
            "{}",
            answer.header("ratelimit")
        );
    }
    let refused = get_as(&service, &token, "/tags/list", None).await;
    refused.assert_problem(429, "rate_limited", &[]);
    assert!(refused.header("ratelimit").contains("r=0;"));
}

#[on_both_engines]
async fn rejections_of_cached_requests_have_cors_and_vary_headers(store: TestStore) {
    let origin = "https://site.example";
    let limits = ServerLimits {
        rate_limit: 2,
        cors_origins: vec![origin.parse().unwrap()],
        ..ServerLimits::default()
    };
    let service = Service::start_with(store, limits).await;
    let token = service.token("tags:read", None).await;
    for status in [200, 200, 429] {
        let answer = get_as(&service, &token, "/tags/list", Some(origin)).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("access-control-allow-origin"), origin, "{status}");
        let vary: Vec<_> =
            answer.headers.get_all("vary").iter().map(|value| value.to_str().unwrap()).collect();
        let vary = vary.join(", ");
        assert!(vary.contains("authorization") && vary.contains("origin"), "{status}: {vary}");
    }
}

#[on_both_engines]
async fn writers_read_their_own_writes_beside_concurrent_readers(store: TestStore) {
    let service = Arc::new(Service::start(store).await);
    let beside = Arc::new(service.second_connection().await);
    let another = service.start_second_server().await;
    let mut ids = Vec::new();
    for number in 0..6 {
        ids.push(service.create("/content-pieces", &service.piece(&format!("p-{number}"))).await);
    }
    let done = Arc::new(AtomicBool::new(false));
    let mut readers = Vec::new();
    for _ in 0..4 {
        let (service, ids, done) = (Arc::clone(&service), ids.clone(), Arc::clone(&done));
        readers.push(tokio::spawn(async move {
            // A reader's view of a piece never goes back.
            let mut seen = vec![0_u64; ids.len()];
            while !done.load(Ordering::Relaxed) {
                for (index, id) in ids.iter().enumerate() {
                    let title =
                        service.get(&format!("/content-pieces?id={id}")).await.body["title"]
                            .as_str()
                            .unwrap()
                            .to_owned();
                    let number =
                        title.strip_prefix("N").map_or(0, |number| number.parse().unwrap());
                    assert!(seen[index] <= number, "{title} after {}", seen[index]);
                    seen[index] = number;
                }
            }
        }));
    }
    let mut writers = Vec::new();
    for (index, id) in ids.into_iter().enumerate() {
        let (service, beside, another) =
            (Arc::clone(&service), Arc::clone(&beside), another.clone());
        writers.push(tokio::spawn(async move {
            let path = format!("/content-pieces?id={id}");
            for number in 1..=40 {
                let title = format!("N{number}");
                // Every third piece is written by a process other than the server.
                if index % 3 == 0 {
                    retitle(&beside, &service, id.parse().unwrap(), title.clone()).await;
                } else {
                    let answer =
                        service.put("/content-pieces", &json!({"id": id, "title": title})).await;
                    assert_eq!(answer.status, 204);
                }
                for server in
                    [Some(&service.url), another.as_ref(), Some(&service.url), another.as_ref()]
                        .into_iter()
                        .flatten()
                {
                    let request = service
                        .request_to(server, Method::GET, &path)
                        .bearer_auth(&service.home.token);
                    assert_eq!(
                        TestResponse::of(request).await.body["title"],
                        json!(title),
                        "{server}"
                    );
                }
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
}

/// Another process changes the database directly.
#[on_both_engines]
async fn changes_by_other_processes_invalidate_the_cache(store: TestStore) {
    let service = Service::start(store).await;
    let beside = service.second_connection().await;
    let workspace = service.home.made.workspace;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let path = format!("/content-pieces?id={id}");
    let token = service.token("contentPieces:read", None).await;
    for number in 0..20 {
        for token in [&token, &service.home.token] {
            assert_eq!(get_as(&service, token, &path, None).await.status, 200);
        }
        let title = format!("by a command {number}");
        retitle(&beside, &service, id.parse().unwrap(), title.clone()).await;
        assert_eq!(service.get(&path).await.body["title"], json!(title));
        // The server's own change comes in between.
        assert_eq!(
            service.post("/tags", &json!({"label": format!("t{number}")})).await.status,
            201
        );
        assert_eq!(service.get(&path).await.body["title"], json!(title));
    }
    let variant = service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    assert_eq!(service.get("/variants/list").await.body[0]["key"], "de");
    let variant = variant.parse().unwrap();
    let delete = async move |tx: &WriteTx<'_>| variants::delete(tx, workspace, variant).await;
    assert!(beside.write::<_, Error, _>("delete", delete).await.unwrap());
    assert_eq!(service.get("/variants/list").await.body, json!([]));
    let token_id: TokenId = service.token_id(&token).await.parse().unwrap();
    assert_eq!(get_as(&service, &token, &path, None).await.status, 200);
    let revoke = async move |tx: &WriteTx<'_>| tokens::delete(tx, workspace, token_id).await;
    beside.write::<_, Error, _>("revoke", revoke).await.unwrap();
    assert_eq!(get_as(&service, &token, &path, None).await.status, 401);
}
