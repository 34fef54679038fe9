//! The trash: deletion into it, restoration, and removal for good.

use std::time::Duration;

use galley_application::operations::trash;
use galley_domain::{ContentPieceId, Timestamp, WorkspaceId};
use galley_server::ServerLimits;
use galley_storage::{Tx, content_piece_revisions};
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, TestResponse, piece_in};

const TRASH: &str = "/content-pieces/trash";

async fn entries(service: &Service) -> Vec<Value> {
    service.get(TRASH).await.body.as_array().unwrap().clone()
}

async fn undelete(service: &Service, id: &str) -> TestResponse {
    service.post("/content-pieces/undelete", &json!({"id": id})).await
}

async fn delete(service: &Service, path: &str) {
    let deleted = service.delete(path).await;
    assert_eq!(deleted.status, 204, "{path}: {}", deleted.body);
}

/// Returns everything that readers see of the pieces: their order, their fields and content, also
/// in the variant `de`, and their revisions. Versions and times of changes are left out.
async fn seen(service: &Service) -> Value {
    let mut all = Vec::new();
    for more in ["", "&variant=de"] {
        let path = format!("/content-pieces/list?perPage=100&content=true{more}");
        let list = service.get(&path).await;
        assert_eq!(list.status, 200, "{}", list.body);
        all.push(list.body);
    }
    for piece in all[0].as_array().unwrap().clone() {
        let id = piece["id"].as_str().unwrap();
        let revisions = service.get(&format!("/content-pieces/revisions?id={id}")).await.body;
        for revision in revisions.as_array().unwrap() {
            let revision = revision["id"].as_str().unwrap();
            let path = format!("/content-pieces/revision?id={id}&revision={revision}&content=true");
            all.push(service.get(&path).await.body);
        }
        all.push(revisions);
    }
    let mut all = json!(all);
    remove_versions(&mut all);
    all
}

fn remove_versions(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(remove_versions),
        Value::Object(fields) => {
            for name in ["version", "updatedAt", "updatedBy"] {
                fields.remove(name);
            }
            fields.values_mut().for_each(remove_versions);
        }
        _ => {}
    }
}

/// Returns the types of the events after a sequence, each with the id of its resource.
async fn events(service: &Service, after: i64) -> Vec<(String, String)> {
    let feed = service.get(&format!("/events?after={after}&perPage=1000")).await.body;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let events = feed.as_array().unwrap().iter();
    events.map(|event| (text(&event["type"]), text(&event["data"]["id"]))).collect()
}

/// Creates a piece with tags, a member, overrides in a variant, an import source and revisions.
async fn full_piece(service: &Service, slug: &str) -> String {
    let mut body = service.piece(slug);
    let tag = service.create("/tags", &json!({"label": format!("Tag of {slug}")})).await;
    body["tags"] = json!([tag]);
    body["members"] = json!([service.home.made.member.to_string()]);
    body["content"] = json!(format!("<p>{}</p>", "Words of a text. ".repeat(40)));
    body["customData"] = json!({"a": [1, "two"]});
    body["date"] = json!("2026-11-01");
    let id = service.create("/content-pieces", &body).await;
    for change in [
        json!({"title": "Second", "description": "<p>Described</p>"}),
        json!({"variant": "de", "title": "Titel", "content": "<p>Wörter</p>", "tags": []}),
        json!({"content": format!("<p>{}</p>", "Words of another text. ".repeat(40))}),
        json!({"variant": "de", "customData": {"b": 2}}),
    ] {
        let mut change = change;
        change["id"] = json!(id);
        assert_eq!(service.put("/content-pieces", &change).await.status, 204);
    }
    id
}

#[on_both_engines]
async fn a_deleted_piece_comes_back_with_everything_that_it_had(store: TestStore) {
    let service = Service::start(store).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    for slug in ["a", "b"] {
        service.create("/content-pieces", &service.piece(slug)).await;
    }
    let id = full_piece(&service, "full").await;
    service.create("/content-pieces", &service.piece("c")).await;
    service.create("/variants", &json!({"key": "fr", "label": "French"})).await;
    let sources = json!({"sources": [
        {"contentPieceId": id, "variant": "fr", "sourceHash": "e", "importedHash": "f"},
        {"contentPieceId": id, "sourceHash": "a", "importedHash": "b"},
        {"contentPieceId": id, "variant": "de", "sourceHash": "c", "importedHash": "d"},
    ]});
    assert_eq!(service.put("/content-pieces/sources", &sources).await.status, 204);
    let before = seen(&service).await;
    let sources = service.get("/content-pieces/sources").await.body;
    let path = format!("/content-pieces?id={id}");
    let version = async || {
        let tag = service.get(&path).await.header("etag").to_owned();
        tag.trim_matches('"').split('.').next().unwrap().parse::<i64>().unwrap()
    };
    let before_deletion = version().await;
    for _ in 0..2 {
        let after = service.last_sequence().await;
        delete(&service, &format!("/content-pieces?id={id}")).await;
        assert_eq!(service.get(&format!("/content-pieces?id={id}")).await.status, 404);
        assert_eq!(service.get(&format!("/content-pieces/revisions?id={id}")).await.status, 404);
        let all = entries(&service).await;
        assert_eq!(all.len(), 1);
        assert_eq!(
            (&all[0]["id"], &all[0]["type"], &all[0]["title"], &all[0]["pieces"]),
            (&json!(id), &json!("contentPiece"), &json!("Second"), &json!(1))
        );
        assert_eq!(all[0]["contentGroupId"], service.home.group);
        assert_eq!(all[0]["deletedBy"]["name"], "home");
        let restored = undelete(&service, &id).await;
        assert_eq!(restored.status, 204, "{}", restored.body);
        assert_eq!(seen(&service).await, before);
        assert_eq!(service.get("/content-pieces/sources").await.body, sources);
        assert_eq!(entries(&service).await, Vec::<Value>::new());
        let expected = ["contentPieceRemoved", "contentPieceAdded"];
        let expected = expected.map(|event| (event.to_owned(), id.clone()));
        assert_eq!(events(&service, after).await, expected);
        // It is not in the trash any more.
        undelete(&service, &id).await.assert_problem(404, "not_found", &[]);
    }
    assert!(version().await > before_deletion);
    // Its next change is recorded after the earlier ones.
    let change = json!({"id": id, "title": "Third"});
    assert_eq!(service.put("/content-pieces", &change).await.status, 204);
    let revisions = service.get(&format!("/content-pieces/revisions?id={id}")).await.column("id");
    assert_eq!(revisions.len(), 6);
}

#[on_both_engines]
async fn a_group_and_its_contents_are_one_entry_and_come_back_as_a_whole(store: TestStore) {
    let service = Service::start(store).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let schema = json!({"properties": {"a": {"type": "array"}}});
    let body = json!({"name": "Outer", "uniqueSlugs": true, "customDataSchema": schema});
    let outer = service.create("/content-groups", &body).await;
    let body = json!({"name": "Inner", "ancestor": outer});
    let inner = service.create("/content-groups", &body).await;
    service.create("/content-groups", &json!({"name": "Empty", "ancestor": inner})).await;
    // The pieces of both groups and of another one alternate.
    for number in 0..9 {
        let group = [&outer, &inner, &service.home.group][number % 3];
        service.create("/content-pieces", &piece_in(group, &format!("p{number}"))).await;
    }
    let full = full_piece(&service, "full").await;
    let change = json!({"id": full, "contentGroupId": inner});
    assert_eq!(service.put("/content-pieces", &change).await.status, 204);
    // A piece that was deleted before is an entry of its own, and does not come back.
    let alone = service.create("/content-pieces", &piece_in(&inner, "alone")).await;
    delete(&service, &format!("/content-pieces?id={alone}")).await;
    let groups = "/content-groups/list?perPage=100&subtree=true";
    let mut all_groups = service.get(groups).await.body;
    remove_versions(&mut all_groups);
    let before = seen(&service).await;
    let after = service.last_sequence().await;
    delete(&service, &format!("/content-groups?id={outer}&recursive=true")).await;
    let removed = events(&service, after).await.len();
    let entry = entries(&service).await[0].clone();
    assert_eq!(
        (&entry["id"], &entry["type"], &entry["title"], &entry["pieces"]),
        (&json!(outer), &json!("contentGroup"), &json!("Outer"), &json!(7))
    );
    // A piece of the entry is no entry itself. The other one has lost its group.
    undelete(&service, &full).await.assert_problem(404, "not_found", &[]);
    let rejected = undelete(&service, &alone).await;
    rejected.assert_problem(400, "unknown_reference", &["contentGroupId"]);
    let after = service.last_sequence().await;
    assert_eq!(undelete(&service, &outer).await.status, 204);
    assert_eq!(events(&service, after).await.len(), removed);
    let mut groups_after = service.get(groups).await.body;
    remove_versions(&mut groups_after);
    assert_eq!(groups_after, all_groups);
    assert_eq!(seen(&service).await, before);
    assert_eq!(undelete(&service, &alone).await.status, 204);
    assert_eq!(entries(&service).await, Vec::<Value>::new());
    // An empty group is kept as well.
    let empty = service.create("/content-groups", &json!({"name": "Nothing"})).await;
    delete(&service, &format!("/content-groups?id={empty}")).await;
    assert_eq!(undelete(&service, &empty).await.status, 204);
    let found = service.get(&format!("/content-groups?id={empty}")).await.body;
    assert_eq!(found["name"], "Nothing");
}

#[on_both_engines]
async fn a_restored_group_keeps_its_order_if_another_piece_has_a_position_of_it(store: TestStore) {
    let service = Service::start(store).await;
    let group = service.create("/content-groups", &json!({"name": "Serial"})).await;
    for number in 0..4 {
        service.create("/content-pieces", &piece_in(&group, &format!("part-{number}"))).await;
    }
    delete(&service, &format!("/content-groups?id={group}&recursive=true")).await;
    // The first piece of an empty workspace always gets the same position.
    service.create("/content-pieces", &piece_in(&service.home.group, "other")).await;
    assert_eq!(undelete(&service, &group).await.status, 204);
    let list = service.get("/content-pieces/list").await.body;
    let slugs: Vec<_> =
        list.as_array().unwrap().iter().map(|piece| piece["slug"].as_str().unwrap()).collect();
    assert_eq!(slugs, ["other", "part-0", "part-1", "part-2", "part-3"]);
}

#[on_both_engines]
async fn what_was_deleted_meanwhile_is_left_out(store: TestStore) {
    let service = Service::start(store).await;
    let german = service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let id = full_piece(&service, "full").await;
    let tag = service.get("/tags/list").await.column("id").remove(0);
    delete(&service, &format!("/content-pieces?id={id}")).await;
    delete(&service, &format!("/tags?id={tag}")).await;
    delete(&service, &format!("/variants?id={german}")).await;
    let body = json!({"id": id});
    let request = service.request(Method::POST, "/content-pieces/undelete");
    let request = request.bearer_auth(&service.home.token).json(&body);
    let request = request.header("prefer", "return=representation");
    let restored = TestResponse::of(request).await;
    assert_eq!((restored.status, &restored.body["tags"]), (200.try_into().unwrap(), &json!([])));
    assert_eq!(restored.body["variants"], json!([]));
    let path = format!("/content-pieces?id={id}");
    let found = service.get(&path).await;
    assert_eq!((&found.body, found.header("etag")), (&restored.body, restored.header("etag")));
    // All revisions stay readable, those of the variant with the values of the piece.
    let revisions = service.get(&format!("/content-pieces/revisions?id={id}")).await.column("id");
    assert_eq!(revisions.len(), 5);
    for revision in revisions {
        let path = format!("/content-pieces/revision?id={id}&revision={revision}&content=true");
        assert_eq!(service.get(&path).await.status, 200);
    }
}

#[on_both_engines]
async fn a_piece_without_its_group_needs_another_one(store: TestStore) {
    let service = Service::start(store).await;
    let group = service.create("/content-groups", &json!({"name": "Gone"})).await;
    let id = service.create("/content-pieces", &piece_in(&group, "a")).await;
    let last = service.create("/content-pieces", &service.piece("last")).await;
    delete(&service, &format!("/content-pieces?id={id}")).await;
    // Trashed pieces do not make a group non-empty.
    delete(&service, &format!("/content-groups?id={group}&permanent=true")).await;
    let state = service.workspace_state().await;
    let rejected = undelete(&service, &id).await;
    rejected.assert_problem(400, "unknown_reference", &["contentGroupId"]);
    let mut body = json!({"id": id, "contentGroupId": group});
    let rejected = service.post("/content-pieces/undelete", &body).await;
    rejected.assert_problem(400, "unknown_reference", &["contentGroupId"]);
    assert_eq!(service.workspace_state().await, state);
    body["contentGroupId"] = json!(service.home.group);
    assert_eq!(service.post("/content-pieces/undelete", &body).await.status, 204);
    assert_eq!(service.get("/content-pieces/list").await.column("id"), [last, id]);
}

#[on_both_engines]
async fn restoration_obeys_unique_slugs_and_schemas(store: TestStore) {
    let service = Service::start(store).await;
    let group =
        service.create("/content-groups", &json!({"name": "Unique", "uniqueSlugs": true})).await;
    let id = service.create("/content-pieces", &piece_in(&group, "a")).await;
    delete(&service, &format!("/content-pieces?id={id}")).await;
    // A trashed piece holds no slug.
    let other = service.create("/content-pieces", &piece_in(&group, "a")).await;
    let state = service.workspace_state().await;
    let rejected = undelete(&service, &id).await;
    rejected.assert_problem(409, "slug_taken", &["slug"]);
    assert_eq!(rejected.body["duplicates"][0]["contentPieceIds"], json!([other]));
    assert_eq!(service.workspace_state().await, state);
    let schema = json!({"required": ["a"]});
    let body = json!({"name": "Schema", "customDataSchema": schema});
    let with_schema = service.create("/content-groups", &body).await;
    let body = json!({"id": id, "contentGroupId": with_schema});
    let rejected = service.post("/content-pieces/undelete", &body).await;
    rejected.assert_problem(400, "validation", &["contentGroupId"]);
    // So do the values that a variant shows.
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let full = full_piece(&service, "full").await;
    delete(&service, &format!("/content-pieces?id={full}")).await;
    let body = json!({"name": "Few", "customDataSchema": {"properties": {"b": {"maximum": 1}}}});
    let few = service.create("/content-groups", &body).await;
    let body = json!({"id": full, "contentGroupId": few});
    let rejected = service.post("/content-pieces/undelete", &body).await;
    rejected.assert_problem(400, "validation", &["contentGroupId"]);
    // Its own group may have got a schema since: the piece stays as it was.
    delete(&service, &format!("/content-pieces?id={other}")).await;
    let body = json!({"id": group, "customDataSchema": schema});
    assert_eq!(service.put("/content-groups", &body).await.status, 204);
    assert_eq!(undelete(&service, &id).await.status, 204);
}

#[on_both_engines]
async fn limited_tokens_see_the_entries_of_their_groups(store: TestStore) {
    let service = Service::start(store).await;
    let seen = service.create("/content-groups", &json!({"name": "Seen"})).await;
    let below = service.create("/content-groups", &json!({"name": "B", "ancestor": seen})).await;
    let own = service.create("/content-pieces", &piece_in(&seen, "own")).await;
    let foreign = service.create("/content-pieces", &service.piece("foreign")).await;
    for id in [&own, &foreign] {
        delete(&service, &format!("/content-pieces?id={id}")).await;
    }
    delete(&service, &format!("/content-groups?id={below}")).await;
    let all = "contentPieces:write contentGroups:write trash:write";
    let limited = service.token(all, Some(&[&seen])).await;
    let list = service.send_as(&limited, Method::GET, TRASH, None).await;
    assert_eq!(list.column("id"), [below.clone(), own.clone()]);
    assert_eq!(list.body[0]["deletedBy"]["name"], json!(null));
    let body = json!({"id": foreign, "contentGroupId": seen});
    let stolen = service.send_as(&limited, Method::POST, "/content-pieces/undelete", Some(&body));
    stolen.await.assert_problem(404, "not_found", &[]);
    let path = format!("/content-pieces?id={foreign}&permanent=true");
    let removed = service.send_as(&limited, Method::DELETE, &path, None).await;
    removed.assert_problem(404, "not_found", &[]);
    let body = json!({"id": own, "contentGroupId": service.home.group});
    let moved = service.send_as(&limited, Method::POST, "/content-pieces/undelete", Some(&body));
    moved.await.assert_problem(400, "unknown_reference", &["contentGroupId"]);
    // Pieces alone do not allow the restoration of a group, nor a removal for good.
    let pieces = service.token("contentPieces:write", Some(&[&seen])).await;
    let body = json!({"id": below});
    let rejected = service.send_as(&pieces, Method::POST, "/content-pieces/undelete", Some(&body));
    rejected.await.assert_problem(403, "insufficient_permissions", &[]);
    let path = format!("/content-pieces?id={own}&permanent=true");
    let rejected = service.send_as(&pieces, Method::DELETE, &path, None).await;
    rejected.assert_problem(403, "insufficient_permissions", &[]);
    for id in [&own, &below] {
        let body = json!({"id": id});
        let undeleted =
            service.send_as(&limited, Method::POST, "/content-pieces/undelete", Some(&body));
        assert_eq!(undeleted.await.status, 204);
    }
    assert_eq!(entries(&service).await.len(), 1);
}

/// Returns the number of stored revisions of a piece.
async fn stored_revisions(service: &Service, id: &str) -> usize {
    let (workspace, id): (WorkspaceId, ContentPieceId) =
        (service.home.made.workspace, id.parse().unwrap());
    let read = async move |tx: &Tx<'_>| {
        content_piece_revisions::list_stored(tx, workspace, id, None, 1_000).await
    };
    service.database.read("revisions", read).await.unwrap().len()
}

#[on_both_engines]
async fn a_permanent_deletion_leaves_nothing(store: TestStore) {
    let service = Service::start(store).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let [live, trashed] = [full_piece(&service, "a").await, full_piece(&service, "b").await];
    let group = service.create("/content-groups", &json!({"name": "Group"})).await;
    let below = full_piece(&service, "c").await;
    let change = json!({"id": below, "contentGroupId": group});
    assert_eq!(service.put("/content-pieces", &change).await.status, 204);
    delete(&service, &format!("/content-pieces?id={trashed}")).await;
    delete(&service, &format!("/content-groups?id={group}&recursive=true")).await;
    assert_eq!(stored_revisions(&service, &below).await, 5);
    let after = service.last_sequence().await;
    // The entry has no entity tag.
    let path = format!("/content-pieces?id={trashed}&permanent=true");
    let request = service.request(Method::DELETE, &path).bearer_auth(&service.home.token);
    let request = request.header("if-match", "\"1-x\"");
    TestResponse::of(request).await.assert_problem(412, "precondition_failed", &[]);
    delete(&service, &path).await;
    delete(&service, &format!("/content-groups?id={group}&permanent=true")).await;
    // Readers knew since the deletion.
    assert_eq!(service.last_sequence().await, after);
    delete(&service, &format!("/content-pieces?id={live}&permanent=true")).await;
    assert_eq!(events(&service, after).await, [("contentPieceRemoved".to_owned(), live.clone())]);
    assert_eq!(entries(&service).await, Vec::<Value>::new());
    for id in [&live, &trashed, &below] {
        assert_eq!(stored_revisions(&service, id).await, 0);
        undelete(&service, id).await.assert_problem(404, "not_found", &[]);
        let again = service.delete(&format!("/content-pieces?id={id}&permanent=true")).await;
        again.assert_problem(404, "not_found", &[]);
    }
}

#[on_both_engines]
async fn entries_are_removed_after_the_retention(store: TestStore) {
    let service = Service::start(store).await;
    let mut ids = Vec::new();
    for slug in ["a", "b", "c"] {
        let id = service.create("/content-pieces", &service.piece(slug)).await;
        let change = json!({"id": id, "title": "Changed"});
        assert_eq!(service.put("/content-pieces", &change).await.status, 204);
        delete(&service, &format!("/content-pieces?id={id}")).await;
        ids.push(id);
        service.advance_clock(Duration::from_hours(24));
    }
    service.advance_clock(Duration::from_hours(28 * 24) - Duration::from_mins(1));
    assert_eq!(entries(&service).await.len(), 2);
    undelete(&service, &ids[0]).await.assert_problem(404, "not_found", &[]);
    assert_eq!(stored_revisions(&service, &ids[0]).await, 2);
    trash::remove_expired(&service.database, &service.environment, 30).await.unwrap();
    assert_eq!(stored_revisions(&service, &ids[0]).await, 0);
    assert_eq!(stored_revisions(&service, &ids[1]).await, 2);
    assert_eq!(undelete(&service, &ids[1]).await.status, 204);
    trash::remove_expired(&service.database, &service.environment, 0).await.unwrap();
    undelete(&service, &ids[2]).await.assert_problem(404, "not_found", &[]);
}

#[on_both_engines]
async fn without_a_retention_a_deletion_is_permanent(store: TestStore) {
    let limits = ServerLimits { trash_retention_days: 0, ..ServerLimits::default() };
    let service = Service::start_with(store, limits).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let change = json!({"id": id, "title": "Changed"});
    assert_eq!(service.put("/content-pieces", &change).await.status, 204);
    delete(&service, &format!("/content-pieces?id={id}")).await;
    delete(&service, &format!("/content-groups?id={}&recursive=true", service.home.group)).await;
    assert_eq!(entries(&service).await, Vec::<Value>::new());
    assert_eq!(stored_revisions(&service, &id).await, 0);
}

#[on_both_engines]
async fn the_trash_is_listed_by_page_latest_first(store: TestStore) {
    let service = Service::start(store).await;
    let mut ids = Vec::new();
    for number in 0..7 {
        let id = service.create("/content-pieces", &service.piece(&format!("p{number}"))).await;
        delete(&service, &format!("/content-pieces?id={id}")).await;
        service.advance_clock(Duration::from_millis(number % 2));
        ids.push(id);
    }
    let all = service.get(TRASH).await.column("id");
    let mut sorted = all.clone();
    sorted.sort();
    assert_eq!(sorted, ids);
    let times: Vec<_> =
        entries(&service).await.iter().map(|one| one["deletedAt"].clone()).collect();
    assert!(times.windows(2).all(|two| two[0].as_str() >= two[1].as_str()), "{times:?}");
    let (mut found, mut path) = (Vec::new(), format!("{TRASH}?perPage=2"));
    loop {
        let page = service.get(&path).await;
        assert_eq!(page.status, 200, "{}", page.body);
        found.extend(page.column("id"));
        // The position stays valid without its entry.
        let last = page.column("id").pop().unwrap();
        assert_eq!(undelete(&service, &last).await.status, 204);
        let Some(next) = page.header("link").split(['<', '>']).nth(1) else { break };
        path = next.to_owned();
    }
    assert_eq!(found, all);
}

#[on_both_engines]
async fn of_concurrent_restorations_and_removals_one_succeeds(store: TestStore) {
    let service = Service::start(store).await;
    for round in 0..6 {
        let group = service.create("/content-groups", &json!({"name": "Group"})).await;
        let mut ids = Vec::new();
        for number in 0..3 {
            let slug = format!("p{round}-{number}");
            ids.push(service.create("/content-pieces", &piece_in(&group, &slug)).await);
        }
        delete(&service, &format!("/content-pieces?id={}", ids[0])).await;
        let is_group = round % 2 == 0;
        let (id, permanent) = if is_group {
            delete(&service, &format!("/content-groups?id={group}&recursive=true")).await;
            (group.clone(), format!("/content-groups?id={group}&permanent=true"))
        } else {
            (ids[0].clone(), format!("/content-pieces?id={}&permanent=true", ids[0]))
        };
        let after = service.last_sequence().await;
        let (one, two, three, removed) = tokio::join!(
            undelete(&service, &id),
            undelete(&service, &id),
            undelete(&service, &id),
            async { if round < 2 { None } else { Some(service.delete(&permanent).await) } },
        );
        let statuses = [one, two, three].map(|response| response.status.as_u16());
        assert!(statuses.iter().all(|status| [204, 404].contains(status)), "{statuses:?}");
        let restored = statuses.iter().filter(|&&status| status == 204).count();
        assert!(restored <= 1, "{statuses:?}");
        let events = events(&service, after).await;
        let added = events.iter().filter(|(event, _)| event == "contentPieceAdded").count();
        assert_eq!(added, restored * if is_group { 2 } else { 1 });
        match removed {
            // The removal came first, or removed what was restored; a group was not empty then.
            Some(removed) => {
                let status = removed.status.as_u16();
                assert!(restored == 1 || status == 204, "{status} {statuses:?}");
                assert!([204, 404, 409].contains(&status), "{status}");
            }
            None => assert_eq!(restored, 1),
        }
        let left: Vec<_> = entries(&service).await.iter().map(|one| one["id"].clone()).collect();
        assert!(!left.contains(&json!(id)), "{left:?}");
    }
}

#[on_both_engines]
async fn a_repeated_restoration_gets_the_same_response(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let change = json!({"id": id, "title": "Changed"});
    assert_eq!(service.put("/content-pieces", &change).await.status, 204);
    let revisions = service.get(&format!("/content-pieces/revisions?id={id}")).await.column("id");
    delete(&service, &format!("/content-pieces?id={id}")).await;
    let to_restore = json!({"id": id, "revision": revisions[1]});
    for (path, body) in
        [("/content-pieces/undelete", json!({"id": id})), ("/content-pieces/restore", to_restore)]
    {
        for prefer in ["return=minimal", "return=representation"] {
            let send = async || {
                let request = service.request(Method::POST, path).json(&body);
                let request = request.bearer_auth(&service.home.token);
                let request = request
                    .header("idempotency-key", format!("{path} {prefer}"))
                    .header("prefer", prefer);
                TestResponse::of(request).await
            };
            let first = send().await;
            let after = service.last_sequence().await;
            let again = send().await;
            assert_eq!(service.last_sequence().await, after);
            let is_minimal = prefer == "return=minimal";
            assert_eq!(first.status.as_u16(), if is_minimal { 204 } else { 200 }, "{first:?}");
            assert_eq!((first.status, &first.body), (again.status, &again.body));
            assert_eq!(first.header("etag"), again.header("etag"));
            assert_eq!(again.header("idempotency-replayed"), "true");
            assert_eq!(first.header("preference-applied").is_empty(), is_minimal);
            if path.ends_with("undelete") {
                delete(&service, &format!("/content-pieces?id={id}")).await;
            } else {
                assert_eq!(service.put("/content-pieces", &change).await.status, 204);
            }
        }
        if path.ends_with("undelete") {
            assert_eq!(undelete(&service, &id).await.status, 204);
        }
    }
}

#[on_both_engines]
async fn the_trash_of_an_autosave_raises_no_event(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let change = json!({"id": id, "title": "Saved", "autosave": true});
    assert_eq!(service.put("/content-pieces", &change).await.status, 204);
    let now = service.environment.now();
    let in_five_minutes = Timestamp::from_ms(now.ms() + 300_000);
    let has_due_event = async || {
        let due = async move |tx: &Tx<'_>| {
            content_piece_revisions::due_events(tx, in_five_minutes, 9).await
        };
        !service.database.read("due", due).await.unwrap().is_empty()
    };
    assert!(has_due_event().await);
    delete(&service, &format!("/content-pieces?id={id}")).await;
    let after = service.last_sequence().await;
    service.advance_clock(Duration::from_mins(5));
    let wait = async {
        while has_due_event().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("the event is dropped");
    assert_eq!(events(&service, after).await, []);
    assert_eq!(undelete(&service, &id).await.status, 204);
    let found = service.get(&format!("/content-pieces?id={id}")).await.body;
    assert_eq!(found["title"], "Saved");
    assert_eq!(events(&service, after).await, [("contentPieceAdded".to_owned(), id)]);
}
