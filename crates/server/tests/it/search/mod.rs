//! `/content-pieces/search`.

mod matches;

use std::time::{Duration, Instant};

use galley_domain::ContentPieceId;
use galley_storage::search_indexes::SearchIndex;
use galley_storage::{Tx, WriteTx, content_pieces, search_indexes};
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{SITE, Service, TestResponse, piece_in};

/// The longest time until a change is indexed.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Returns a path with a query.
fn path(query: &str, more: &str) -> String {
    let encoded: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
    format!("/content-pieces/search?query={encoded}{more}")
}

/// Searches with a token once the index has all events.
async fn search_as(service: &Service, token: &str, path: &str) -> TestResponse {
    let (last, started) = (service.last_sequence().await, Instant::now());
    loop {
        let found = service.send_as(token, Method::GET, path, None).await;
        assert_eq!(found.status, 200, "{path}: {found:?}");
        if found.header("search-sequence").parse::<i64>().unwrap() >= last {
            return found;
        }
        assert!(started.elapsed() < TIMEOUT, "the index stays behind");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn search(service: &Service, query: &str, more: &str) -> TestResponse {
    search_as(service, &service.home.token, &path(query, more)).await
}

/// Returns the slugs of the hits, in order.
fn slugs(found: &TestResponse) -> Vec<String> {
    let hits = found.body.as_array().unwrap().iter();
    hits.map(|hit| hit["piece"]["slug"].as_str().unwrap().to_owned()).collect()
}

async fn found(service: &Service, query: &str, more: &str) -> Vec<String> {
    slugs(&search(service, query, more).await)
}

/// Waits until a search has these hits, as changes of many pieces take effect after their events.
async fn finds_in_time(service: &Service, query: &str, more: &str, expected: &[&str]) {
    let started = Instant::now();
    loop {
        let slugs = found(service, query, more).await;
        if slugs == expected {
            return;
        }
        assert!(started.elapsed() < TIMEOUT, "{query} finds {slugs:?}, not {expected:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Creates a piece with some fields.
async fn create(service: &Service, slug: &str, fields: Value) -> String {
    service.create("/content-pieces", &with_fields(service.piece(slug), &fields)).await
}

fn with_fields(mut body: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[on_both_engines]
async fn the_most_relevant_pieces_come_first_with_their_matches(store: TestStore) {
    let service = Service::start(store).await;
    let text = "Boats leave the old town. ".repeat(20);
    create(&service, "content", json!({"title": "News",
        "content": format!("<p>{text}</p><p>The <b>ferry</b> to the islands \u{1f6a2} is late.</p>")}))
    .await;
    create(&service, "title", json!({"title": "A \u{1f6a2} ferry", "content": text})).await;
    create(
        &service,
        "description",
        json!({"title": "Times", "description": "<p>Of <i>ferries</i>:
        the ferry &amp; more</p>", "content": text}),
    )
    .await;
    create(&service, "other", json!({"title": "Trains", "content": text})).await;
    let answer = search(&service, "Ferry", "&fields=slug").await;
    assert_eq!(slugs(&answer), ["title", "description", "content"]);
    let hits = answer.body.as_array().unwrap();
    let scores: Vec<f64> = hits.iter().map(|hit| hit["score"].as_f64().unwrap()).collect();
    assert_eq!(hits[0]["score"], json!(1));
    assert!(scores[1] < 1.0 && scores[2] < scores[1] && scores[2] > 0.0);
    let title = &hits[0]["highlights"]["title"];
    assert_eq!(*title, json!({"text": "A \u{1f6a2} ferry", "ranges": [{"start": 5, "end": 10}]}));
    assert_eq!(hits[0]["highlights"]["content"], json!([]));
    let description = &hits[1]["highlights"]["description"];
    assert_eq!(description["text"], "Of ferries: the ferry & more");
    assert_eq!(description["ranges"], json!([{"start": 16, "end": 21}]));
    let passages = hits[2]["highlights"]["content"].as_array().unwrap();
    let [passage] = passages.as_slice() else { panic!("{passages:?}") };
    let units: Vec<u16> = passage["text"].as_str().unwrap().encode_utf16().collect();
    let place = |name: &str| passage["ranges"][0][name].as_u64().unwrap() as usize;
    assert_eq!(String::from_utf16_lossy(&units[place("start")..place("end")]), "ferry");
    // All words must match, and a query without terms finds nothing.
    assert_eq!(found(&service, "ferry islands", "").await, ["content"]);
    assert_eq!(found(&service, "\"old town\" -ferry", "").await, ["other"]);
    assert_eq!(found(&service, "title:fer*", "").await, ["title"]);
    for query in ["", " ", "-ferry", "\"", "*", "title:", "();:'\\%_"] {
        assert_eq!(found(&service, query, "").await, [""; 0], "{query:?}");
    }
    let with_content = search(&service, "islands", "&content=true&contentFormat=markdown").await;
    let content = with_content.body[0]["piece"]["content"].as_str().unwrap();
    assert!(content.contains("**ferry**"), "{content}");
    assert!(answer.body[0]["piece"].get("content").is_none());
}

#[on_both_engines]
async fn words_in_a_row_are_more_relevant_than_the_same_words_apart(store: TestStore) {
    let service = Service::start(store).await;
    let group = service.home.group.clone();
    let limited = service.token("contentPieces:read", Some(&[&group])).await;
    let others = "Some other words are between these. ".repeat(8);
    let row = format!("{others}A slow ferry to the islands is late. {others}");
    create(&service, "row", json!({"title": "Times", "content": row})).await;
    for number in 0..20 {
        let apart =
            format!("A slow train to town. {others} The ferry is here. {others} Two islands.");
        create(&service, &format!("apart-{number}"), json!({"title": "News", "content": apart}))
            .await;
    }
    for token in [&service.home.token, &limited] {
        let answer = search_as(&service, token, &path("slow ferry islands", "")).await;
        assert_eq!(slugs(&answer).len(), 20);
        let answer = search_as(&service, token, &path("slow ferry to the isl*", "")).await;
        assert_eq!(slugs(&answer)[0], "row");
    }
}

#[on_both_engines]
async fn pieces_that_are_gone_are_never_found(store: TestStore) {
    let service = Service::start(store).await;
    let site = service.token_of(service.home.made.user, SITE).await;
    let mut ids = Vec::new();
    for number in 0..4 {
        let id = create(&service, &format!("s{number}"), json!({"title": "Ferry"})).await;
        service.post("/content-pieces/publish", &json!({"id": id})).await;
        ids.push(id);
    }
    let visible = path("ferry", "");
    assert_eq!(slugs(&search_as(&service, &site, &visible).await).len(), 4);
    assert_eq!(found(&service, "ferry", "").await.len(), 4);
    let now = async |token: &str| {
        let answer = service.send_as(token, Method::GET, &visible, None).await;
        let mut slugs = slugs(&answer);
        slugs.sort();
        slugs
    };
    service.delete(&format!("/content-pieces?id={}", ids[0])).await;
    assert_eq!(now(&service.home.token).await, ["s1", "s2", "s3"]);
    assert_eq!(now(&site).await, ["s1", "s2", "s3"]);
    service.delete(&format!("/content-pieces?id={}&permanent=true", ids[1])).await;
    assert_eq!(now(&service.home.token).await, ["s2", "s3"]);
    service.post("/content-pieces/unpublish", &json!({"id": ids[2]})).await;
    assert_eq!(now(&site).await, ["s3"]);
    assert_eq!(now(&service.home.token).await, ["s2", "s3"]);
    service.post("/content-pieces/undelete", &json!({"id": ids[0]})).await;
    assert_eq!(found(&service, "ferry", "").await.len(), 3);
    assert_eq!(now(&site).await, ["s0", "s3"]);
    service.post("/content-pieces/unpublish", &json!({"id": ids[0]})).await;
    // The draft's new title is not published.
    service.put("/content-pieces", &json!({"id": ids[3], "title": "Train"})).await;
    assert_eq!(found(&service, "title:train", "").await, ["s3"]);
    assert_eq!(slugs(&search_as(&service, &site, &path("train", "")).await), [""; 0]);
    assert_eq!(slugs(&search_as(&service, &site, &visible).await), ["s3"]);
    service.post("/content-pieces/publish", &json!({"id": ids[3]})).await;
    assert_eq!(slugs(&search_as(&service, &site, &path("train", "")).await), ["s3"]);
    assert_eq!(slugs(&search_as(&service, &site, &visible).await), [""; 0]);
}

#[on_both_engines]
async fn each_variant_is_searched_in_its_language(store: TestStore) {
    let service = Service::start(store).await;
    for key in ["de", "fr"] {
        service.create("/variants", &json!({"key": key, "label": key})).await;
    }
    let id =
        create(&service, "a", json!({"title": "Houses", "content": "<p>by the sea</p>"})).await;
    create(&service, "b", json!({"title": "Boats", "content": "<p>by the sea</p>"})).await;
    let german = json!({"id": id, "variant": "de", "title": "H\u{e4}user am Meer"});
    service.put("/content-pieces", &german).await;
    // The overrides and the other fields of the piece.
    assert_eq!(found(&service, "haus sea", "&variant=de").await, ["a"]);
    assert_eq!(found(&service, "houses", "&variant=de").await, [""; 0]);
    assert_eq!(found(&service, "sea", "&variant=de").await.len(), 2);
    assert_eq!(found(&service, "boats", "&variant=de").await, ["b"]);
    assert_eq!(found(&service, "haus", "").await, [""; 0]);
    assert_eq!(found(&service, "houses", "&variant=fr").await, ["a"]);
    let answer = search(&service, "haus", "&variant=de").await;
    let title = &answer.body[0]["highlights"]["title"];
    assert_eq!(title["ranges"], json!([{"start": 0, "end": 6}]));
    assert_eq!(answer.body[0]["piece"]["title"], "H\u{e4}user am Meer");
    // Without a language, words are not reduced to stems.
    assert_eq!(found(&service, "boat", "").await, [""; 0]);
    service.put("/workspace", &json!({"language": "en-GB"})).await;
    finds_in_time(&service, "boat", "", &["b"]).await;
    finds_in_time(&service, "boat", "&variant=de", &["b"]).await;
    service
        .delete(&format!("/variants?id={}", service.get("/variants/list").await.column("id")[0]))
        .await;
    finds_in_time(&service, "house sea", "", &["a"]).await;
}

#[on_both_engines]
async fn labels_of_tags_and_marked_custom_data_are_searched(store: TestStore) {
    let service = Service::start(store).await;
    let tag = service.create("/tags", &json!({"label": "Shipping news", "color": "blue"})).await;
    let schema = json!({"properties": {"place": {"type": "string", "x-search": true},
        "note": {"type": "string"}}});
    let body = json!({"name": "g", "ancestor": null, "customDataSchema": schema});
    let group = service.create("/content-groups", &body).await;
    let fields = json!({"tags": [tag], "customData": {"place": "Rotterdam", "note": "Secret"}});
    service.create("/content-pieces", &with_fields(piece_in(&group, "a"), &fields)).await;
    create(&service, "b", json!({"customData": {"place": "Rotterdam"}})).await;
    assert_eq!(found(&service, "shipping rotterdam", "").await, ["a"]);
    assert_eq!(found(&service, "rotterdam", "").await, ["a"]);
    assert_eq!(found(&service, "secret", "").await, [""; 0]);
    // No phrase goes from one value to the next.
    assert_eq!(found(&service, "\"news rotterdam\"", "").await, [""; 0]);
    service.put("/tags", &json!({"id": tag, "label": "Harbour"})).await;
    finds_in_time(&service, "harbour", "", &["a"]).await;
    finds_in_time(&service, "shipping", "", &[]).await;
    let schema = json!({"properties": {"note": {"x-search": true}}});
    service.put("/content-groups", &json!({"id": group, "customDataSchema": schema})).await;
    finds_in_time(&service, "secret", "", &["a"]).await;
    service.delete(&format!("/tags?id={tag}")).await;
    finds_in_time(&service, "harbour", "", &[]).await;
}

#[on_both_engines]
async fn a_limited_token_learns_nothing_of_other_pieces(store: TestStore) {
    let service = Service::start(store).await;
    let own = service.create("/content-groups", &json!({"name": "own", "ancestor": null})).await;
    let token = service.token("contentPieces:read", Some(&[&own])).await;
    for (slug, title) in [("a", "Ferry harbour"), ("b", "Harbour harbour"), ("c", "Ferry")] {
        let content = json!({"title": title, "content": format!("<p>ferry {slug} harbour</p>")});
        service.create("/content-pieces", &with_fields(piece_in(&own, slug), &content)).await;
    }
    let queries = ["ferry", "ferry harbour", "fer* -b", "title:harbour ferry"];
    let mut before = Vec::new();
    for query in queries {
        let answer = search_as(&service, &token, &path(query, "")).await;
        assert!(!slugs(&answer).is_empty(), "{query}");
        before.push(answer.body);
    }
    for number in 0..30 {
        let content = json!({"title": "Ferry", "content": "<p>ferry ferry</p>"});
        create(&service, &format!("hidden{number}"), content).await;
    }
    assert!(found(&service, "ferry", "&perPage=100").await.len() > 30);
    for (query, before) in queries.iter().zip(before) {
        let after = search_as(&service, &token, &path(query, "")).await;
        let scores = |hits: &Value| -> Vec<(String, Value)> {
            let hits = hits.as_array().unwrap().iter();
            hits.map(|hit| (hit["piece"]["slug"].to_string(), hit["highlights"].clone())).collect()
        };
        assert_eq!(scores(&after.body), scores(&before), "{query}");
    }
    let other = service.other_workspace().await;
    let answer = service.send_as(&other.token, Method::GET, &path("ferry", ""), None).await;
    assert_eq!(answer.body, json!([]));
    let scoped = path("ferry", &format!("&contentGroupId={}", service.home.group));
    assert_eq!(search_as(&service, &token, &scoped).await.body, json!([]));
}

#[on_both_engines]
async fn searches_have_the_filters_of_lists(store: TestStore) {
    let service = Service::start(store).await;
    let variant = service.create("/variants", &json!({"key": "de", "label": "de"})).await;
    let parent = service.create("/content-groups", &json!({"name": "p", "ancestor": null})).await;
    let below = service.create("/content-groups", &json!({"name": "c", "ancestor": parent})).await;
    let mut tags = Vec::new();
    for label in ["x", "y"] {
        tags.push(service.create("/tags", &json!({"label": label, "color": "blue"})).await);
    }
    let member = service.home.made.member.to_string();
    let mut ids = Vec::new();
    for number in 0..24 {
        let group = [&service.home.group, &parent, &below][number % 3];
        let own: Vec<&String> = tags.iter().take(number % 4).collect();
        let members = if number % 5 == 0 { vec![member.clone()] } else { Vec::new() };
        let title = if number % 2 == 0 { "Ferry" } else { "Train" };
        let fields = json!({"tags": own, "members": members, "title": title,
            "date": format!("2026-01-{:02}T00:00:00Z", number + 1)});
        let body = with_fields(piece_in(group, &format!("s{number}")), &fields);
        let id = service.create("/content-pieces", &body).await;
        if number % 3 == 0 {
            service.post("/content-pieces/publish", &json!({"id": id})).await;
        }
        if number % 7 == 0 {
            let change = json!({"id": id, "variant": "de", "description": "x", "tags": [tags[1]]});
            service.put("/content-pieces", &change).await;
        }
        ids.push(id);
    }
    let (one, both) = (&tags[0], tags.join(","));
    for filter in [
        String::new(),
        format!("&contentGroupId={parent}"),
        format!("&contentGroupId={parent}&subtree=true"),
        format!("&tagId={one}"),
        format!("&tagId={both}"),
        format!("&tagId={both}&allTags=true"),
        format!("&tagId={both}&variant=de"),
        format!("&memberId={member}"),
        format!("&memberId={member}&tagId={one}"),
        format!("&hasVariant={variant}"),
        format!("&withoutVariant={variant}"),
        "&dateFrom=2026-01-05&dateTo=2026-01-15".to_owned(),
        "&state=published".to_owned(),
        "&state=draft&slug=s2".to_owned(),
        format!("&ids={},{}", ids[2], ids[3]),
        "&updatedSince=2100-01-01T00:00:00Z".to_owned(),
        "&tagId=unknown".to_owned(),
    ] {
        let list = service.get(&format!("/content-pieces/list?perPage=100{filter}")).await;
        let pieces = list.body.as_array().unwrap().iter();
        let ferries = pieces.filter(|piece| piece["title"] == "Ferry");
        let mut expected: Vec<_> =
            ferries.map(|piece| piece["slug"].as_str().unwrap().to_owned()).collect();
        let mut hits = found(&service, "ferry", &format!("&perPage=100{filter}")).await;
        expected.sort();
        hits.sort();
        assert_eq!(hits, expected, "{filter}");
    }
}

#[on_both_engines]
async fn pages_are_stable_while_the_index_changes(store: TestStore) {
    let service = Service::start(store).await;
    for number in 0..60 {
        let content = format!("<p>{}</p>", "ferry ".repeat(number % 3 + 1));
        create(&service, &format!("s{number}"), json!({"title": "News", "content": content})).await;
    }
    let mut next = Some(path("ferry", "&perPage=7"));
    let (mut seen, mut rounds) = (Vec::new(), 0);
    while let Some(page) = next {
        let answer = search_as(&service, &service.home.token, &page).await;
        seen.extend(slugs(&answer));
        next = answer.next_page();
        rounds += 1;
        // New pieces that would be the best hits, and changes of others that were shown.
        let title = json!({"title": "Ferry ferry", "content": "<p>ferry</p>"});
        create(&service, &format!("new{rounds}"), title).await;
        let shown = answer.body[0]["piece"]["id"].clone();
        service.put("/content-pieces", &json!({"id": shown, "title": "Ferry"})).await;
    }
    assert!(rounds > 7, "{rounds}");
    let mut sorted = seen.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), seen.len(), "a piece is on two pages: {seen:?}");
    assert_eq!(sorted.len(), 60, "{sorted:?}");
    for query in ["&cursor=x", "&perPage=0", "&perPage=101"] {
        let answer = service.get(&path("ferry", query)).await;
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
    }
    assert_eq!(service.get("/content-pieces/search").await.body, json!([]));
    let long = service.get(&path(&"a".repeat(1_025), "")).await;
    long.assert_problem(400, "validation", &["query"]);
}

#[on_both_engines]
async fn an_index_that_has_missed_events_is_rebuilt(store: TestStore) {
    let service = Service::start(store).await;
    let id = create(&service, "a", json!({"title": "Ferry"})).await;
    create(&service, "b", json!({"title": "Ferry"})).await;
    assert_eq!(found(&service, "ferry", "").await.len(), 2);
    // As after a restored backup, with rows of pieces that are not there any more.
    let workspace = service.home.made.workspace;
    let damage = async move |tx: &WriteTx<'_>| {
        let mut index = search_indexes::find_for_update(tx, workspace).await?.unwrap();
        index.sequence -= 2;
        index.analysis = 0;
        search_indexes::update(tx, workspace, &index).await
    };
    write(&service, damage).await;
    service.delete(&format!("/content-pieces?id={id}&permanent=true")).await;
    finds_in_time(&service, "ferry", "", &["b"]).await;
}

/// Writes to the database without the service.
async fn write<F>(service: &Service, work: F)
where
    F: AsyncFn(&WriteTx<'_>) -> galley_storage::Result<()> + Send + Sync + 'static,
{
    service.database.write::<_, galley_storage::Error, _>("test", work).await.unwrap();
}

async fn index_of_home(service: &Service) -> SearchIndex {
    let workspace = service.home.made.workspace;
    let read = async move |tx: &Tx<'_>| search_indexes::find(tx, workspace).await;
    service.database.read::<_, galley_storage::Error, _>("test", read).await.unwrap().unwrap()
}

#[on_both_engines]
async fn an_index_of_a_newer_version_is_searched_and_left_as_it_is(store: TestStore) {
    let service = Service::start(store).await;
    create(&service, "a", json!({"title": "Ferry"})).await;
    assert_eq!(found(&service, "ferry", "").await, ["a"]);
    let workspace = service.home.made.workspace;
    // As a newer node does beside this one.
    let upgrade = async move |tx: &WriteTx<'_>| {
        let mut index = search_indexes::find_for_update(tx, workspace).await?.unwrap();
        index.analysis += 1;
        search_indexes::update(tx, workspace, &index).await
    };
    write(&service, upgrade).await;
    let before = index_of_home(&service).await;
    create(&service, "b", json!({"title": "Ferry"})).await;
    // The worker has seen the change once it has indexed a later one of another workspace.
    let other = service.other_workspace().await;
    let group = json!({"name": "Other", "ancestor": null});
    let group = service.send_as(&other.token, Method::POST, "/content-groups", Some(&group)).await;
    let id = group.body["id"].as_str().unwrap();
    let piece = with_fields(piece_in(id, "c"), &json!({"title": "Ferry"}));
    service.send_as(&other.token, Method::POST, "/content-pieces", Some(&piece)).await;
    let started = Instant::now();
    loop {
        let hits = service.send_as(&other.token, Method::GET, &path("ferry", ""), None).await;
        if slugs(&hits) == ["c"] {
            break;
        }
        assert!(started.elapsed() < TIMEOUT, "the other workspace is not indexed");
    }
    assert_eq!(index_of_home(&service).await, before);
    assert_eq!(slugs(&service.get(&path("ferry", "")).await), ["a"]);
}

#[on_both_engines]
async fn a_piece_with_a_damaged_content_is_found_by_its_other_texts(store: TestStore) {
    let service = Service::start(store).await;
    let fields = json!({"title": "Ferry", "content": "<p>Islands</p>"});
    let id: ContentPieceId = create(&service, "damaged", fields.clone()).await.parse().unwrap();
    create(&service, "whole", fields).await;
    let workspace = service.home.made.workspace;
    let damage = async move |tx: &WriteTx<'_>| {
        content_pieces::update_content(tx, workspace, id, None, "{\"type\":\"doc\",").await
    };
    write(&service, damage).await;
    let title = json!({"id": id.to_string(), "title": "Ferries ferry"});
    assert_eq!(service.put("/content-pieces", &title).await.status, 204);
    create(&service, "later", json!({"title": "Islands"})).await;
    assert_eq!(found(&service, "ferries", "").await, ["damaged"]);
    assert_eq!(found(&service, "islands", "").await, ["later", "whole"]);
    let hits = search(&service, "ferries", "").await.body;
    assert_eq!(hits[0]["highlights"]["title"]["ranges"], json!([{"start": 0, "end": 7}]));
}
