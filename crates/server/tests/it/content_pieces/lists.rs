//! Filters, sort keys and bounds of lists.

use galley_testing::{TestStore, on_both_engines};
use serde_json::{Value, json};

use super::{full_piece, walk_by_last_order, walk_by_link};
use crate::service::{Service, piece_in};

#[on_both_engines]
async fn lists_filter_by_group_subtree_slug_and_tag(store: TestStore) {
    let service = Service::start(store).await;
    let top = service.create("/content-groups", &json!({"name": "Top"})).await;
    let under = service.create("/content-groups", &json!({"name": "Under", "ancestor": top})).await;
    let tag = service.create("/tags", &json!({"label": "t"})).await;
    for (group, slug, tags) in [
        (&service.home.group, "a", json!([])),
        (&top, "b", json!([tag])),
        (&under, "c", json!([tag])),
        (&under, "a", json!([tag])),
    ] {
        let mut body = piece_in(group, slug);
        body["tags"] = tags;
        service.create("/content-pieces", &body).await;
    }
    let home = &service.home.group;
    for (query, slugs) in [
        (String::new(), vec!["a", "b", "c", "a"]),
        (format!("contentGroupId={top}"), vec!["b"]),
        (format!("contentGroupId={top}&subtree=true"), vec!["b", "c", "a"]),
        (format!("contentGroupId={home},{under}"), vec!["a", "c", "a"]),
        (format!("contentGroupId={home}&contentGroupId={top}"), vec!["a", "b"]),
        ("slug=a".to_owned(), vec!["a", "a"]),
        (format!("slug=a&contentGroupId={under}"), vec!["a"]),
        (format!("tagId={tag}"), vec!["b", "c", "a"]),
        (format!("tagId={tag}&contentGroupId={under}&slug=c"), vec!["c"]),
        (format!("tagId={tag}&perPage=2"), vec!["b", "c"]),
        (format!("tagId={tag}&perPage=2&page=2"), vec!["a"]),
        ("tagId=tag_00000000000000000000000000".to_owned(), vec![]),
        ("tagId=nonsense".to_owned(), vec![]),
        ("contentGroupId=cg_00000000000000000000000000".to_owned(), vec![]),
        ("contentGroupId=nonsense".to_owned(), vec![]),
        ("contentGroupId=%20,,%20".to_owned(), vec![]),
        (format!("contentGroupId=nonsense,{top}"), vec!["b"]),
        ("slug=none".to_owned(), vec![]),
        ("page=7".to_owned(), vec![]),
    ] {
        let list = service.get(&format!("/content-pieces/list?{query}")).await;
        assert_eq!(list.status, 200, "{query}: {list:?}");
        assert_eq!(list.column("slug"), slugs, "{query}");
    }
}

#[on_both_engines]
async fn lists_filter_by_ids_and_times(store: TestStore) {
    let service = Service::start(store).await;
    let mut ids = Vec::new();
    for (slug, date) in [
        ("a", json!("2026-05-01")),
        ("b", json!(null)),
        ("c", json!("2026-05-31T23:59:59.999Z")),
        ("d", json!("2026-06-01")),
    ] {
        let mut body = service.piece(slug);
        body["date"] = date;
        ids.push(service.create("/content-pieces", &body).await);
    }
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    for (id, date) in [(&ids[0], json!("2027-01-01")), (&ids[1], json!("2026-05-20"))] {
        service.advance_clock(std::time::Duration::from_secs(1));
        let body = json!({"id": id, "variant": "de", "date": date});
        assert_eq!(service.put("/content-pieces", &body).await.status, 204);
    }
    let second = service.get(&format!("/content-pieces?id={}", ids[1])).await;
    let since = second.body["updatedAt"].as_str().unwrap();
    service.advance_clock(std::time::Duration::from_secs(1));
    service.put("/content-pieces", &json!({"id": ids[2], "filename": "touched"})).await;
    let (a, b, d) = (&ids[0], &ids[1], &ids[3]);
    for (query, slugs) in [
        (format!("ids={d},{a}"), vec!["a", "d"]),
        (format!("ids={d}&ids={a},cp_00000000000000000000000000,nonsense"), vec!["a", "d"]),
        (format!("ids={d},{a}&sort=-title&dateFrom=2026-06-01"), vec!["d"]),
        ("ids=nonsense".to_owned(), vec![]),
        ("ids=,".to_owned(), vec![]),
        (format!("updatedSince={since}"), vec!["b", "c"]),
        (format!("updatedSince={since}&sort=-updatedAt"), vec!["c", "b"]),
        ("updatedSince=2999-01-01".to_owned(), vec![]),
        ("dateFrom=2026-05-01".to_owned(), vec!["a", "c", "d"]),
        ("dateFrom=2026-05-01T00:00:00.001".to_owned(), vec!["c", "d"]),
        ("dateTo=2026-05-31".to_owned(), vec!["a", "c"]),
        ("dateTo=2026-05-31T23:59:59".to_owned(), vec!["a"]),
        ("dateTo=2026-06-01T02:00:00%2B02:00&sort=-date".to_owned(), vec!["d", "c", "a"]),
        ("dateFrom=2026-05-02&dateTo=2026-05-31".to_owned(), vec!["c"]),
        ("dateFrom=2026-05-02&dateTo=2026-05-01".to_owned(), vec![]),
        ("dateTo=2026-05-31&variant=de".to_owned(), vec!["b", "c"]),
        (format!("dateFrom=2026-06-01&variant=de&ids={a},{b}"), vec!["a"]),
        ("dateFrom=2026-05-01&perPage=1&page=2".to_owned(), vec!["c"]),
        (format!("ids={d},{a}&perPage=1&page=2"), vec!["d"]),
    ] {
        let list = service.get(&format!("/content-pieces/list?{query}")).await;
        assert_eq!(list.status, 200, "{query}: {list:?}");
        assert_eq!(list.column("slug"), slugs, "{query}");
    }
    let query = "dateFrom=2026-05-01&sort=-date&perPage=1";
    assert_eq!(walk_by_link(&service, query).await, ["d", "c", "a"]);
    let plus = service.get("/content-pieces/list?dateTo=2026-05-31T00:00:00+01:00").await;
    plus.assert_problem(400, "validation", &["dateTo"]);
    assert_eq!(plus.body["issues"][0]["message"], "dateTo must have its + written as %2B");
    let many = format!("/content-pieces/list?ids={}", vec![a.as_str(); 101].join(","));
    service.get(&many).await.assert_problem(400, "validation", &["ids"]);
}

#[on_both_engines]
async fn lists_sort_by_every_key_both_ways(store: TestStore) {
    let service = Service::start(store).await;
    let mut ids = Vec::new();
    for (slug, title, date) in [
        ("a", "Zebra", json!("2020-01-01")),
        ("b", "apple", json!(null)),
        ("c", "Apple", json!("2010-01-01")),
        ("d", "Zebra", json!("2020-01-01")),
    ] {
        let mut body = service.piece(slug);
        body["title"] = json!(title);
        body["date"] = date;
        ids.push(service.create("/content-pieces", &body).await);
    }
    // The pieces updated last come last.
    for id in [&ids[1], &ids[0]] {
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
        service.put("/content-pieces", &json!({"id": id, "filename": "touched"})).await;
    }
    for (sort, slugs) in [
        ("order", ["a", "b", "c", "d"]),
        ("createdAt", ["a", "b", "c", "d"]),
        ("updatedAt", ["c", "d", "b", "a"]),
        ("date", ["b", "c", "a", "d"]),
        ("title", ["c", "a", "d", "b"]),
    ] {
        let mut expected: Vec<String> = slugs.iter().map(|slug| (*slug).to_owned()).collect();
        let list = service.get(&format!("/content-pieces/list?sort={sort}")).await;
        assert_eq!(list.column("slug"), expected, "{sort}");
        expected.reverse();
        let list = service.get(&format!("/content-pieces/list?sort=-{sort}")).await;
        assert_eq!(list.column("slug"), expected, "-{sort}");
        assert_eq!(walk_by_link(&service, &format!("sort=-{sort}&perPage=1")).await, expected);
        assert_eq!(walk_by_last_order(&service, &format!("sort=-{sort}")).await, expected);
    }
}

#[on_both_engines]
async fn a_list_includes_content_on_request(store: TestStore) {
    let service = Service::start(store).await;
    let (id, _) = full_piece(&service).await;
    let one = service.get(&format!("/content-pieces?id={id}&content=true&description=text")).await;
    let list = service.get("/content-pieces/list?content=true&description=text").await;
    assert_eq!(list.body, json!([one.body]));
    let html = service.get("/content-pieces/list?content=true&contentFormat=html").await;
    assert_eq!(html.body[0]["content"], "<h2>Hi</h2><p>Hello <strong>world</strong></p>");
    let tags_of_list = &list.body[0]["tags"];
    assert_eq!(tags_of_list[0]["label"], "News");
}

#[on_both_engines]
async fn list_parameters_out_of_bounds_are_reported(store: TestStore) {
    let service = Service::start(store).await;
    let bad = "page=0&perPage=1001&content=maybe&sort=size&contentFormat=xml&description=pdf\
        &customData=yaml&lastOrder=!&subtree=2";
    let answer = service.get(&format!("/content-pieces/list?{bad}")).await;
    let paths = [
        "page",
        "perPage",
        "content",
        "sort",
        "contentFormat",
        "description",
        "customData",
        "lastOrder",
        "subtree",
    ];
    answer.assert_problem(400, "validation", &paths);
    let answer = service.get("/content-pieces/list?perPage=101&content=true").await;
    answer.assert_problem(400, "validation", &["perPage"]);
    let answer = service.get("/content-pieces/list?cursor=zzz").await;
    answer.assert_problem(400, "validation", &["cursor"]);
}

#[on_both_engines]
async fn every_change_is_one_event_with_the_resource(store: TestStore) {
    let service = Service::start(store).await;
    let (id, _) = full_piece(&service).await;
    let piece = service.get(&format!("/content-pieces?id={id}")).await.body;
    let events = service.events_after(1).await;
    assert_eq!(events.len(), 1, "the first event is that of the tag");
    assert_eq!((events[0].sequence, events[0].event_type.as_str()), (2, "contentPieceAdded"));
    assert_eq!(serde_json::from_str::<Value>(&events[0].data).unwrap(), piece);

    service.put("/content-pieces", &json!({"id": id, "title": "New"})).await;
    let piece = service.get(&format!("/content-pieces?id={id}")).await.body;
    let events = service.events_after(2).await;
    assert_eq!((events[0].sequence, events[0].event_type.as_str()), (3, "contentPieceUpdated"));
    assert_eq!(serde_json::from_str::<Value>(&events[0].data).unwrap(), piece);

    service.delete(&format!("/content-pieces?id={id}")).await;
    let events = service.events_after(3).await;
    assert_eq!((events[0].sequence, events[0].event_type.as_str()), (4, "contentPieceRemoved"));
    assert_eq!(serde_json::from_str::<Value>(&events[0].data).unwrap(), piece);
}
