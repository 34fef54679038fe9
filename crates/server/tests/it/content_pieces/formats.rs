//! Content in three formats, and the warnings of its conversion.

use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, TestResponse, piece_in};

/// A tree that neither HTML nor Markdown can represent: both drop the spaces at the end.
fn spaced_tree() -> Value {
    json!({"type": "doc", "content": [
        {"type": "paragraph", "content": [{"type": "text", "text": "Hello  world  "}]},
        {"type": "paragraph"},
    ]})
}

async fn content_of(service: &Service, id: &str, format: &str) -> Value {
    let path = format!("/content-pieces?id={id}&content=true&contentFormat={format}");
    service.get(&path).await.body["content"].clone()
}

async fn send_preferring_representation(
    service: &Service,
    method: Method,
    path: &str,
    body: &Value,
) -> TestResponse {
    let request = service.request(method, path).bearer_auth(&service.home.token);
    TestResponse::of(request.header("prefer", "return=representation").json(body)).await
}

#[on_both_engines]
async fn each_format_creates_the_same_content(store: TestStore) {
    let service = Service::start(store).await;
    let tree = json!({"type": "doc", "content": [
        {"type": "heading", "attrs": {"level": 2}, "content": [{"type": "text", "text": "Title"}]},
        {"type": "paragraph", "content": [
            {"type": "text", "text": "a "},
            {"type": "text", "marks": [{"type": "bold"}], "text": "b"},
        ]},
    ]});
    let (html, markdown) = ("<h2>Title</h2><p>a <strong>b</strong></p>", "## Title\n\na **b**\n");
    for (content, format) in [
        (json!(html), json!(null)),
        (json!(html), json!("html")),
        (json!(markdown), json!("markdown")),
        (tree.clone(), json!(null)),
        (tree.clone(), json!("json")),
        (json!(tree.to_string()), json!("json")),
    ] {
        let mut body = service.piece("a");
        body["content"] = content;
        body["contentFormat"] = format;
        let created = service.post("/content-pieces", &body).await;
        assert_eq!((created.status.as_u16(), created.header("conversion-warnings")), (201, "0"));
        let id = created.id();
        assert_eq!(content_of(&service, &id, "json").await, tree, "{body}");
        assert_eq!(content_of(&service, &id, "html").await, html);
        assert_eq!(content_of(&service, &id, "markdown").await, markdown);
        service.delete(&format!("/content-pieces?id={id}")).await;
    }
}

#[on_both_engines]
async fn invalid_content_is_rejected_with_its_place(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create("/content-pieces", &service.piece("kept")).await;
    let before = service.workspace_state().await;
    let node = |node: Value| json!({"type": "doc", "content": [{"type": "paragraph"}, node]});
    for (content, format, reason, path) in [
        (json!({"type": "paragraph"}), json!(null), "validation", "content"),
        (json!({}), json!(null), "validation", "content"),
        (json!([]), json!(null), "validation", "content"),
        (json!(1), json!("json"), "validation", "content"),
        (json!("{"), json!("json"), "validation", "content"),
        (json!("x"), json!("text"), "validation", "contentFormat"),
        (spaced_tree(), json!("html"), "validation", "contentFormat"),
        (node(json!({"type": "video"})), json!(null), "validation", "content.content[1]"),
        (
            node(json!({"type": "paragraph", "attrs": {"textAlign": "left"}})),
            json!(null),
            "validation",
            "content.content[1]",
        ),
        (
            node(json!({"type": "image", "attrs": {"src": "javascript:alert(1)"}})),
            json!(null),
            "validation",
            "content.content[1]",
        ),
        (json!("> ".repeat(300) + "x"), json!("markdown"), "content_too_deep", "content"),
    ] {
        let fields = json!({"content": content, "contentFormat": format});
        for (method, path_of_request, mut body) in [
            (Method::POST, "/content-pieces", piece_in(&service.home.group, "x")),
            (Method::PUT, "/content-pieces", json!({"id": id})),
            (Method::POST, "/content-pieces/convert", json!({})),
        ] {
            body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            let answer = service.send(method, path_of_request, Some(&body)).await;
            answer.assert_problem(400, reason, &[path]);
        }
        let mut piece = piece_in(&service.home.group, "x");
        piece.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let batch = json!({"pieces": [piece_in(&service.home.group, "y"), piece]});
        let answer = service.post("/content-pieces/batch", &batch).await;
        answer.assert_problem(400, reason, &[&format!("pieces[1].{path}")]);
    }
    assert_eq!(service.workspace_state().await, before);
}

/// Sends a request whose bodies are too deep for the parsers of this test, and returns the text.
async fn send_text(service: &Service, method: Method, path: &str, body: Option<String>) -> String {
    let request = service.request(method, path).bearer_auth(&service.home.token);
    let request = request.header("content-type", "application/json");
    let response = request.body(body.unwrap_or_default()).send().await.expect("it answers");
    assert!(response.status().is_success(), "{}", response.status());
    response.text().await.expect("the answer is whole")
}

#[on_both_engines]
async fn the_deepest_tree_can_be_sent_back(store: TestStore) {
    let service = Service::start(store).await;
    let mut body = service.piece("deep");
    body["content"] = json!("<blockquote>".repeat(98) + "x");
    body["customData"] = json!({"a": 1});
    let id = service.create("/content-pieces", &body).await;
    let path = format!("/content-pieces?id={id}&content=true");
    let whole = send_text(&service, Method::GET, &path, None).await;
    let events = service.last_sequence().await;
    send_text(&service, Method::PUT, "/content-pieces", Some(whole.clone())).await;
    assert_eq!(service.last_sequence().await, events);
    // The copy has the same content and custom data.
    let batch = format!("{{\"pieces\":[{whole}]}}");
    let created = send_text(&service, Method::POST, "/content-pieces/batch", Some(batch)).await;
    let created: Value = serde_json::from_str(&created).expect("it is JSON");
    let copy = created["pieces"][0]["id"].as_str().expect("it is created");
    let path = format!("/content-pieces?id={copy}&content=true");
    let copied = send_text(&service, Method::GET, &path, None).await;
    let content =
        |text: &str| text.split_once("\"content\":").expect("it has content").1.to_owned();
    assert_eq!(content(&copied), content(&whole));
    assert!(copied.contains(r#""customData":"{\"a\":1}""#), "{copied}");
}

#[on_both_engines]
async fn the_rendering_of_the_stored_content_changes_nothing(store: TestStore) {
    let service = Service::start(store).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let mut body = service.piece("spaced");
    body["content"] = spaced_tree();
    let id = service.create("/content-pieces", &body).await;
    let in_variant = json!({"id": id, "variant": "de", "content": spaced_tree(), "title": "de"});
    assert_eq!(service.put("/content-pieces", &in_variant).await.status, 204);
    let (before, events) = (
        service.get(&format!("/content-pieces?id={id}&content=true")).await,
        service.last_sequence().await,
    );
    let stored = &before.body["content"];
    for format in ["html", "markdown", "json"] {
        let content = content_of(&service, &id, format).await;
        for variant in [json!(null), json!("de")] {
            let update =
                json!({"id": id, "content": content, "contentFormat": format, "variant": variant});
            let answer = service.put("/content-pieces", &update).await;
            assert_eq!((answer.status.as_u16(), answer.header("conversion-warnings")), (204, "0"));
            let tried = service.put("/content-pieces?dryRun=true", &update).await;
            assert_eq!(&tried.body["content"], stored, "{format}");
        }
    }
    let after = service.get(&format!("/content-pieces?id={id}&content=true")).await;
    assert_eq!((after.body, service.last_sequence().await), (before.body.clone(), events));
    // Another text replaces the content.
    let update = json!({"id": id, "content": "Hello\n", "contentFormat": "markdown"});
    assert_eq!(service.put("/content-pieces", &update).await.status, 204);
    assert_eq!(content_of(&service, &id, "html").await, "<p>Hello</p>");
    assert_eq!(service.last_sequence().await, events + 1);
}

#[on_both_engines]
async fn writes_state_their_conversion_warnings(store: TestStore) {
    let service = Service::start(store).await;
    let lossy = "<p class=a>x</p><video></video>";
    let mut body = service.piece("a");
    body["content"] = json!(lossy);
    let created = service.post("/content-pieces", &body).await;
    assert_eq!(created.header("conversion-warnings"), "2");
    let whole =
        send_preferring_representation(&service, Method::POST, "/content-pieces", &body).await;
    assert_eq!(whole.body["conversionWarnings"].as_array().map(Vec::len), Some(2), "{whole:?}");
    let id = whole.id();
    let get = service.get(&format!("/content-pieces?id={id}")).await;
    assert_eq!(whole.header("etag"), get.header("etag"));
    assert!(get.body.get("conversionWarnings").is_none());

    let update = json!({"id": id, "content": "<p id=b>y</p>"});
    let updated =
        send_preferring_representation(&service, Method::PUT, "/content-pieces", &update).await;
    assert_eq!(updated.header("conversion-warnings"), "1");
    assert_eq!(updated.body["conversionWarnings"][0]["attribute"], "id");
    let get = service.get(&format!("/content-pieces?id={id}")).await;
    assert_eq!(updated.header("etag"), get.header("etag"));

    // Without content there is nothing to convert.
    let update = json!({"id": id, "title": "t"});
    let updated =
        send_preferring_representation(&service, Method::PUT, "/content-pieces", &update).await;
    assert_eq!(updated.header("conversion-warnings"), "");
    assert!(updated.body.get("conversionWarnings").is_none());

    let mut markdown = service.piece("b");
    markdown["content"] = json!("a <video></video>");
    markdown["contentFormat"] = json!("markdown");
    let batch = json!({"pieces": [body, service.piece("c"), markdown]});
    for replayed in ["", "true"] {
        let request = service.request(Method::POST, "/content-pieces/batch");
        let request = request.bearer_auth(&service.home.token).header("idempotency-key", "k");
        let created = TestResponse::of(request.json(&batch)).await;
        let headers =
            ["conversion-warnings", "idempotency-replayed"].map(|name| created.header(name));
        assert_eq!(headers, ["3", replayed]);
        let warnings = created.body["pieces"].as_array().unwrap().iter();
        let counts: Vec<_> =
            warnings.map(|piece| piece["conversionWarnings"].as_array().map(Vec::len)).collect();
        assert_eq!(counts, [Some(2), None, Some(1)]);
    }
}

#[on_both_engines]
async fn a_conversion_stores_nothing(store: TestStore) {
    let service = Service::start(store).await;
    let reader = service.token("contentPieces:read", None).await;
    let other = service.token("tags:write", None).await;
    let before = service.workspace_state().await;
    let convert = async |body: Value| {
        service.send_as(&reader, Method::POST, "/content-pieces/convert", Some(&body)).await
    };
    let converted = convert(json!({"content": "<p>a <font>b</font></p>"})).await;
    let expected = json!({"type": "doc", "content": [{"type": "paragraph", "content": [{"type": "text", "text": "a b"}]}]});
    assert_eq!((converted.status.as_u16(), &converted.body["content"]), (200, &expected));
    assert_eq!(converted.body["conversionWarnings"][0]["element"], "font");
    let converted = convert(json!({"content": "a b", "contentFormat": "markdown"})).await;
    assert_eq!(converted.body, json!({"content": expected, "conversionWarnings": []}));
    let converted = convert(json!({"content": spaced_tree()})).await;
    assert_eq!(converted.body["content"], spaced_tree());
    convert(json!({})).await.assert_problem(400, "validation", &["content"]);
    convert(json!({"content": null})).await.assert_problem(400, "validation", &["content"]);
    let body = json!({"content": "x"});
    let answer =
        service.send_as(&other, Method::POST, "/content-pieces/convert", Some(&body)).await;
    answer.assert_problem(403, "insufficient_permissions", &[]);
    assert_eq!(service.workspace_state().await, before);
}

#[on_both_engines]
async fn custom_data_is_returned_as_its_value_on_request(store: TestStore) {
    let service = Service::start(store).await;
    let mut expected = Vec::new();
    for text in
        [" { \"b\" : [1.50,\n 12345678901234567890123] } ", "[]", "\"text\"", "-0.0", "null"]
    {
        let mut piece = service.piece("a");
        piece["customData"] = json!(text);
        let id = service.create("/content-pieces", &piece).await;
        let path = format!("/content-pieces?id={id}");
        let strings = service.get(&path).await;
        assert_eq!(strings.body["customData"], text);
        assert_eq!(service.get(&format!("{path}&customData=string")).await.body, strings.body);
        let values = service.get(&format!("{path}&customData=object")).await;
        assert_ne!(values.header("etag"), strings.header("etag"), "{text}");
        expected.push((id, text.trim()));
    }
    let none = service.create("/content-pieces", &service.piece("a")).await;
    expected.push((none, "null"));
    let list = raw(&service, "/content-pieces/list?sort=createdAt&customData=object").await;
    let mut rest = list.as_str();
    for (id, value) in expected {
        // The value has the bytes of the stored text, numbers included.
        let field = format!("\"customData\":{value},");
        rest = &rest[rest.find(&id).unwrap()..];
        let found = rest.find("\"customData\":").unwrap();
        assert!(rest[found..].starts_with(&field), "{field} in {rest}");
        let one = raw(&service, &format!("/content-pieces?id={id}&customData=object")).await;
        assert!(one.contains(&field), "{field} in {one}");
    }
}

async fn raw(service: &Service, path: &str) -> String {
    let request = service.request(Method::GET, path).bearer_auth(&service.home.token);
    request.send().await.unwrap().text().await.unwrap()
}
