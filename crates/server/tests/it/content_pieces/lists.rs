//! Filters, sort keys and bounds of lists.

use galley_storage::{Affects, WriteTx};
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use super::{full_piece, walk_by_last_order, walk_by_link};
use crate::service::{Service, TestResponse, piece_in};

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
async fn lists_filter_by_several_tags_a_member_and_an_overridden_variant(store: TestStore) {
    let service = Service::start(store).await;
    let member = service.home.made.member.to_string();
    let [red, blue, green] = [
        service.create("/tags", &json!({"label": "red"})).await,
        service.create("/tags", &json!({"label": "blue"})).await,
        service.create("/tags", &json!({"label": "green"})).await,
    ];
    service.create("/variants", &json!({"key": "pt-BR", "label": "Portuguese"})).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let mut ids = Vec::new();
    for (slug, tags, members) in [
        ("a", vec![&red], vec![&member]),
        ("b", vec![&blue, &red], vec![]),
        ("c", vec![&blue], vec![&member]),
        ("d", vec![], vec![&member]),
        ("e", vec![&green], vec![]),
    ] {
        let mut body = service.piece(slug);
        body["tags"] = json!(tags);
        body["members"] = json!(members);
        ids.push(service.create("/content-pieces", &body).await);
    }
    for change in [
        json!({"id": ids[0], "variant": "PT-br", "title": "Título"}),
        json!({"id": ids[3], "variant": "pt-br", "content": "<p>Olá</p>"}),
        json!({"id": ids[3], "variant": "de", "tags": [red, green], "members": []}),
        json!({"id": ids[4], "variant": "de", "slug": "e-de"}),
    ] {
        assert_eq!(service.put("/content-pieces", &change).await.status, 204, "{change}");
    }
    for (query, slugs) in [
        (format!("tagId={red},{blue}"), vec!["a", "b", "c"]),
        (format!("tagId={blue}&tagId={red}&sort=-order"), vec!["c", "b", "a"]),
        (format!("tagId={red},{blue}&perPage=1&page=2"), vec!["b"]),
        (format!("tagId={red},{red}"), vec!["a", "b"]),
        (format!("tagId={red},nonsense,{blue}"), vec!["a", "b", "c"]),
        (format!("tagId={red},{blue}&allTags=true"), vec!["b"]),
        (format!("tagId={red}&allTags=true"), vec!["a", "b"]),
        (format!("tagId={red},nonsense&allTags=true"), vec![]),
        (format!("tagId={red},{green}&allTags=true"), vec![]),
        ("allTags=true&slug=d".to_owned(), vec!["d"]),
        (format!("tagId={red},{green}&variant=de"), vec!["a", "b", "d", "e-de"]),
        (format!("tagId={red},{green}&variant=de&allTags=true"), vec!["d"]),
        (format!("memberId={member}"), vec!["a", "c", "d"]),
        (format!("memberId={member}&variant=de"), vec!["a", "c"]),
        (format!("memberId={member}&tagId={red},{blue}&sort=-title"), vec!["c", "a"]),
        ("memberId=wm_00000000000000000000000000".to_owned(), vec![]),
        ("memberId=nonsense".to_owned(), vec![]),
        ("hasVariant=PT-BR".to_owned(), vec!["a", "d"]),
        ("hasVariant=pt-br&perPage=1&page=2".to_owned(), vec!["d"]),
        ("hasVariant=de&variant=de".to_owned(), vec!["d", "e-de"]),
        (format!("hasVariant=pt-BR&memberId={member}&tagId={red}"), vec!["a"]),
        ("hasVariant=fr".to_owned(), vec![]),
        ("hasVariant=&slug=b".to_owned(), vec!["b"]),
        ("withoutVariant=PT-br".to_owned(), vec!["b", "c", "e"]),
        ("withoutVariant=pt-br&perPage=1&page=2".to_owned(), vec!["c"]),
        ("withoutVariant=de&hasVariant=pt-br".to_owned(), vec!["a"]),
        (format!("withoutVariant=de&tagId={red},{green}&variant=de"), vec!["a", "b"]),
        (format!("withoutVariant=pt-br&memberId={member}"), vec!["c"]),
        ("withoutVariant=fr".to_owned(), vec![]),
        ("withoutVariant=&slug=b".to_owned(), vec!["b"]),
    ] {
        let list = service.get(&format!("/content-pieces/list?{query}")).await;
        assert_eq!(list.status, 200, "{query}: {list:?}");
        assert_eq!(list.column("slug"), slugs, "{query}");
        assert_eq!(list.header("total-count"), "", "{query}");
        let all = query.replace("perPage=1&page=2", "");
        let list = service.get(&format!("/content-pieces/list?{all}&perPage=1000")).await;
        let count = list.column("slug").len().to_string();
        let list = service.get(&format!("/content-pieces/list?{query}&total=true")).await;
        assert_eq!(list.column("slug"), slugs, "{query}");
        assert_eq!(list.header("total-count"), count, "{query}");
    }
    let walked = walk_by_link(&service, &format!("tagId={red},{blue},{green}&perPage=1")).await;
    assert_eq!(walked, ["a", "b", "c", "e"]);
    let many = format!("/content-pieces/list?tagId={}", vec![red.as_str(); 21].join(","));
    service.get(&many).await.assert_problem(400, "validation", &["tagId"]);
}

#[on_both_engines]
async fn totals_are_exact_up_to_ten_thousand(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create("/content-pieces", &service.piece("first")).await;
    let statement = |count: u32| {
        format!(
            "INSERT INTO content_pieces (workspace_id, id, content_group_id, order_key,
                placed_at_ms, version, created_at_ms, updated_at_ms, title, slug, tag_ids,
                member_ids)
             SELECT p.workspace_id,
                'cp_0000000000000000' || substr(CAST(10000000000 + n.n AS TEXT), 2),
                p.content_group_id,
                p.order_key || substr(CAST(100000 + n.n AS TEXT), 2), 0, 1, 0, 0, 'x', 'copy', '',
                ''
             FROM content_pieces p, (WITH RECURSIVE n(n) AS (
                SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count}) SELECT n FROM n) n
             WHERE p.slug = 'first'"
        )
    };
    let sql = statement(9_999);
    let insert = async move |tx: &WriteTx<'_>| tx.execute(&sql, &[], Affects::Everything).await;
    service.database.write::<_, galley_storage::Error, _>("test", insert).await.unwrap();
    let counted = async |query: &str| {
        let list = service.get(&format!("/content-pieces/list?total=true&perPage=1&{query}")).await;
        assert_eq!(list.status, 200, "{list:?}");
        list.header("total-count").to_owned()
    };
    assert_eq!(counted("").await, "10000");
    assert_eq!(counted("slug=copy").await, "9999");
    service.create("/content-pieces", &service.piece("another")).await;
    assert_eq!(counted("").await, "10000+");
    assert_eq!(counted("slug=copy").await, "9999");
    assert_eq!(counted(&format!("ids={id}")).await, "1");
    assert_eq!(counted("slug=none").await, "0");
    assert_eq!(counted("tagId=nonsense").await, "0");
}

#[on_both_engines]
async fn a_conditional_list_reports_the_current_total(store: TestStore) {
    let service = Service::start(store).await;
    service.create("/content-pieces", &service.piece("a")).await;
    let path = "/content-pieces/list?perPage=1&total=true&fields=slug";
    let first = service.get(path).await;
    assert_eq!(first.header("total-count"), "1");
    service.create("/content-pieces", &service.piece("b")).await;
    let request = service.request(Method::GET, path).bearer_auth(&service.home.token);
    let request = request.header("if-none-match", first.header("etag"));
    let again = TestResponse::of(request).await;
    assert_eq!((again.status.as_u16(), again.header("total-count")), (304, "2"));
}

#[on_both_engines]
async fn reads_return_the_selected_fields(store: TestStore) {
    let service = Service::start(store).await;
    let (id, _) = full_piece(&service).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let body = json!({"id": id, "variant": "de", "title": "Titel", "customData": "[1.0]"});
    assert_eq!(service.put("/content-pieces", &body).await.status, 204);
    for variant in ["", "&variant=de"] {
        let query = format!("content=true&contentFormat=html&description=text{variant}");
        let whole = service.get(&format!("/content-pieces?id={id}&{query}")).await.body;
        let names: Vec<&str> = whole.as_object().unwrap().keys().map(String::as_str).collect();
        let all = names.join(",");
        let same = service.get(&format!("/content-pieces?id={id}&{query}&fields={all}")).await;
        assert_eq!(same.body, whole, "every field has a name in the selection");
        for (fields, selected) in [
            ("title", vec!["id", "title"]),
            ("slug,%20title,slug&fields=tags", vec!["id", "slug", "tags", "title"]),
            ("id", vec!["id"]),
            ("content", vec!["content", "id"]),
            ("customData,description", vec!["customData", "description", "id"]),
            ("variants,members,order", vec!["id", "members", "order", "variants"]),
        ] {
            let query = format!("contentFormat=html&description=text{variant}&fields={fields}");
            let mut expected = json!({});
            for name in &selected {
                expected[name] = whole[name].clone();
            }
            let one = service.get(&format!("/content-pieces?id={id}&{query}")).await;
            assert_eq!(one.body, expected, "{query}");
            let list = service.get(&format!("/content-pieces/list?{query}")).await;
            assert_eq!(list.body, json!([expected]), "{query}");
        }
        let value = format!("fields=customData&customData=object{variant}");
        let one = service.get(&format!("/content-pieces?id={id}&{value}")).await.body;
        assert!(one["customData"].is_object() || one["customData"].is_array(), "{one}");
        let path = format!("/content-pieces?id={id}&fields=slug&content=1{variant}");
        assert_eq!(service.get(&path).await.body["content"]["type"], "doc");
    }
    for (fields, message) in [
        ("titel", "fields has an unknown field; did you mean title?"),
        ("title,x", "fields may have only id, date, title,"),
    ] {
        let answer = service.get(&format!("/content-pieces/list?fields={fields}")).await;
        answer.assert_problem(400, "validation", &["fields"]);
        let shown = answer.body["issues"][0]["message"].as_str().unwrap();
        assert!(shown.starts_with(message), "{shown}");
    }
}

#[on_both_engines]
async fn a_piece_names_the_variants_that_it_overrides(store: TestStore) {
    let service = Service::start(store).await;
    let german = service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let french = service.create("/variants", &json!({"key": "fr", "label": "French"})).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let path = format!("/content-pieces?id={id}");
    assert_eq!(service.get(&path).await.body["variants"], json!([]));
    for (change, variants) in [
        (json!({"variant": "fr", "title": "Titre"}), json!(["fr"])),
        (json!({"variant": "de", "content": "<p>Hallo</p>"}), json!(["de", "fr"])),
        (json!({"variant": "de", "title": "Titel"}), json!(["de", "fr"])),
        (json!({"variant": "de", "content": null}), json!(["de", "fr"])),
        (json!({"variant": "de", "title": null}), json!(["fr"])),
        (json!({"variant": "de", "tags": []}), json!(["fr"])),
        (json!({"title": "New"}), json!(["fr"])),
    ] {
        let mut body = change.clone();
        body["id"] = json!(id);
        assert_eq!(service.put("/content-pieces", &body).await.status, 204, "{change}");
        let piece = service.get(&path).await.body;
        assert_eq!(piece["variants"], variants, "{change}");
        let list = service.get("/content-pieces/list?variant=de").await;
        assert_eq!(list.body[0]["variants"], variants, "{change}");
    }
    let events = service.events_after(0).await;
    let event = events.iter().rev().find(|event| event.data.contains("Titel")).unwrap();
    let data: Value = serde_json::from_str(&event.data).unwrap();
    assert_eq!((&data["variant"], &data["variants"]), (&json!("de"), &json!(["de", "fr"])));

    let tag_before = service.get(&path).await.header("etag").to_owned();
    service.put("/variants", &json!({"id": french, "key": "fr-CA"})).await;
    let renamed = service.get(&path).await;
    assert_eq!(renamed.body["variants"], json!(["fr-CA"]));
    assert_ne!(renamed.header("etag"), tag_before);
    service.delete(&format!("/variants?id={german}")).await;
    assert_eq!(service.get(&path).await.body["variants"], json!(["fr-CA"]));
    service.delete(&format!("/variants?id={french}")).await;
    assert_eq!(service.get(&path).await.body["variants"], json!([]));
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
