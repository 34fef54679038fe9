//! Deletion of variants, and of resources that overrides refer to.

use galley_domain::WorkspaceMemberId;
use galley_storage::{Error, WriteTx, content_piece_references};
use galley_testing::{TestStore, on_both_engines};
use serde_json::{Value, json};

use super::{change, of, variant, version, with};
use crate::service::{Service, piece_in};

#[on_both_engines]
async fn deleting_a_variant_deletes_its_overrides(store: TestStore) {
    let service = Service::start(store).await;
    let german = variant(&service, "de").await;
    variant(&service, "fr").await;
    let tag = service.create("/tags", &json!({"label": "t"})).await;
    let mut pieces = Vec::new();
    for fields in [
        json!({"title": "Titel", "tags": [tag], "members": [service.home.made.member.to_string()]}),
        json!({"content": "<p>Hallo</p>"}),
        json!({"title": "Titel", "content": "<p>Hallo</p>"}),
        json!({}),
    ] {
        let id = service.create("/content-pieces", &service.piece("a")).await;
        change(&service, &with(json!({"id": id, "variant": "de"}), &fields)).await;
        change(&service, &json!({"id": id, "variant": "fr", "title": "Titre"})).await;
        let mut before = service.get(&of(&id, "")).await.body;
        let variants = if fields == json!({}) { json!(["fr"]) } else { json!(["de", "fr"]) };
        assert_eq!(before["variants"], variants);
        before["variants"] = json!(["fr"]);
        let raised = i64::from(fields != json!({}));
        pieces.push((version(&service, &id).await + raised, id, before));
    }
    let sequence = service.last_sequence().await;
    assert_eq!(service.delete(&format!("/variants?id={german}")).await.status, 204);
    assert_eq!(service.last_sequence().await, sequence + 1, "only that of the variant");
    let again = variant(&service, "de").await;
    for (expected, id, before) in pieces {
        assert_eq!(version(&service, &id).await, expected);
        let german = service.get(&of(&id, &format!("&variant={again}"))).await.body;
        assert_eq!(german, before);
        assert_eq!(service.get(&of(&id, "&variant=fr")).await.body["title"], "Titre");
    }
}

#[on_both_engines]
async fn deleting_a_variant_during_updates_leaves_no_overrides(store: TestStore) {
    let service = std::sync::Arc::new(Service::start(store).await);
    let mut pieces = Vec::new();
    for number in 0..12 {
        pieces.push(service.create("/content-pieces", &service.piece(&format!("p{number}"))).await);
    }
    for _ in 0..3 {
        let german = variant(&service, "de").await;
        let writers: Vec<_> = pieces
            .iter()
            .map(|id| {
                let service = std::sync::Arc::clone(&service);
                let id = id.clone();
                tokio::spawn(async move {
                    let before = version(&service, &id).await;
                    let body = json!({"id": id, "variant": "de", "title": "Titel"});
                    let status = service.put("/content-pieces", &body).await.status.as_u16();
                    (id, before, status)
                })
            })
            .collect();
        tokio::time::sleep(std::time::Duration::from_millis(4)).await;
        assert_eq!(service.delete(&format!("/variants?id={german}")).await.status, 204);
        for writer in writers {
            let (id, before, status) = writer.await.unwrap();
            // The override raises the version once, and its deletion once.
            let raised = if status == 204 { 2 } else { 0 };
            assert!([204, 404].contains(&status), "{status}");
            assert_eq!(version(&service, &id).await, before + raised);
        }
    }
}

#[on_both_engines]
async fn deleted_tags_and_removed_members_are_removed_from_variants(store: TestStore) {
    let service = Service::start(store).await;
    variant(&service, "de").await;
    let member = service.home.made.member;
    let a = service.create("/tags", &json!({"label": "a"})).await;
    let b = service.create("/tags", &json!({"label": "b"})).await;
    let both = json!({"tags": [b], "members": [member.to_string()]});
    let mut pieces = Vec::new();
    for (own, overrides, tags, of_tag, of_member) in [
        (json!({}), json!({"tags": [a]}), json!([]), 1, 0),
        (both.clone(), json!({"tags": [b, a]}), json!(["b"]), 1, 1),
        (json!({"tags": [a]}), json!({"tags": [a], "title": "x"}), json!([]), 1, 0),
        (json!({"tags": [b, a]}), json!({"tags": [b]}), json!(["b"]), 1, 0),
        (json!({}), json!({"members": [member.to_string()], "tags": [b]}), json!(["b"]), 0, 1),
        (both, json!({"members": []}), json!(["b"]), 0, 1),
    ] {
        let id = service.create("/content-pieces", &with(service.piece("x"), &own)).await;
        change(&service, &with(json!({"id": id, "variant": "de"}), &overrides)).await;
        pieces.push((version(&service, &id).await, id, tags, of_tag, of_member));
    }
    let sequence = service.last_sequence().await;
    assert_eq!(service.delete(&format!("/tags?id={a}")).await.status, 204);
    for (before, id, tags, of_tag, _) in &pieces {
        assert_eq!(version(&service, id).await, before + of_tag);
        let shown = service.get(&of(id, "&variant=de")).await.body;
        let labels = shown["tags"].as_array().unwrap().iter().map(|tag| tag["label"].clone());
        assert_eq!(labels.collect::<Value>(), *tags);
    }
    remove_member(&service, member).await;
    for (before, id, _, of_tag, of_member) in &pieces {
        assert_eq!(version(&service, id).await, before + of_tag + of_member);
        for query in ["", "&variant=de"] {
            assert_eq!(service.get(&of(id, query)).await.body["members"], json!([]));
        }
        // An empty list of the variant does not fall back to the piece's list.
        change(&service, &json!({"id": id, "tags": [b]})).await;
    }
    let shown = service.get(&of(&pieces[0].1, "&variant=de")).await.body;
    assert_eq!(shown["tags"], json!([]));
    assert_eq!(service.last_sequence().await, sequence + 4, "only the changes just made");
}

#[on_both_engines]
async fn deleting_a_piece_deletes_its_overrides(store: TestStore) {
    let service = Service::start(store).await;
    let german = variant(&service, "de").await;
    let tag = service.create("/tags", &json!({"label": "t"})).await;
    let group = service.create("/content-groups", &json!({"name": "Gone"})).await;
    let mut ids = Vec::new();
    for home in [&service.home.group, &group, &group] {
        let id = service.create("/content-pieces", &piece_in(home, "a")).await;
        let member = service.home.made.member.to_string();
        change(
            &service,
            &json!({"id": id, "variant": "de", "slug": "deutsch", "tags": [tag],
            "members": [member], "content": "<p>Hallo</p>"}),
        )
        .await;
        ids.push(id);
    }
    let sequence = service.last_sequence().await;
    assert_eq!(service.delete(&of(&ids[0], "")).await.status, 204);
    let path = format!("/content-groups?id={group}&recursive=true");
    assert_eq!(service.delete(&path).await.status, 204);
    for event in &service.events_after(sequence).await[..3] {
        assert_eq!(event.event_type, "contentPieceRemoved");
        let data: Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!((&data["slug"], data.get("variant")), (&json!("a"), None));
    }
    for query in ["slug=deutsch".to_owned(), format!("tagId={tag}")] {
        let list = service.get(&format!("/content-pieces/list?variant=de&{query}")).await;
        assert_eq!(list.body, json!([]));
    }
    for path in [format!("/tags?id={tag}"), format!("/variants?id={german}")] {
        assert_eq!(service.delete(&path).await.status, 204, "nothing refers to it");
    }
}

async fn remove_member(service: &Service, member: WorkspaceMemberId) {
    let workspace = service.home.made.workspace;
    let write = async move |tx: &WriteTx<'_>| {
        content_piece_references::remove_member(tx, workspace, member).await
    };
    service.database.write::<_, Error, _>("members.remove", write).await.unwrap();
}
