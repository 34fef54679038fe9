//! Conditional requests: they avoid resending unchanged resources, and prevent lost updates.

use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, TestResponse};

async fn get_if_none_match(service: &Service, path: &str, tags: &str) -> TestResponse {
    let request = service.request(Method::GET, path).bearer_auth(&service.home.token);
    TestResponse::of(request.header("if-none-match", tags)).await
}

async fn put_if_match(service: &Service, path: &str, tags: &str, body: &Value) -> TestResponse {
    let request = service.request(Method::PUT, path).bearer_auth(&service.home.token);
    TestResponse::of(request.header("if-match", tags).json(body)).await
}

async fn delete_if_match(service: &Service, path: &str, tags: &str) -> TestResponse {
    let request = service.request(Method::DELETE, path).bearer_auth(&service.home.token);
    TestResponse::of(request.header("if-match", tags)).await
}

/// Creates a piece, a group, a tag and a variant. Returns path, id and a change of each.
async fn resources(service: &Service) -> Vec<(&'static str, String, Value)> {
    let piece = service.create("/content-pieces", &service.piece("a")).await;
    let group = service.create("/content-groups", &json!({"name": "A"})).await;
    let tag = service.create("/tags", &json!({"label": "a"})).await;
    let variant = service.create("/variants", &json!({"key": "a", "label": "a"})).await;
    vec![
        ("/content-pieces", piece.clone(), json!({"id": piece, "title": "b"})),
        ("/content-groups", group.clone(), json!({"id": group, "name": "b"})),
        ("/tags", tag.clone(), json!({"id": tag, "label": "b"})),
        ("/variants", variant.clone(), json!({"id": variant, "label": "b"})),
    ]
}

#[on_both_engines]
async fn unchanged_resources_get_304(store: TestStore) {
    let service = Service::start(store).await;
    for (path, id, change) in resources(&service).await {
        let one = format!("{path}?id={id}");
        for path in [one.clone(), format!("{path}/list")] {
            let first = service.get(&path).await;
            let tag = first.header("etag").to_owned();
            assert!(tag.starts_with('"') && tag.ends_with('"'), "a strong tag: {tag}");
            assert_eq!(first.header("cache-control"), "private, no-cache");
            assert!(first.header("vary").contains("authorization"));
            for tags in [tag.clone(), format!("\"x\", {tag}"), format!("W/{tag}"), "*".to_owned()] {
                let again = get_if_none_match(&service, &path, &tags).await;
                assert_eq!(again.status, 304, "{tags}");
                assert_eq!(again.body, Value::Null);
                assert_eq!(again.header("etag"), tag);
            }
            let other = get_if_none_match(&service, &path, "\"1.x\"").await;
            assert_eq!(other.body, first.body);
        }
        let before = service.get(&one).await.header("etag").to_owned();
        let put = service.put(path, &change).await;
        let after = service.get(&one).await;
        assert_eq!(put.header("etag"), after.header("etag"), "a PUT tells the new tag");
        assert_ne!(after.header("etag"), before);
        assert_eq!(get_if_none_match(&service, &one, &before).await.status, 200);
    }
}

#[on_both_engines]
async fn each_form_of_a_piece_has_its_own_entity_tag_and_the_same_version(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let mut tags = Vec::new();
    for query in ["", "&content=true", "&content=true&contentFormat=html"] {
        tags.push(
            service.get(&format!("/content-pieces?id={id}{query}")).await.header("etag").to_owned(),
        );
    }
    assert!(tags[0] != tags[1] && tags[1] != tags[2]);
    for tag in &tags {
        let body = json!({"id": id, "title": format!("after {tag}")});
        let latest = service.get(&format!("/content-pieces?id={id}")).await;
        let version = |tag: &str| tag.split('.').next().unwrap().to_owned();
        let stale = version(tag) != version(latest.header("etag"));
        let answer = put_if_match(&service, "/content-pieces", tag, &body).await;
        assert_eq!(answer.status.as_u16(), if stale { 412 } else { 204 }, "{tag}");
    }
}

#[on_both_engines]
async fn updates_of_an_older_version_are_rejected(store: TestStore) {
    let service = Service::start(store).await;
    for (path, id, change) in resources(&service).await {
        let one = format!("{path}?id={id}");
        let old = service.get(&one).await.header("etag").to_owned();
        assert_eq!(put_if_match(&service, path, &old, &change).await.status, 204);
        let before = service.workspace_state().await;
        for tags in [old.as_str(), "\"nonsense\"", "W/\"2.x\"", "\"99.x\""] {
            let answer = put_if_match(&service, path, tags, &change).await;
            answer.assert_problem(412, "precondition_failed", &[]);
            assert_eq!(answer.body["code"], "PRECONDITION_FAILED");
            delete_if_match(&service, &one, tags).await.assert_problem(
                412,
                "precondition_failed",
                &[],
            );
        }
        assert_eq!(service.workspace_state().await, before, "nothing was changed");
        let new = service.get(&one).await.header("etag").to_owned();
        let either = format!("{old}, {new}");
        assert_eq!(put_if_match(&service, path, &either, &change).await.status, 204);
        assert_eq!(put_if_match(&service, path, "*", &change).await.status, 204);
        let new = service.get(&one).await.header("etag").to_owned();
        assert_eq!(delete_if_match(&service, &one, &new).await.status, 204);
    }
}

#[on_both_engines]
async fn of_concurrent_updates_of_one_version_one_wins(store: TestStore) {
    let service = std::sync::Arc::new(Service::start(store).await);
    let id = service.create("/content-pieces", &service.piece("a")).await;
    for _ in 0..4 {
        let piece = service.get(&format!("/content-pieces?id={id}")).await;
        let tag = piece.header("etag").to_owned();
        let writers: Vec<_> = (0..16)
            .map(|number| {
                let (service, tag) = (std::sync::Arc::clone(&service), tag.clone());
                let body = json!({"id": id, "title": format!("{number} after {tag}")});
                tokio::spawn(async move {
                    put_if_match(&service, "/content-pieces", &tag, &body).await.status.as_u16()
                })
            })
            .collect();
        let mut statuses = Vec::new();
        for writer in writers {
            statuses.push(writer.await.unwrap());
        }
        statuses.sort_unstable();
        assert_eq!(statuses[0], 204);
        assert!(statuses[1..].iter().all(|&status| status == 412), "{statuses:?}");
    }
}

#[on_both_engines]
async fn return_representation_includes_the_resource(store: TestStore) {
    let service = Service::start(store).await;
    let send = async |method, path: &str, body: &Value, prefer: &str| {
        let request = service.request(method, path).bearer_auth(&service.home.token);
        TestResponse::of(request.header("prefer", prefer).json(body)).await
    };
    let wish = "respond-async, return=representation";
    for (path, new, change) in [
        ("/content-pieces", service.piece("a"), json!({"title": "b"})),
        ("/content-groups", json!({"name": "A"}), json!({"name": "b"})),
        ("/tags", json!({"label": "a"}), json!({"label": "b"})),
        ("/variants", json!({"key": "a", "label": "a"}), json!({"label": "b"})),
    ] {
        let made = send(Method::POST, path, &new, wish).await;
        let one = made.header("location").to_owned();
        let shown = service.get(&one).await;
        assert_eq!((made.status.as_u16(), &made.body), (201, &shown.body));
        assert_eq!(made.header("preference-applied"), "return=representation");
        assert_eq!(made.header("etag"), shown.header("etag"));
        let mut change = change;
        change["id"] = json!(made.id());
        let put = send(Method::PUT, path, &change, wish).await;
        let shown = service.get(&one).await;
        assert_eq!((put.status.as_u16(), &put.body), (200, &shown.body));
        assert_eq!(put.header("preference-applied"), "return=representation");
        for other in ["return=minimal", "return=minimal, return=representation", "x"] {
            let put = send(Method::PUT, path, &change, other).await;
            assert_eq!((put.status.as_u16(), &put.body), (204, &Value::Null));
            assert_eq!(put.header("preference-applied"), "");
        }
    }
}
