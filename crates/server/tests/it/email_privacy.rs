//! E-mail addresses of members and names of actors are shown only with the permission to read
//! members: in responses, in the feed, and in deliveries.

use galley_domain::address_policy::AddressPolicy;
use galley_server::ServerLimits;
use galley_testing::{Behaviour, Receiver, TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, TestResponse};

const ADDRESS: &str = "home@example.org";
const WITHOUT_MEMBERS: &str = "contentPieces:write webhooks:write";
const WITH_MEMBERS: &str = "contentPieces:write webhooks:write workspaceMemberships:read";

async fn start(store: TestStore) -> (Service, [(String, Value); 2]) {
    let webhook_addresses = AddressPolicy { allowed: Vec::new(), allows_loopback: true };
    let limits = ServerLimits { webhook_addresses, ..ServerLimits::default() };
    let service = Service::start_with(store, limits).await;
    let hidden = service.token(WITHOUT_MEMBERS, None).await;
    let shown = service.token(WITH_MEMBERS, None).await;
    (service, [(hidden, Value::Null), (shown, json!(ADDRESS))])
}

/// Returns the body of a new piece with the owner as its member.
fn piece(service: &Service, slug: &str) -> Value {
    let mut body = service.piece(slug);
    body["members"] = json!([service.home.made.member.to_string()]);
    body
}

/// Returns the address in a piece, after a check of the other fields of its member. The names of
/// actors are hidden with the address.
fn address(piece: &Value) -> &Value {
    let profile = &piece["members"][0]["profile"];
    assert_eq!(profile["username"], "home", "{piece}");
    let name = if profile["email"].is_null() { Value::Null } else { json!("home") };
    let actors = ["/createdBy", "/updatedBy", "/publication/publishedBy"];
    let actors = actors.iter().filter_map(|actor| piece.pointer(actor));
    for actor in actors.filter(|actor| actor.is_object()) {
        assert_eq!((&actor["name"], &actor["memberId"]), (&name, &piece["members"][0]["id"]));
    }
    &profile["email"]
}

#[on_both_engines]
async fn responses_have_addresses_only_with_the_permission_to_read_members(store: TestStore) {
    let (service, readers) = start(store).await;
    for (token, expected) in &readers {
        let represented = async |method: Method, path: &str, body: &Value| {
            let request = service.request(method, path).bearer_auth(token).json(body);
            let answer = TestResponse::of(request.header("prefer", "return=representation")).await;
            assert!(answer.status.is_success(), "{answer:?}");
            answer.body
        };
        let made = represented(Method::POST, "/content-pieces", &piece(&service, "a")).await;
        assert_eq!(address(&made), expected);
        let id = made["id"].as_str().unwrap();
        let publication = json!({"id": id});
        assert_eq!(service.post("/content-pieces/publish", &publication).await.status, 204);
        let change = json!({"id": id, "filename": "a.md"});
        let changed = represented(Method::PUT, "/content-pieces", &change).await;
        assert_eq!(address(&changed), expected);
        // The second read is served by the response cache.
        for _ in 0..2 {
            for path in [
                format!("/content-pieces?id={id}"),
                format!("/content-pieces?id={id}&fields=members"),
                format!("/content-pieces/list?ids={id}&content=true"),
            ] {
                let answer = service.send_as(token, Method::GET, &path, None).await;
                let piece = if answer.body.is_array() { &answer.body[0] } else { &answer.body };
                assert_eq!(address(piece), expected, "{path}");
            }
        }
        let events = service.send_as(token, Method::GET, "/events?perPage=1000", None).await;
        let events = events.body.as_array().unwrap().clone();
        assert!(events.iter().any(|event| event["type"] == "contentPieceUpdated"), "{events:?}");
        for event in events.iter().filter(|event| event["data"].get("title").is_some()) {
            assert_eq!(address(&event["data"]), expected, "{event}");
        }
    }
}

#[on_both_engines]
async fn addresses_disappear_with_the_permission(store: TestStore) {
    let service = Service::start(store).await;
    let permissions = |names: &[&str]| json!({"name": "changing", "permissions": names});
    let both = permissions(&["contentPieces:read", "workspaceMemberships:read"]);
    let role = service.create("/roles", &both).await;
    let person = service.person("reader", &role).await;
    let id = service.create("/content-pieces", &piece(&service, "a")).await;
    let path = format!("/content-pieces?id={id}");
    let read = async || service.send_as(&person.token, Method::GET, &path, None).await;
    let (before, cached) = (read().await, read().await);
    assert_eq!((address(&before.body), address(&cached.body)), (&json!(ADDRESS), &json!(ADDRESS)));
    let change = json!({"id": role, "permissions": ["contentPieces:read"]});
    assert_eq!(service.put("/roles", &change).await.status, 204);
    let after = read().await;
    assert_eq!(address(&after.body), &Value::Null);
    assert_ne!(after.header("etag"), before.header("etag"));
}

#[on_both_engines]
async fn deliveries_have_addresses_only_with_the_consent_of_a_client_that_sees_them(
    store: TestStore,
) {
    let (service, [(hidden, _), (shown, _)]) = start(store).await;
    let [first, second] = [
        Receiver::start(Behaviour::Status(200)).await,
        Receiver::start(Behaviour::Status(200)).await,
    ];
    let body = json!({"url": first.url, "name": "w", "event": "contentPieceAdded",
        "wholeWorkspace": true});
    let webhook = service.create_as(&hidden, "/webhooks", &body).await;
    let sent = async |receiver: &Receiver, count: usize| {
        service.create("/content-pieces", &piece(&service, "a")).await;
        let received = receiver.wait_for(count).await;
        address(&received.last().unwrap().json()["data"]).clone()
    };
    assert_eq!(sent(&first, 1).await, Value::Null, "it was created without the permission");
    let put = async |token: &str, change: Value| {
        let mut body = json!({"id": webhook});
        for (name, value) in change.as_object().unwrap() {
            body[name] = value.clone();
        }
        let answer = service.send_as(token, Method::PUT, "/webhooks", Some(&body)).await;
        assert_eq!(answer.status, 204, "{answer:?}");
    };
    let state =
        async || service.get(&format!("/webhooks?id={webhook}")).await.body["hidesEmails"].clone();
    assert_eq!(state().await, true);
    put(&shown, json!({"name": "renamed", "url": first.url})).await;
    assert_eq!(sent(&first, 2).await, Value::Null, "only a stated hidesEmails confirms the URL");
    put(&shown, json!({"hidesEmails": false})).await;
    assert_eq!(state().await, false);
    assert_eq!(sent(&first, 3).await, ADDRESS);
    put(&hidden, json!({"name": "again", "url": first.url, "hidesEmails": false})).await;
    assert_eq!(sent(&first, 4).await, ADDRESS, "the URL stayed");
    let change = json!({"id": webhook, "url": second.url, "hidesEmails": false});
    let answer = service.send_as(&hidden, Method::PUT, "/webhooks", Some(&change)).await;
    answer.assert_problem(403, "insufficient_permissions", &[]);
    put(&hidden, json!({"url": second.url})).await;
    assert_eq!(sent(&second, 1).await, Value::Null, "a client without the permission changed it");
    let change = json!({"id": webhook, "hidesEmails": false});
    let answer = service.send_as(&hidden, Method::PUT, "/webhooks", Some(&change)).await;
    answer.assert_problem(403, "insufficient_permissions", &[]);
    put(&shown, json!({"hidesEmails": false})).await;
    put(&hidden, json!({"hidesEmails": true})).await;
    assert_eq!(sent(&second, 2).await, Value::Null, "every client may hide them");
    let body = json!({"url": first.url, "name": "w", "event": "contentPieceAdded",
        "wholeWorkspace": true, "hidesEmails": false});
    let answer = service.send_as(&hidden, Method::POST, "/webhooks", Some(&body)).await;
    answer.assert_problem(403, "insufficient_permissions", &[]);
}

#[on_both_engines]
async fn a_replay_has_no_addresses_that_the_token_may_not_see_now(store: TestStore) {
    let service = Service::start(store).await;
    let token = service.token(WITH_MEMBERS, None).await;
    let id = service.token_id(&token).await;
    let body = piece(&service, "a");
    let create = async || {
        let request = service.request(Method::POST, "/content-pieces").bearer_auth(&token);
        let request = request.header("prefer", "return=representation");
        TestResponse::of(request.header("idempotency-key", "once").json(&body)).await
    };
    let first = create().await;
    let replayed = create().await;
    assert_eq!((replayed.status.as_u16(), &replayed.body), (201, &first.body));
    assert_eq!(address(&replayed.body), ADDRESS);
    let fewer = json!({"id": id, "permissions": ["contentPieces:write"]});
    assert_eq!(service.put("/tokens", &fewer).await.status, 204);
    create().await.assert_problem(409, "already_answered", &[]);
}
