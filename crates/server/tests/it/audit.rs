//! The audit log: an entry for each change, in its transaction.

use std::time::Duration;

use galley_application::operations::audit;
use galley_domain::audit::AuditEntry;
use galley_domain::{Timestamp, WorkspaceId};
use galley_server::ServerLimits;
use galley_storage::rejected_credentials;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{ALL, SITE, Service, TestResponse, TokenKind, piece_in};

const DAY: Duration = Duration::from_hours(24);

async fn entries(service: &Service, query: &str) -> Vec<Value> {
    let list = service.get(&format!("/audit?perPage=1000{query}")).await;
    assert_eq!(list.status, 200, "{}", list.body);
    list.body.as_array().unwrap().clone()
}

/// Returns the action and the target of each entry, newest first.
fn actions(entries: &[Value]) -> Vec<(&str, &str)> {
    let text = |value: &'static str, entry| -> &str { text_of(entry, value) };
    entries.iter().map(|entry| (text("/action", entry), text("/target/id", entry))).collect()
}

fn text_of<'v>(entry: &'v Value, pointer: &str) -> &'v str {
    entry.pointer(pointer).and_then(Value::as_str).unwrap()
}

/// Sends a request with an id, an address in a header, and a body.
async fn send(service: &Service, method: Method, path: &str, body: &Value) -> TestResponse {
    let request = service.request(method, path).bearer_auth(&service.home.token);
    let request = request.header("x-request-id", "the-request");
    TestResponse::of(request.header("x-forwarded-for", "198.51.100.7").json(body)).await
}

#[on_both_engines]
async fn an_entry_has_the_author_the_request_and_the_changed_fields(store: TestStore) {
    let service = Service::start(store).await;
    let created = send(&service, Method::POST, "/tags", &json!({"label": "News"})).await;
    let id = created.id();
    let change = json!({"id": id, "label": "Updates", "color": "red"});
    assert_eq!(send(&service, Method::PUT, "/tags", &change).await.status, 204);
    // A change without effect adds no entry.
    assert_eq!(send(&service, Method::PUT, "/tags", &change).await.status, 204);
    let deleted = send(&service, Method::DELETE, &format!("/tags?id={id}"), &json!({})).await;
    assert_eq!(deleted.status, 204);
    let found = entries(&service, &format!("&target={id}")).await;
    let of_tag = |action| (action, id.as_str());
    assert_eq!(actions(&found), [of_tag("tag.delete"), of_tag("tag.update"), of_tag("tag.create")]);
    let updated = &found[1];
    let color = &found[2]["changes"][0]["after"];
    assert_eq!(
        updated["changes"],
        json!([
            {"field": "color", "before": color, "after": "red"},
            {"field": "label", "before": "News", "after": "Updates"},
        ])
    );
    let member = service.home.made.member.to_string();
    let token = service.token_id(&service.home.token).await;
    assert_eq!(text_of(updated, "/actor/id"), token);
    assert_eq!(text_of(updated, "/actor/memberId"), member);
    assert_eq!(updated["requestId"], "the-request");
    // The client is no trusted proxy.
    assert_eq!(updated["remoteAddress"], "127.0.0.1");
    assert_eq!(updated["target"], json!({"type": "tag", "id": id, "revision": null}));
    let times: Vec<_> = found.iter().map(|entry| text_of(entry, "/at").to_owned()).collect();
    assert!(times.is_sorted_by(|one, other| one >= other), "{times:?}");
}

#[on_both_engines]
async fn changes_of_pieces_name_the_revision_and_no_value(store: TestStore) {
    let service = Service::start(store).await;
    let mut piece = piece_in(&service.home.group, "post");
    piece["title"] = json!("A confidential title");
    let id = service.create("/content-pieces", &piece).await;
    let change =
        json!({"id": id, "title": "Another confidential title", "content": "<p>secret</p>"});
    assert_eq!(service.put("/content-pieces", &change).await.status, 204);
    let other = piece_in(&service.home.group, "other");
    let other = service.create("/content-pieces", &other).await;
    let moved = json!({"id": id, "referenceId": other});
    assert_eq!(service.put("/content-pieces", &moved).await.status, 204);
    assert_eq!(service.post("/content-pieces/publish", &json!({"id": id})).await.status, 204);
    let later = json!({"id": id, "at": "2099-01-01T00:00:00Z"});
    assert_eq!(service.post("/content-pieces/unpublish", &later).await.status, 204);
    let revisions = service.get(&format!("/content-pieces/revisions?id={id}")).await.column("id");
    let restored = json!({"id": id, "revision": revisions[1]});
    assert_eq!(service.post("/content-pieces/restore", &restored).await.status, 204);
    assert_eq!(service.post("/content-pieces/unpublish", &json!({"id": id})).await.status, 204);
    assert_eq!(service.delete(&format!("/content-pieces?id={id}")).await.status, 204);
    assert_eq!(service.post("/content-pieces/undelete", &json!({"id": id})).await.status, 204);
    let path = format!("/content-pieces?id={id}&permanent=true");
    assert_eq!(service.delete(&path).await.status, 204);
    let found = entries(&service, &format!("&target={id}")).await;
    let mut names: Vec<_> = actions(&found).into_iter().map(|(action, _)| action).collect();
    names.reverse();
    assert_eq!(
        names,
        [
            "contentPiece.create",
            "contentPiece.update",
            "contentPiece.update",
            "contentPiece.publish",
            "contentPiece.schedule",
            "contentPiece.restore",
            "contentPiece.unpublish",
            "contentPiece.delete",
            "contentPiece.undelete",
            "contentPiece.purge",
        ]
    );
    let nth = |position: usize| &found[found.len() - 1 - position];
    assert_eq!(nth(0)["target"]["revision"], json!(revisions[1]));
    assert_eq!(nth(1)["target"]["revision"], json!(revisions[0]));
    assert_eq!(nth(1)["changes"], json!([{"field": "title"}, {"field": "content"}]));
    assert_eq!(nth(2)["changes"], json!([{"field": "position"}]));
    assert_eq!(nth(3)["target"]["revision"], json!(revisions[0]));
    let after = &nth(4)["changes"][0]["after"];
    assert_eq!(after, "2099-01-01T00:00:00.000Z", "{}", nth(4));
    let text = json!(found).to_string();
    assert!(!text.contains("onfidential") && !text.contains("secret"), "{text}");
}

#[on_both_engines]
async fn autosaves_add_an_entry_for_each_revision(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create("/content-pieces", &service.piece("draft")).await;
    for number in 0..5 {
        let change = json!({"id": id, "title": format!("Title {number}"), "autosave": true});
        assert_eq!(service.put("/content-pieces", &change).await.status, 204);
    }
    let update = "contentPiece.update";
    let names = async || {
        let found = entries(&service, &format!("&target={id}")).await;
        found.iter().map(|entry| text_of(entry, "/action").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names().await, [update, "contentPiece.create"]);
    // Another field, and the save that completes the autosaves, have entries.
    let other = json!({"id": id, "slug": "another", "autosave": true});
    assert_eq!(service.put("/content-pieces", &other).await.status, 204);
    assert_eq!(names().await, [update, update, "contentPiece.create"]);
    let saved = json!({"id": id, "title": "Title 4", "note": "Done"});
    assert_eq!(service.put("/content-pieces", &saved).await.status, 204);
    assert_eq!(names().await, [update, update, update, "contentPiece.create"]);
}

#[on_both_engines]
async fn no_entry_has_a_secret(store: TestStore) {
    let service = Service::start(store).await;
    let webhook = json!({
        "url": "https://hooks.invalid/services/T0/the-key", "name": "Build",
        "event": "tagChanged", "secret": "the-signing-secret",
    });
    let id = service.create("/webhooks", &webhook).await;
    let change = json!({"id": id, "url": "https://hooks.invalid/services/T0/another-key"});
    assert_eq!(service.put("/webhooks", &change).await.status, 204);
    let rotation = json!({"id": id, "secret": "the-next-secret"});
    assert_eq!(service.post("/webhooks/rotate-secret", &rotation).await.status, 204);
    let token = service.post("/tokens", &json!({"name": "site", "permissions": []})).await;
    let token = text_of(&token.body, "/token").to_owned();
    let preview = service.create("/content-pieces", &service.piece("draft")).await;
    let preview = service.post("/content-pieces/preview", &json!({"id": preview})).await;
    let preview = text_of(&preview.body, "/token").to_owned();
    let found = entries(&service, "").await;
    let text = json!(found).to_string();
    for secret in ["-key", "the-signing-secret", "the-next-secret", &token, &preview] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let of_webhook = entries(&service, &format!("&target={id}")).await;
    assert_eq!(of_webhook[1]["changes"], json!([{"field": "url"}]));
}

#[on_both_engines]
async fn rejected_and_undone_requests_add_no_entry(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create("/content-pieces", &service.piece("post")).await;
    let before = entries(&service, "").await;
    let dry = json!({"id": id, "title": "Tried"});
    assert_eq!(service.put("/content-pieces?dryRun=true", &dry).await.status, 200);
    let conflict = service.post("/tags", &json!({"label": ""})).await;
    assert_eq!(conflict.status, 400);
    let stale = service
        .request(Method::DELETE, &format!("/content-pieces?id={id}"))
        .bearer_auth(&service.home.token)
        .header("if-match", "\"99-x\"");
    assert_eq!(TestResponse::of(stale).await.status, 412);
    let batch = json!({"pieces": [service.piece("fine"), {"title": "without slug"}]});
    assert_eq!(service.post("/content-pieces/batch", &batch).await.status, 400);
    let keyed = async || {
        let request = service.request(Method::POST, "/tags").bearer_auth(&service.home.token);
        let request = request.header("idempotency-key", "k").json(&json!({"label": "once"}));
        TestResponse::of(request).await
    };
    assert_eq!(keyed().await.status, 201);
    assert_eq!(keyed().await.status, 201);
    let after = entries(&service, "").await;
    assert_eq!(actions(&after[..1])[0].0, "tag.create");
    assert_eq!(after[1..], before);
}

#[on_both_engines]
async fn the_log_is_filtered_and_read_by_page(store: TestStore) {
    let service = Service::start(store).await;
    let person = service.person("ann", &service.roles()[0]).await;
    let mut tags = Vec::new();
    for number in 0..5 {
        let body = json!({"label": format!("tag {number}")});
        let token = if number == 3 { &person.token } else { &service.home.token };
        tags.push(service.create_as(token, "/tags", &body).await);
        service.advance_clock(Duration::from_mins(1));
    }
    let all = entries(&service, "").await;
    // Before the tags: the workspace, its first token, the person and its token.
    assert_eq!(all.len(), tags.len() + 4, "{all:?}");
    let mut walked = Vec::new();
    let mut path = "/audit?perPage=2".to_owned();
    loop {
        let page = service.get(&path).await;
        walked.extend(page.body.as_array().unwrap().clone());
        let link = page.headers.get("link").and_then(|link| link.to_str().ok());
        let Some(next) = link.and_then(|link| link.split(['<', '>']).nth(1)) else { break };
        path = next.to_owned();
    }
    assert_eq!(walked, all);
    let by = async |query: &str| {
        let found = entries(&service, query).await;
        found.iter().map(|entry| text_of(entry, "/target/id").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(by(&format!("&actor={}", person.member)).await, [tags[3].clone()]);
    let token = service.token_id(&person.token).await;
    assert_eq!(by(&format!("&actor={token}&action=tag.create")).await, [tags[3].clone()]);
    assert_eq!(by("&actor=system").await.len(), 4);
    assert_eq!(by("&actor=nothing").await, Vec::<String>::new());
    assert_eq!(by(&format!("&target={}", tags[0])).await, [tags[0].clone()]);
    assert_eq!(by("&action=tag.delete").await, Vec::<String>::new());
    let since = text_of(&all[1], "/at").replace('+', "%2B");
    assert_eq!(by(&format!("&since={since}")).await, [tags[4].clone(), tags[3].clone()]);
    let between = format!("&until={since}&action=tag.create");
    assert_eq!(by(&between).await, [tags[2].clone(), tags[1].clone(), tags[0].clone()]);
}

#[on_both_engines]
async fn only_tokens_of_the_whole_workspace_read_the_log(store: TestStore) {
    let service = Service::start(store).await;
    let owner = service.home.made.user;
    let limited = service.token("audit:read", Some(&[&service.home.group])).await;
    let refused = service.send_as(&limited, Method::GET, "/audit", None).await;
    refused.assert_problem(403, "outside_group_limit", &[]);
    let site = service.token_of(owner, SITE).await;
    let refused = service.send_as(&site, Method::GET, "/audit", None).await;
    refused.assert_problem(403, "insufficient_permissions", &[]);
    let body = json!({"name": "x", "permissions": ["audit:read"], "view": "published"});
    service.post("/tokens", &body).await.assert_problem(400, "validation", &["permissions"]);
    // An extension's token, and an Editor's, see no tokens of other users.
    let extension = TokenKind { extension: Some("ext"), ..ALL };
    let extension = service.token_of(owner, extension).await;
    let role = json!({"name": "Auditor", "permissions": ["audit:read"]});
    let role = service.create("/roles", &role).await;
    let auditor = service.person("bo", &role).await.token;
    for (token, sees_values) in
        [(&service.home.token, true), (&extension, false), (&auditor, false)]
    {
        let path = "/audit?action=token.create";
        let list = service.send_as(token, Method::GET, path, None).await.body;
        let values = list[0]["changes"].as_array().unwrap().iter();
        let values = values.filter(|change| change.get("after").is_some()).count();
        assert_eq!((values > 0, list[0]["changes"][0]["field"].is_string()), (sees_values, true));
    }
    // Addresses and names of members are personal data.
    let reader = TokenKind { permissions: "audit:read", ..ALL };
    let reader = service.token_of(owner, reader).await;
    service.person("ann", &service.roles()[1]).await;
    let shown = entries(&service, "&action=workspaceMembership.create").await;
    assert!(json!(shown).to_string().contains("ann@example.org"), "{shown:?}");
    let path = "/audit?perPage=1000";
    let hidden = service.send_as(&reader, Method::GET, path, None).await.body;
    let text = hidden.to_string();
    assert!(!text.contains("ann@example.org") && text.contains("\"field\":\"email\""), "{text}");
    assert!(hidden.as_array().unwrap().iter().all(|entry| entry["actor"]["name"].is_null()));
}

#[on_both_engines]
async fn trusted_proxies_state_the_address_of_the_client(store: TestStore) {
    let limits = ServerLimits {
        trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()],
        ..ServerLimits::default()
    };
    let service = Service::start_with(store, limits).await;
    let created = send(&service, Method::POST, "/tags", &json!({"label": "News"})).await;
    let found = entries(&service, &format!("&target={}", created.id())).await;
    assert_eq!(found[0]["remoteAddress"], "198.51.100.7");
}

async fn remove_expired(service: &Service, since: Timestamp) -> Timestamp {
    audit::remove_expired(&service.database, &service.environment, since).await.unwrap()
}

#[on_both_engines]
async fn addresses_are_kept_for_90_days_and_entries_for_400(store: TestStore) {
    let service = Service::start(store).await;
    let first = service.create("/tags", &json!({"label": "First"})).await;
    service.advance_clock(DAY);
    let second = service.create("/tags", &json!({"label": "Second"})).await;
    let address = async |id: &str| {
        let found = entries(&service, &format!("&target={id}")).await;
        found.first().map(|entry| entry["remoteAddress"].clone())
    };
    let kept = Some(json!("127.0.0.1"));
    service.advance_clock(DAY * (AuditEntry::ADDRESS_RETENTION_DAYS - 2));
    let since = remove_expired(&service, Timestamp::from_ms(0)).await;
    assert_eq!(address(&first).await, kept);
    service.advance_clock(DAY + Duration::from_mins(1));
    let since = remove_expired(&service, since).await;
    assert_eq!((address(&first).await, address(&second).await), (Some(Value::Null), kept));
    service.advance_clock(DAY * (AuditEntry::RETENTION_DAYS - 90));
    remove_expired(&service, since).await;
    assert_eq!((address(&first).await, address(&second).await), (None, Some(Value::Null)));
}

#[on_both_engines]
async fn rejected_credentials_are_counted_by_minute_and_address(store: TestStore) {
    let limits = ServerLimits {
        trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()],
        ..ServerLimits::default()
    };
    let service = Service::start_with(store, limits).await;
    let unknown = service.environment.new_access_token();
    let attempt = async |address: &str| {
        let request = service.request(Method::GET, "/tags/list").bearer_auth(unknown.reveal());
        let rejected = TestResponse::of(request.header("x-forwarded-for", address)).await;
        assert_eq!(rejected.status, 401);
    };
    for address in ["198.51.100.7", "198.51.100.8", "198.51.100.7"] {
        attempt(address).await;
    }
    let stored = async || {
        let read = async |tx: &galley_storage::Tx<'_>| {
            let (since, until) = (Timestamp::from_ms(0), Timestamp::from_ms(i64::MAX));
            rejected_credentials::list(tx, since, until).await
        };
        let rows = service.read(read).await;
        let total = |address: &str| {
            let of = rows.iter().filter(|row| row.remote_address == address);
            of.map(|row| row.requests).sum::<i64>()
        };
        ["198.51.100.7", "198.51.100.8"].map(total)
    };
    let stored_within_a_minute = async |expected: [i64; 2]| {
        let is_stored = async {
            while stored().await != expected {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), is_stored).await.expect("it is stored");
    };
    stored_within_a_minute([2, 1]).await;
    attempt("198.51.100.8").await;
    stored_within_a_minute([2, 2]).await;
    service.advance_clock(DAY * 91);
    remove_expired(&service, Timestamp::from_ms(0)).await;
    assert_eq!(stored().await, [0, 0]);
}

#[on_both_engines]
async fn each_workspace_has_its_own_log(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let tag = service.create_as(&other.token, "/tags", &json!({"label": "Theirs"})).await;
    let own = entries(&service, "").await;
    assert!(!json!(own).to_string().contains(&tag), "{own:?}");
    let theirs = service.send_as(&other.token, Method::GET, "/audit", None).await.body;
    assert_eq!(text_of(&theirs[0], "/target/id"), tag);
    let workspace: WorkspaceId = other.made.workspace;
    assert!(theirs.to_string().contains(&workspace.to_string()));
}
