//! The cache of the tags and members that pieces refer to.

use futures_util::future::{join, join_all};
use galley_domain::tag::{Color, Tag, TagLabel};
use galley_storage::{Error, WriteTx, tags};
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, TestResponse};

/// Returns the labels of the tags and the names of the members of a piece, in an address that is
/// requested for the first time.
async fn references(service: &Service, piece: &str, step: usize) -> (Vec<String>, Vec<String>) {
    let path = format!("/content-pieces?id={piece}&step={step}");
    let request = service.request(Method::GET, &path).bearer_auth(&service.home.token);
    let body = TestResponse::of(request.header("prefer", "handling=lenient")).await.body;
    let texts = |list: &Value, of: fn(&Value) -> &Value| {
        let items = list.as_array().unwrap().iter();
        items.map(|item| of(item).as_str().unwrap_or_default().to_owned()).collect()
    };
    (
        texts(&body["tags"], |tag| &tag["label"]),
        texts(&body["members"], |member| &member["profile"]["fullName"]),
    )
}

#[on_both_engines]
async fn pieces_show_the_current_tags_and_members(store: TestStore) {
    let service = Service::start(store).await;
    let beside = service.second_connection().await;
    let person = service.person("ann", &service.roles()[1]).await;
    let tag = service.create("/tags", &json!({"label": "a"})).await;
    let other_tag = service.create("/tags", &json!({"label": "other"})).await;
    let mut body = service.piece("a");
    body["tags"] = json!([tag, other_tag]);
    body["members"] = json!([person.member]);
    let piece = service.create("/content-pieces", &body).await;
    let (_, names) = references(&service, &piece, 0).await;
    assert_eq!(references(&service, &piece, 1).await.0, ["a", "other"]);

    assert_eq!(service.put("/tags", &json!({"id": tag, "label": "b"})).await.status, 204);
    assert_eq!(references(&service, &piece, 2).await, (vec!["b".into(), "other".into()], names));

    let rename = json!({"fullName": "Ann Newname"});
    let renamed = service.send_as(&person.token, reqwest::Method::PUT, "/profile", Some(&rename));
    assert_eq!(renamed.await.status, 204);
    assert_eq!(references(&service, &piece, 3).await.1, ["Ann Newname"]);

    // Another process renames the tag.
    let (workspace, id) = (service.home.made.workspace, tag.parse().unwrap());
    let label = TagLabel::parse("c".to_owned()).unwrap();
    let changed = Tag { id, label, color: Color::Teal, version: 3 };
    let write = async move |tx: &WriteTx<'_>| tags::update(tx, workspace, &changed).await;
    beside.write::<_, Error, _>("rename", write).await.unwrap();
    assert_eq!(references(&service, &piece, 4).await.0, ["c", "other"]);

    assert_eq!(service.delete(&format!("/tags?id={tag}")).await.status, 204);
    assert_eq!(references(&service, &piece, 5).await.0, ["other"]);
    let removal = format!("/workspace-memberships?id={}", person.member);
    assert_eq!(service.delete(&removal).await.status, 204);
    assert_eq!(references(&service, &piece, 6).await.1, Vec::<String>::new());
}

#[on_both_engines]
async fn pieces_with_the_same_tags_and_members_share_their_rows(store: TestStore) {
    let service = Service::start(store).await;
    let tag = service.create("/tags", &json!({"label": "a"})).await;
    let mut pieces = Vec::new();
    for slug in ["a", "b"] {
        let mut body = service.piece(slug);
        body["tags"] = json!([tag]);
        body["members"] = json!([service.home.made.member.to_string()]);
        pieces.push(service.create("/content-pieces", &body).await);
    }
    references(&service, &pieces[0], 0).await;
    service.forget_statements().await;
    references(&service, &pieces[1], 0).await;
    let statements = service.statements.take();
    let is_shared = |sql: &str| sql.contains("FROM tags") || sql.contains("FROM workspace_members");
    let count = statements.keys().filter(|sql| is_shared(sql)).count();
    // Several programs may write to PostgreSQL, so its rows are read again.
    assert_eq!(count, if service.database.has_generations() { 2 } else { 0 }, "{statements:#?}");
}

/// SQLite commits several writes in one transaction, and a write may use rows that were cached
/// before an earlier write of the same transaction changed them.
#[tokio::test(flavor = "multi_thread")]
async fn events_show_the_label_that_their_tag_has_at_that_point_of_the_feed() {
    let service = Service::start(TestStore::sqlite()).await;
    let tag = service.create("/tags", &json!({"label": "0"})).await;
    let mut pieces = Vec::new();
    for number in 0..8 {
        let mut body = service.piece(&number.to_string());
        body["tags"] = json!([tag]);
        pieces.push(service.create("/content-pieces", &body).await);
    }
    let before = service.last_sequence().await;
    for round in 1..=40 {
        let edits = pieces.iter().map(async |piece| {
            for number in 0..3 {
                let edit = json!({"id": piece, "title": format!("{round}.{number}")});
                assert_eq!(service.put("/content-pieces", &edit).await.status, 204);
            }
        });
        let rename = json!({"id": tag, "label": round.to_string()});
        let (_, renamed) = join(join_all(edits), service.put("/tags", &rename)).await;
        assert_eq!(renamed.status, 204);
    }
    let (mut label, mut updates) = ("0".to_owned(), 0);
    for event in service.events_after(before).await {
        let data: Value = serde_json::from_str(&event.data).unwrap();
        let shown = match event.event_type.as_str() {
            "tagChanged" => {
                label = data["label"].as_str().unwrap().to_owned();
                continue;
            }
            "contentPieceUpdated" => &data["tags"][0]["label"],
            other => panic!("{other}"),
        };
        assert_eq!(*shown, label, "event {}", event.sequence);
        updates += 1;
    }
    assert_eq!((label.as_str(), updates), ("40", 40 * 8 * 3));
}
