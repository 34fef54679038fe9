//! Acceptance of invites, by the API and by the page: once, by any holder of the code.

mod forms;
mod links;

use std::time::Duration;

use futures_util::future::join_all;
use galley_domain::address_policy::AddressPolicy;
use galley_server::ServerLimits;
use galley_testing::{Behaviour, ReceivedRequest, Receiver, TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

pub(crate) use self::forms::form;
use self::forms::{assert_page, page, send_form};
use crate::members::mails_of;
use crate::secrets;
use crate::service::{Service, TestResponse};

const MEMBERS: &str = "/workspace-memberships";

const ACCEPT: &str = "/invites/accept";

/// Invites a person; returns the member's id and the code.
async fn invite(service: &Service, email: &str, name: &str) -> (String, String) {
    let [_, editor, _] = service.roles();
    let id =
        service.create(MEMBERS, &json!({"email": email, "name": name, "roleId": editor})).await;
    let code = mails_of(service, &id).await.pop().unwrap().1.code;
    secrets::record_secret_for_log(&code);
    (id, code)
}

/// Accepts an invite, without a token.
async fn accept(service: &Service, body: &Value) -> TestResponse {
    TestResponse::of(service.request(Method::POST, ACCEPT).json(body)).await
}

fn by(code: &str, username: &str) -> Value {
    json!({"code": code, "username": username, "fullName": "Ann Example"})
}

/// Returns the state that a rejected request must not change.
async fn state(service: &Service) -> Value {
    let invites = service.get("/workspace-memberships/list-members?perPage=100").await.body;
    json!({"members": invites, "everything": service.workspace_state().await})
}

#[on_both_engines]
async fn accepting_an_invite_creates_a_member_and_a_token_of_its_role(store: TestStore) {
    let service = Service::start(store).await;
    let (member, code) = invite(&service, "Ann@example.org", "Invited Ann").await;
    let sequence = service.last_sequence().await;
    let answer = accept(&service, &by(&code, "ann")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.body["memberId"], json!(member));
    assert_eq!(answer.body["workspaceId"], json!(service.home.made.workspace.to_string()));
    let (user, token) = (&answer.body["userId"], answer.body["token"].as_str().unwrap());

    let [_, editor, _] = service.roles();
    let expected = json!({"id": member, "userId": user, "roleId": editor,
        "email": "Ann@example.org", "name": "Invited Ann", "pendingInvite": false,
        "profile": {"fullName": "Ann Example", "username": "ann", "avatar": null}});
    let listed = service.get("/workspace-memberships/list-members").await.body;
    let listed =
        listed.as_array().unwrap().iter().find(|one| one["id"] == json!(member)).unwrap().clone();
    assert_eq!(listed, expected);
    let events = service.events_after(sequence).await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].event_type, "memberAdded");
    assert_eq!(serde_json::from_str::<Value>(&events[0].data).unwrap(), expected);

    let own = service.send_as(token, Method::GET, "/profile", None).await;
    assert_eq!((own.status.as_u16(), &own.body["id"]), (200, user));
    assert_eq!(own.body["email"], "Ann@example.org");
    let piece = service.piece("by-ann");
    assert_eq!(
        service.send_as(token, Method::POST, "/content-pieces", Some(&piece)).await.status,
        201
    );
    service.send_as(token, Method::GET, "/tokens/list", None).await.assert_problem(
        403,
        "insufficient_permissions",
        &[],
    );

    // The code works once.
    let before = state(&service).await;
    accept(&service, &by(&code, "other")).await.assert_problem(410, "invite_ended", &[]);
    assert_page(&page(&service, &code).await, 410, "The invite was accepted");
    assert_eq!(state(&service).await, before);
}

#[on_both_engines]
async fn ended_and_unknown_codes_are_rejected(store: TestStore) {
    let service = Service::start(store).await;
    let (expired, expired_code) = invite(&service, "a@example.org", "A").await;
    service.advance_clock(Duration::from_hours(7 * 24));
    // A new invite replaces it.
    let (again, new_code) = invite(&service, "A@example.org", "A").await;
    assert_eq!(again, expired);
    let (removed, removed_code) = invite(&service, "b@example.org", "B").await;
    assert_eq!(service.delete(&format!("{MEMBERS}?id={removed}")).await.status, 204);
    let (_, late_code) = invite(&service, "c@example.org", "C").await;
    service.advance_clock(Duration::from_hours(7 * 24));
    let before = state(&service).await;
    for (code, status, reason, words) in [
        ("", 404, "not_found", "The invite does not exist"),
        ("x", 404, "not_found", "The invite does not exist"),
        (&expired_code, 410, "invite_ended", "The invite is void"),
        (&removed_code, 410, "invite_ended", "The invite is void"),
        (&new_code, 410, "invite_ended", "The invite has expired"),
        (&late_code, 410, "invite_ended", "The invite has expired"),
    ] {
        accept(&service, &by(code, "ann")).await.assert_problem(status, reason, &[]);
        assert_page(&page(&service, code).await, status, words);
        let fields = [("code", code), ("username", "ann"), ("fullName", "Ann")];
        assert_page(&send_form(&service, &fields).await, status, words);
    }
    assert_eq!(state(&service).await, before);
}

#[on_both_engines]
async fn invalid_names_are_reported_and_change_nothing(store: TestStore) {
    let service = Service::start(store).await;
    let (_, code) = invite(&service, "ann@example.org", "Ann").await;
    let before = state(&service).await;
    let long = "x".repeat(65);
    for (body, paths) in [
        (json!({}), &["code", "fullName", "username"][..]),
        (json!({"code": 1, "username": null, "fullName": []}), &["code", "fullName", "username"]),
        (json!({"code": code, "username": "", "fullName": ""}), &["fullName", "username"]),
        (json!({"code": code, "username": "a b", "fullName": "a\nb"}), &["fullName", "username"]),
        (json!({"code": code, "username": long, "fullName": "x"}), &["username"]),
    ] {
        accept(&service, &body).await.assert_problem(400, "validation", paths);
    }
    accept(&service, &by(&code, "HOME")).await.assert_problem(409, "username_taken", &[]);
    let request = form(service.request(Method::POST, ACCEPT), &[("code", &code)]);
    TestResponse::of(request).await.assert_problem(415, "unsupported_media_type", &[]);
    let request = service.request(Method::POST, "/invite").json(&by(&code, "ann"));
    TestResponse::of(request).await.assert_problem(415, "unsupported_media_type", &[]);
    let large = "x".repeat(20_000);
    let request = form(service.request(Method::POST, "/invite"), &[("code", &large)]);
    TestResponse::of(request).await.assert_problem(413, "payload_too_large", &[]);
    assert_eq!(state(&service).await, before);
}

#[on_both_engines]
async fn an_existing_user_joins_with_unchanged_names(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let own = service.send_as(&other.token, Method::GET, "/profile", None).await.body;
    let email = own["email"].as_str().unwrap().to_uppercase();
    let (_, code) = invite(&service, &email, "Somebody").await;
    let shown = page(&service, &code).await;
    assert_page(&shown, 200, own["username"].as_str().unwrap());
    assert!(!shown.body.as_str().unwrap().contains("name=\"username\""), "{shown:?}");
    let answer = accept(&service, &by(&code, "another-name")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.body["userId"], own["id"]);
    let token = answer.body["token"].as_str().unwrap();
    let now = service.send_as(token, Method::GET, "/profile", None).await.body;
    assert_eq!(now, own);
    let list = "/workspace-memberships/list-workspaces";
    for token in [token, &other.token] {
        let workspaces = service.send_as(token, Method::GET, list, None).await.body;
        assert_eq!(workspaces.as_array().unwrap().len(), 2, "{workspaces}");
    }
    // Each token belongs to its own workspace.
    let [of_home, of_other] = [token, other.token.as_str()].map(async |token| {
        service.send_as(token, Method::GET, "/workspace", None).await.body["id"].clone()
    });
    assert_ne!(of_home.await, of_other.await);
}

#[on_both_engines]
async fn of_a_hundred_concurrent_acceptances_one_succeeds(store: TestStore) {
    let service = Service::start(store).await;
    let (member, code) = invite(&service, "ann@example.org", "Ann").await;
    let sequence = service.last_sequence().await;
    let bodies: Vec<Value> = (0..100).map(|number| by(&code, &format!("ann-{number}"))).collect();
    let answers = join_all(bodies.iter().map(|body| accept(&service, body))).await;
    let let_in: Vec<&TestResponse> = answers.iter().filter(|answer| answer.status == 200).collect();
    assert_eq!(let_in.len(), 1, "{let_in:?}");
    assert_eq!(let_in[0].body["memberId"], json!(member));
    for answer in answers.iter().filter(|answer| answer.status != 200) {
        answer.assert_problem(410, "invite_ended", &[]);
    }
    assert_eq!(service.events_after(sequence).await.len(), 1);
    let members = service.get("/workspace-memberships/list-members").await.body;
    assert_eq!(members.as_array().unwrap().len(), 2, "{members}");
    assert_eq!(service.deadlocks().await, 0);
}

#[on_both_engines]
async fn a_repeated_acceptance_with_a_key_gets_the_stored_response(store: TestStore) {
    let service = Service::start(store).await;
    let (member, code) = invite(&service, "ann@example.org", "Ann").await;
    let sequence = service.last_sequence().await;
    let with_key = async |key: &str, body: &Value| {
        let request = service.request(Method::POST, ACCEPT).header("idempotency-key", key);
        TestResponse::of(request.json(body)).await
    };
    let body = by(&code, "ann");
    let answers = join_all((0..20).map(|_| with_key("a1f5", &body))).await;
    let first =
        answers.iter().find(|answer| answer.header("idempotency-replayed").is_empty()).unwrap();
    assert_eq!(first.body["memberId"], json!(member));
    assert_eq!(
        answers.iter().filter(|one| one.header("idempotency-replayed") == "true").count(),
        19
    );
    for answer in &answers {
        assert_eq!((answer.status.as_u16(), &answer.body), (200, &first.body));
        assert_eq!(answer.header("cache-control"), "no-store");
    }
    assert_eq!(service.events_after(sequence).await.len(), 1);
    // Key, code and names must all be the same.
    let before = state(&service).await;
    with_key("a1f6", &body).await.assert_problem(410, "invite_ended", &[]);
    with_key("a1f5", &by(&code, "ann2")).await.assert_problem(410, "invite_ended", &[]);
    with_key("a1f5", &by("x", "ann")).await.assert_problem(404, "not_found", &[]);
    accept(&service, &body).await.assert_problem(410, "invite_ended", &[]);
    // Another invite may use the same key.
    let (_, other) = invite(&service, "bob@example.org", "Bob").await;
    let of_bob = with_key("a1f5", &by(&other, "bob")).await;
    assert_ne!(of_bob.body["token"], first.body["token"]);
    service.advance_clock(Duration::from_hours(23));
    assert_eq!(with_key("a1f5", &body).await.body, first.body);
    service.advance_clock(Duration::from_hours(1));
    with_key("a1f5", &body).await.assert_problem(410, "invite_ended", &[]);
    assert_ne!(state(&service).await, before, "Bob is there");
}

#[on_both_engines]
async fn a_revoked_token_is_not_replayed(store: TestStore) {
    let service = Service::start(store).await;
    let (member, code) = invite(&service, "ann@example.org", "Ann").await;
    let send = async || {
        let request = service.request(Method::POST, ACCEPT).header("idempotency-key", "a1f5");
        TestResponse::of(request.json(&by(&code, "ann"))).await
    };
    let token = send().await.body["token"].as_str().unwrap().to_owned();
    let id = service.token_id(&token).await;
    assert_eq!(service.delete(&format!("/tokens?id={id}")).await.status, 204);
    send().await.assert_problem(410, "invite_ended", &[]);
    assert_eq!(service.delete(&format!("{MEMBERS}?id={member}")).await.status, 204);
    send().await.assert_problem(410, "invite_ended", &[]);
}

#[on_both_engines]
async fn lookalike_addresses_are_different_users(store: TestStore) {
    let service = Service::start(store).await;
    let (_, code) = invite(&service, "kate@example.org", "Kate").await;
    let kate = accept(&service, &by(&code, "kate")).await.body;
    let (_, code) = invite(&service, "\u{212a}ate@example.org", "K").await;
    let other = accept(&service, &by(&code, "other")).await;
    assert_eq!(other.status, 200, "{other:?}");
    assert_ne!(other.body["userId"], kate["userId"]);
    // Other spellings of the same address are the same address.
    let body = json!({"email": "KATE@EXAMPLE.org", "name": "Kate", "roleId": service.roles()[1]});
    service.post(MEMBERS, &body).await.assert_problem(409, "already_member", &[]);
    invite(&service, "ann@b\u{fc}cher.example", "Ann").await;
    let body =
        json!({"email": "Ann@xn--bcher-kva.example", "name": "Ann", "roleId": service.roles()[1]});
    service.post(MEMBERS, &body).await.assert_problem(409, "already_invited", &[]);
}

#[on_both_engines]
async fn invites_are_void_after_their_inviter_loses_permissions(store: TestStore) {
    let service = Service::start(store).await;
    let [admin, editor, viewer] = service.roles();
    let as_admin = async |email: &str, username: &str| {
        let body = json!({"email": email, "name": "Boss", "roleId": admin});
        let member = service.create(MEMBERS, &body).await;
        let code = mails_of(&service, &member).await.pop().unwrap().1.code;
        secrets::record_secret_for_log(&code);
        let token =
            accept(&service, &by(&code, username)).await.body["token"].as_str().unwrap().to_owned();
        (member, token)
    };
    let invited_by = async |token: &str, email: &str| {
        let body = json!({"email": email, "name": "Ann", "roleId": editor});
        let made = service.send_as(token, Method::POST, MEMBERS, Some(&body)).await;
        assert_eq!(made.status, 201, "{made:?}");
        let member = made.body["id"].as_str().unwrap().to_owned();
        let code = mails_of(&service, &member).await.pop().unwrap().1.code;
        secrets::record_secret_for_log(&code);
        code
    };
    let (gone, token) = as_admin("a@example.org", "a").await;
    let of_gone = invited_by(&token, "x@example.org").await;
    let (lowered, token) = as_admin("b@example.org", "b").await;
    let of_lowered = invited_by(&token, "y@example.org").await;
    // A role is reduced after its member has invited a person.
    let manager = json!({"name": "Manager", "permissions": ["workspaceMemberships:write", "contentPieces:write",
        "tags:write", "assets:write", "profile:write", "contentGroups:read", "variants:read", "roles:read", "workspace:read", "webhooks:read"]});
    let manager = service.create("/roles", &manager).await;
    let low = json!({"name": "Low", "permissions": ["contentPieces:write"]});
    let low = service.create("/roles", &low).await;
    let manages = service.person("m", &manager).await;
    let body = json!({"email": "l@example.org", "name": "L", "roleId": low});
    let made = service.send_as(&manages.token, Method::POST, MEMBERS, Some(&body)).await;
    assert_eq!(made.status, 201, "{made:?}");
    let of_lessened = mails_of(&service, &made.id()).await.pop().unwrap().1.code;
    secrets::record_secret_for_log(&of_lessened);
    let (_, staying) = invite(&service, "z@example.org", "Z").await;
    let more = json!({"id": manager, "name": "Manager of all"});
    assert_eq!(service.put("/roles", &more).await.status, 204);
    assert!(page(&service, &of_lessened).await.status.is_success(), "it may as much as before");
    let less = json!({"id": manager, "permissions": ["contentPieces:read"]});
    assert_eq!(service.put("/roles", &less).await.status, 204);
    assert_eq!(service.delete(&format!("{MEMBERS}?id={gone}")).await.status, 204);
    let change = json!({"id": lowered, "roleId": viewer});
    assert_eq!(service.put(MEMBERS, &change).await.status, 204);
    for code in [&of_gone, &of_lowered, &of_lessened] {
        accept(&service, &by(code, "c")).await.assert_problem(410, "invite_ended", &[]);
        assert_page(&page(&service, code).await, 410, "The invite is void");
    }
    assert_eq!(accept(&service, &by(&staying, "z")).await.status, 200);
    // Another member may invite them again.
    let (_, again) = invite(&service, "x@example.org", "X").await;
    assert_eq!(accept(&service, &by(&again, "x")).await.status, 200);
}

#[on_both_engines]
async fn extensions_cannot_invite(store: TestStore) {
    let service = Service::start(store).await;
    let body = json!({"name": "t", "permissions": ["workspaceMemberships:write", "contentPieces:write",
        "contentGroups:write", "tags:write", "variants:write", "assets:write", "roles:write", "workspace:write",
        "webhooks:write", "tokens:write", "profile:write"], "extension": "ext"});
    let made = service.post("/tokens", &body).await;
    let token = made.body["token"].as_str().unwrap();
    secrets::record_secret_for_log(token);
    let body = json!({"email": "ann@example.org", "name": "Ann", "roleId": service.roles()[1]});
    service.send_as(token, Method::POST, MEMBERS, Some(&body)).await.assert_problem(
        403,
        "beyond_own_permissions",
        &[],
    );
}

#[on_both_engines]
async fn unauthenticated_bodies_have_a_small_limit(store: TestStore) {
    let service = Service::start(store).await;
    let body = format!("{{\"code\": [{}]}}", "0,".repeat(10_000));
    for (path, kind) in
        [("/invites/accept", "application/json"), ("/invite", "application/x-www-form-urlencoded")]
    {
        let request = service.request(Method::POST, path).body(body.clone());
        TestResponse::of(request.header("content-type", kind)).await.assert_problem(
            413,
            "payload_too_large",
            &[],
        );
    }
}

#[on_both_engines]
async fn member_events_are_delivered_to_webhooks(store: TestStore) {
    let webhook_addresses = AddressPolicy { allowed: Vec::new(), allows_loopback: true };
    let service =
        Service::start_with(store, ServerLimits { webhook_addresses, ..ServerLimits::default() })
            .await;
    let receiver = Receiver::start(Behaviour::Status(200)).await;
    for event in ["memberInvited", "memberAdded", "memberRemoved"] {
        let webhook = json!({"url": receiver.url, "name": "w", "event": event});
        service.create("/webhooks", &webhook).await;
    }
    let (member, code) = invite(&service, "ann@example.org", "Ann").await;
    receiver.wait_for(1).await;
    assert_eq!(accept(&service, &by(&code, "ann")).await.status, 200);
    receiver.wait_for(2).await;
    assert_eq!(service.delete(&format!("{MEMBERS}?id={member}")).await.status, 204);
    let came: Vec<Value> = receiver.wait_for(3).await.iter().map(ReceivedRequest::json).collect();
    let told = |key: &str| came.iter().map(|one| one[key].clone()).collect::<Vec<_>>();
    assert_eq!(told("type"), ["memberInvited", "memberAdded", "memberRemoved"]);
    for one in &came {
        assert_eq!(one["data"]["id"], json!(member), "{one}");
        assert!(!one.to_string().contains(&code), "{one}");
    }
}
