//! A request for each route, and the parts of a response by which clients could distinguish cases.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use galley_server::ServerLimits;
use galley_testing::TestStore;
use reqwest::RequestBuilder;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use crate::response_validation::DOCUMENT;
use crate::service::{Service, TestResponse};

/// The routes that need no token, with a path of each and its status.
pub(super) const OPEN: [(&str, &str, &str, u16); 22] = [
    ("GET", "/", "/", 200),
    ("GET", "/healthz", "/healthz", 200),
    ("GET", "/readyz", "/readyz", 200),
    ("GET", "/openapi.json", "/openapi.json", 200),
    ("GET", "/console", "/console", 200),
    ("GET", "/console/assets/{file}", "/console/assets/none.js", 404),
    ("GET", "/a/{key}/{filename}", "/a/00000000000000000000000000/none.png", 404),
    ("OPTIONS", "/assets/uploads", "/assets/uploads", 200),
    ("GET", "/docs", "/docs", 200),
    ("GET", "/docs/{file}", "/docs/page.js", 200),
    ("GET", "/problems", "/problems", 200),
    ("GET", "/problems/{reason}", "/problems/validation", 200),
    ("GET", "/invite", "/invite?code=x", 404),
    ("POST", "/invite", "/invite", 415),
    ("POST", "/invites/accept", "/invites/accept", 415),
    ("GET", "/sign-in", "/sign-in", 200),
    ("POST", "/sign-in", "/sign-in", 415),
    ("GET", "/sign-in/link", "/sign-in/link?code=x", 410),
    ("POST", "/sign-in/link", "/sign-in/link", 415),
    ("POST", "/sign-in/code", "/sign-in/code", 415),
    ("POST", "/sign-in/provider", "/sign-in/provider", 415),
    ("GET", "/sign-in/callback", "/sign-in/callback?state=x", 404),
];

/// The routes that need a session.
pub(super) const OF_SESSIONS: [(&str, &str); 3] =
    [("GET", "/profile/sessions"), ("DELETE", "/profile/sessions"), ("POST", "/sign-out")];

pub(super) const RESOURCES: [&str; 14] = [
    "contentPieces",
    "contentGroups",
    "tags",
    "variants",
    "assets",
    "roles",
    "workspaceMemberships",
    "workspace",
    "webhooks",
    "tokens",
    "profile",
    "trash",
    "publishing",
    "audit",
];

/// Starts a service without a limit on invites.
pub(super) async fn start(store: TestStore) -> Service {
    let limits = ServerLimits { invites_per_hour: 1_000_000, ..ServerLimits::default() };
    Service::start_with(store, limits).await
}

/// Returns the routes of the OpenAPI document.
pub(super) fn routes() -> Vec<(String, String)> {
    let mut routes = Vec::new();
    for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
        for method in ["get", "options", "put", "post", "patch", "delete"] {
            if item.get(method).is_some() {
                routes.push((method.to_uppercase(), path.clone()));
            }
        }
    }
    routes
}

#[derive(Debug, Clone)]
pub(super) struct TargetRequest {
    pub(super) path: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Option<Value>,
}

/// Returns a request that the home workspace's Admin may make, on a new resource of its own.
pub(super) async fn target(
    service: &Service,
    method: &str,
    route: &str,
    number: usize,
) -> TargetRequest {
    let name = format!("n{number}");
    let Some(bodies) = bodies(service, route, &name) else {
        return target_on_other_resource(service, method, route, &name).await;
    };
    match (method, bodies) {
        ("POST", Bodies { create, .. }) => {
            TargetRequest::with_body(creation_path(service, route, &name), create)
        }
        ("PUT", Bodies { create: Value::Null, update }) => TargetRequest::with_body(route, update),
        (_, Bodies { create: Value::Null, .. }) => TargetRequest::without_body(route),
        (_, Bodies { create, mut update }) => {
            let id = service.create(&creation_path(service, route, &name), &create).await;
            if method != "PUT" {
                return TargetRequest::without_body(format!("{route}?id={id}"));
            }
            update["id"] = json!(id);
            TargetRequest::with_body(route, update)
        }
    }
}

/// Returns the path of a request that creates a resource. The fields of an asset are in the query.
fn creation_path(service: &Service, route: &str, name: &str) -> String {
    let group = &service.home.group;
    match route {
        "/assets" => format!("/assets?filename={name}.txt&contentGroupId={group}"),
        other => other.to_owned(),
    }
}

fn webhook(group: &str, name: &str) -> Value {
    json!({"url": "https://hooks.invalid/", "name": name, "event": "contentPieceAdded",
        "metadata": {"contentGroupId": group}})
}

/// The body that creates a resource of a route, or null, and a change of it.
struct Bodies {
    create: Value,
    update: Value,
}

fn bodies(service: &Service, route: &str, name: &str) -> Option<Bodies> {
    let group = &service.home.group;
    let piece =
        json!({"title": name, "slug": name, "tags": [], "members": [], "contentGroupId": group});
    let [_, editor, viewer] = service.roles();
    let (create, update) = match route {
        "/content-pieces" => (piece, json!({"title": "changed"})),
        "/content-pieces/batch" => (json!({"pieces": [piece]}), Value::Null),
        "/content-pieces/convert" => (json!({"content": "<p>x</p>"}), Value::Null),
        "/imports" => {
            let files = json!([{"name": format!("{name}.md"), "content": "Text"}]);
            (json!({"contentGroupId": group, "files": files, "publish": false}), Value::Null)
        }
        "/content-groups" => (json!({"name": name, "ancestor": group}), json!({"name": "changed"})),
        "/tags" => (json!({"label": name}), json!({"label": "changed"})),
        "/variants" => (json!({"key": name, "label": name}), json!({"label": "changed"})),
        "/assets" => (json!({"content": name}), json!({"alt": "changed"})),
        "/roles" => {
            let permissions = RESOURCES.map(|resource| format!("{resource}:write"));
            let create = json!({"name": name, "permissions": permissions});
            (create, json!({"description": "changed"}))
        }
        "/tokens" => {
            let create = json!({"name": name, "permissions": ["contentPieces:read"]});
            (create, json!({"name": "changed"}))
        }
        "/workspace-memberships" => {
            let email = format!("{name}@example.org");
            (json!({"email": email, "name": name, "roleId": editor}), json!({"roleId": viewer}))
        }
        "/webhooks" => (webhook(group, name), json!({"name": "changed"})),
        "/profile" => (Value::Null, json!({"fullName": name})),
        "/workspace" => (Value::Null, json!({"name": name})),
        _ => return None,
    };
    Some(Bodies { create, update })
}

/// Returns a request to a route that refers to resources of other routes.
async fn target_on_other_resource(
    service: &Service,
    method: &str,
    route: &str,
    name: &str,
) -> TargetRequest {
    let group = &service.home.group;
    let webhook = async || service.create("/webhooks", &webhook(group, name)).await;
    match (method, route) {
        (_, "/content-pieces/list") => {
            let variant = json!({"key": name, "label": name});
            let variant = service.create("/variants", &variant).await;
            let query = format!("contentGroupId={group}&variant={variant}");
            TargetRequest::without_body(format!("{route}?{query}"))
        }
        (_, "/content-pieces/search") => {
            let variant = json!({"key": name, "label": name});
            let variant = service.create("/variants", &variant).await;
            let query = format!("query={name}&contentGroupId={group}&variant={variant}");
            TargetRequest::without_body(format!("{route}?{query}"))
        }
        (
            _,
            "/content-pieces/revisions"
            | "/content-pieces/revision"
            | "/content-pieces/diff"
            | "/content-pieces/restore",
        ) => target_on_revision(service, method, route, name).await,
        (
            _,
            "/content-pieces/publish" | "/content-pieces/unpublish" | "/content-pieces/preview",
        ) => {
            let piece = bodies(service, "/content-pieces", name).unwrap().create;
            let id = service.create("/content-pieces", &piece).await;
            TargetRequest::with_body(route, json!({"id": id}))
        }
        (_, "/content-pieces/undelete") => {
            let piece = bodies(service, "/content-pieces", name).unwrap().create;
            let id = service.create("/content-pieces", &piece).await;
            let deleted = service.delete(&format!("/content-pieces?id={id}")).await;
            assert_eq!(deleted.status, 204);
            TargetRequest::with_body(route, json!({"id": id}))
        }
        ("GET", "/content-pieces/sources") => {
            TargetRequest::without_body(format!("{route}?contentGroupId={group}"))
        }
        (_, "/content-pieces/sources") => {
            let piece = bodies(service, "/content-pieces", name).unwrap().create;
            let id = service.create("/content-pieces", &piece).await;
            let source = json!({"contentPieceId": id, "sourceHash": name, "importedHash": name});
            TargetRequest::with_body(route, json!({"sources": [source]}))
        }
        ("GET", "/webhooks/deliveries") => {
            TargetRequest::without_body(format!("{route}?webhookId={}", webhook().await))
        }
        (_, "/webhooks/test" | "/webhooks/recover") => {
            TargetRequest::with_body(route, json!({"id": webhook().await, "since": "2026-11-20"}))
        }
        (_, "/webhooks/rotate-secret") => {
            TargetRequest::with_body(route, json!({"id": webhook().await, "secret": name}))
        }
        (_, "/webhooks/deliveries/retry") => {
            let sample = service.post("/webhooks/test", &json!({"id": webhook().await})).await;
            TargetRequest::with_body(route, json!({"id": sample.id()}))
        }
        (_, "/content-groups/schema" | "/content-groups/schema/violations") => {
            TargetRequest::without_body(format!("{route}?id={group}"))
        }
        ("GET", "/assets/used-by") => {
            let path = creation_path(service, "/assets", name);
            let id = service.create(&path, &json!({"content": name})).await;
            TargetRequest::without_body(format!("{route}?id={id}"))
        }
        (_, "/assets/uploads") => target_on_upload(service, method, route, name).await,
        (_, "/content-groups/list") => {
            TargetRequest::without_body(format!("{route}?ancestor={group}"))
        }
        (_, "/workspace-memberships/invite-link" | "/workspace-memberships/resend-invite") => {
            let invite = bodies(service, "/workspace-memberships", name).unwrap().create;
            let id = service.create("/workspace-memberships", &invite).await;
            TargetRequest::with_body(route, json!({"id": id}))
        }
        ("DELETE", "/profile/sessions") => TargetRequest::without_body(format!("{route}?all=true")),
        _ => TargetRequest::without_body(route),
    }
}

/// Returns a request to a resumable upload of five bytes.
async fn target_on_upload(
    service: &Service,
    method: &str,
    route: &str,
    name: &str,
) -> TargetRequest {
    let [filename, group] = [name, &service.home.group].map(|text| BASE64_STANDARD.encode(text));
    let metadata = format!("filename {filename},contentGroupId {group}");
    let create = TargetRequest {
        headers: vec![
            ("tus-resumable", "1.0.0".to_owned()),
            ("upload-length", "5".to_owned()),
            ("upload-metadata", metadata),
        ],
        ..TargetRequest::without_body(route)
    };
    if method == "POST" {
        return create;
    }
    let id = create.ask(service, Some(&service.home.token), "POST").await.id();
    let target = TargetRequest::without_body(format!("{route}?id={id}"));
    let body = (method == "PATCH").then(|| json!("abc"));
    TargetRequest { headers: part_headers(), body, ..target }
}

/// Returns the headers of requests to a resumable upload.
pub(super) fn part_headers() -> Vec<(&'static str, String)> {
    let headers = [
        ("tus-resumable", "1.0.0"),
        ("content-type", "application/offset+octet-stream"),
        ("upload-offset", "0"),
    ];
    headers.map(|(name, value)| (name, value.to_owned())).to_vec()
}

/// Returns a request that names the first of two revisions of a piece.
async fn target_on_revision(
    service: &Service,
    method: &str,
    route: &str,
    name: &str,
) -> TargetRequest {
    let piece = bodies(service, "/content-pieces", name).unwrap().create;
    let id = service.create("/content-pieces", &piece).await;
    let changed = service.put("/content-pieces", &json!({"id": id, "title": "changed"})).await;
    assert_eq!(changed.status, 204);
    let listed = service.get(&format!("/content-pieces/revisions?id={id}")).await.column("id");
    let (last, first) = (&listed[0], &listed[1]);
    match (method, route) {
        ("GET", "/content-pieces/diff") => {
            TargetRequest::without_body(format!("{route}?id={id}&from={first}&to={last}"))
        }
        ("GET" | "DELETE", _) => TargetRequest::without_body(match route {
            "/content-pieces/revision" => format!("{route}?id={id}&revision={first}"),
            _ => format!("{route}?id={id}"),
        }),
        _ => TargetRequest::with_body(route, json!({"id": id, "revision": first})),
    }
}

/// Replaces the ids in a text by ids of no resource.
pub(super) fn absent(text: &str) -> String {
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
    pub(super) fn with_body(path: impl Into<String>, body: Value) -> Self {
        Self { path: path.into(), headers: Vec::new(), body: Some(body) }
    }

    pub(super) fn without_body(path: impl Into<String>) -> Self {
        Self { path: path.into(), headers: Vec::new(), body: None }
    }

    /// Returns the same request with ids of no resource.
    pub(super) fn absent(&self) -> Self {
        let body = self.body.as_ref().map(|body| {
            serde_json::from_str(&absent(&body.to_string())).expect("ids are plain texts")
        });
        let absent_pair = |pair: &str| {
            let (name, value) = pair.split_once(' ').unwrap();
            let value = String::from_utf8(BASE64_STANDARD.decode(value).unwrap()).unwrap();
            format!("{name} {}", BASE64_STANDARD.encode(absent(&value)))
        };
        let headers = self.headers.iter().map(|(name, value)| match *name {
            "upload-metadata" => {
                (*name, value.split(',').map(absent_pair).collect::<Vec<_>>().join(","))
            }
            _ => (*name, value.clone()),
        });
        Self { path: absent(&self.path), headers: headers.collect(), body }
    }

    pub(super) async fn ask(
        &self,
        service: &Service,
        token: Option<&str>,
        method: &str,
    ) -> TestResponse {
        let mut request = self.request(service, method);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        TestResponse::of(request).await
    }

    /// Returns the request without a credential.
    pub(super) fn request(&self, service: &Service, method: &str) -> RequestBuilder {
        let mut request = service.request(method.parse().unwrap(), &self.path);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        match &self.body {
            Some(body) => request.json(body),
            None => request,
        }
    }
}

/// Returns the parts of a response by which a client could distinguish cases.
pub(super) fn seen(answer: &TestResponse) -> (u16, HeaderMap, Value) {
    let (mut headers, mut body) = (answer.headers.clone(), answer.body.clone());
    headers.remove("date");
    headers.remove("x-request-id");
    body.as_object_mut().map(|body| body.remove("requestId"));
    (answer.status.as_u16(), headers, body)
}

/// Returns the ids in a text.
pub(super) fn ids(text: &str) -> Vec<&str> {
    let is_id = |word: &&str| word.contains('_') && absent(word) != *word;
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(is_id)
        .collect()
}

#[test]
fn ids_are_distinguished_from_words() {
    let id = "cp_01k00000000000000000000000";
    assert_eq!(absent(&format!("?id={id}&x=a_b")), "?id=cp_00000000000000000000000000&x=a_b");
    assert_eq!(ids(&format!("{{\"id\":\"{id}\",\"not_found\":1}}")), [id]);
}
