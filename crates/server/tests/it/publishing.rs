//! Publication: the published view of a site's token and webhook beside the current one.

use std::time::Duration;

use galley_domain::address_policy::AddressPolicy;
use galley_server::ServerLimits;
use galley_testing::{Behaviour, ReceivedRequest, Receiver, TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{SITE, Service, TestResponse, TokenKind, piece_in};

async fn start(store: TestStore) -> Service {
    let webhook_addresses = AddressPolicy { allowed: Vec::new(), allows_loopback: true };
    Service::start_with(store, ServerLimits { webhook_addresses, ..ServerLimits::default() }).await
}

/// A site: a token and a webhook of the published view.
struct Site<'s> {
    service: &'s Service,
    token: String,
    receiver: Receiver,
    /// The position in the feed.
    position: i64,
    /// The number of received deliveries.
    received: usize,
}

impl<'s> Site<'s> {
    async fn of(service: &'s Service) -> Self {
        let token = service.token_of(service.home.made.user, SITE).await;
        let receiver = Receiver::start(Behaviour::Status(200)).await;
        let body = json!({"url": receiver.url, "name": "w", "event": "contentPieceAdded",
            "events": ["contentPieceUpdated", "contentPieceRemoved"], "wholeWorkspace": true,
            "view": "published"});
        service.create("/webhooks", &body).await;
        let position = service.last_sequence().await;
        Self { service, token, receiver, position, received: 0 }
    }

    async fn get(&self, path: &str) -> TestResponse {
        self.service.send_as(&self.token, Method::GET, path, None).await
    }

    async fn titles(&self, query: &str) -> Vec<String> {
        let list = self.get(&format!("/content-pieces/list?perPage=100{query}")).await;
        assert_eq!(list.status, 200, "{}", list.body);
        let pieces = list.body.as_array().unwrap().iter();
        pieces.map(|piece| piece["title"].as_str().unwrap().to_owned()).collect()
    }

    /// Checks the events since the last call, in the feed and at the receiver of the webhook. Each
    /// has a type without its prefix, and the title of its piece.
    async fn sees(&mut self, expected: &[(&str, &str)]) {
        let kind_and_title = |event: &Value| {
            let kind = event["type"].as_str().unwrap();
            let title = event["data"]["title"].as_str().unwrap();
            (kind.trim_start_matches("contentPiece").to_owned(), title.to_owned())
        };
        let expected: Vec<_> = expected
            .iter()
            .map(|(kind, title)| ((*kind).to_owned(), (*title).to_owned()))
            .collect();
        let feed = self.get(&format!("/events?after={}", self.position)).await;
        let feed = feed.body.as_array().unwrap().iter();
        let of_pieces = feed.filter(|event| event["data"]["title"].is_string());
        let seen: Vec<_> = of_pieces.map(kind_and_title).collect();
        assert_eq!(seen, expected);
        self.position = self.service.last_sequence().await;
        let before = self.received;
        self.received += expected.len();
        let received = self.receiver.wait_for(self.received).await;
        let mut events: Vec<_> = received.iter().map(ReceivedRequest::json).collect();
        events.sort_by_key(|event| event["sequence"].as_i64());
        let seen: Vec<_> = events[before..].iter().map(kind_and_title).collect();
        assert_eq!(seen, expected);
    }
}

async fn publish(service: &Service, body: &Value) {
    let published = service.post("/content-pieces/publish", body).await;
    assert_eq!(published.status, 204, "{body}: {}", published.body);
}

async fn update(service: &Service, body: &Value) {
    let updated = service.put("/content-pieces", body).await;
    assert_eq!(updated.status, 204, "{}", updated.body);
}

async fn publication(service: &Service, id: &str) -> Value {
    service.get(&format!("/content-pieces?id={id}")).await.body["publication"].clone()
}

async fn revision_ids(service: &Service, id: &str) -> Vec<String> {
    let found = service.get(&format!("/content-pieces/revisions?id={id}")).await.body;
    let ids = found.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned());
    let mut ids: Vec<_> = ids.collect();
    ids.reverse();
    ids
}

#[on_both_engines]
async fn a_site_sees_what_is_published_and_nothing_else(store: TestStore) {
    let service = start(store).await;
    let mut site = Site::of(&service).await;
    let mut new = service.piece("post");
    new["title"] = json!("First");
    let id = service.create("/content-pieces", &new).await;
    let path = format!("/content-pieces?id={id}&content=true");
    let missing = site.get("/content-pieces?id=cpc_00000000000000000000000000").await;
    let unpublished = site.get(&format!("/content-pieces?id={id}")).await;
    assert_eq!(unpublished.status, 404);
    assert_eq!(unpublished.body["detail"], missing.body["detail"]);
    assert_eq!(publication(&service, &id).await["state"], "draft");

    let after = service.last_sequence().await;
    publish(&service, &json!({"id": id})).await;
    site.sees(&[("Added", "First")]).await;
    let events = service.get(&format!("/events?after={after}")).await.body;
    let types: Vec<_> = events.as_array().unwrap().iter().map(|one| &one["type"]).collect();
    assert_eq!(types, ["contentPiecePublished"], "the current view has one event");
    assert_eq!(events[0]["data"]["publication"]["state"], "published");
    let current = service.get(&path).await;
    let published = site.get(&path).await;
    assert_eq!(current.body["publication"]["state"], "published");
    assert_eq!(current.body["publication"]["publishedBy"]["name"], "home");
    assert_eq!(published.body["publication"]["publishedBy"]["name"], Value::Null);
    assert_eq!(published.body["content"], current.body["content"]);

    update(&service, &json!({"id": id, "title": "Second", "content": "<p>Changed</p>"})).await;
    assert_eq!(publication(&service, &id).await["state"], "changed");
    let unchanged = site.get(&path).await;
    assert_eq!(unchanged.body, published.body);
    assert_eq!(unchanged.header("etag"), published.header("etag"));
    site.sees(&[]).await;

    let edited = service.get(&path).await;
    let tag = edited.header("etag").to_owned();
    publish(&service, &json!({"id": id})).await;
    site.sees(&[("Updated", "Second")]).await;
    assert_ne!(service.get(&path).await.header("etag"), tag);
    let response = service
        .request(Method::PUT, "/content-pieces")
        .bearer_auth(&service.home.token)
        .header("if-match", &tag)
        .json(&json!({"id": id, "title": "Third"}));
    assert_eq!(TestResponse::of(response).await.status, 204, "the version is the same");
    publish(&service, &json!({"id": id, "revision": revision_ids(&service, &id).await[1]})).await;
    site.sees(&[]).await;
    publish(&service, &json!({"id": id, "revision": revision_ids(&service, &id).await[0]})).await;
    site.sees(&[("Updated", "First")]).await;
    assert_eq!(site.get(&path).await.body["content"], published.body["content"]);

    let other = service.create("/content-groups", &json!({"name": "Other"})).await;
    update(&service, &json!({"id": id, "contentGroupId": other})).await;
    site.sees(&[("Updated", "First")]).await;
    assert_eq!(site.titles(&format!("&contentGroupId={other}")).await, ["First"]);
    let order = |body: Value| body["order"].clone();
    assert_eq!(order(site.get(&path).await.body), order(service.get(&path).await.body));

    assert_eq!(service.delete(&format!("/content-pieces?id={id}")).await.status, 204);
    site.sees(&[("Removed", "First")]).await;
    assert_eq!(site.get(&path).await.status, 404);
    let restored = service.post("/content-pieces/undelete", &json!({"id": id})).await;
    assert_eq!(restored.status, 204, "{}", restored.body);
    site.sees(&[("Added", "First")]).await;
    let published = publication(&service, &id).await["revision"].as_str().unwrap().to_owned();
    let path = format!("/content-pieces/revision?id={id}&revision={published}");
    service.delete(&path).await.assert_problem(409, "published_revision", &[]);
    assert_eq!(publication(&service, &id).await["state"], "changed");

    let unpublished = service.post("/content-pieces/unpublish", &json!({"id": id})).await;
    assert_eq!(unpublished.status, 204);
    site.sees(&[("Removed", "First")]).await;
    assert_eq!(site.titles("").await, Vec::<String>::new());
    assert_eq!(publication(&service, &id).await["state"], "draft");
    let again = service.post("/content-pieces/unpublish", &json!({"id": id})).await;
    assert_eq!(again.status, 204);
    site.sees(&[]).await;
}

#[on_both_engines]
async fn a_post_from_its_draft_to_its_restoration_as_a_site_sees_it(store: TestStore) {
    let service = start(store).await;
    let mut site = Site::of(&service).await;
    let mut new = service.piece("post");
    (new["title"], new["content"]) = (json!("First"), json!("<p>One line.</p>"));
    let id = service.create("/content-pieces", &new).await;
    site.sees(&[]).await;
    publish(&service, &json!({"id": id})).await;
    site.sees(&[("Added", "First")]).await;

    let edit = json!({"id": id, "title": "Second", "content": "<p>One longer line.</p>"});
    update(&service, &edit).await;
    site.sees(&[]).await;
    let path = format!("/content-pieces?id={id}&content=true&contentFormat=html");
    let preview = service.post("/content-pieces/preview", &json!({"id": id})).await;
    let preview = preview.body["token"].as_str().unwrap();
    let draft = service.send_as(preview, Method::GET, &path, None).await.body;
    assert_eq!(
        (&draft["title"], &draft["content"]),
        (&json!("Second"), &json!("<p>One longer line.</p>"))
    );
    assert_eq!(site.get(&path).await.body["content"], "<p>One line.</p>");

    let at = service.environment.now().later(Duration::from_hours(1)).to_string();
    publish(&service, &json!({"id": id, "at": at})).await;
    site.sees(&[]).await;
    service.advance_clock(Duration::from_hours(1));
    wait_for(&service, &id, "state", "published").await;
    site.sees(&[("Updated", "Second")]).await;
    assert_eq!(site.get(&path).await.body["content"], "<p>One longer line.</p>");

    let revisions = revision_ids(&service, &id).await;
    let query = format!("id={id}&from={}&to={}&format=html", revisions[0], revisions[1]);
    let diff = service.get(&format!("/content-pieces/diff?{query}")).await.body;
    let shown = diff["diff"].to_string();
    assert!(shown.contains("<ins>") && shown.contains("longer"), "{shown}");
    let restored = json!({"id": id, "revision": revisions[0]});
    assert_eq!(service.post("/content-pieces/restore", &restored).await.status, 204);
    assert_eq!(publication(&service, &id).await["state"], "changed");
    site.sees(&[]).await;
    publish(&service, &json!({"id": id})).await;
    site.sees(&[("Updated", "First")]).await;
    assert_eq!(site.get(&path).await.body["content"], "<p>One line.</p>");

    assert_eq!(service.delete(&format!("/content-pieces?id={id}")).await.status, 204);
    site.sees(&[("Removed", "First")]).await;
    let undeleted = service.post("/content-pieces/undelete", &json!({"id": id})).await;
    assert_eq!(undeleted.status, 204, "{}", undeleted.body);
    site.sees(&[("Added", "First")]).await;
    assert_eq!(site.titles("").await, ["First"]);
}

#[on_both_engines]
async fn variants_tags_and_filters_are_those_of_the_published_revision(store: TestStore) {
    let service = start(store).await;
    let mut site = Site::of(&service).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let tag = |label: &str| json!({"label": label});
    let (red, blue) =
        (service.create("/tags", &tag("red")).await, service.create("/tags", &tag("blue")).await);
    let mut new = service.piece("post");
    new["tags"] = json!([red]);
    new["date"] = json!("2026-11-01");
    let id = service.create("/content-pieces", &new).await;
    let german = json!({"id": id, "variant": "de", "title": "Titel", "content": "<p>Wort</p>"});
    update(&service, &german).await;
    publish(&service, &json!({"id": id})).await;
    let change = json!({"id": id, "title": "New", "slug": "new", "tags": [blue],
        "date": "2026-12-01", "customData": "{}"});
    update(&service, &change).await;
    update(&service, &json!({"id": id, "variant": "de", "title": "Neu", "tags": [blue]})).await;
    let shown = service.piece("post")["title"].as_str().unwrap().to_owned();
    for (query, title) in [
        ("&slug=post".to_owned(), Some(&*shown)),
        ("&slug=new".to_owned(), None),
        (format!("&tagId={red}"), Some(&*shown)),
        (format!("&tagId={blue}"), None),
        ("&dateTo=2026-11-15".to_owned(), Some(&*shown)),
        ("&dateFrom=2026-11-15".to_owned(), None),
        ("&hasVariant=de".to_owned(), Some(&*shown)),
        ("&withoutVariant=de".to_owned(), None),
        ("&variant=de".to_owned(), Some("Titel")),
        (format!("&variant=de&tagId={red}"), Some("Titel")),
        (format!("&variant=de&tagId={blue}"), None),
        ("&sort=title&total=true".to_owned(), Some(&*shown)),
        (format!("&ids={id}"), Some(&*shown)),
    ] {
        assert_eq!(site.titles(&query).await, Vec::from_iter(title), "{query}");
    }
    let german = site
        .get(&format!("/content-pieces?id={id}&variant=de&content=true&contentFormat=html"))
        .await
        .body;
    assert_eq!((&german["title"], &german["content"]), (&json!("Titel"), &json!("<p>Wort</p>")));
    let labels = |list: Value| {
        let tags = list.as_array().unwrap().iter();
        tags.map(|tag| tag["label"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(labels(site.get("/tags/list").await.body), ["red"]);
    assert_eq!(site.get(&format!("/tags?id={blue}")).await.status, 404);

    // A label and a deletion take effect in both views at once.
    site.sees(&[("Added", &shown)]).await;
    let renamed = service.put("/tags", &json!({"id": red, "label": "crimson"})).await;
    assert_eq!(renamed.status, 204);
    let piece = site.get(&format!("/content-pieces?id={id}")).await.body;
    assert_eq!(piece["tags"][0]["label"], "crimson");
    assert_eq!(service.delete(&format!("/tags?id={red}")).await.status, 204);
    assert_eq!(site.get(&format!("/content-pieces?id={id}")).await.body["tags"], json!([]));
    assert_eq!(site.titles(&format!("&tagId={red}")).await, Vec::<String>::new());
    publish(&service, &json!({"id": id})).await;
    assert_eq!(labels(site.get("/tags/list").await.body), ["blue"]);
    publish(&service, &json!({"id": id, "revision": revision_ids(&service, &id).await[1]})).await;
    let earlier = site.get(&format!("/content-pieces?id={id}")).await.body;
    assert_eq!((&earlier["title"], &earlier["tags"]), (&json!(shown), &json!([])));
    assert_eq!(site.titles("&variant=de").await, ["Titel"]);
}

#[on_both_engines]
async fn groups_are_published_deleted_and_restored_as_a_whole(store: TestStore) {
    let service = start(store).await;
    let mut site = Site::of(&service).await;
    let top = service.create("/content-groups", &json!({"name": "Top"})).await;
    let below = service.create("/content-groups", &json!({"name": "Below", "ancestor": top})).await;
    for (group, slug) in [(&top, "a"), (&below, "b"), (&below, "c")] {
        service.create("/content-pieces", &piece_in(group, slug)).await;
    }
    let position = service.last_sequence().await;
    publish(&service, &json!({"contentGroupId": top})).await;
    assert_eq!(site.titles("").await.len(), 1);
    for _ in 0..2 {
        publish(&service, &json!({"contentGroupId": top, "subtree": true})).await;
        assert_eq!(site.titles("").await.len(), 3);
        assert_eq!(service.last_sequence().await, position + 6, "published ones are left alone");
    }
    let path = format!("/content-groups?id={top}&recursive=true");
    assert_eq!(service.delete(&path).await.status, 204);
    assert_eq!(site.titles("").await, Vec::<String>::new());
    let restored = service.post("/content-pieces/undelete", &json!({"id": top})).await;
    assert_eq!(restored.status, 204, "{}", restored.body);
    assert_eq!(site.titles(&format!("&contentGroupId={top}&subtree=true")).await.len(), 3);
    site.position = service.last_sequence().await;
    let unknown = json!({"contentGroupId": "cgr_00000000000000000000000000"});
    let rejected = service.post("/content-pieces/publish", &unknown).await;
    assert_eq!(rejected.status, 400, "{}", rejected.body);
    assert_eq!(rejected.body["issues"][0]["code"], "unknown_reference");
}

#[on_both_engines]
async fn a_published_slug_stays_taken_while_the_piece_has_another_one(store: TestStore) {
    let service = start(store).await;
    let group =
        service.create("/content-groups", &json!({"name": "Posts", "uniqueSlugs": true})).await;
    let first = service.create("/content-pieces", &piece_in(&group, "one")).await;
    publish(&service, &json!({"id": first})).await;
    update(&service, &json!({"id": first, "slug": "two"})).await;
    for slug in ["one", "two"] {
        let rejected = service.post("/content-pieces", &piece_in(&group, slug)).await;
        assert_eq!(rejected.status, 409, "{slug}: {}", rejected.body);
    }
    publish(&service, &json!({"id": first})).await;
    let second = service.create("/content-pieces", &piece_in(&group, "one")).await;
    // The former slug belongs to the other piece now.
    let revision = &revision_ids(&service, &first).await[0];
    let rejected =
        service.post("/content-pieces/publish", &json!({"id": first, "revision": revision})).await;
    assert_eq!(rejected.status, 409, "{}", rejected.body);
    assert!(rejected.body.to_string().contains(&second), "{}", rejected.body);
}

#[on_both_engines]
async fn tokens_of_the_published_view_read_only_and_see_no_drafts(store: TestStore) {
    let service = start(store).await;
    let id = service.create("/content-pieces", &service.piece("post")).await;
    publish(&service, &json!({"id": id})).await;
    update(&service, &json!({"id": id, "title": "Draft"})).await;
    let revision = &revision_ids(&service, &id).await[1];
    let site = service.token_of(service.home.made.user, SITE).await;
    let group = &service.home.group;
    for path in [
        format!("/content-pieces/revisions?id={id}"),
        format!("/content-pieces/revision?id={id}&revision={revision}"),
        format!("/content-pieces/diff?id={id}&from={revision}&to={revision}"),
        "/content-pieces/trash".to_owned(),
        "/content-pieces/sources".to_owned(),
        format!("/content-groups/schema/violations?id={group}"),
    ] {
        let hidden = service.send_as(&site, Method::GET, &path, None).await;
        assert_eq!(hidden.status, 404, "{path}: {}", hidden.body);
    }
    let new = |permissions: &[&str], view: &str| json!({"name": "t", "permissions": permissions, "view": view});
    for permission in [
        "contentPieces:write",
        "contentGroups:write",
        "tags:write",
        "variants:write",
        "publishing:read",
        "publishing:write",
        "trash:write",
    ] {
        let rejected = service.post("/tokens", &new(&[permission], "published")).await;
        assert_eq!(rejected.status, 400, "{permission}: {}", rejected.body);
        assert_eq!(rejected.body["issues"][0]["path"], json!(["permissions"]));
    }
    let kind = TokenKind {
        permissions: "contentPieces:read tokens:write webhooks:write workspaceMemberships:write",
        ..SITE
    };
    let maker = service.token_of(service.home.made.user, kind).await;
    let post = async |path: &str, body: &Value| {
        service.send_as(&maker, Method::POST, path, Some(body)).await
    };
    let made = post("/tokens", &json!({"name": "t", "permissions": ["contentPieces:read"]})).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let shown = service.get(&format!("/tokens?id={}", made.body["id"].as_str().unwrap())).await;
    assert_eq!(shown.body["view"], "published");
    assert_eq!(post("/tokens", &new(&["contentPieces:read"], "current")).await.status, 403);
    let home = service.token_id(&service.home.token).await;
    let change = json!({"id": home, "name": "taken"});
    let taken = service.send_as(&maker, Method::PUT, "/tokens", Some(&change)).await;
    assert_eq!(taken.status, 403, "{}", taken.body);
    let invite = json!({"email": "a@example.org", "fullName": "A", "roleId": "x"});
    assert_ne!(post("/workspace-memberships", &invite).await.status, 201);

    let webhook = json!({"url": "https://example.org", "name": "w", "event": "contentPieceAdded",
        "wholeWorkspace": true});
    let of_drafts = service.create("/webhooks", &webhook).await;
    let made = post("/webhooks", &webhook).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let own = made.body["id"].as_str().unwrap();
    assert_eq!(service.get(&format!("/webhooks?id={own}")).await.body["view"], "published");
    let hidden = format!("/webhooks?id={of_drafts}");
    assert_eq!(service.send_as(&maker, Method::GET, &hidden, None).await.status, 404);
    let listed = service.send_as(&maker, Method::GET, "/webhooks/list", None).await.body;
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let mut other = webhook.clone();
    other["view"] = json!("current");
    assert_eq!(post("/webhooks", &other).await.status, 403);
    other["view"] = json!("published");
    other["event"] = json!("contentPiecePublished");
    assert_eq!(service.post("/webhooks", &other).await.status, 400);
}

/// Waits until a field of a piece's publication has this value.
async fn wait_for(service: &Service, id: &str, field: &str, value: &str) {
    for _ in 0..1_500 {
        if publication(service, id).await[field] == value {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{field} never was {value}: {}", publication(service, id).await);
}

#[on_both_engines]
async fn schedules_run_once_at_their_times(store: TestStore) {
    let service = start(store).await;
    // Two nodes run schedules on PostgreSQL.
    let second_node = service.start_second_server().await;
    assert_eq!(second_node.is_some(), service.database.path().is_none());
    let mut site = Site::of(&service).await;
    let mut new = service.piece("post");
    new["title"] = json!("First");
    let id = service.create("/content-pieces", &new).await;
    let at = |hours: i64| {
        let ms = service.environment.now().ms() + hours * 3_600_000;
        galley_domain::Timestamp::from_ms(ms).to_string()
    };
    let (soon, later, latest) = (at(1), at(2), at(3));
    publish(&service, &json!({"id": id, "at": later, "unpublishAt": latest})).await;
    publish(&service, &json!({"id": id, "at": soon})).await;
    let planned = publication(&service, &id).await;
    assert_eq!(
        (&planned["state"], &planned["publishAt"], &planned["unpublishAt"]),
        (&json!("draft"), &json!(soon), &json!(latest))
    );
    update(&service, &json!({"id": id, "title": "Second"})).await;
    service.advance_clock(Duration::from_hours(1));
    wait_for(&service, &id, "state", "published").await;
    site.sees(&[("Added", "Second")]).await;
    let published = publication(&service, &id).await;
    assert_eq!(published["publishedBy"]["type"], "system");
    assert_eq!(
        (&published["publishAt"], &published["unpublishAt"]),
        (&Value::Null, &json!(latest))
    );
    let shown = site.get(&format!("/content-pieces?id={id}")).await.body;
    assert_eq!(shown["publication"]["unpublishAt"], Value::Null, "the site sees no schedule");

    update(&service, &json!({"id": id, "title": "Third"})).await;
    let first = revision_ids(&service, &id).await.remove(0);
    publish(&service, &json!({"id": id, "revision": first, "at": at(0)})).await;
    wait_for(&service, &id, "revision", &first).await;
    site.sees(&[("Updated", "First")]).await;

    // A cancelled schedule does not run, although a later one does.
    publish(&service, &json!({"id": id, "at": at(1)})).await;
    publish(&service, &json!({"id": id, "at": null})).await;
    service.advance_clock(Duration::from_hours(2));
    wait_for(&service, &id, "state", "draft").await;
    site.sees(&[("Removed", "First")]).await;
    let ended = publication(&service, &id).await;
    assert_eq!((&ended["publishAt"], &ended["unpublishAt"]), (&Value::Null, &Value::Null));

    // The deletion of a piece cancels its schedule.
    publish(&service, &json!({"id": id, "at": at(1)})).await;
    assert_eq!(service.delete(&format!("/content-pieces?id={id}")).await.status, 204);
    let restored = service.post("/content-pieces/undelete", &json!({"id": id})).await;
    assert_eq!(restored.status, 204, "{}", restored.body);
    assert_eq!(publication(&service, &id).await["publishAt"], Value::Null);
}

#[on_both_engines]
async fn lists_filter_by_the_state_of_the_publication(store: TestStore) {
    let service = start(store).await;
    let site = Site::of(&service).await;
    let mut ids = Vec::new();
    for title in ["draft", "planned", "published", "changed"] {
        let mut new = service.piece(title);
        new["title"] = json!(title);
        ids.push(service.create("/content-pieces", &new).await);
    }
    let at = service.environment.now().later(Duration::from_hours(1)).to_string();
    publish(&service, &json!({"id": ids[1], "at": at})).await;
    for id in &ids[2..] {
        publish(&service, &json!({"id": id})).await;
    }
    publish(&service, &json!({"id": ids[2], "at": at})).await;
    update(&service, &json!({"id": ids[3], "slug": "edited"})).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    for (query, titles) in [
        ("state=draft", vec!["draft", "planned"]),
        ("state=draft&perPage=1&page=2", vec!["planned"]),
        ("state=draft&slug=draft&variant=de", vec!["draft"]),
        ("state=published", vec!["published"]),
        ("state=changed&sort=-title&variant=de", vec!["changed"]),
        ("state=changed&slug=changed", vec![]),
        ("state=scheduled", vec!["planned", "published"]),
        ("state=", vec!["draft", "planned", "published", "changed"]),
    ] {
        let list = service.get(&format!("/content-pieces/list?total=true&{query}")).await;
        assert_eq!(list.column("title"), titles, "{query}");
        let count = if query.contains("perPage") { 2 } else { titles.len() };
        assert_eq!(list.header("total-count"), count.to_string(), "{query}");
    }
    assert_eq!(site.titles("&state=published").await, ["published", "changed"]);
    for state in ["draft", "changed", "scheduled"] {
        assert_eq!(site.titles(&format!("&state={state}")).await, Vec::<String>::new(), "{state}");
    }
    assert_eq!(service.delete(&format!("/content-pieces?id={}", ids[0])).await.status, 204);
    assert_eq!(service.get("/content-pieces/list?state=draft").await.column("title"), ["planned"]);
}

#[on_both_engines]
async fn edits_of_drafts_leave_cached_responses_of_the_published_view_valid(store: TestStore) {
    let service = start(store).await;
    let id = service.create("/content-pieces", &service.piece("post")).await;
    let tag = service.create("/tags", &json!({"label": "News"})).await;
    publish(&service, &json!({"id": id})).await;
    let site = service.token_of(service.home.made.user, SITE).await;
    let paths = [format!("/content-pieces?id={id}"), "/content-pieces/list".to_owned()];
    let read = async || {
        service.forget_statements().await;
        let mut bodies = Vec::new();
        for path in &paths {
            let response = service.send_as(&site, Method::GET, path, None).await;
            assert_eq!(response.status, 200);
            bodies.push(response.body);
        }
        let statements = service.statements.take();
        let reads = statements.iter().filter(|(sql, _)| sql.contains("FROM published_pieces p"));
        (reads.map(|(_, &count)| count).sum::<u64>(), bodies)
    };
    for _ in 0..2 {
        read().await;
    }
    let (_, before) = read().await;
    for (number, is_autosave) in [(1, true), (2, true), (3, false)] {
        let title = format!("Draft {number}");
        update(&service, &json!({"id": id, "title": title, "autosave": is_autosave})).await;
        service.create("/content-pieces", &service.piece(&format!("draft{number}"))).await;
        assert_eq!(read().await, (0, before.clone()), "{title}");
    }
    // Each of these is seen at once.
    for change in [
        (Method::PUT, "/content-pieces", json!({"id": id, "referenceId": null})),
        (Method::PUT, "/tags", json!({"id": tag, "label": "Other"})),
        (Method::POST, "/content-pieces/publish", json!({"id": id})),
        (Method::POST, "/content-pieces/unpublish", json!({"id": id})),
    ] {
        let (method, path, body) = change;
        let other = service.create("/content-pieces", &service.piece("other")).await;
        let moved = json!({"id": other, "referenceId": null});
        assert_eq!(service.put("/content-pieces", &moved).await.status, 204);
        assert_eq!(service.send(method, path, Some(&body)).await.status, 204, "{path}");
        let list = service.send_as(&site, Method::GET, &paths[1], None).await.body;
        let current = service.get(&format!("/content-pieces?id={id}")).await.body;
        match list.as_array().unwrap().first() {
            Some(shown) => assert_eq!(shown["order"], current["order"], "{path}"),
            None => assert_eq!(current["publication"]["state"], "draft"),
        }
    }
    let list = service.send_as(&site, Method::GET, &paths[1], None).await.body;
    assert_eq!(list, json!([]));
}

#[on_both_engines]
async fn a_preview_token_reads_the_draft_of_one_piece_for_an_hour(store: TestStore) {
    let service = start(store).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let id = service.create("/content-pieces", &service.piece("post")).await;
    let other = service.create("/content-pieces", &service.piece("other")).await;
    publish(&service, &json!({"id": id})).await;
    update(&service, &json!({"id": id, "title": "Draft"})).await;
    update(&service, &json!({"id": id, "variant": "de", "title": "Entwurf"})).await;
    let editor = service.token("contentPieces:write tags:write", None).await;
    let preview = async |token: &str| {
        let body = json!({"id": id});
        let made =
            service.send_as(token, Method::POST, "/content-pieces/preview", Some(&body)).await;
        assert_eq!((made.status.as_u16(), made.header("cache-control")), (200, "no-store"));
        made.body["token"].as_str().unwrap().to_owned()
    };
    let token = preview(&editor).await;
    let get = async |path: &str| service.send_as(&token, Method::GET, path, None).await;
    for (path, title) in [
        (format!("/content-pieces?id={id}"), "Draft"),
        (format!("/content-pieces?id={id}&variant=de"), "Entwurf"),
        ("/content-pieces/list".to_owned(), "Draft"),
        ("/content-pieces/list?slug=post&variant=de".to_owned(), "Entwurf"),
        (format!("/content-pieces/list?ids={other},{id}"), "Draft"),
    ] {
        // Some of these are served by the response cache.
        for _ in 0..3 {
            let found = get(&path).await;
            assert_eq!(found.status, 200, "{path}: {}", found.body);
            let pieces = found.body.as_array().cloned().unwrap_or(vec![found.body.clone()]);
            let titles: Vec<_> = pieces.iter().map(|piece| &piece["title"]).collect();
            assert_eq!(titles, [title], "{path}");
        }
    }
    for path in
        [format!("/content-pieces/list?ids={other}"), "/content-pieces/list?slug=other".to_owned()]
    {
        assert_eq!(get(&path).await.body, json!([]), "{path}");
    }
    let hidden = get(&format!("/content-pieces?id={other}")).await;
    let absent = get("/content-pieces?id=cp_00000000000000000000000000").await;
    assert_eq!((hidden.status.as_u16(), &hidden.body["detail"]), (404, &absent.body["detail"]));
    let change = json!({"id": id, "title": "Changed"});
    for (method, path, body) in [
        (Method::GET, format!("/content-pieces/revisions?id={id}"), None),
        (Method::GET, "/events".to_owned(), None),
        (Method::GET, "/tags/list".to_owned(), None),
        (Method::GET, "/workspace-memberships/list-workspaces".to_owned(), None),
        (Method::POST, "/content-pieces/preview".to_owned(), Some(json!({"id": id}))),
        (Method::POST, "/events/ticket".to_owned(), None),
        (Method::PUT, "/content-pieces".to_owned(), Some(change)),
    ] {
        let rejected = service.send_as(&token, method, &path, body.as_ref()).await;
        assert_eq!(rejected.status, 403, "{path}: {}", rejected.body);
    }
    update(&service, &json!({"id": id, "title": "Edited"})).await;
    assert_eq!(get(&format!("/content-pieces?id={id}")).await.body["title"], "Edited");

    // It ends with the right of its creator, and after an hour.
    let revoked = preview(&editor).await;
    let path = format!("/tokens?id={}", service.token_id(&editor).await);
    let read = format!("/content-pieces?id={id}");
    let status = async |token: &str| service.send_as(token, Method::GET, &read, None).await.status;
    assert_eq!(status(&revoked).await, 200);
    assert_eq!(service.delete(&path).await.status, 204);
    assert_eq!(status(&revoked).await, 401);
    let lasting = preview(&service.home.token).await;
    assert_eq!(status(&lasting).await, 200);
    service.advance_clock(Duration::from_hours(1));
    assert_eq!(status(&lasting).await, 401);
}

#[on_both_engines]
async fn a_preview_has_the_url_of_the_nearest_group(store: TestStore) {
    let service = Service::start(store).await;
    let template = "https://example.org/preview?id={id}&token={token}";
    let body = json!({"name": "Outer", "previewUrl": template});
    let outer = service.create("/content-groups", &body).await;
    let inner =
        service.create("/content-groups", &json!({"name": "Inner", "ancestor": outer})).await;
    let found = service.get(&format!("/content-groups?id={outer}&subtree=true")).await.body;
    assert_eq!(found["previewUrl"], template);
    assert_eq!(found["descendants"][0]["previewUrl"], Value::Null);
    let url = async |group: &str| {
        let piece = service.create("/content-pieces", &piece_in(group, group)).await;
        let preview = service.post("/content-pieces/preview", &json!({"id": piece})).await.body;
        let token = preview["token"].as_str().unwrap().to_owned();
        let url = preview["url"].as_str().map(|url| url.replace(&token, "T").replace(&piece, "P"));
        url.unwrap_or_default()
    };
    assert_eq!(url(&service.home.group).await, "");
    assert_eq!(url(&inner).await, "https://example.org/preview?id=P&token=T");
    let own = json!({"id": inner, "previewUrl": "http://localhost:3000/{token}/{id}"});
    assert_eq!(service.put("/content-groups", &own).await.status, 204);
    assert_eq!(url(&inner).await, "http://localhost:3000/T/P");
    // The trash keeps it.
    let path = format!("/content-groups?id={outer}&recursive=true");
    assert_eq!(service.delete(&path).await.status, 204);
    assert_eq!(service.post("/content-pieces/undelete", &json!({"id": outer})).await.status, 204);
    let found = service.get(&format!("/content-groups?id={inner}")).await.body;
    assert_eq!(found["previewUrl"], "http://localhost:3000/{token}/{id}");
    let without = json!({"id": inner, "previewUrl": null});
    assert_eq!(service.put("/content-groups", &without).await.status, 204);
    assert_eq!(url(&inner).await, "https://example.org/preview?id=P&token=T");
}
