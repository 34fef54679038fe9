//! The authors of a piece's creation and of its last change.

use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, TestResponse};

/// Returns the author that a request with a token has.
async fn author(service: &Service, token: &str, name: &str) -> Value {
    let listed = "/workspace-memberships/list-members?perPage=100";
    let members = service.get(listed).await.body;
    let mut members = members.as_array().unwrap().iter();
    let member = members.find(|member| member["profile"]["fullName"] == name).unwrap();
    let id = service.token_id(token).await;
    json!({"type": "token", "id": id, "memberId": member["id"], "name": name})
}

fn authors(piece: &Value) -> [&Value; 2] {
    [&piece["createdBy"], &piece["updatedBy"]]
}

#[on_both_engines]
async fn a_piece_names_the_authors_of_its_creation_and_of_its_last_change(store: TestStore) {
    let service = Service::start(store).await;
    let [_, editor, _] = service.roles();
    let ann = service.person("ann", &editor).await;
    let home = author(&service, &service.home.token, "home").await;
    let ann_author = author(&service, &ann.token, "ann").await;
    let after = service.last_sequence().await;
    let variant = service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let group = service.create("/content-groups", &json!({"name": "Other"})).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let path = format!("/content-pieces?id={id}");
    assert_eq!(authors(&service.get(&path).await.body), [&home, &home]);
    for (token, change, last) in [
        (&ann.token, json!({"title": "Title"}), &ann_author),
        // A change of nothing has no author.
        (&service.home.token, json!({"title": "Title"}), &ann_author),
        (&service.home.token, json!({"content": "<p>x</p>"}), &home),
        (&ann.token, json!({"variant": variant, "title": "Titel"}), &ann_author),
        (&service.home.token, json!({"contentGroupId": group}), &home),
        (&ann.token, json!({"contentGroupId": service.home.group}), &ann_author),
    ] {
        let mut body = change.clone();
        body["id"] = json!(id);
        let request = service.request(Method::PUT, "/content-pieces").bearer_auth(token);
        let request = request.header("prefer", "return=representation").json(&body);
        let answer = TestResponse::of(request).await;
        assert_eq!(authors(&answer.body), [&home, last], "{change}");
        // The second read is served by the response cache.
        for _ in 0..2 {
            assert_eq!(authors(&service.get(&path).await.body), [&home, last], "{change}");
        }
        let path = format!("/content-pieces/list?variant=de&ids={id}&fields=createdBy,updatedBy");
        let listed = service.get(&path).await.body;
        assert_eq!(listed, json!([{"id": id, "createdBy": home, "updatedBy": last}]), "{change}");
    }
    let feed = service.get(&format!("/events?after={after}")).await.body;
    let events = feed.as_array().unwrap().iter().filter(|event| event["data"]["id"] == id);
    let found = events.map(|event| event["data"]["updatedBy"].clone()).collect::<Vec<_>>();
    let expected = [&home, &ann_author, &home, &ann_author, &home, &ann_author];
    assert_eq!(found, expected.map(Value::clone));
}

#[on_both_engines]
async fn an_author_has_the_current_name_and_none_after_leaving(store: TestStore) {
    let service = Service::start(store).await;
    let [_, editor, _] = service.roles();
    let ann = service.person("ann", &editor).await;
    let mut expected = author(&service, &ann.token, "ann").await;
    let id = service.create_as(&ann.token, "/content-pieces", &service.piece("a")).await;
    let path = format!("/content-pieces?id={id}");
    let read = async || {
        let (first, cached) = (service.get(&path).await, service.get(&path).await);
        assert_eq!(first.body, cached.body);
        first
    };
    let before = read().await;
    assert_eq!(authors(&before.body), [&expected, &expected]);
    let rename = json!({"fullName": "Ann Example"});
    let renamed = service.send_as(&ann.token, Method::PUT, "/profile", Some(&rename)).await;
    assert_eq!(renamed.status, 204);
    expected["name"] = json!("Ann Example");
    let after = read().await;
    assert_eq!(authors(&after.body), [&expected, &expected]);
    assert_ne!(after.header("etag"), before.header("etag"));
    let path = format!("/workspace-memberships?id={}", ann.member);
    assert_eq!(service.delete(&path).await.status, 204);
    expected["name"] = Value::Null;
    assert_eq!(authors(&read().await.body), [&expected, &expected]);
    // The events have the name that the author had.
    let feed = service.get("/events?perPage=1000").await.body;
    let mut events = feed.as_array().unwrap().iter();
    let added = events.find(|event| event["type"] == "contentPieceAdded").unwrap();
    assert_eq!(added["data"]["createdBy"]["name"], "ann");
}
