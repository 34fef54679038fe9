//! Requests with a session: their rights, the defence against other origins, and their end.

use std::time::Duration;

use galley_application::operations::setup::{NewWorkspace, create_workspace};
use galley_domain::content_group::ContentGroupName;
use galley_domain::people::EmailAddress;
use galley_server::ServerLimits;
use galley_storage::WriteTx;
use galley_testing::{TestStore, on_both_engines};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::service::{Service, TestResponse};
use crate::sign_in::{Browser, OWNER};

const LIST: &str = "/content-pieces/list";

/// A signed-in browser, with the workspace that its requests name.
struct SignedIn<'s> {
    service: &'s Service,
    browser: Browser,
    workspace: String,
}

impl<'s> SignedIn<'s> {
    async fn of(service: &'s Service, email: &str) -> Self {
        let mut browser = Browser::default();
        browser.sign_in(service, email).await;
        Self { service, browser, workspace: service.home.made.workspace.to_string() }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.service.request(method, path).header("galley-workspace", &self.workspace)
    }

    async fn send(&mut self, method: Method, path: &str, body: Option<&Value>) -> TestResponse {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.json(body);
        }
        self.browser.send(request).await
    }

    async fn get(&mut self, path: &str) -> TestResponse {
        self.send(Method::GET, path, None).await
    }
}

#[on_both_engines]
async fn the_session_the_origin_and_the_workspace_are_checked_in_this_order(store: TestStore) {
    let service = Service::start(store).await;
    let mut signed_in = SignedIn::of(&service, OWNER).await;
    let own = service.home.made.workspace.to_string();
    let other = service.other_workspace().await.made.workspace.to_string();
    let cookie = signed_in.browser.cookie_header();
    let unknown = "galley-session=unknown".to_owned();
    let twice = format!("{cookie}; galley-session=x");
    let url = service.url.clone();
    let same = ("sec-fetch-site", "same-origin");
    let cross = ("sec-fetch-site", "cross-site");
    let origin = ("origin", url.as_str());
    let none: &[(&str, &str)] = &[];
    for (method, cookie, headers, workspace, status, reason) in [
        ("GET", &cookie, &[same][..], Some(&own), 200, ""),
        ("GET", &cookie, &[origin], Some(&own), 200, ""),
        ("GET", &cookie, none, Some(&own), 200, ""),
        ("GET", &unknown, &[cross], None, 401, "unauthorized"),
        ("GET", &twice, &[same], Some(&own), 401, "unauthorized"),
        ("GET", &cookie, &[cross, origin], Some(&own), 403, "foreign_origin"),
        ("GET", &cookie, &[("origin", "null")], Some(&own), 403, "foreign_origin"),
        ("GET", &cookie, none, None, 403, "foreign_origin"),
        ("GET", &cookie, &[cross], Some(&other), 403, "foreign_origin"),
        ("GET", &cookie, &[same], None, 400, "validation"),
        ("GET", &cookie, &[same], Some(&"ws_x".to_owned()), 400, "validation"),
        ("GET", &cookie, &[same], Some(&other), 404, "not_found"),
        ("POST", &cookie, none, Some(&own), 403, "foreign_origin"),
        ("POST", &cookie, &[cross], Some(&own), 403, "foreign_origin"),
        ("POST", &cookie, &[origin], Some(&own), 201, ""),
        ("POST", &cookie, &[same], Some(&own), 201, ""),
    ] {
        let path = if method == "GET" { LIST } else { "/tags" };
        let mut request = service.request(method.parse().unwrap(), path).header("cookie", cookie);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(workspace) = workspace {
            request = request.header("galley-workspace", workspace);
        }
        if method == "POST" {
            request = request.json(&json!({"label": "x", "color": "red"}));
        }
        let answer = TestResponse::of(request).await;
        assert_eq!(answer.status, status, "{method} {headers:?} {workspace:?}: {answer:?}");
        if !reason.is_empty() {
            assert_eq!(answer.body["reason"], reason, "{headers:?} {workspace:?}: {answer:?}");
        }
    }
    let answer = signed_in.browser.get(&service, LIST).await;
    answer.assert_problem(400, "validation", &["Galley-Workspace"]);
}

#[on_both_engines]
async fn with_an_authorization_header_the_cookie_is_ignored(store: TestStore) {
    let service = Service::start(store).await;
    let mut signed_in = SignedIn::of(&service, OWNER).await;
    let request = signed_in.request(Method::GET, LIST).header("authorization", "Bearer x");
    let answer = signed_in.browser.send(request).await;
    answer.assert_problem(401, "unauthorized", &[]);
    let other = service.other_workspace().await;
    let request = signed_in.request(Method::GET, "/workspace").bearer_auth(&other.token);
    let answer = signed_in.browser.send(request).await;
    assert_eq!(answer.body["id"], other.made.workspace.to_string(), "the token's workspace");
}

#[on_both_engines]
async fn other_origins_get_no_cors_headers_for_sessions(store: TestStore) {
    let origin = "https://site.example";
    let limits =
        ServerLimits { cors_origins: vec![origin.parse().unwrap()], ..ServerLimits::default() };
    let service = Service::start_with(store, limits).await;
    let request = service.request(Method::OPTIONS, LIST).header("origin", origin);
    let request = request.header("access-control-request-method", "GET");
    let request = request.header("access-control-request-headers", "galley-workspace");
    let answer = TestResponse::of(request).await;
    assert_eq!(answer.header("access-control-allow-credentials"), "");
    let allowed = answer.header("access-control-allow-headers").to_lowercase();
    assert!(!allowed.contains("galley-workspace"), "{allowed}");
}

#[on_both_engines]
async fn a_session_has_the_rights_of_the_role_at_each_request(store: TestStore) {
    let service = Service::start(store).await;
    let [_, editor, viewer] = service.roles();
    let ben = service.person("ben", &editor).await;
    let mut signed_in = SignedIn::of(&service, "ben@example.org").await;
    let piece = service.piece("by-ben");
    let answer = signed_in.send(Method::POST, "/content-pieces", Some(&piece)).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let path = format!("/content-pieces?id={}", answer.id());
    let created = signed_in.get(&path).await.body["createdBy"].clone();
    let expected =
        json!({"type": "member", "id": ben.member, "memberId": ben.member, "name": "ben"});
    assert_eq!(created, expected);
    let revisions = signed_in.get(&format!("/content-pieces/revisions?id={}", answer.id())).await;
    assert_eq!(revisions.body[0]["origin"], "console", "{revisions:?}");
    // The second and the third response may come from the cache.
    for _ in 0..3 {
        assert_eq!(signed_in.get(&path).await.status, 200);
    }
    let change = json!({"id": ben.member, "roleId": viewer});
    assert_eq!(service.put("/workspace-memberships", &change).await.status, 204);
    let answer = signed_in.send(Method::POST, "/content-pieces", Some(&piece)).await;
    answer.assert_problem(403, "insufficient_permissions", &[]);
    assert_eq!(signed_in.get(&path).await.status, 200);
    let removed = service.delete(&format!("/workspace-memberships?id={}", ben.member)).await;
    assert_eq!(removed.status, 204);
    signed_in.get(&path).await.assert_problem(404, "not_found", &[]);
    let answer = signed_in.get("/profile").await;
    answer.assert_problem(404, "not_found", &[]);
}

#[on_both_engines]
async fn one_session_reaches_each_workspace_of_its_user(store: TestStore) {
    let service = Service::start(store).await;
    let mut signed_in = SignedIn::of(&service, OWNER).await;
    let environment = service.environment.clone();
    let new = NewWorkspace {
        name: "second".to_owned(),
        email: EmailAddress::parse(OWNER).unwrap(),
        group: ContentGroupName::parse("Posts").unwrap(),
        token: environment.new_access_token(),
    };
    let write = async move |tx: &WriteTx<'_>| create_workspace(tx, &environment, &new).await;
    let second = service.database.write("setup", write).await.unwrap();
    for _ in 0..3 {
        // Both workspaces have the same paths, so their cached responses must not be mixed up.
        for (workspace, group) in [
            (service.home.made.workspace, service.home.made.content_group),
            (second.workspace, second.content_group),
        ] {
            signed_in.workspace = workspace.to_string();
            let groups = signed_in.get("/content-groups/list").await;
            assert_eq!(groups.column("id"), [group.to_string()]);
        }
    }
    let listed = signed_in.browser.get(&service, "/workspace-memberships/list-workspaces").await;
    assert_eq!(listed.column("id").len(), 2);
}

#[on_both_engines]
async fn sessions_are_listed_and_ended_by_their_user(store: TestStore) {
    let service = Service::start(store).await;
    let mut first = SignedIn::of(&service, OWNER).await;
    let mut second = SignedIn::of(&service, OWNER).await;
    let [_, editor, _] = service.roles();
    service.person("ben", &editor).await;
    let mut ben = SignedIn::of(&service, "ben@example.org").await;

    let listed = first.get("/profile/sessions").await;
    let ids = listed.column("id");
    assert_eq!(ids.len(), 2, "{listed:?}");
    assert_eq!([&listed.body[0]["isCurrent"], &listed.body[1]["isCurrent"]], [true, false]);
    assert_eq!(listed.body[0]["method"], "mail");
    assert_eq!(listed.body[0]["remoteAddress"], "127.0.0.1");
    let page = first.get("/profile/sessions?perPage=1").await;
    assert_eq!(page.column("id"), ids[..1]);

    let path = format!("/profile/sessions?id={}", ids[1]);
    ben.send(Method::DELETE, &path, None).await.assert_problem(404, "not_found", &[]);
    for _ in 0..3 {
        assert_eq!(second.get(LIST).await.status, 200);
    }
    assert_eq!(first.send(Method::DELETE, &path, None).await.status, 204);
    second.get(LIST).await.assert_problem(401, "unauthorized", &[]);
    assert_eq!(first.get(LIST).await.status, 200);
    first.send(Method::DELETE, &path, None).await.assert_problem(404, "not_found", &[]);
    let without = first.send(Method::DELETE, "/profile/sessions", None).await;
    without.assert_problem(400, "validation", &["id"]);

    let mut third = SignedIn::of(&service, OWNER).await;
    let answer = first.send(Method::DELETE, "/profile/sessions?all=true", None).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    assert!(first.browser.cookies.is_empty(), "the cookie is deleted");
    third.get(LIST).await.assert_problem(401, "unauthorized", &[]);
    assert_eq!(ben.get(LIST).await.status, 200);
    assert_eq!(service.get(LIST).await.status, 200, "tokens go on");
}

#[on_both_engines]
async fn signing_out_ends_the_session_and_its_cached_responses(store: TestStore) {
    let service = Service::start(store).await;
    let mut signed_in = SignedIn::of(&service, OWNER).await;
    let mut copy = Browser::default();
    copy.cookies.clone_from(&signed_in.browser.cookies);
    for _ in 0..3 {
        assert_eq!(signed_in.get(LIST).await.status, 200);
    }
    assert_eq!(signed_in.send(Method::POST, "/sign-out", None).await.status, 204);
    assert!(signed_in.browser.cookies.is_empty());
    signed_in.browser = copy;
    signed_in.get(LIST).await.assert_problem(401, "unauthorized", &[]);
    let again = signed_in.send(Method::POST, "/sign-out", None).await;
    again.assert_problem(401, "unauthorized", &[]);
}

#[on_both_engines]
async fn a_token_neither_sees_nor_ends_sessions(store: TestStore) {
    let service = Service::start(store).await;
    SignedIn::of(&service, OWNER).await;
    for (method, path) in [
        (Method::GET, "/profile/sessions"),
        (Method::DELETE, "/profile/sessions?all=true"),
        (Method::POST, "/sign-out"),
    ] {
        let answer = service.send(method, path, None).await;
        answer.assert_problem(403, "session_required", &[]);
    }
}

#[on_both_engines]
async fn a_new_sign_in_replaces_the_session_of_the_browser(store: TestStore) {
    let service = Service::start(store).await;
    let mut signed_in = SignedIn::of(&service, OWNER).await;
    let before = signed_in.browser.cookies.clone();
    signed_in.browser.sign_in(&service, OWNER).await;
    assert_ne!(signed_in.browser.cookies, before, "the value is new");
    assert_eq!(signed_in.get("/profile/sessions").await.column("id").len(), 1);
    // A value that was planted before the sign-in is worth nothing after it.
    let mut planted = Browser::default();
    planted.cookies.insert("galley-session".to_owned(), "planted".to_owned());
    planted.sign_in(&service, OWNER).await;
    assert_ne!(planted.cookies["galley-session"], "planted");
    signed_in.browser.cookies.insert("galley-session".to_owned(), "planted".to_owned());
    signed_in.get(LIST).await.assert_problem(401, "unauthorized", &[]);
}

#[on_both_engines]
async fn a_session_lasts_thirty_days_after_its_last_use(store: TestStore) {
    let service = Service::start(store).await;
    let mut signed_in = SignedIn::of(&service, OWNER).await;
    let day = Duration::from_hours(24);
    for _ in 0..3 {
        service.advance_clock(29 * day);
        assert_eq!(signed_in.get(LIST).await.status, 200);
        let now = service.environment.now();
        // The use is recorded outside the request.
        for attempt in 0.. {
            let session = signed_in.get("/profile/sessions").await.body[0].clone();
            let expires_at = session["expiresAt"].as_str().unwrap().to_owned();
            let expected = now.later(29 * day).to_string();
            if expires_at > expected {
                break;
            }
            assert!(attempt < 200, "{session}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    service.advance_clock(30 * day + Duration::from_mins(1));
    signed_in.get(LIST).await.assert_problem(401, "unauthorized", &[]);
}

#[on_both_engines]
async fn idempotency_keys_belong_to_a_session(store: TestStore) {
    let service = Service::start(store).await;
    let mut first = SignedIn::of(&service, OWNER).await;
    let mut second = SignedIn::of(&service, OWNER).await;
    let body = json!({"label": "x", "color": "red"});
    let create = async |signed_in: &mut SignedIn<'_>| {
        let request = signed_in.request(Method::POST, "/tags").json(&body);
        signed_in.browser.send(request.header("idempotency-key", "k")).await
    };
    let created = create(&mut first).await;
    assert_eq!(created.status, 201, "{created:?}");
    let repeated = create(&mut first).await;
    assert_eq!(repeated.body, created.body);
    assert_eq!(repeated.header("idempotency-replayed"), "true");
    assert_ne!(create(&mut second).await.body, created.body);
}

#[on_both_engines]
async fn tickets_and_previews_end_with_the_session_and_tokens_do_not(store: TestStore) {
    let service = Service::start(store).await;
    let mut signed_in = SignedIn::of(&service, OWNER).await;
    let piece = service.create("/content-pieces", &service.piece("a")).await;
    let preview = json!({ "id": piece });
    let preview = signed_in.send(Method::POST, "/content-pieces/preview", Some(&preview)).await;
    let preview = preview.body["token"].as_str().unwrap().to_owned();
    let ticket = signed_in.send(Method::POST, "/events/ticket", None).await;
    let ticket = ticket.body["ticket"].as_str().unwrap().to_owned();
    let token = json!({"name": "site", "permissions": ["contentPieces:read"]});
    let token = signed_in.send(Method::POST, "/tokens", Some(&token)).await;
    assert_eq!(token.body["expiresAt"], Value::Null, "a session grants without limit: {token:?}");
    let token = token.body["token"].as_str().unwrap().to_owned();
    let path = format!("/content-pieces?id={piece}");
    let read = async |token: &str| service.send_as(token, Method::GET, &path, None).await.status;
    assert_eq!((read(&preview).await.as_u16(), read(&token).await.as_u16()), (200, 200));

    assert_eq!(signed_in.send(Method::POST, "/sign-out", None).await.status, 204);
    assert_eq!((read(&preview).await.as_u16(), read(&token).await.as_u16()), (401, 200));
    let stream = service.request(Method::GET, &format!("/events?ticket={ticket}"));
    let answer = TestResponse::of(stream.header("accept", "text/event-stream")).await;
    answer.assert_problem(401, "unauthorized", &[]);
}

#[on_both_engines]
async fn sign_ins_and_their_ends_are_in_the_audit_log(store: TestStore) {
    let service = Service::start(store).await;
    let mut signed_in = SignedIn::of(&service, OWNER).await;
    let session = signed_in.get("/profile/sessions").await.column("id").remove(0);
    signed_in.send(Method::POST, "/sign-out", None).await;
    let audit = service.get(&format!("/audit?target={session}")).await;
    let actions = audit.column("action");
    assert_eq!(actions, ["session.delete", "session.create"], "{audit:?}");
    let member = service.home.made.member.to_string();
    for entry in audit.body.as_array().unwrap() {
        assert_eq!(entry["actor"]["type"], "member");
        assert_eq!(entry["actor"]["memberId"], json!(member));
        assert_eq!(entry["remoteAddress"], "127.0.0.1");
    }
    let by_member = service.get(&format!("/audit?actor={member}&action=session.create")).await;
    assert_eq!(by_member.body[0]["target"]["id"], json!(session));
}

#[on_both_engines]
async fn a_session_that_ends_on_one_server_ends_on_the_other(store: TestStore) {
    let service = Service::start(store).await;
    let mut signed_in = SignedIn::of(&service, OWNER).await;
    let Some(other) = service.start_second_server().await else { return };
    let workspace = signed_in.workspace.clone();
    let request = async |server: &str, cookie: &str| {
        let request = service.request_to(server, Method::GET, LIST).header("cookie", cookie);
        let request = request.header("galley-workspace", &workspace);
        TestResponse::of(request.header("sec-fetch-site", "same-origin")).await.status.as_u16()
    };
    let cookie = signed_in.browser.cookie_header();
    for _ in 0..3 {
        assert_eq!(request(&other, &cookie).await, 200);
    }
    assert_eq!(signed_in.send(Method::POST, "/sign-out", None).await.status, 204);
    assert_eq!(request(&other, &cookie).await, 401);
}
