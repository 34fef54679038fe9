//! The number of statements per request is independent of the page size.

use std::collections::BTreeMap;

use galley_testing::{TestStore, on_both_engines};
use serde_json::json;

use crate::service::Service;

#[on_both_engines]
async fn a_list_takes_four_statements_or_five_in_a_variant_at_any_size(store: TestStore) {
    let service = Service::start(store).await;
    let mut tags = Vec::new();
    for label in ["a", "b", "c"] {
        tags.push(service.create("/tags", &json!({"label": label})).await);
    }
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let pieces: Vec<_> = (0..1_000)
        .map(|number| {
            let mut body = service.piece(&format!("p{number}"));
            body["tags"] = json!([tags[number % 3], tags[(number + 1) % 3]]);
            body["members"] = json!([service.home.made.member.to_string()]);
            body
        })
        .collect();
    for pieces in pieces.chunks(100) {
        let body = json!({"pieces": pieces});
        assert_eq!(service.post("/content-pieces/batch", &body).await.status, 201);
    }
    for id in service.get("/content-pieces/list?perPage=100&fields=id").await.column("id") {
        let body = json!({"id": id, "variant": "de", "title": "Titel", "tags": [tags[0]]});
        assert_eq!(service.put("/content-pieces", &body).await.status, 204);
    }
    for (size, query) in [
        (1, "perPage=1".to_owned()),
        (20, "perPage=20".to_owned()),
        (100, "perPage=100&content=true".to_owned()),
        (100, "perPage=100&sort=-updatedAt&content=true&contentFormat=html".to_owned()),
        (1_000, "perPage=1000".to_owned()),
        (333, format!("perPage=333&tagId={}", tags[0])),
        (667, format!("perPage=667&tagId={},{}", tags[0], tags[1])),
        (333, format!("perPage=333&tagId={},{}&allTags=true", tags[0], tags[1])),
        (1_000, format!("perPage=1000&memberId={}", service.home.made.member)),
        (1_000, "perPage=1000&updatedSince=2020-01-01&sort=updatedAt".to_owned()),
        (1_000, format!("perPage=1000&contentGroupId={}", service.home.group)),
    ] {
        service.forget_statements().await;
        let list = service.get(&format!("/content-pieces/list?{query}")).await;
        assert_eq!(list.column("id").len(), size, "{query}");
        let statements = without_background_statements(service.statements.take());
        let count: u64 = statements.values().sum();
        // One more statement looks up the token.
        assert!(count <= 1 + 4, "{query} took {statements:#?}");

        service.forget_statements().await;
        let list = service.get(&format!("/content-pieces/list?{query}&variant=de")).await;
        assert_eq!(list.status, 200, "{query}");
        let statements = without_background_statements(service.statements.take());
        let count: u64 = statements.values().sum();
        assert!(count <= 1 + 5, "{query} in a variant took {statements:#?}");
    }
}

/// Removes statements of deliveries, mails, order keys, autosaves and searches, which run in the
/// background.
pub(crate) fn without_background_statements(
    mut statements: BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    let is_background = |sql: &str| {
        [
            "webhook_queues",
            "order_spreads",
            "FROM mails",
            "last_used_at_ms =",
            "event_due_at_ms <=",
            "MIN(due_at_ms)",
            "LEFT JOIN search_indexes",
        ]
        .iter()
        .any(|one| sql.contains(one))
    };
    statements.retain(|sql, _| !is_background(sql));
    statements
}
