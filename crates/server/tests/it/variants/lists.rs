//! Lists in a variant.

use std::time::Duration;

use galley_testing::{TestStore, on_both_engines};
use serde_json::json;

use super::{change, variant, with};
use crate::content_pieces::{walk_by_last_order, walk_by_link};
use crate::service::{Service, piece_in};

#[on_both_engines]
async fn lists_match_slug_and_tag_in_the_variant(store: TestStore) {
    let service = Service::start(store).await;
    variant(&service, "de").await;
    let group = service.create("/content-groups", &json!({"name": "Other"})).await;
    let red = service.create("/tags", &json!({"label": "red"})).await;
    let blue = service.create("/tags", &json!({"label": "blue"})).await;
    for (slug, tags, overrides) in [
        ("plain", json!([red]), json!({})),
        ("titled", json!([red]), json!({"title": "Titel"})),
        ("renamed", json!([red]), json!({"slug": "neu"})),
        ("tagged", json!([red]), json!({"tags": [blue]})),
        ("bare", json!([red]), json!({"tags": []})),
        ("taken", json!([blue]), json!({"slug": "plain", "tags": [red, blue]})),
    ] {
        let body = with(service.piece(slug), &json!({"tags": tags}));
        let id = service.create("/content-pieces", &body).await;
        change(&service, &with(json!({"id": id, "variant": "de"}), &overrides)).await;
    }
    let elsewhere = with(piece_in(&group, "neu"), &json!({"tags": [blue]}));
    service.create("/content-pieces", &elsewhere).await;
    for (query, own, german) in [
        ("slug=plain".to_owned(), vec!["plain"], vec!["plain", "plain"]),
        ("slug=renamed".to_owned(), vec!["renamed"], vec![]),
        ("slug=neu".to_owned(), vec!["neu"], vec!["neu", "neu"]),
        (format!("slug=neu&contentGroupId={group}"), vec!["neu"], vec!["neu"]),
        ("slug=titled".to_owned(), vec!["titled"], vec!["titled"]),
        (
            format!("tagId={red}"),
            vec!["plain", "titled", "renamed", "tagged", "bare"],
            vec!["plain", "titled", "neu", "plain"],
        ),
        (format!("tagId={blue}"), vec!["taken", "neu"], vec!["tagged", "plain", "neu"]),
        (format!("tagId={blue}&slug=plain"), vec![], vec!["plain"]),
        (
            format!("tagId={red}&sort=-createdAt&perPage=2"),
            vec!["bare", "tagged"],
            vec!["plain", "neu"],
        ),
        (format!("tagId={red}&perPage=1&page=3"), vec!["renamed"], vec!["neu"]),
    ] {
        let list = service.get(&format!("/content-pieces/list?{query}")).await;
        assert_eq!(list.column("slug"), own, "{query}");
        let list = service.get(&format!("/content-pieces/list?variant=de&{query}")).await;
        assert_eq!(list.column("slug"), german, "{query} in the variant");
    }
}

#[on_both_engines]
async fn lists_of_a_variant_sort_and_page_by_overridden_values(store: TestStore) {
    let service = Service::start(store).await;
    variant(&service, "de").await;
    let mut ids = Vec::new();
    for (slug, title, date, overrides) in [
        ("a", "M", json!("2020-01-01"), json!({"title": "Z"})),
        ("b", "N", json!(null), json!({"date": "2030-01-01"})),
        ("c", "O", json!("2010-01-01"), json!({"title": "A", "date": "2000-01-01"})),
        ("d", "P", json!(null), json!({})),
        ("e", "A", json!("2015-01-01"), json!({"filename": "e.md"})),
    ] {
        let body = with(service.piece(slug), &json!({"title": title, "date": date}));
        let id = service.create("/content-pieces", &body).await;
        change(&service, &with(json!({"id": id, "variant": "de"}), &overrides)).await;
        ids.push(id);
    }
    for id in [&ids[3], &ids[0]] {
        service.advance_clock(Duration::from_millis(3));
        change(&service, &json!({"id": id, "filename": "touched"})).await;
    }
    for (sort, slugs) in [
        ("order", ["a", "b", "c", "d", "e"]),
        ("createdAt", ["a", "b", "c", "d", "e"]),
        ("updatedAt", ["b", "c", "e", "d", "a"]),
        ("title", ["c", "e", "b", "d", "a"]),
        ("date", ["d", "c", "e", "a", "b"]),
    ] {
        let mut expected = slugs.map(str::to_owned).to_vec();
        for sort in [sort.to_owned(), format!("-{sort}")] {
            let query = format!("variant=de&sort={sort}");
            let list = service.get(&format!("/content-pieces/list?{query}")).await;
            assert_eq!(list.column("slug"), expected, "{sort}");
            let walked = walk_by_link(&service, &format!("{query}&perPage=1")).await;
            assert_eq!(walked, expected, "{sort} by Link");
            let walked = walk_by_last_order(&service, &query).await;
            assert_eq!(walked, expected, "{sort} by lastOrder");
            expected.reverse();
        }
    }
    let own = service.get("/content-pieces/list?sort=title").await;
    assert_eq!(own.column("slug"), ["e", "a", "b", "c", "d"], "the pieces' own titles");
}
