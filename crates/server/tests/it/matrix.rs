//! Every route of the OpenAPI document with every kind of client. A route without a row here fails.

use std::collections::BTreeSet;

use galley_domain::Timestamp;
use galley_server::ServerLimits;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use crate::query_count::without_background_statements;
use crate::response_validation::{DOCUMENT, resolved};
use crate::service::{ALL, Service, TestResponse, TestWorkspace, TokenKind};

/// The expected statuses of a route, apart from 401 and from 403 without the permission.
struct RouteExpectation {
    /// The permission that the route needs.
    permission: Option<&'static str>,
    /// The status for a token that may do it.
    success: u16,
    /// The status for a token with the route's permission only.
    alone: u16,
    /// The status for a token limited to a group that does not contain the resource.
    limited: u16,
    /// The status for an extension's token.
    extension: u16,
    /// The status for the Admin of another workspace.
    foreign_admin: u16,
}

#[expect(clippy::match_same_arms, reason = "each route has a row of its own")]
fn row(method: &str, path: &str) -> Option<RouteExpectation> {
    let row = |permission, success, alone, limited, extension, stranger| {
        Some(RouteExpectation {
            permission: Some(permission),
            success,
            alone,
            limited,
            extension,
            foreign_admin: stranger,
        })
    };
    match (method, path) {
        ("GET", "/content-pieces") => row("contentPieces:read", 200, 200, 404, 200, 404),
        ("PUT", "/content-pieces") => row("contentPieces:write", 204, 204, 404, 204, 404),
        ("POST", "/content-pieces") => row("contentPieces:write", 201, 201, 400, 201, 400),
        ("POST", "/content-pieces/batch") => row("contentPieces:write", 201, 201, 400, 201, 400),
        ("DELETE", "/content-pieces") => row("contentPieces:write", 204, 204, 404, 204, 404),
        ("GET", "/content-pieces/list") => row("contentPieces:read", 200, 200, 200, 200, 404),
        ("GET", "/content-pieces/sources") => row("contentPieces:read", 200, 200, 200, 200, 200),
        ("PUT", "/content-pieces/sources") => row("contentPieces:write", 204, 204, 400, 204, 400),
        ("GET", "/content-groups") => row("contentGroups:read", 200, 200, 404, 200, 404),
        ("PUT", "/content-groups") => row("contentGroups:write", 204, 204, 404, 204, 404),
        ("POST", "/content-groups") => row("contentGroups:write", 201, 201, 400, 201, 400),
        ("DELETE", "/content-groups") => row("contentGroups:write", 204, 204, 404, 204, 404),
        ("GET", "/content-groups/list") => row("contentGroups:read", 200, 200, 200, 200, 200),
        ("GET", "/tags") => row("tags:read", 200, 200, 200, 200, 404),
        ("PUT", "/tags") => row("tags:write", 204, 204, 204, 204, 404),
        ("POST", "/tags") => row("tags:write", 201, 201, 201, 201, 201),
        ("DELETE", "/tags") => row("tags:write", 204, 204, 204, 204, 404),
        ("GET", "/tags/list") => row("tags:read", 200, 200, 200, 200, 200),
        ("GET", "/variants") => row("variants:read", 200, 200, 200, 200, 404),
        ("PUT", "/variants") => row("variants:write", 204, 204, 204, 204, 404),
        ("POST", "/variants") => row("variants:write", 201, 201, 201, 201, 201),
        ("DELETE", "/variants") => row("variants:write", 204, 204, 204, 204, 404),
        ("GET", "/variants/list") => row("variants:read", 200, 200, 200, 200, 200),
        ("GET", "/roles") => row("roles:read", 200, 200, 200, 200, 404),
        ("PUT", "/roles") => row("roles:write", 204, 403, 403, 204, 404),
        ("POST", "/roles") => row("roles:write", 201, 403, 403, 201, 201),
        ("DELETE", "/roles") => row("roles:write", 204, 403, 403, 204, 404),
        ("GET", "/roles/list") => row("roles:read", 200, 200, 200, 200, 200),
        ("GET", "/tokens") => row("tokens:read", 200, 200, 200, 200, 404),
        ("PUT", "/tokens") => row("tokens:write", 204, 403, 403, 403, 404),
        ("POST", "/tokens") => row("tokens:write", 201, 403, 403, 403, 201),
        ("DELETE", "/tokens") => row("tokens:write", 204, 403, 403, 403, 404),
        ("GET", "/tokens/list") => row("tokens:read", 200, 200, 200, 200, 200),
        ("GET", "/profile") => row("profile:read", 200, 200, 200, 200, 200),
        ("PUT", "/profile") => row("profile:write", 204, 204, 204, 204, 204),
        ("GET", "/workspace") => row("workspace:read", 200, 200, 200, 200, 200),
        ("PUT", "/workspace") => row("workspace:write", 204, 204, 204, 204, 204),
        ("GET", "/workspace-memberships/list-members") => {
            row("workspaceMemberships:read", 200, 200, 200, 200, 200)
        }
        ("GET", "/workspace-memberships/list-workspaces") => Some(RouteExpectation {
            permission: None,
            success: 200,
            alone: 200,
            limited: 200,
            extension: 200,
            foreign_admin: 200,
        }),
        ("PUT", "/workspace-memberships") => {
            row("workspaceMemberships:write", 204, 403, 403, 204, 404)
        }
        ("POST", "/workspace-memberships") => {
            row("workspaceMemberships:write", 201, 403, 403, 403, 400)
        }
        ("DELETE", "/workspace-memberships") => {
            row("workspaceMemberships:write", 204, 403, 403, 204, 404)
        }
        ("GET", "/webhooks") => row("webhooks:read", 200, 200, 404, 200, 404),
        ("PUT", "/webhooks") => row("webhooks:write", 204, 403, 404, 204, 404),
        ("POST", "/webhooks") => row("webhooks:write", 201, 403, 403, 201, 400),
        ("DELETE", "/webhooks") => row("webhooks:write", 204, 204, 404, 204, 404),
        ("GET", "/webhooks/list") => row("webhooks:read", 200, 200, 200, 200, 200),
        ("POST", "/webhooks/test") => row("webhooks:write", 202, 202, 404, 202, 404),
        ("POST", "/webhooks/recover") => row("webhooks:write", 202, 403, 404, 202, 404),
        ("GET", "/webhooks/deliveries") => row("webhooks:read", 200, 200, 404, 200, 404),
        ("POST", "/webhooks/deliveries/retry") => row("webhooks:write", 202, 403, 404, 202, 404),
        ("GET", "/events") => row("webhooks:read", 200, 200, 200, 200, 200),
        _ => None,
    }
}

/// The routes that need no token, with a path of each and its status.
const OPEN: [(&str, &str, &str, u16); 11] = [
    ("GET", "/", "/", 200),
    ("GET", "/healthz", "/healthz", 200),
    ("GET", "/readyz", "/readyz", 200),
    ("GET", "/openapi.json", "/openapi.json", 200),
    ("GET", "/docs", "/docs", 200),
    ("GET", "/docs/{file}", "/docs/page.js", 200),
    ("GET", "/problems", "/problems", 200),
    ("GET", "/problems/{reason}", "/problems/validation", 200),
    ("GET", "/invite", "/invite?code=x", 404),
    ("POST", "/invite", "/invite", 415),
    ("POST", "/invites/accept", "/invites/accept", 415),
];

const EDITOR: &str = "contentPieces:write tags:write profile:write contentGroups:read \
    variants:read workspaceMemberships:read roles:read workspace:read";

const VIEWER: &str = "contentPieces:read contentGroups:read tags:read variants:read roles:read \
    workspaceMemberships:read workspace:read profile:write";

const RESOURCES: [&str; 10] = [
    "contentPieces",
    "contentGroups",
    "tags",
    "variants",
    "roles",
    "workspaceMemberships",
    "workspace",
    "webhooks",
    "tokens",
    "profile",
];

fn has(held: &str, permission: &str) -> bool {
    let write = permission.replace(":read", ":write");
    held.split(' ').any(|one| one == permission || one == write)
}

/// Returns all permissions that do not include `permission`.
fn all_but(permission: &str) -> String {
    let held = |resource: &&str| match permission.split_once(':').unwrap() {
        (lacks, "write") if lacks == *resource => Some(format!("{resource}:read")),
        (lacks, _) if lacks == *resource => None,
        _ => Some(format!("{resource}:write")),
    };
    RESOURCES.iter().filter_map(held).collect::<Vec<_>>().join(" ")
}

/// A request to a route.
#[derive(Debug, Clone)]
struct TargetRequest {
    path: String,
    body: Option<Value>,
}

/// Returns a request that the home workspace's Admin may make, on a new resource of its own.
async fn target(service: &Service, method: &str, route: &str, number: usize) -> TargetRequest {
    let name = format!("n{number}");
    let group = service.home.group.clone();
    let piece =
        json!({"title": name, "slug": name, "tags": [], "members": [], "contentGroupId": group});
    let webhook = json!({"url": "https://hooks.invalid/", "name": name, "event": "contentPieceAdded",
        "metadata": {"contentGroupId": group}});
    // The body that creates a resource of the route, and a change of it.
    let (make, change) = match route {
        "/content-pieces" => (piece, json!({"title": "changed"})),
        "/content-pieces/batch" => (json!({"pieces": [piece]}), Value::Null),
        "/content-groups" => (json!({"name": name, "ancestor": group}), json!({"name": "changed"})),
        "/tags" => (json!({"label": name}), json!({"label": "changed"})),
        "/variants" => (json!({"key": name, "label": name}), json!({"label": "changed"})),
        "/roles" => {
            let permissions = RESOURCES.map(|resource| format!("{resource}:write"));
            let make = json!({"name": name, "permissions": permissions});
            (make, json!({"description": "changed"}))
        }
        "/tokens" => {
            let make = json!({"name": name, "permissions": ["contentPieces:read"]});
            (make, json!({"name": "changed"}))
        }
        "/workspace-memberships" => {
            let [_, editor, viewer] = service.roles();
            let email = format!("{name}@example.org");
            (json!({"email": email, "name": name, "roleId": editor}), json!({"roleId": viewer}))
        }
        "/webhooks" => (webhook, json!({"name": "changed"})),
        "/profile" => (Value::Null, json!({"fullName": name})),
        "/workspace" => (Value::Null, json!({"name": name})),
        "/content-pieces/list" => {
            let variant = json!({"key": name, "label": name});
            let variant = service.create("/variants", &variant).await;
            let path = format!("{route}?contentGroupId={group}&variant={variant}");
            return TargetRequest { path, body: None };
        }
        "/content-pieces/sources" if method == "GET" => {
            return TargetRequest { path: format!("{route}?contentGroupId={group}"), body: None };
        }
        "/content-pieces/sources" => {
            let id = service.create("/content-pieces", &piece).await;
            let source = json!({"contentPieceId": id, "sourceHash": name, "importedHash": name});
            let body = json!({"sources": [source]});
            return TargetRequest { path: route.to_owned(), body: Some(body) };
        }
        "/webhooks/test" | "/webhooks/recover" | "/webhooks/deliveries" => {
            let id = service.create("/webhooks", &webhook).await;
            if method == "GET" {
                return TargetRequest { path: format!("{route}?webhookId={id}"), body: None };
            }
            let body = json!({"id": id, "since": "2026-11-20"});
            return TargetRequest { path: route.to_owned(), body: Some(body) };
        }
        "/webhooks/deliveries/retry" => {
            let id = service.create("/webhooks", &webhook).await;
            let sample = service.post("/webhooks/test", &json!({"id": id})).await;
            return TargetRequest {
                path: route.to_owned(),
                body: Some(json!({"id": sample.id()})),
            };
        }
        "/content-groups/list" => {
            return TargetRequest { path: format!("{route}?ancestor={group}"), body: None };
        }
        _ => return TargetRequest { path: route.to_owned(), body: None },
    };
    if method == "POST" {
        return TargetRequest { path: route.to_owned(), body: Some(make) };
    }
    if make.is_null() {
        let body = (method == "PUT").then_some(change);
        return TargetRequest { path: route.to_owned(), body };
    }
    let id = service.create(route, &make).await;
    if method != "PUT" {
        return TargetRequest { path: format!("{route}?id={id}"), body: None };
    }
    let mut body = change;
    body["id"] = json!(id);
    TargetRequest { path: route.to_owned(), body: Some(body) }
}

/// Replaces the ids in a text by ids of no resource.
fn absent(text: &str) -> String {
    let mut changed = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('_') {
        let id = rest
            .as_bytes()
            .get(at + 1..at + 27)
            .filter(|id| id.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase()));
        let (kept, after) = match id {
            Some(_) => (&rest[..=at], &rest[at + 27..]),
            None => (&rest[..=at], &rest[at + 1..]),
        };
        changed.push_str(kept);
        if id.is_some() {
            changed.push_str("00000000000000000000000000");
        }
        rest = after;
    }
    changed + rest
}

impl TargetRequest {
    fn absent(&self) -> Self {
        let body = self.body.as_ref().map(|body| {
            serde_json::from_str(&absent(&body.to_string())).expect("ids are plain texts")
        });
        Self { path: absent(&self.path), body }
    }

    async fn ask(&self, service: &Service, token: Option<&str>, method: &str) -> TestResponse {
        let mut request = service.request(method.parse().unwrap(), &self.path);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = &self.body {
            request = request.json(body);
        }
        TestResponse::of(request).await
    }
}

/// Returns the parts of a response by which a client could distinguish cases.
fn seen(answer: &TestResponse) -> (u16, HeaderMap, Value) {
    let (mut headers, mut body) = (answer.headers.clone(), answer.body.clone());
    headers.remove("date");
    headers.remove("x-request-id");
    body.as_object_mut().map(|body| body.remove("requestId"));
    (answer.status.as_u16(), headers, body)
}

/// Returns the ids in a text.
fn ids(text: &str) -> Vec<&str> {
    let is_id = |word: &&str| word.contains('_') && absent(word) != *word;
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(is_id)
        .collect()
}

/// The clients, by their tokens.
struct Callers {
    editor: String,
    viewer: String,
    limited: String,
    extension: String,
    other: String,
    /// Descriptions and tokens of clients that must get 401.
    unauthorized: Vec<(&'static str, Option<String>)>,
}

async fn callers(service: &Service) -> Callers {
    let [_, editor, viewer] = service.roles();
    let owner = service.home.made.user;
    let elsewhere = service.create("/content-groups", &json!({"name": "Elsewhere"})).await;
    let groups = [elsewhere.as_str()];
    let revoked = service.token("contentPieces:read", None).await;
    let path = format!("/tokens?id={}", service.token_id(&revoked).await);
    assert_eq!(service.delete(&path).await.status, 204);
    let over = TokenKind { expires_at: Some(Timestamp::from_ms(1)), ..ALL };
    let unauthorized = vec![
        ("no token", None),
        ("a malformed token", Some("galley_x".to_owned())),
        (
            "a token that nobody has",
            Some(service.environment.new_access_token().reveal().to_owned()),
        ),
        ("an expired token", Some(service.token_of(owner, over).await)),
        ("a revoked token", Some(revoked)),
    ];
    Callers {
        editor: service.person("editor", &editor).await.token,
        viewer: service.person("viewer", &viewer).await.token,
        limited: service.token("all", Some(&groups)).await,
        extension: service.token_of(owner, TokenKind { extension: Some("ext"), ..ALL }).await,
        other: service.other_workspace().await.token,
        unauthorized,
    }
}

/// Starts a service without a limit on invites.
async fn start(store: galley_testing::TestStore) -> Service {
    let limits = ServerLimits { invites_per_hour: 1_000_000, ..ServerLimits::default() };
    Service::start_with(store, limits).await
}

/// Returns the routes of the OpenAPI document.
fn routes() -> Vec<(String, String)> {
    let mut routes = Vec::new();
    for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
        for method in ["get", "put", "post", "delete"] {
            if item.get(method).is_some() {
                routes.push((method.to_uppercase(), path.clone()));
            }
        }
    }
    routes
}

#[on_both_engines]
async fn every_route_enforces_authentication_and_permissions(store: TestStore) {
    let service = start(store).await;
    let callers = callers(&service).await;
    let (mut number, mut cells) = (0, 0);
    for (method, route) in &routes() {
        let open = OPEN
            .iter()
            .find(|(verb, open, ..)| (verb, open) == (&method.as_str(), &route.as_str()));
        if let Some((_, _, path, status)) = open {
            for (who, token) in &callers.unauthorized {
                let target = TargetRequest { path: (*path).to_owned(), body: None };
                let answer = target.ask(&service, token.as_deref(), method).await;
                assert_eq!(answer.status, *status, "{method} {route} by {who}");
                cells += 1;
            }
            continue;
        }
        let row = row(method, route)
            .unwrap_or_else(|| panic!("{method} {route} has no row in this test"));
        // Rejected requests must leave this resource unchanged.
        number += 1;
        let kept = target(&service, method, route, number).await;
        for (who, token) in &callers.unauthorized {
            let answer = kept.ask(&service, token.as_deref(), method).await;
            assert_eq!(answer.status, 401, "{method} {route} by {who}: {answer:?}");
            assert!(answer.header("www-authenticate").starts_with("Bearer"), "{answer:?}");
            cells += 1;
        }
        let mut expected = Vec::new();
        expected.push(("an Admin", service.home.token.clone(), row.success));
        let by_permission = |held: &str| match row.permission {
            Some(permission) if !has(held, permission) => 403,
            _ => row.success,
        };
        expected.push(("an Editor", callers.editor.clone(), by_permission(EDITOR)));
        expected.push(("a Viewer", callers.viewer.clone(), by_permission(VIEWER)));
        if let Some(permission) = row.permission {
            let fewer = service.token(&all_but(permission), None).await;
            expected.push(("a token with all other permissions", fewer, 403));
            let alone = service.token(permission, None).await;
            expected.push(("a token with this permission alone", alone, row.alone));
        }
        expected.push((
            "a token of no permissions",
            service.token("", None).await,
            match row.permission {
                Some(_) => 403,
                None => row.success,
            },
        ));
        expected.push(("a limited token", callers.limited.clone(), row.limited));
        expected.push(("an extension's token", callers.extension.clone(), row.extension));
        for (who, token, status) in expected {
            let fresh = if status < 400 && method != "GET" {
                number += 1;
                target(&service, method, route, number).await
            } else {
                kept.clone()
            };
            let answer = fresh.ask(&service, Some(&token), method).await;
            assert_eq!(answer.status, status, "{method} {route} by {who}: {answer:?}");
            if status == 403 && answer.body["reason"] == "insufficient_permissions" {
                let detail = answer.body["detail"].as_str().unwrap();
                assert!(
                    detail.contains(row.permission.unwrap()) || who.contains("alone"),
                    "{method} {route} by {who}: {detail}"
                );
            }
            if status == 404 {
                let truly = fresh.absent().ask(&service, Some(&token), method).await;
                assert_eq!(seen(&answer), seen(&truly), "{method} {route} by {who}");
            }
            cells += 1;
        }

        // Another workspace's Admin gets the same response as for an absent resource.
        let answer = kept.ask(&service, Some(&callers.other), method).await;
        assert_eq!(answer.status, row.foreign_admin, "{method} {route} by a stranger: {answer:?}");
        if row.foreign_admin >= 400 || method == "GET" {
            let truly = kept.absent().ask(&service, Some(&callers.other), method).await;
            assert_eq!(seen(&answer), seen(&truly), "{method} {route} by a stranger");
            let home = kept.absent().ask(&service, Some(&service.home.token), method).await;
            if row.foreign_admin >= 400 {
                assert_eq!(seen(&home), seen(&truly), "{method} {route} at home");
            }
        }
        let everything = service.workspace_state().await.to_string();
        let told = answer.body.to_string();
        let hers: Vec<_> = ids(&told);
        let leaked = hers.iter().find(|id| !id.starts_with("usr_") && everything.contains(**id));
        assert_eq!(leaked, None, "{method} {route} shows a stranger what is not theirs: {told}");
        cells += 1;

        // The rejected requests have changed nothing.
        let answer = kept.ask(&service, Some(&service.home.token), method).await;
        assert_eq!(answer.status, row.success, "{method} {route} in the end: {answer:?}");
    }
    assert!(cells > 500, "{cells}");
}

#[test]
fn ids_are_distinguished_from_words() {
    let id = "cp_01k00000000000000000000000";
    assert_eq!(absent(&format!("?id={id}&x=a_b")), "?id=cp_00000000000000000000000000&x=a_b");
    assert_eq!(ids(&format!("{{\"id\":\"{id}\",\"not_found\":1}}")), [id]);
}

#[on_both_engines]
async fn foreign_resources_are_indistinguishable_from_absent_ones(store: TestStore) {
    let service = start(store).await;
    let other = service.other_workspace().await;
    let make = async |path: &str, body: Value| service.create_as(&other.token, path, &body).await;
    let piece = make("/content-pieces", crate::service::piece_in(&other.group, "theirs")).await;
    let tag = make("/tags", json!({"label": "theirs"})).await;
    let variant = make("/variants", json!({"key": "theirs", "label": "theirs"})).await;
    let role = make("/roles", json!({"name": "theirs", "permissions": []})).await;
    let token = make("/tokens", json!({"name": "theirs", "permissions": []})).await;
    let webhook = make(
        "/webhooks",
        json!({"url": "https://hooks.invalid/", "name": "theirs",
        "event": "memberAdded"}),
    )
    .await;
    let body = json!({"id": webhook});
    let sample = service.send_as(&other.token, Method::POST, "/webhooks/test", Some(&body)).await;
    let sample = sample.id();
    let (group, member) = (other.group.clone(), other.made.member.to_string());
    let list = "/content-pieces/list?perPage=1&sort=title";
    make("/content-pieces", crate::service::piece_in(&other.group, "next")).await;
    let link = service.send_as(&other.token, Method::GET, list, None).await;
    let link = link.header("link").to_owned();
    let next = link.split(['<', '>']).nth(1).unwrap();

    let mine = service.create("/content-pieces", &service.piece("mine")).await;
    let my_member = service.home.made.member.to_string();
    let my_webhook = service
        .create(
            "/webhooks",
            &json!({"url": "https://hooks.invalid/",
        "name": "mine", "event": "memberAdded"}),
        )
        .await;
    let my_variant = service.create("/variants", &json!({"key": "mine", "label": "mine"})).await;
    let my_token = service.create("/tokens", &json!({"name": "mine", "permissions": []})).await;
    let my_group = service.home.group.clone();
    let deliveries = format!("/webhooks/deliveries?webhookId={webhook}");
    let delivered = service.send_as(&other.token, Method::GET, &deliveries, None).await;
    let event = delivered.body[0]["payload"]["id"].as_str().map(str::to_owned);
    let event = event.or_else(|| delivered.body[0]["eventId"].as_str().map(str::to_owned));
    let event = event.unwrap_or_else(|| panic!("{delivered:?}"));
    let get = |path: String| ("GET", TargetRequest { path, body: None });
    let delete = |path: String| ("DELETE", TargetRequest { path, body: None });
    let send = |method, path: &str, body| {
        (method, TargetRequest { path: path.to_owned(), body: Some(body) })
    };
    let mut base = service.piece("new");
    let mut with = |name: &str, value: Value| {
        let mut body = base.clone();
        body[name] = value;
        base["slug"] = json!("new");
        send("POST", "/content-pieces", body)
    };
    let batch = |name: &str, value: Value| {
        let mut second = service.piece("second");
        second[name] = value;
        send("POST", "/content-pieces/batch", json!({"pieces": [service.piece("first"), second]}))
    };
    let shown = |id: &str| json!({"id": id, "name": "as a GET gave it"});
    let my_piece = service.create("/content-pieces", &service.piece("mine")).await;
    let source = |piece: &str, variant: Option<&str>| {
        let source = json!({"contentPieceId": piece, "variant": variant, "sourceHash": "a", "importedHash": "b"});
        send("PUT", "/content-pieces/sources", json!({"sources": [source]}))
    };
    let requests = vec![
        source(&piece, None),
        source(&my_piece, Some(&variant)),
        batch("contentGroupId", json!(group)),
        batch("tags", json!([tag])),
        batch("tags", json!([shown(&tag)])),
        batch("members", json!([member])),
        batch("members", json!([shown(&member)])),
        batch("referenceId", json!(piece)),
        with("tags", json!([shown(&tag)])),
        with("members", json!([shown(&member)])),
        send("POST", "/content-pieces?dryRun=true", {
            let mut body = service.piece("tried");
            body["tags"] = json!([tag]);
            body
        }),
        send("PUT", "/content-pieces", json!({"id": mine, "tags": [shown(&tag)]})),
        send("PUT", "/content-pieces", json!({"id": mine, "members": [member]})),
        send("PUT", "/content-pieces?dryRun=true", json!({"id": piece, "title": "x"})),
        send("PUT", "/content-pieces", json!({"id": mine, "variant": my_variant, "tags": [tag]})),
        send(
            "PUT",
            "/content-pieces",
            json!({"id": mine, "variant": my_variant, "members": [member]}),
        ),
        send("PUT", "/content-pieces", json!({"id": mine, "variant": "theirs", "title": "x"})),
        send("PUT", "/tokens", json!({"id": my_token, "contentGroupIds": [group]})),
        send("PUT", "/tokens", json!({"id": my_token, "contentGroupIds": [shown(&group)]})),
        send(
            "POST",
            "/tokens",
            json!({"name": "x", "permissions": [], "contentGroupIds": [shown(&group)]}),
        ),
        get(format!("/content-pieces/list?contentGroupId={my_group},{group}")),
        get(format!("/webhooks/deliveries?eventId={event}")),
        get(format!("/content-pieces?id={piece}&content=true")),
        get(format!("/content-pieces?id={mine}&variant={variant}")),
        get(format!("/content-pieces/list?variant={variant}")),
        get(format!("/content-pieces/list?tagId={tag}")),
        get(format!("/content-pieces/sources?contentGroupId={group}")),
        get(format!("/content-pieces/list?contentGroupId={group}")),
        get(format!("/content-pieces/list?contentGroupId={group}&subtree=true")),
        get(format!("/content-groups/list?ancestor={group}")),
        get(format!("/content-groups?id={group}&subtree=true")),
        get(format!("/tags?id={tag}")),
        get(format!("/variants?id={variant}")),
        get(format!("/roles?id={role}")),
        get(format!("/tokens?id={token}")),
        get(format!("/webhooks?id={webhook}")),
        with("contentGroupId", json!(group)),
        with("tags", json!([tag])),
        with("members", json!([member])),
        with("referenceId", json!(piece)),
        send("PUT", "/content-pieces", json!({"id": piece, "title": "x"})),
        send("PUT", "/content-pieces", json!({"id": mine, "tags": [tag]})),
        send("PUT", "/content-pieces", json!({"id": mine, "members": [{"id": member}]})),
        send("PUT", "/content-pieces", json!({"id": mine, "contentGroupId": group})),
        send("PUT", "/content-pieces", json!({"id": mine, "referenceId": piece})),
        send("PUT", "/content-pieces", json!({"id": mine, "variant": variant, "title": "x"})),
        send("POST", "/content-groups", json!({"name": "x", "ancestor": group})),
        send("PUT", "/content-groups", json!({"id": service.home.group, "ancestor": group})),
        send("PUT", "/content-groups", json!({"id": group, "name": "x"})),
        send("PUT", "/tags", json!({"id": tag, "label": "x"})),
        send("PUT", "/variants", json!({"id": variant, "label": "x"})),
        send("PUT", "/roles", json!({"id": role, "name": "x"})),
        send("PUT", "/tokens", json!({"id": token, "name": "x"})),
        send(
            "POST",
            "/tokens",
            json!({"name": "x", "permissions": [], "contentGroupIds": [group]}),
        ),
        send("PUT", "/webhooks", json!({"id": webhook, "name": "x"})),
        send(
            "POST",
            "/webhooks",
            json!({"url": "https://hooks.invalid/", "name": "x",
            "event": "contentPieceAdded", "metadata": {"contentGroupId": group}}),
        ),
        send("PUT", "/webhooks", json!({"id": my_webhook, "metadata": {"contentGroupId": group}})),
        send(
            "POST",
            "/workspace-memberships",
            json!({"email": "x@example.org", "name": "x", "roleId": role}),
        ),
        send("PUT", "/workspace-memberships", json!({"id": member, "roleId": service.roles()[2]})),
        send("PUT", "/workspace-memberships", json!({"id": my_member, "roleId": role})),
        delete(format!("/content-pieces?id={piece}")),
        delete(format!("/content-groups?id={group}&recursive=true")),
        delete(format!("/tags?id={tag}")),
        delete(format!("/variants?id={variant}")),
        delete(format!("/roles?id={role}")),
        delete(format!("/tokens?id={token}")),
        delete(format!("/workspace-memberships?id={member}")),
        get(format!("/webhooks/deliveries?webhookId={webhook}")),
        send("POST", "/webhooks/test", json!({"id": webhook})),
        send("POST", "/webhooks/recover", json!({"id": webhook, "since": "2026-11-20"})),
        send("POST", "/webhooks/deliveries/retry", json!({"id": sample})),
        delete(format!("/webhooks?id={webhook}")),
    ];
    let keep = ids_of_home(&service, &[&mine, &my_member, &my_webhook, &my_variant, &my_token]);
    // The requests cover every parameter and field that may contain an id.
    let tried: BTreeSet<String> =
        requests.iter().flat_map(|(method, target)| target.places(method, &keep)).collect();
    let all = places_of_ids(&DOCUMENT);
    assert_eq!(all.difference(&tried).collect::<Vec<_>>(), Vec::<&String>::new(), "{tried:?}");
    let before = service.workspace_state().await;
    for (method, target) in requests {
        let absent = target.absent_but(&keep);
        let work = || without_background_statements(service.statements.take());
        work();
        let answer = target.ask(&service, Some(&service.home.token), method).await;
        let foreign = work();
        let truly = absent.ask(&service, Some(&service.home.token), method).await;
        // Both take the same statements, so that their duration is the same, too.
        assert_eq!(foreign, work(), "{method} {target:?} against {absent:?}");
        assert_eq!(seen(&answer), seen(&truly), "{method} {target:?} against {absent:?}");
        // A list of own and foreign groups equals the list of own groups.
        let beside = target.path.contains(&format!("{my_group},"));
        let refused = answer.status.is_client_error() || answer.body == json!([]);
        assert!(refused || beside, "{method} {target:?}: {answer:?}");
    }
    for (list, last) in [
        ("/content-groups/list", &group),
        ("/tags/list", &tag),
        ("/variants/list", &variant),
        ("/roles/list", &role),
        ("/tokens/list", &token),
        ("/webhooks/list", &webhook),
        ("/webhooks/deliveries", &sample),
        ("/workspace-memberships/list-members", &member),
        ("/workspace-memberships/list-workspaces", &other.made.workspace.to_string()),
    ] {
        // A foreign id works as a position like an adjacent id without a resource.
        let beside =
            format!("{}{}", &last[..last.len() - 1], if last.ends_with('0') { '1' } else { '0' });
        let ask = async |last: &str| seen(&service.get(&format!("{list}?lastId={last}")).await);
        assert_eq!(ask(last).await, ask(&beside).await, "{list}");
    }
    assert_eq!(service.workspace_state().await, before);
    // A cursor contains a position, but no workspace.
    let page = service.get(next).await;
    assert!(page.column("slug").iter().all(|slug| slug == "mine"), "{page:?}");
}

/// Returns a value that a client might try in a field that it may not set.
fn tampered_value(name: &str, schema: &Value, other: &TestWorkspace) -> Value {
    let is = |kind: &str| [&schema["type"], &schema["type"][0]].contains(&&json!(kind));
    match name {
        "permissions" => json!(RESOURCES.map(|resource| format!("{resource}:write"))),
        "workspaceId" => json!(other.made.workspace.to_string()),
        "contentGroupId" | "id" | "ancestor" => json!(other.group),
        name if name.ends_with("Id") => json!(other.made.member.to_string()),
        _ if is("boolean") => json!(true),
        _ if is("integer") || is("number") => json!(987_654_321),
        _ if is("array") => json!([other.group]),
        _ if schema["format"] == "date-time" => json!("1999-12-31T23:59:59.999Z"),
        _ => json!("a value wished for"),
    }
}

/// Returns the names of a schema's own fields.
fn names_of(schema: &'static Value) -> BTreeSet<&'static str> {
    let schema = resolved(schema);
    let forms = schema["anyOf"].as_array().into_iter().flatten();
    let fields = schema["properties"].as_object().into_iter().flatten();
    forms.flat_map(names_of).chain(fields.map(|(name, _)| name.as_str())).collect()
}

/// Returns a response without the parts that differ between requests.
fn without_volatile_fields(answer: &TestResponse, name: &str) -> (u16, Value) {
    fn strip(value: &mut Value) {
        for name in ["createdAt", "updatedAt", "order", "token", "requestId"] {
            value.as_object_mut().map(|fields| fields.remove(name));
        }
        match value {
            Value::Array(items) => items.iter_mut().for_each(strip),
            Value::Object(fields) => fields.values_mut().for_each(strip),
            _ => {}
        }
    }
    let text = absent(&answer.body.to_string()).replace(name, "its name");
    let mut body = serde_json::from_str(&text).unwrap();
    strip(&mut body);
    (answer.status.as_u16(), body)
}

#[on_both_engines]
async fn fields_outside_a_requests_schema_are_ignored(store: TestStore) {
    let service = start(store).await;
    let other = service.other_workspace().await;
    let seen_by_other = async || {
        let list = "/content-groups/list?perPage=100&subtree=true";
        service.send_as(&other.token, Method::GET, list, None).await.body
    };
    let before = seen_by_other().await;
    let schemas = DOCUMENT["components"]["schemas"].as_object().unwrap();
    let fields =
        || schemas.values().filter_map(|schema| schema["properties"].as_object()).flatten();
    let (mut number, mut tried) = (1_000, 0);
    for (method, route) in &routes() {
        if OPEN.iter().any(|(verb, open, ..)| (verb, open) == (&method.as_str(), &route.as_str())) {
            continue;
        }
        let mut answers = Vec::new();
        for wishes in [false, true] {
            number += 1;
            let mut target = target(&service, method, route, number).await;
            let Some(body) = &mut target.body else { continue };
            let operation = &DOCUMENT["paths"][route][method.to_lowercase()];
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let (place, own) = match route.as_str() {
                // In a batch, each piece has its own fields.
                "/content-pieces/batch" => {
                    let piece = &resolved(schema)["properties"]["pieces"]["items"];
                    (&mut body["pieces"][0], names_of(piece))
                }
                "/content-pieces/sources" => {
                    let source = &resolved(schema)["properties"]["sources"]["items"];
                    (&mut body["sources"][0], names_of(source))
                }
                _ => (body, names_of(schema)),
            };
            assert!(!own.is_empty(), "{method} {route}");
            for (name, field) in fields().filter(|(name, _)| wishes && !own.contains(name.as_str()))
            {
                place[name.as_str()] = tampered_value(name, resolved(field), &other);
                tried += 1;
            }
            let send = async |body: &Option<Value>| {
                let request = service.request(method.parse().unwrap(), &target.path);
                let request = request.bearer_auth(&service.home.token).json(body);
                TestResponse::of(request.header("prefer", "return=representation")).await
            };
            let mut answer = send(&target.body).await;
            if answer.body["reason"] == "immutable_field" {
                // A field that cannot be changed is rejected by name, and belongs to this
                // resource.
                assert_eq!((method.as_str(), route.as_str()), ("PUT", "/webhooks"), "{answer:?}");
                answer.assert_problem(400, "immutable_field", &["secret"]);
                let mut body = target.body.clone();
                body.as_mut().unwrap().as_object_mut().unwrap().remove("secret");
                answer = send(&body).await;
            }
            assert!(answer.status.is_success(), "{method} {target:?}: {answer:?}");
            answers.push(without_volatile_fields(&answer, &format!("n{number}")));
        }
        if let [without, with] = &answers[..] {
            assert_eq!(without, with, "{method} {route}");
        }
    }
    assert!(tried > 1_000, "{tried}");
    let everything = service.workspace_state().await.to_string();
    let members = other.made.member.to_string();
    for sign in ["a value wished for", "987654321", "1999-12-31", &other.group, &members] {
        assert!(!everything.contains(sign), "{sign} is in {everything}");
    }
    assert_eq!(seen_by_other().await, before);
}

/// Returns true if a parameter or field of this name may contain an id.
fn names_an_id(name: &str) -> bool {
    let is_one = ["id", "ancestor", "variant", "tags", "members"].contains(&name)
        || name.ends_with("Id")
        || name.ends_with("Ids");
    // A list position is not a reference to a resource.
    is_one && name != "lastId"
}

/// Returns every parameter and field of the OpenAPI document that may refer to an existing
/// resource.
fn places_of_ids(document: &Value) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let method = method.to_uppercase();
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap_or_default();
                if parameter["in"] == "query" && names_an_id(name) {
                    places.insert(format!("{method} {path}?{name}"));
                }
            }
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            let mut fields = Vec::new();
            fields_of(document, body, "", &mut fields);
            let last = |field: &String| {
                let names = field.trim_end_matches("[]").rsplit('.');
                names.into_iter().next().is_some_and(names_an_id)
            };
            places.extend(
                fields
                    .iter()
                    .filter(|field| last(field))
                    .map(|field| format!("{method} {path} {field}")),
            );
        }
    }
    places
}

/// Collects the paths of a schema's texts, such as `pieces[].tags[].id`.
fn fields_of(document: &Value, schema: &Value, at: &str, found: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let schema = document.pointer(name.trim_start_matches('#')).unwrap();
        return fields_of(document, schema, at, found);
    }
    for form in schema["anyOf"].as_array().into_iter().flatten() {
        // Beside properties, `anyOf` expresses conditions.
        if schema.get("properties").is_none() {
            fields_of(document, form, at, found);
        }
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let dot = if at.is_empty() { "" } else { "." };
        fields_of(document, field, &format!("{at}{dot}{name}"), found);
    }
    if let Some(items) = schema.get("items") {
        fields_of(document, items, &format!("{at}[]"), found);
    }
    let types = [&schema["type"], &schema["type"][0]];
    if types.contains(&&json!("string")) && !at.is_empty() {
        found.push(at.to_owned());
    }
}

/// Collects the paths of a body's texts.
fn texts_of(value: &Value, at: &str, found: &mut Vec<(String, String)>) {
    let dot = if at.is_empty() { "" } else { "." };
    match value {
        Value::String(text) => found.push((at.to_owned(), text.clone())),
        Value::Array(items) => {
            for item in items {
                texts_of(item, &format!("{at}[]"), found);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                texts_of(field, &format!("{at}{dot}{name}"), found);
            }
        }
        _ => {}
    }
}

fn ids_of_home(service: &Service, more: &[&str]) -> Vec<String> {
    let roles = service.roles();
    let mut ids: Vec<String> = more.iter().map(|id| (*id).to_owned()).collect();
    ids.extend(roles);
    ids.push(service.home.group.clone());
    ids
}

impl TargetRequest {
    /// Returns the places of ids that do not belong to `home`, in the notation of
    /// [`places_of_ids`].
    fn places(&self, method: &str, home: &[String]) -> Vec<String> {
        let is_foreign = |text: &str| {
            text.split(',')
                .any(|id| id == "theirs" || (absent(id) != id && !home.iter().any(|own| own == id)))
        };
        let (path, query) = self.path.split_once('?').unwrap_or((&self.path, ""));
        let parameters = query.split('&').filter_map(|parameter| parameter.split_once('='));
        let parameters = parameters
            .filter(|(_, value)| is_foreign(value))
            .map(|(name, _)| format!("{method} {path}?{name}"));
        let mut texts = Vec::new();
        self.body.iter().for_each(|body| texts_of(body, "", &mut texts));
        let fields = texts.iter().filter(|(_, text)| is_foreign(text));
        parameters.chain(fields.map(|(at, _)| format!("{method} {path} {at}"))).collect()
    }

    /// Returns the same request with absent ids in place of all except `kept`.
    fn absent_but(&self, kept: &[String]) -> Self {
        let changed = |text: &str| {
            let mut text = text.to_owned();
            for (number, id) in kept.iter().enumerate() {
                text = text.replace(id, &format!("kept{number}kept"));
            }
            let mut text = absent(&text);
            for (number, id) in kept.iter().enumerate() {
                text = text.replace(&format!("kept{number}kept"), id);
            }
            text
        };
        let body = self.body.as_ref().map(|body| {
            serde_json::from_str(&changed(&body.to_string())).expect("ids are plain texts")
        });
        Self { path: changed(&self.path), body }
    }
}
