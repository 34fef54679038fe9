//! `/webhooks`: storage, validation and display. Secrets are never shown.

use galley_application::operations::webhooks::secret_aad;
use galley_domain::address_policy::AddressPolicy;
use galley_domain::{WebhookId, WorkspaceId};
use galley_server::ServerLimits;
use galley_storage::Tx;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{ALL, Service, TestResponse, TokenKind, key};

/// A URL with a reserved name, which never resolves to a private network.
const URL: &str = "https://hooks.invalid/hook";

const EVENTS: [&str; 14] = [
    "contentPieceUpdated",
    "contentPieceAdded",
    "contentPieceRemoved",
    "contentGroupAdded",
    "contentGroupRemoved",
    "contentGroupMoved",
    "memberInvited",
    "memberAdded",
    "memberRemoved",
    "contentGroupChanged",
    "tagChanged",
    "variantChanged",
    "assetAdded",
    "assetRemoved",
];

fn webhook(event: &str, group: Option<&str>) -> Value {
    json!({"url": URL, "name": "w", "event": event, "metadata": {"contentGroupId": group}})
}

async fn sealed_secret(service: &Service, id: &str) -> Option<Vec<u8>> {
    let (workspace, id): (WorkspaceId, WebhookId) =
        (service.home.made.workspace, id.parse().unwrap());
    let read = async move |tx: &Tx<'_>| {
        let sql = "SELECT sealed_secret FROM webhooks WHERE workspace_id = ?1 AND id = ?2";
        tx.get(sql, &[workspace.into(), id.into()], |row| row.get(0)).await
    };
    service.read(read).await
}

#[on_both_engines]
async fn webhooks_are_created_updated_and_deleted(store: TestStore) {
    let service = Service::start(store).await;
    let group = service.home.group.clone();
    let body = json!({"url": URL, "name": "Build", "description": "Builds.", "secret": "s3cret",
        "event": "contentPieceAdded", "metadata": {"contentGroupId": group}});
    let made = service.post("/webhooks", &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let id = made.id();
    assert_eq!(made.body, json!({"id": id}));
    assert_eq!(made.header("location"), format!("/webhooks?id={id}"));
    let path = format!("/webhooks?id={id}");
    let mut expected = json!({"id": id, "url": URL, "name": "Build", "description": "Builds.",
        "event": "contentPieceAdded", "events": ["contentPieceAdded"], "wholeWorkspace": false, "view": "current", "hidesEmails": false,
        "metadata": {"contentGroupId": group}, "extension": false,
        "enabled": true, "disabledReason": null, "failingSince": null, "droppedDeliveries": 0});
    assert_eq!(service.get(&path).await.body, expected);
    assert_eq!(service.get("/webhooks/list").await.body, json!([expected]));
    let change = json!({"id": id, "url": "http://8.8.8.8/", "name": "B", "description": null,
        "event": "memberAdded", "metadata": null, "enabled": false});
    assert_eq!(service.put("/webhooks", &change).await.status, 204);
    for (name, value) in [
        ("url", json!("http://8.8.8.8/")),
        ("name", json!("B")),
        ("description", Value::Null),
        ("event", json!("memberAdded")),
        ("events", json!(["memberAdded"])),
        ("wholeWorkspace", json!(true)),
        ("enabled", json!(false)),
        ("metadata", json!({"contentGroupId": null})),
        ("disabledReason", json!("requested")),
    ] {
        expected[name] = value;
    }
    assert_eq!(service.get(&path).await.body, expected);
    assert_eq!(service.put("/webhooks", &json!({"id": id, "enabled": true})).await.status, 204);
    assert_eq!(service.get(&path).await.body["disabledReason"], Value::Null);
    assert_eq!(service.delete(&path).await.status, 204);
    service.delete(&path).await.assert_problem(404, "not_found", &[]);
    service.get(&path).await.assert_problem(404, "not_found", &[]);
}

#[on_both_engines]
async fn only_the_declared_events_are_accepted(store: TestStore) {
    let service = Service::start(store).await;
    for event in EVENTS {
        let answer = service.post("/webhooks", &webhook(event, None)).await;
        if event.starts_with("contentPiece") {
            answer.assert_problem(400, "validation", &["metadata.contentGroupId"]);
            service.create("/webhooks", &webhook(event, Some(&service.home.group))).await;
        } else {
            assert_eq!(answer.status, 201, "{event}: {answer:?}");
        }
    }
    assert_eq!(service.get("/webhooks/list").await.column("event").len(), EVENTS.len());
    for event in ["", "contentpieceadded", "contentPieceChanged"] {
        let answer = service.post("/webhooks", &webhook(event, Some(&service.home.group))).await;
        answer.assert_problem(400, "validation", &["event"]);
    }
    // The rule also applies to the result of an update.
    let id = service.create("/webhooks", &webhook("memberAdded", None)).await;
    let answer = service.put("/webhooks", &json!({"id": id, "event": "contentPieceAdded"})).await;
    answer.assert_problem(400, "validation", &["metadata.contentGroupId"]);
}

#[on_both_engines]
async fn a_webhook_names_all_its_events(store: TestStore) {
    let service = Service::start(store).await;
    let mut body = webhook("tagChanged", None);
    body["events"] = json!(["variantChanged", "contentPieceAdded", "variantChanged"]);
    service.post("/webhooks", &body).await.assert_problem(
        400,
        "validation",
        &["metadata.contentGroupId"],
    );
    body["wholeWorkspace"] = json!(true);
    let id = service.create("/webhooks", &body).await;
    let shown = async || {
        let shown = service.get(&format!("/webhooks?id={id}")).await.body;
        (shown["event"].clone(), shown["events"].clone(), shown["wholeWorkspace"].clone())
    };
    let all = json!(["contentPieceAdded", "tagChanged", "variantChanged"]);
    assert_eq!(shown().await, (json!("tagChanged"), all.clone(), json!(true)));
    let change = async |fields: Value| {
        let mut change = json!({"id": id});
        change.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        service.put("/webhooks", &change).await
    };
    // The workspace's webhook stays one while other fields change.
    assert_eq!(change(json!({"name": "new"})).await.status, 204);
    assert_eq!(shown().await, (json!("tagChanged"), all, json!(true)));
    let group = &service.home.group;
    let narrowed = json!({"metadata": {"contentGroupId": group}});
    assert_eq!(change(narrowed).await.status, 204);
    assert_eq!(shown().await.2, json!(false));
    let cleared = change(json!({"metadata": {"contentGroupId": null}})).await;
    cleared.assert_problem(400, "validation", &["metadata.contentGroupId"]);
    assert_eq!(change(json!({"wholeWorkspace": true})).await.status, 204);
    assert_eq!(shown().await.2, json!(true));
    // The event is always one of the events.
    let events = json!({"events": ["memberAdded", "variantChanged"]});
    assert_eq!(change(events.clone()).await.status, 204);
    assert_eq!(shown().await, (json!("memberAdded"), events["events"].clone(), json!(true)));
    let both = json!({"event": "variantChanged", "events": ["tagChanged"]});
    assert_eq!(change(both).await.status, 204);
    let events = json!(["tagChanged", "variantChanged"]);
    assert_eq!(shown().await, (json!("variantChanged"), events, json!(true)));
    assert_eq!(change(json!({"event": "variantChanged"})).await.status, 204);
    assert_eq!(shown().await, (json!("variantChanged"), json!(["variantChanged"]), json!(true)));
}

#[on_both_engines]
async fn limited_tokens_cannot_subscribe_to_events_outside_their_scope(store: TestStore) {
    let service = Service::start(store).await;
    let group = service.home.group.as_str();
    let limited = service.token("webhooks:write tags:read variants:read", Some(&[group])).await;
    let with_tags = service.token("webhooks:write tags:write", Some(&[group])).await;
    let create = async |token: &str, body: &Value| {
        service.send_as(token, Method::POST, "/webhooks", Some(body)).await
    };
    let mut whole = webhook("variantChanged", None);
    whole["wholeWorkspace"] = json!(true);
    create(&limited, &whole).await.assert_problem(403, "outside_group_limit", &[]);
    assert_eq!(create(&limited, &webhook("variantChanged", Some(group))).await.status, 201);
    let of_tags = webhook("tagChanged", Some(group));
    create(&limited, &of_tags).await.assert_problem(403, "outside_group_limit", &[]);
    let made = create(&with_tags, &of_tags).await;
    assert_eq!(made.status, 201, "{made:?}");
    // It sees the webhook, as that is on its group, but can't direct its events elsewhere.
    let change = json!({"id": made.id(), "url": "https://other.invalid/"});
    let refused = service.send_as(&limited, Method::PUT, "/webhooks", Some(&change)).await;
    refused.assert_problem(403, "outside_group_limit", &[]);
}

#[on_both_engines]
async fn secrets_are_never_shown_and_stored_encrypted(store: TestStore) {
    let service = Service::start(store).await;
    let secrets = ["x", "a secret of some length", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"];
    for secret in secrets {
        let mut body = webhook("memberAdded", None);
        body["secret"] = json!(secret);
        let request = service.request(Method::POST, "/webhooks").bearer_auth(&service.home.token);
        let made =
            TestResponse::of(request.header("prefer", "return=representation").json(&body)).await;
        assert_eq!(made.status, 201, "{made:?}");
        let id = made.id();
        let path = format!("/webhooks?id={id}");
        let change = json!({"id": id, "name": "new name"});
        let request = service.request(Method::PUT, "/webhooks").bearer_auth(&service.home.token);
        let put =
            TestResponse::of(request.header("prefer", "return=representation").json(&change)).await;
        let list = service.get("/webhooks/list").await;
        for answer in [made, put, service.get(&path).await, list] {
            assert!(!answer.body.to_string().contains("secret"), "{answer:?}");
            assert!(secret.len() == 1 || !answer.body.to_string().contains(secret), "{answer:?}");
        }
        let sealed = sealed_secret(&service, &id).await.unwrap();
        let holds = sealed.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(secret.len() == 1 || !holds, "{sealed:?}");
        let place = secret_aad(id.parse().unwrap());
        assert_eq!(key().decrypt(&place, &sealed).unwrap(), secret.as_bytes());
        assert!(key().decrypt("webhooks wh_x", &sealed).is_err(), "it is good in its place alone");
        let answer = service.put("/webhooks", &json!({"id": id, "secret": "another"})).await;
        answer.assert_problem(400, "immutable_field", &["secret"]);
    }
    let mut body = webhook("memberAdded", None);
    body["secret"] = json!("");
    let id = service.create("/webhooks", &body).await;
    assert_eq!(sealed_secret(&service, &id).await, None);
    let long = "x".repeat(256);
    for secret in [
        json!(long),
        json!("a\u{0}"),
        json!("whsec_"),
        json!("whsec_AAAA"),
        json!(3),
        json!("whsec_not base64 at all, and long enough"),
        json!(["x"]),
    ] {
        body["secret"] = secret.clone();
        let answer = service.post("/webhooks", &body).await;
        assert_eq!(answer.status, 400, "{secret}: {answer:?}");
    }
}

#[on_both_engines]
async fn urls_are_validated_on_creation(store: TestStore) {
    let service = Service::start(store).await;
    let long = format!("https://9.9.9.9/{}", "a".repeat(2_048));
    for url in [
        "",
        "9.9.9.9",
        "/hook",
        "//9.9.9.9/",
        "ftp://9.9.9.9/",
        "javascript:alert(1)",
        "https://",
        "https://user@9.9.9.9/",
        "https://user:pass@9.9.9.9/",
        "https://:pass@9.9.9.9/",
        "https://9.9.9.9:99999/",
        "https://exa mple.org/",
        "https://[::1/",
        "file:///etc/passwd",
        &long,
    ] {
        let mut body = webhook("memberAdded", None);
        body["url"] = json!(url);
        service.post("/webhooks", &body).await.assert_problem(400, "validation", &["url"]);
    }
    assert_eq!(service.get("/webhooks/list").await.body, json!([]));
}

#[on_both_engines]
async fn urls_at_disallowed_addresses_get_a_warning(store: TestStore) {
    let allowed = vec!["10.1.0.0/16".parse().unwrap()];
    let webhook_addresses = AddressPolicy { allowed, allows_loopback: false };
    let limits = ServerLimits { webhook_addresses, ..ServerLimits::default() };
    let service = Service::start_with(store, limits).await;
    for (url, warned) in [
        (URL, false),
        ("http://127.0.0.1:9000/", true),
        ("http://2130706433/", true),
        ("http://0x7f.1/", true),
        ("http://localhost/", true),
        ("http://169.254.169.254/latest/meta-data/", true),
        ("http://[::1]/", true),
        ("http://[::ffff:10.0.0.1]/", true),
        ("http://10.0.0.1/", true),
        ("http://10.1.0.1/", false),
    ] {
        let mut body = webhook("memberAdded", None);
        body["url"] = json!(url);
        let made = service.post("/webhooks", &body).await;
        assert_eq!(made.status, 201, "{url}: {made:?}");
        let warning = made.body["warning"].as_str();
        assert_eq!(warning.is_some(), warned, "{url}: {made:?}");
        assert!(warning.is_none_or(|text| text.contains("GALLEY_WEBHOOKS_ALLOW")), "{made:?}");
        // The URL is stored unchanged.
        let kept = service.get(&format!("/webhooks?id={}", made.id())).await.body["url"].clone();
        assert_eq!(kept, json!(url));
    }
}

#[on_both_engines]
async fn webhooks_of_extensions_are_marked_and_filtered(store: TestStore) {
    let service = Service::start(store).await;
    let owner = service.home.made.user;
    let one = service.token_of(owner, TokenKind { extension: Some("one"), ..ALL }).await;
    let two = service.token_of(owner, TokenKind { extension: Some("two"), ..ALL }).await;
    let make = async |token: &str| {
        let body = webhook("memberAdded", None);
        service.send_as(token, Method::POST, "/webhooks", Some(&body)).await.id()
    };
    let (mine, of_one, of_two) =
        (make(&service.home.token).await, make(&one).await, make(&two).await);
    let list = async |token: &str, query: &str| {
        let path = format!("/webhooks/list{query}");
        service.send_as(token, Method::GET, &path, None).await.column("id")
    };
    assert_eq!(list(&service.home.token, "").await, [mine.clone(), of_one.clone(), of_two.clone()]);
    let only = "?extensionOnly=true";
    assert_eq!(list(&service.home.token, only).await, [of_one.clone(), of_two.clone()]);
    assert_eq!(list(&one, only).await, [of_one.clone()]);
    assert_eq!(list(&two, only).await, [of_two.clone()]);
    let shown =
        async |id: &str| service.get(&format!("/webhooks?id={id}")).await.body["extension"].clone();
    assert_eq!((shown(&mine).await, shown(&of_one).await), (json!(false), json!(true)));
    let answer = service.get("/webhooks/list?extensionOnly=x&lastId=3").await;
    answer.assert_problem(400, "validation", &["extensionOnly", "lastId"]);
    let after = format!("?perPage=1&lastId={mine}");
    assert_eq!(list(&two, &after).await, [of_one]);
}

#[on_both_engines]
async fn deleting_a_watched_group_disables_its_webhooks(store: TestStore) {
    let service = Service::start(store).await;
    let group = async |name: &str, ancestor: Option<&str>| {
        service.create("/content-groups", &json!({"name": name, "ancestor": ancestor})).await
    };
    let a = group("A", None).await;
    let b = group("B", Some(&a)).await;
    let on_a = service.create("/webhooks", &webhook("contentPieceAdded", Some(&a))).await;
    let on_b = service.create("/webhooks", &webhook("contentGroupMoved", Some(&b))).await;
    let on_home =
        service.create("/webhooks", &webhook("contentPieceAdded", Some(&service.home.group))).await;
    let path = format!("/content-groups?id={a}&recursive=true");
    assert_eq!(service.delete(&path).await.status, 204);
    let shown = async |id: &str| service.get(&format!("/webhooks?id={id}")).await.body;
    for (id, group) in [(&on_a, &a), (&on_b, &b)] {
        let webhook = shown(id).await;
        assert_eq!(
            (&webhook["enabled"], &webhook["disabledReason"]),
            (&json!(false), &json!("group_deleted"))
        );
        assert_eq!(webhook["metadata"]["contentGroupId"], json!(group));
        // It stays disabled until it refers to an existing group.
        let answer = service.put("/webhooks", &json!({"id": id, "enabled": true})).await;
        answer.assert_problem(400, "unknown_reference", &["metadata.contentGroupId"]);
        let change =
            json!({"id": id, "enabled": true, "metadata": {"contentGroupId": service.home.group}});
        assert_eq!(service.put("/webhooks", &change).await.status, 204);
    }
    assert_eq!(shown(&on_home).await["enabled"], json!(true));
}

#[on_both_engines]
async fn a_limited_token_sees_the_webhooks_of_its_groups(store: TestStore) {
    let service = Service::start(store).await;
    let a = service.create("/content-groups", &json!({"name": "A"})).await;
    let b = service.create("/content-groups", &json!({"name": "B", "ancestor": a})).await;
    let token =
        service.token("webhooks:write contentPieces:read contentGroups:read", Some(&[&a])).await;
    let make =
        async |body: &Value| service.send_as(&token, Method::POST, "/webhooks", Some(body)).await;
    let on_a = make(&webhook("contentPieceAdded", Some(&a))).await;
    let on_b = make(&webhook("contentGroupMoved", Some(&b))).await;
    assert_eq!((on_a.status.as_u16(), on_b.status.as_u16()), (201, 201), "{on_a:?} {on_b:?}");
    service.create("/webhooks", &webhook("contentPieceAdded", Some(&service.home.group))).await;
    service.create("/webhooks", &webhook("contentGroupAdded", None)).await;
    let list = service.send_as(&token, Method::GET, "/webhooks/list", None).await;
    assert_eq!(list.column("id"), [on_a.id(), on_b.id()]);
    let change = json!({"id": on_a.id(), "metadata": {"contentGroupId": b}});
    assert_eq!(service.send_as(&token, Method::PUT, "/webhooks", Some(&change)).await.status, 204);
}

#[on_both_engines]
async fn errors_of_invalid_webhooks_are_reported(store: TestStore) {
    let service = Service::start(store).await;
    let answer = service.post("/webhooks", &json!({})).await;
    answer.assert_problem(400, "validation", &["url", "name", "event"]);
    let body = json!({"url": 1, "name": "", "event": [], "description": {}, "metadata": "x", "enabled": "yes"});
    let answer = service.post("/webhooks", &body).await;
    answer.assert_problem(
        400,
        "validation",
        &["url", "name", "event", "description", "metadata", "enabled"],
    );
    let body = json!({"url": URL, "name": "w", "event": "contentPieceAdded", "metadata": {"contentGroupId": 3}});
    let answer = service.post("/webhooks", &body).await;
    answer.assert_problem(400, "validation", &["metadata.contentGroupId"]);
    for group in ["x", "cg_00000000000000000000000000"] {
        let answer = service.post("/webhooks", &webhook("contentGroupAdded", Some(group))).await;
        answer.assert_problem(400, "unknown_reference", &["metadata.contentGroupId"]);
    }
    let id = service.create("/webhooks", &webhook("memberAdded", None)).await;
    let answer = service
        .put(
            "/webhooks",
            &json!({"id": id, "url": null, "name": null, "event": null, "enabled": null}),
        )
        .await;
    answer.assert_problem(400, "validation", &["url", "name", "event", "enabled"]);
}
