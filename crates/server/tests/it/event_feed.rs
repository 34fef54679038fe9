//! The feed of events: pages without gaps, streams that resume, and visibility by token.

use std::time::Duration;

use galley_domain::Timestamp;
use galley_storage::{WriteTx, events};
use galley_testing::{TestStore, on_both_engines};
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::service::{ALL, Service, TokenKind, piece_in};

/// Returns the sequence numbers of a page's events.
fn sequences(body: &Value) -> Vec<i64> {
    let events = body.as_array().expect("a list");
    events.iter().map(|event| event["sequence"].as_i64().unwrap()).collect()
}

/// Returns type and data of a page's events.
fn types_and_data(body: &Value) -> Vec<(String, Value)> {
    let events = body.as_array().expect("a list");
    events
        .iter()
        .map(|one| (one["type"].as_str().unwrap().to_owned(), one["data"].clone()))
        .collect()
}

/// A client of server-sent events.
pub(crate) struct EventStreamClient {
    response: Response,
    buffered: String,
}

impl EventStreamClient {
    async fn open(service: &Service, token: &str, path: &str, last: Option<i64>) -> Self {
        let mut request = service.request(Method::GET, path).bearer_auth(token);
        request = request.header("accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last.to_string());
        }
        Self::of(request.send().await.expect("it answers"))
    }

    pub(crate) fn of(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, buffered: String::new() }
    }

    /// Returns the next event's id, type and data, or `None` if the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<(i64, String, Value)> {
        loop {
            if let Some((event, rest)) = self.buffered.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.buffered = rest;
                let field = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name));
                    line.map(|text| text.trim_start().to_owned())
                };
                // Comments are heartbeats.
                let Some(id) = field("id:") else { continue };
                let data = serde_json::from_str(&field("data:").unwrap()).unwrap();
                return Some((id.parse().unwrap(), field("event:").unwrap(), data));
            }
            let more = tokio::time::timeout(Duration::from_secs(30), self.response.chunk()).await;
            let chunk = more.expect("something comes").expect("the stream is whole")?;
            self.buffered.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

#[on_both_engines]
async fn pages_are_in_order_and_without_a_gap(store: TestStore) {
    let service = Service::start(store).await;
    let before = service.last_sequence().await;
    let mut expected = Vec::new();
    for number in 0..25 {
        let id = service.create("/content-groups", &json!({"name": format!("{number}")})).await;
        expected.push(service.get(&format!("/content-groups?id={id}")).await.body);
    }
    let mut path = format!("/events?after={before}&perPage=10");
    let mut found = Vec::new();
    loop {
        let page = service.get(&path).await;
        assert_eq!(page.status, 200, "{page:?}");
        found.extend(page.body.as_array().unwrap().clone());
        let Some(next) = page.header("link").split(['<', '>']).nth(1) else { break };
        path = next.to_owned();
    }
    let found = Value::Array(found);
    assert_eq!(sequences(&found), (before + 1..=before + 25).collect::<Vec<_>>());
    let data: Vec<Value> = types_and_data(&found).into_iter().map(|(_, data)| data).collect();
    assert_eq!(data, expected);
    let first = &found[0];
    assert_eq!(first["type"], "contentGroupAdded");
    assert_eq!(first["workspaceId"], service.home.made.workspace.to_string());
    assert_eq!(first.get("webhookId"), None);
    assert_eq!(service.get(&format!("/events?after={}", before + 25)).await.body, json!([]));
    // Events of this workspace are not visible from another one.
    let other = service.other_workspace().await;
    let theirs = service.send_as(&other.token, Method::GET, "/events?perPage=1000", None).await;
    assert!(!theirs.body.to_string().contains(&service.home.made.workspace.to_string()));
}

#[on_both_engines]
async fn a_limited_token_sees_events_in_its_scope(store: TestStore) {
    let service = Service::start(store).await;
    let group = async |name: &str, ancestor: Option<&str>| {
        service.create("/content-groups", &json!({"name": name, "ancestor": ancestor})).await
    };
    let outer = group("outer", None).await;
    let mine = group("mine", Some(&outer)).await;
    let other = group("other", None).await;
    let token = service.token("all", Some(&[&mine])).await;
    let after = service.last_sequence().await;
    let inner = group("inner", Some(&mine)).await;
    let piece = service.create("/content-pieces", &piece_in(&other, "a")).await;
    service.put("/content-pieces", &json!({"id": piece, "contentGroupId": inner})).await;
    service.put("/content-pieces", &json!({"id": piece, "title": "New"})).await;
    service.put("/content-pieces", &json!({"id": piece, "contentGroupId": outer})).await;
    service.put("/content-pieces", &json!({"id": piece, "title": "Newer"})).await;
    let [_, _, viewer] = service.roles();
    service.person("ann", &viewer).await;
    let path = format!("/events?after={after}&perPage=100");
    let all = service.get(&path).await.body;
    assert_eq!(all.as_array().unwrap().len(), 7, "{all:#}");
    let seen = service.send_as(&token, Method::GET, &path, None).await.body;
    let seen = types_and_data(&seen);
    let types: Vec<_> = seen.iter().map(|(event, _)| event.as_str()).collect();
    assert_eq!(
        types,
        ["contentGroupAdded", "contentPieceAdded", "contentPieceUpdated", "contentPieceRemoved"]
    );
    assert_eq!(seen[0].1["ancestors"], json!([mine]), "what is above it is not told");
    assert_eq!(seen[1].1["contentGroupId"], inner);
    assert_eq!(seen[3].1["contentGroupId"], inner, "as it was before it left");
    assert_eq!(seen[3].1["title"], "New");
    // Each kind of event needs its own permission.
    let pieces = service.token("contentPieces:read", None).await;
    let seen = service.send_as(&pieces, Method::GET, &path, None).await.body;
    assert!(
        types_and_data(&seen).iter().all(|(event, _)| event.starts_with("contentPiece")),
        "{seen:#}"
    );
    assert_eq!(types_and_data(&seen).len(), 5);
    let none = service.token("webhooks:read roles:read", None).await;
    let refused = service.send_as(&none, Method::GET, &path, None).await;
    refused.assert_problem(403, "insufficient_permissions", &[]);
}

#[on_both_engines]
async fn changes_of_tags_variants_and_group_names_are_events(store: TestStore) {
    let service = Service::start(store).await;
    let after = service.last_sequence().await;
    let position = service.get("/events/position").await.body;
    assert_eq!(position, json!({"sequence": after}));
    let group = service.home.group.clone();
    let ancestor = service.create("/content-groups", &json!({"name": "Above"})).await;
    let tag = service.create("/tags", &json!({"label": "News", "color": "blue"})).await;
    let variant = service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    for (path, change) in [
        ("/tags", json!({"id": tag, "label": "Old news"})),
        ("/tags", json!({"id": tag, "label": "Old news"})),
        ("/variants", json!({"id": variant, "key": "de_at"})),
        ("/content-groups", json!({"id": group, "name": "Renamed"})),
        ("/content-groups", json!({"id": group, "name": "Moved", "ancestor": ancestor})),
    ] {
        assert_eq!(service.put(path, &change).await.status, 204, "{change}");
    }
    assert_eq!(service.delete(&format!("/tags?id={tag}")).await.status, 204);
    assert_eq!(service.delete(&format!("/variants?id={variant}")).await.status, 204);
    let path = format!("/events?after={after}");
    let seen = types_and_data(&service.get(&path).await.body);
    let seen: Vec<_> = seen.iter().map(|(event, data)| (event.as_str(), data)).collect();
    let tag_data = |label: &str, change: &str| json!({"id": tag, "label": label, "color": "blue", "change": change});
    let variant_data = |key: &str, change: &str| json!({"id": variant, "key": key, "label": "German", "description": null, "change": change});
    let group_data = |name: &str, ancestors: Value| json!({"id": group, "name": name, "uniqueSlugs": false, "customDataSchema": null, "previewUrl": null, "ancestors": ancestors, "descendants": []});
    assert_eq!(seen[0].0, "contentGroupAdded");
    let expected = [
        ("tagChanged", &tag_data("News", "added")),
        ("variantChanged", &variant_data("de", "added")),
        ("tagChanged", &tag_data("Old news", "updated")),
        ("variantChanged", &variant_data("de_at", "updated")),
        ("contentGroupChanged", &group_data("Renamed", json!([]))),
        ("contentGroupChanged", &group_data("Moved", json!([ancestor]))),
        ("contentGroupMoved", &group_data("Moved", json!([ancestor]))),
        ("tagChanged", &tag_data("Old news", "removed")),
        ("variantChanged", &variant_data("de_at", "removed")),
    ];
    assert_eq!(seen[1..], expected);
    // A token that is limited to a group does not see all tags.
    let limited = service.token("all", Some(&[&group])).await;
    let reader = service.token("tags:read variants:read", Some(&[&group])).await;
    let types = async |token: &str| {
        let page = service.send_as(token, Method::GET, &path, None).await.body;
        types_and_data(&page).into_iter().map(|(event, _)| event).collect::<Vec<_>>()
    };
    let count = |types: &[String], name: &str| types.iter().filter(|it| *it == name).count();
    let all = types(&limited).await;
    assert_eq!((count(&all, "tagChanged"), count(&all, "variantChanged")), (3, 3), "{all:?}");
    assert_eq!(types(&reader).await, ["variantChanged"; 3]);
}

#[on_both_engines]
async fn reads_after_expired_events_get_410(store: TestStore) {
    let service = Service::start(store).await;
    for number in 0..5 {
        service.create("/content-groups", &json!({"name": format!("{number}")})).await;
    }
    let (workspace, now) = (service.home.made.workspace, service.environment.now());
    let last = service.last_sequence().await;
    let forget =
        async move |tx: &WriteTx<'_>| events::delete_expired(tx, workspace, now, last - 2).await;
    service.database.write::<_, galley_storage::Error, _>("forget", forget).await.unwrap();
    let answer = service.get("/events?after=0").await;
    answer.assert_problem(410, "events_forgotten", &[]);
    assert_eq!(sequences(&service.get("/events").await.body), [last - 1, last]);
    assert_eq!(
        sequences(&service.get(&format!("/events?after={}", last - 2)).await.body),
        [last - 1, last]
    );
    let request = service.request(Method::GET, "/events").bearer_auth(&service.home.token);
    let stream = request.header("accept", "text/event-stream").header("last-event-id", "1");
    assert_eq!(stream.send().await.unwrap().status(), 410);
}

#[on_both_engines]
async fn a_number_beyond_the_newest_event_is_rejected_with_the_newest(store: TestStore) {
    let service = Service::start(store).await;
    service.create("/content-groups", &json!({"name": "one"})).await;
    let last = service.last_sequence().await;
    for after in [last + 1, i64::MAX] {
        let answer = service.get(&format!("/events?after={after}")).await;
        answer.assert_problem(410, "after_beyond_newest", &[]);
        assert_eq!(answer.body["sequence"], last);
        for (path, header) in [("/events", after), (&*format!("/events?after={after}"), -1)] {
            let mut request = service.request(Method::GET, path);
            if header > 0 {
                request = request.header("last-event-id", header);
            }
            let request = request.bearer_auth(&service.home.token);
            let response = request.header("accept", "text/event-stream").send().await.unwrap();
            assert_eq!(response.status(), 410);
            let problem: Value = response.json().await.unwrap();
            assert_eq!(
                (&problem["reason"], &problem["sequence"]),
                (&json!("after_beyond_newest"), &json!(last))
            );
        }
    }
    assert_eq!(service.get(&format!("/events?after={last}")).await.body, json!([]));
}

#[on_both_engines]
async fn a_stream_resumes_after_the_last_event(store: TestStore) {
    let service = Service::start(store).await;
    let before = service.last_sequence().await;
    let first = service.create("/content-groups", &json!({"name": "first"})).await;
    let mut stream = EventStreamClient::open(
        &service,
        &service.home.token,
        &format!("/events?after={before}"),
        None,
    )
    .await;
    let (id, event, data) = stream.next().await.unwrap();
    assert_eq!(
        (id, event.as_str(), &data["data"]["id"]),
        (before + 1, "contentGroupAdded", &json!(first))
    );
    for number in 0..150 {
        service.create("/content-groups", &json!({"name": format!("{number}")})).await;
    }
    for number in 0..100 {
        assert_eq!(stream.next().await.unwrap().0, before + 2 + number);
    }
    // The stream is cut off and resumes.
    drop(stream);
    let mut again = EventStreamClient::open(
        &service,
        &service.home.token,
        "/events?after=0",
        Some(before + 101),
    )
    .await;
    for number in 0..50 {
        assert_eq!(again.next().await.unwrap().0, before + 102 + number);
    }
}

#[on_both_engines]
async fn a_stream_ends_with_its_token(store: TestStore) {
    let service = Service::start(store).await;
    let token = service.token("all", None).await;
    let id = service.token_id(&token).await;
    let last = service.last_sequence().await;
    let mut stream =
        EventStreamClient::open(&service, &token, &format!("/events?after={last}"), None).await;
    service.create("/content-groups", &json!({"name": "seen"})).await;
    assert!(stream.next().await.is_some());
    assert_eq!(service.delete(&format!("/tokens?id={id}")).await.status, 204);
    assert_eq!(stream.next().await, None, "at once, though nothing happens");
}

#[on_both_engines]
async fn a_stream_applies_the_current_permissions(store: TestStore) {
    let service = Service::start(store).await;
    let role = json!({"name": "reader", "permissions": ["contentGroups:read"]});
    let role = service.create("/roles", &role).await;
    let other = json!({"name": "other", "permissions": ["webhooks:read"]});
    let other = service.create("/roles", &other).await;
    for what in ["is removed", "has another role", "has a role that allows less"] {
        let person = service.person(&what.replace(' ', "-"), &role).await;
        let last = service.last_sequence().await;
        let path = format!("/events?after={last}");
        let mut stream = EventStreamClient::open(&service, &person.token, &path, None).await;
        service.create("/content-groups", &json!({"name": "seen"})).await;
        assert!(stream.next().await.is_some());
        let (member, memberships) = (&person.member, "/workspace-memberships");
        let (method, path, body) = match what {
            "is removed" => (Method::DELETE, format!("{memberships}?id={member}"), Value::Null),
            "has another role" => {
                let change = json!({"id": member, "roleId": other});
                (Method::PUT, memberships.to_owned(), change)
            }
            _ => {
                let change = json!({"id": role, "permissions": ["webhooks:read"]});
                (Method::PUT, "/roles".to_owned(), change)
            }
        };
        let body = Some(&body).filter(|body| !body.is_null());
        assert_eq!(service.send(method, &path, body).await.status, 204, "who {what}");
        service.create("/content-groups", &json!({"name": "unseen"})).await;
        assert_eq!(stream.next().await, None, "of who {what}");
    }
    // The same holds for a token that expires.
    let end = service.environment.now().ms() + 60_000;
    let kind = TokenKind { expires_at: Some(Timestamp::from_ms(end)), ..ALL };
    let token = service.token_of(service.home.made.user, kind).await;
    let last = service.last_sequence().await;
    let mut stream =
        EventStreamClient::open(&service, &token, &format!("/events?after={last}"), None).await;
    service.create("/content-groups", &json!({"name": "seen"})).await;
    assert!(stream.next().await.is_some());
    service.advance_clock(Duration::from_mins(2));
    service.create("/content-groups", &json!({"name": "unseen"})).await;
    assert_eq!(stream.next().await, None);
    // The same holds for a token that is limited to a group meanwhile.
    let token = service.token("all", None).await;
    let inner = service.create("/content-groups", &json!({"name": "inner"})).await;
    let last = service.last_sequence().await;
    let mut stream =
        EventStreamClient::open(&service, &token, &format!("/events?after={last}"), None).await;
    service.create("/content-groups", &json!({"name": "seen"})).await;
    assert!(stream.next().await.is_some());
    let change = json!({"id": service.token_id(&token).await, "contentGroupIds": [inner]});
    assert_eq!(service.put("/tokens", &change).await.status, 204);
    service.create("/content-pieces", &service.piece("outside")).await;
    service.create("/content-pieces", &piece_in(&inner, "inside")).await;
    let (_, event, envelope) = stream.next().await.unwrap();
    assert_eq!(
        (event.as_str(), &envelope["data"]["slug"]),
        ("contentPieceAdded", &json!("inside"))
    );
}

#[on_both_engines]
async fn a_workspace_has_a_limit_of_streams(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let mut open = Vec::new();
    for _ in 0..200 {
        open.push(EventStreamClient::open(&service, &service.home.token, "/events", None).await);
    }
    let request = service.request(Method::GET, "/events").bearer_auth(&service.home.token);
    let answer =
        crate::service::TestResponse::of(request.header("accept", "text/event-stream")).await;
    answer.assert_problem(503, "overloaded", &[]);
    // Another workspace's limit is separate.
    EventStreamClient::open(&service, &other.token, "/events", None).await;
    open.truncate(100);
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    loop {
        let request = service.request(Method::GET, "/events").bearer_auth(&service.home.token);
        let answer = request.header("accept", "text/event-stream").send().await.unwrap();
        if answer.status() == 200 {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "places are free again");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[on_both_engines]
async fn invalid_stream_requests_are_rejected(store: TestStore) {
    let service = Service::start(store).await;
    for (name, value) in [
        ("last-event-id", "x"),
        ("last-event-id", "-1"),
        ("last-event-id", "-0"),
        ("last-event-id", "+5"),
    ] {
        let request = service.request(Method::GET, "/events").bearer_auth(&service.home.token);
        let request = request.header("accept", "text/event-stream").header(name, value);
        let answer = crate::service::TestResponse::of(request).await;
        answer.assert_problem(400, "validation", &["Last-Event-ID"]);
    }
    // `Last-Event-ID` is ignored if the client requests no stream.
    let request = service.request(Method::GET, "/events").bearer_auth(&service.home.token);
    let request = request.header("accept", "application/json").header("last-event-id", "x");
    assert_eq!(crate::service::TestResponse::of(request).await.status, 200);
    // A media type with a lower or zero quality is not chosen.
    for accept in ["application/json, text/event-stream;q=0.5", "text/event-stream;q=0"] {
        let request = service.request(Method::GET, "/events").bearer_auth(&service.home.token);
        let answer = crate::service::TestResponse::of(request.header("accept", accept)).await;
        assert_eq!(answer.header("content-type"), "application/json", "{accept}");
    }
}
