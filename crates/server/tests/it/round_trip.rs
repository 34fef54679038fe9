//! A PUT of a whole GET response changes nothing, and fires no event.

use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, TestResponse};

/// The parameters for HTML, the form of content that an update accepts.
const HTML: &str = "&content=true&contentFormat=html";

/// Creates resources of each type with each field, and with references to deleted resources.
/// Returns the paths of all, and the id of the piece with all fields.
pub(crate) async fn create_resources(service: &Service) -> (Vec<String>, String) {
    let create = async |path: &str, body: Value| service.create(path, &body).await;
    let a = create("/content-groups", json!({"name": "A"})).await;
    let b = create("/content-groups", json!({"name": "B", "ancestor": a})).await;
    create("/content-groups", json!({"name": "C", "ancestor": b})).await;
    let tags = [
        create("/tags", json!({"label": "x", "color": "teal"})).await,
        create("/tags", json!({"label": "y"})).await,
    ];
    let variant =
        create("/variants", json!({"key": "de", "label": "German", "description": "d"})).await;
    let [_, editor, _] = service.roles();
    let ann = service.person("ann", &editor).await;
    let invite = json!({"email": "bob@example.org", "name": "Bob", "roleId": editor});
    let invited = create("/workspace-memberships", invite).await;
    let me = service.home.made.member.to_string();

    let mut full = service.piece("full");
    for (name, value) in [
        ("date", json!("2026-11-20")),
        ("description", json!("<p>All &amp; <b>more</b></p>")),
        ("tags", json!(tags)),
        ("members", json!([me, ann.member, invited])),
        ("coverUrl", json!("/a.png")),
        ("coverAlt", json!("")),
        ("coverWidth", json!("wide")),
        ("customData", json!({"a": [1, "é", null]})),
        ("canonicalLink", json!("https://a.example/")),
        ("filename", json!("full.md")),
        ("contentGroupId", json!(b)),
        ("content", json!("<h1>Title</h1><p>a <strong>b</strong></p><ul><li>c</li></ul>")),
    ] {
        full[name] = value;
    }
    let full = create("/content-pieces", full).await;
    let empty = create("/content-pieces", service.piece("empty")).await;
    for over in [json!({"title": "Titel"}), json!({"tags": [], "content": "<p>anders</p>"})] {
        let mut body = json!({"id": full, "variant": "de"});
        body.as_object_mut().unwrap().extend(over.as_object().unwrap().clone());
        assert_eq!(service.put("/content-pieces", &body).await.status, 204);
    }
    let role =
        create("/roles", json!({"name": "R", "permissions": ["tags:write", "roles:read"]})).await;
    let token = create(
        "/tokens",
        json!({"name": "t", "permissions": ["tags:read"],
        "contentGroupIds": [a, service.home.group], "extension": "e", "expiresAt": "2040-01-01"}),
    )
    .await;
    let plain = create("/tokens", json!({"name": "p", "permissions": []})).await;
    let hook = create(
        "/webhooks",
        json!({"url": "https://hooks.invalid/", "name": "w", "secret": "s",
        "event": "contentPieceAdded", "metadata": {"contentGroupId": a}}),
    )
    .await;
    let off = create(
        "/webhooks",
        json!({"url": "http://127.0.0.1/", "name": "w", "enabled": false,
        "event": "memberAdded"}),
    )
    .await;
    // References to deleted resources are accepted as well.
    let gone = create("/content-groups", json!({"name": "gone"})).await;
    let on_gone = create(
        "/webhooks",
        json!({"url": "https://hooks.invalid/", "name": "w",
        "event": "contentGroupMoved", "metadata": {"contentGroupId": gone}}),
    )
    .await;
    let for_gone =
        create("/tokens", json!({"name": "g", "permissions": [], "contentGroupIds": [gone]})).await;
    assert_eq!(service.delete(&format!("/content-groups?id={gone}")).await.status, 204);
    let change = json!({"fullName": "Home Owner", "avatar": "https://a.example/a.png"});
    assert_eq!(service.put("/profile", &change).await.status, 204);
    let change = json!({"description": "All.", "logo": "/logo.png"});
    assert_eq!(service.put("/workspace", &change).await.status, 204);

    let mut paths = vec!["/profile".to_owned(), "/workspace".to_owned()];
    let by_id = |path: &str, ids: &[&String]| {
        ids.iter().map(|id| format!("{path}?id={id}")).collect::<Vec<_>>()
    };
    paths.extend(by_id("/content-groups", &[&a, &b, &service.home.group]));
    paths.extend(by_id("/tags", &[&tags[0], &tags[1]]));
    paths.extend(by_id("/variants", &[&variant]));
    paths.extend(by_id("/roles", &[&role, &service.roles()[0], &service.roles()[1]]));
    paths.extend(by_id("/tokens", &[&token, &plain, &for_gone]));
    paths.extend(by_id("/webhooks", &[&hook, &off, &on_gone]));
    paths.extend(by_id("/content-pieces", &[&full, &empty]));
    paths.extend([&full, &empty].map(|id| format!("/content-pieces?id={id}{HTML}")));
    (paths, full)
}

#[on_both_engines]
async fn a_put_of_every_get_response_changes_nothing(store: TestStore) {
    let service = Service::start(store).await;
    let (paths, full) = create_resources(&service).await;
    let before = service.workspace_state().await;
    let ask = async |method, path: &str, body: Option<&Value>, header: (&str, &str)| {
        let mut request = service.request(method, path).bearer_auth(&service.home.token);
        if let Some(body) = body {
            request = request.json(body);
        }
        TestResponse::of(request.header(header.0, header.1)).await
    };
    for path in &paths {
        let got = service.get(path).await;
        assert_eq!(got.status, 200, "{path}: {got:?}");
        let resource = path.split('?').next().unwrap();
        let tag = got.header("etag").to_owned();
        let put = ask(Method::PUT, resource, Some(&got.body), ("if-match", &tag)).await;
        assert_eq!(put.status, 204, "{path}: {put:?}");
        let version = |tag: &str| tag.split('.').next().unwrap().to_owned();
        assert_eq!(version(put.header("etag")), version(&tag), "{path}");
        if !path.contains(HTML) {
            assert_eq!(put.header("etag"), tag, "{path}");
            let whole =
                ask(Method::PUT, resource, Some(&got.body), ("prefer", "return=representation"));
            assert_eq!(whole.await.body, got.body, "{path}");
        }
        let after = service.get(path).await;
        assert_eq!((&after.body, after.header("etag")), (&got.body, tag.as_str()), "{path}");
    }
    for member in service.get("/workspace-memberships/list-members").await.body.as_array().unwrap()
    {
        let put = service.put("/workspace-memberships", member).await;
        assert_eq!(put.status, 204, "{member}: {put:?}");
    }
    // The variant's own view is sent back as the variant's.
    for query in ["", HTML] {
        let path = format!("/content-pieces?id={full}&variant=de{query}");
        let got = service.get(&path).await;
        let mut body = got.body.clone();
        body["variant"] = json!("de");
        let put = service.put("/content-pieces", &body).await;
        assert_eq!(put.status, 204, "{put:?}");
        assert_eq!(service.get(&path).await.header("etag"), got.header("etag"));
    }
    assert_eq!(service.workspace_state().await, before);
}
