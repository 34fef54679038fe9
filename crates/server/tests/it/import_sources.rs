//! Import sources, which importers record for pieces.

use galley_testing::{TestStore, on_both_engines};
use serde_json::{Value, json};

use crate::service::Service;

const SOURCES: &str = "/content-pieces/sources";

fn source(piece: &str, variant: Option<&str>, hash: &str) -> Value {
    json!({"contentPieceId": piece, "variant": variant, "sourceHash": hash, "importedHash": "i"})
}

async fn save(service: &Service, sources: Value) {
    let answer = service.put(SOURCES, &json!({"sources": sources})).await;
    assert_eq!(answer.status, 204, "{answer:?}");
}

#[on_both_engines]
async fn saving_a_source_does_not_change_its_piece(store: TestStore) {
    let service = Service::start(store).await;
    let mut piece = service.piece("one");
    piece["filename"] = json!("one.md");
    let first = service.create("/content-pieces", &piece).await;
    let second = service.create("/content-pieces", &service.piece("two")).await;
    let variant = service.create("/variants", &json!({"key": "de", "label": "de"})).await;
    let path = format!("/content-pieces?id={first}");
    let before = service.get(&path).await;
    let events = service.get("/events?perPage=1000").await.body;
    save(
        &service,
        json!([
            source(&second, None, "b"),
            source(&first, Some("de"), "c"),
            source(&first, None, "a")
        ]),
    )
    .await;
    let after = service.get(&path).await;
    assert_eq!(
        (&after.body, after.headers.get("etag")),
        (&before.body, before.headers.get("etag"))
    );
    assert_eq!(service.get("/events?perPage=1000").await.body, events);
    let listed = service.get(SOURCES).await.body;
    assert_eq!(
        listed[0],
        json!({"id": first, "contentGroupId": service.home.group, "filename": "one.md",
        "sources": [{"variant": null, "sourceHash": "a", "importedHash": "i"},
            {"variant": "de", "sourceHash": "c", "importedHash": "i"}]})
    );
    assert_eq!(
        listed[1]["sources"],
        json!([{"variant": null, "sourceHash": "b", "importedHash": "i"}])
    );
    // A later source replaces it, addressed by the variant's id or key.
    save(&service, json!([source(&first, Some(&variant), "later")])).await;
    let listed = service.get(SOURCES).await.body;
    assert_eq!(listed[0]["sources"][1]["sourceHash"], "later");
    service.delete(&format!("/variants?id={variant}")).await;
    service.delete(&format!("/content-pieces?id={second}")).await;
    let listed = service.get(SOURCES).await.body;
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["sources"].as_array().unwrap().len(), 1);
}

#[on_both_engines]
async fn sources_are_listed_in_pages(store: TestStore) {
    let service = Service::start(store).await;
    let mut ids = Vec::new();
    for number in 0..5 {
        let id = service.create("/content-pieces", &service.piece(&format!("p{number}"))).await;
        save(&service, json!([source(&id, None, &format!("h{number}"))])).await;
        ids.push(id);
    }
    let below = json!({"name": "below", "ancestor": service.home.group});
    let below = service.create("/content-groups", &below).await;
    let nested =
        service.create("/content-pieces", &crate::service::piece_in(&below, "nested")).await;
    let group = &service.home.group;
    let mut seen: Vec<String> = Vec::new();
    loop {
        let after = seen.last().map(|id| format!("&lastId={id}")).unwrap_or_default();
        let page =
            service.get(&format!("{SOURCES}?contentGroupId={group}&perPage=2{after}")).await.body;
        let page = page.as_array().unwrap().clone();
        if page.is_empty() {
            break;
        }
        seen.extend(page.iter().map(|piece| piece["id"].as_str().unwrap().to_owned()));
    }
    assert_eq!(seen, ids);
    let whole = service.get(&format!("{SOURCES}?contentGroupId={group}&subtree=true")).await.body;
    assert_eq!(whole.as_array().unwrap().len(), 6);
    assert_eq!(whole[5]["id"], json!(nested));
}

#[on_both_engines]
async fn several_sources_are_saved_together_or_not_at_all(store: TestStore) {
    let service = Service::start(store).await;
    let piece = service.create("/content-pieces", &service.piece("one")).await;
    let gone = service.create("/content-pieces", &service.piece("gone")).await;
    service.delete(&format!("/content-pieces?id={gone}")).await;
    let body = json!({"sources": [source(&piece, None, "a"), source(&gone, None, "b")]});
    let answer = service.put(SOURCES, &body).await;
    answer.assert_problem(400, "unknown_reference", &["sources[1].contentPieceId"]);
    assert_eq!(service.get(SOURCES).await.body[0]["sources"], json!([]));
}
