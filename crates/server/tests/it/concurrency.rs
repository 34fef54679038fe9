//! Rules for a whole workspace, under concurrent requests.

use std::collections::{HashMap, HashSet};

use futures_util::future::join_all;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Person, Service, TestResponse};

/// Adds `count` Admins besides the owner.
async fn admins(service: &Service, count: usize, round: usize) -> Vec<Person> {
    let [admin, ..] = service.roles();
    let mut admins = Vec::new();
    for number in 0..count {
        admins.push(service.person(&format!("admin-{round}-{number}"), &admin).await);
    }
    admins
}

/// Returns the members who are Admins, as `witness` sees them.
async fn remaining_admins(service: &Service, witness: &str) -> Vec<String> {
    let [admin, ..] = service.roles();
    let path = "/workspace-memberships/list-members?perPage=1000";
    let members = service.send_as(witness, Method::GET, path, None).await.body;
    let members = members.as_array().unwrap().iter();
    let admins = members.filter(|member| member["roleId"] == admin);
    admins.map(|member| member["id"].as_str().unwrap().to_owned()).collect()
}

/// Demotes or removes a member.
async fn demote_or_remove(service: &Service, by: &str, member: &str, removes: bool) -> u16 {
    let path = "/workspace-memberships";
    let answer = if removes {
        let path = format!("{path}?id={member}");
        service.send_as(by, Method::DELETE, &path, None).await
    } else {
        let [_, editor, _] = service.roles();
        let body = json!({"id": member, "roleId": editor});
        service.send_as(by, Method::PUT, path, Some(&body)).await
    };
    answer.status.as_u16()
}

#[on_both_engines]
async fn concurrent_demotions_and_removals_leave_one_admin(store: TestStore) {
    let service = Service::start(store).await;
    let [_, _, viewer] = service.roles();
    let witness = service.person("witness", &viewer).await.token;
    let mut owner = Some(service.home.made.member.to_string());
    for round in 0..3 {
        let mut admins = admins(&service, 15, round).await;
        // The Admin who is left over from the last round takes part.
        let stayed = remaining_admins(&service, &witness).await;
        let stayed = stayed.into_iter().find(|id| !admins.iter().any(|one| one.member == *id));
        let member = owner.take().or(stayed).expect("somebody stayed");
        admins.push(Person { member, ..Person::clone(&admins[0]) });
        // Another Admin removes each one, and half of them also remove themselves at the same
        // time.
        let goings = (0..16).map(|number| {
            let (who, by) = (&admins[number], &admins[(number + 1) % 15]);
            demote_or_remove(&service, &by.token, &who.member, number % 2 == 0)
        });
        let own = (0..8).map(|number| {
            let who = &admins[number];
            demote_or_remove(&service, &who.token, &who.member, number % 3 == 0)
        });
        let both = tokio::join!(join_all(goings), join_all(own));
        let statuses = [both.0, both.1].concat();
        // Requests by an Admin removed meanwhile are rejected.
        let expected = [204, 401, 403, 404, 409];
        assert!(statuses.iter().all(|status| expected.contains(status)), "{statuses:?}");
        assert!(!remaining_admins(&service, &witness).await.is_empty(), "{statuses:?}");
    }
}

#[on_both_engines]
async fn when_all_admins_leave_at_once_one_is_rejected(store: TestStore) {
    let service = Service::start(store).await;
    let [admin, _, viewer] = service.roles();
    let witness = service.person("witness", &viewer).await.token;
    for round in 0..3 {
        let admins = admins(&service, 16, round).await;
        // Earlier Admins are demoted first.
        for member in remaining_admins(&service, &witness).await {
            if !admins.iter().any(|one| one.member == member) {
                let status = demote_or_remove(&service, &admins[0].token, &member, false).await;
                assert_eq!(status, 204);
            }
        }
        let goings = admins.iter().enumerate().map(|(number, who)| {
            demote_or_remove(&service, &who.token, &who.member, number % 2 == 0)
        });
        let statuses = join_all(goings).await;
        let count = |status| statuses.iter().filter(|one| **one == status).count();
        assert_eq!((count(204), count(409)), (15, 1), "{statuses:?}");
        assert_eq!(remaining_admins(&service, &witness).await.len(), 1);
        let events = service.events_after(0).await;
        let sequences: Vec<_> = events.iter().map(|event| event.sequence).collect();
        assert_eq!(sequences, (1..=events.len() as i64).collect::<Vec<_>>());
    }
    drop(admin);
}

#[on_both_engines]
async fn concurrent_group_moves_never_form_a_cycle(store: TestStore) {
    let service = Service::start(store).await;
    let mut groups = Vec::new();
    for number in 0..8 {
        groups
            .push(service.create("/content-groups", &json!({"name": format!("g{number}")})).await);
    }
    let mut moved = 0;
    for round in 0..12_usize {
        // Each group moves under the next one or the one after. All moves together would form a
        // cycle.
        let moves = groups.iter().enumerate().flat_map(|(number, id)| {
            let next = |step: usize| groups[(number + step + round) % groups.len()].clone();
            [json!(next(1)), json!(next(2)), Value::Null].map(|ancestor| {
                let body = json!({"id": id, "ancestor": ancestor});
                let service = &service;
                async move { service.put("/content-groups", &body).await }
            })
        });
        for answer in join_all(moves).await {
            match answer.status.as_u16() {
                204 => moved += 1,
                400 => assert_eq!(answer.body["reason"], "circle", "{answer:?}"),
                _ => panic!("{answer:?}"),
            }
        }
        // A walk from the top visits each group once, and `ancestors` matches the path.
        let tree = service.get("/content-groups/list?subtree=true&perPage=100").await.body;
        let mut met = HashMap::new();
        record_ancestors(&tree, &[], &mut met);
        assert_eq!(met.len(), groups.len() + 1, "{tree}");
        for id in &groups {
            let told = service.get(&format!("/content-groups?id={id}")).await.body;
            assert_eq!(told["ancestors"], json!(met[id]), "{tree}");
        }
    }
    assert!(moved > 20, "{moved}");
}

#[on_both_engines]
async fn of_concurrent_updates_of_one_version_one_succeeds(store: TestStore) {
    let service = Service::start(store).await;
    let [_, editor, viewer] = service.roles();
    let ann = service.person("ann", &editor).await;
    let tag = service.create("/tags", &json!({"label": "a"})).await;
    let variant = service.create("/variants", &json!({"key": "de", "label": "a"})).await;
    let role = service.create("/roles", &json!({"name": "r", "permissions": []})).await;
    let token = service.create("/tokens", &json!({"name": "t", "permissions": []})).await;
    let webhook = json!({"url": "https://hooks.invalid/", "name": "w", "event": "memberAdded"});
    let webhook = service.create("/webhooks", &webhook).await;
    let changes: Vec<(&str, Option<&String>, &str, Vec<String>)> = vec![
        ("/tags", Some(&tag), "label", names("l")),
        ("/variants", Some(&variant), "label", names("l")),
        ("/content-groups", Some(&service.home.group), "name", names("n")),
        ("/roles", Some(&role), "name", names("n")),
        ("/tokens", Some(&token), "name", names("n")),
        ("/webhooks", Some(&webhook), "name", names("n")),
        ("/profile", None, "fullName", names("n")),
        ("/workspace", None, "name", names("n")),
        ("/workspace-memberships", Some(&ann.member), "roleId", vec![viewer; 16]),
    ];
    for (path, id, field, values) in changes {
        let puts = values.iter().map(|value| {
            let mut body = json!({});
            body[field] = json!(value);
            if let Some(id) = id {
                body["id"] = json!(id);
            }
            let request = service.request(Method::PUT, path).bearer_auth(&service.home.token);
            TestResponse::of(request.header("if-match", "\"1.x\"").json(&body))
        });
        let answers = join_all(puts).await;
        let made: Vec<_> = answers.iter().filter(|one| one.status == 204).collect();
        assert_eq!(made.len(), 1, "{path}: {answers:?}");
        assert!(made[0].header("etag").starts_with("\"2."), "{path}: {made:?}");
        let late = answers.iter().filter(|one| one.status != 204);
        late.for_each(|one| one.assert_problem(412, "precondition_failed", &[]));
        let Some(id) = id else { continue };
        if path != "/workspace-memberships" {
            let found = service.get(&format!("{path}?id={id}")).await;
            assert!(values.iter().any(|value| found.body[field] == json!(value)), "{found:?}");
        }
        // A deletion is subject to the version as well, which is checked first.
        let path = format!("{path}?id={id}");
        let request = service.request(Method::DELETE, &path).bearer_auth(&service.home.token);
        let late = TestResponse::of(request.header("if-match", "\"1.x\"")).await;
        late.assert_problem(412, "precondition_failed", &[]);
    }
}

#[on_both_engines]
async fn concurrent_updates_of_different_profile_fields_are_all_kept(store: TestStore) {
    let service = Service::start(store).await;
    for round in 0..8 {
        let (name, user) = (format!("name {round}"), format!("user{round}"));
        let changes = [
            json!({"fullName": name}),
            json!({"username": user}),
            json!({"avatar": format!("/{round}.png")}),
        ];
        let puts = changes.iter().map(|change| service.put("/profile", change));
        assert!(join_all(puts).await.iter().all(|one| one.status == 204));
        let profile = service.get("/profile").await.body;
        assert_eq!((&profile["fullName"], &profile["username"]), (&json!(name), &json!(user)));
        assert_eq!(profile["avatar"], json!(format!("/{round}.png")));
    }
}

#[on_both_engines]
async fn pieces_moved_out_before_a_group_deletion_survive(store: TestStore) {
    let service = Service::start(store).await;
    for round in 0..6 {
        let group = service.create("/content-groups", &json!({"name": "g"})).await;
        let mut pieces = Vec::new();
        for number in 0..8 {
            let body = crate::service::piece_in(&group, &format!("{round}-{number}"));
            pieces.push(service.create("/content-pieces", &body).await);
        }
        let moves = pieces.iter().map(|id| {
            let body = json!({"id": id, "contentGroupId": service.home.group});
            let service = &service;
            async move { service.put("/content-pieces", &body).await.status.as_u16() }
        });
        let path = format!("/content-groups?id={group}&recursive=true");
        let (moved, deleted) = tokio::join!(join_all(moves), service.delete(&path));
        assert_eq!(deleted.status, 204, "{deleted:?}");
        for (id, status) in pieces.iter().zip(moved) {
            assert!([204, 404].contains(&status), "{status}");
            let found = service.get(&format!("/content-pieces?id={id}")).await.status.as_u16();
            assert_eq!(found, if status == 204 { 200 } else { 404 }, "{id} was answered {status}");
        }
    }
}

#[on_both_engines]
async fn concurrent_writers_of_all_kinds_never_deadlock(store: TestStore) {
    let service = Service::start(store).await;
    let piece = service.create("/content-pieces", &service.piece("p")).await;
    let before = service.deadlocks().await;
    let writes = (0..60).map(|number| {
        let service = &service;
        let piece = piece.clone();
        async move {
            let name = format!("n{number}");
            let (method, path, body) = match number % 6 {
                0 => (Method::POST, "/content-groups", json!({"name": name})),
                1 => (Method::POST, "/tokens", json!({"name": name, "permissions": []})),
                2 => (Method::POST, "/roles", json!({"name": name, "permissions": []})),
                3 => (Method::POST, "/content-pieces", service.piece(&name)),
                4 => (Method::PUT, "/content-pieces", json!({"id": piece, "title": name})),
                _ => (
                    Method::POST,
                    "/workspace-memberships",
                    json!({"name": name,
                    "email": format!("{name}@example.org"), "roleId": service.roles()[1]}),
                ),
            };
            let request = service.request(method, path).bearer_auth(&service.home.token);
            TestResponse::of(request.header("idempotency-key", &name).json(&body)).await
        }
    });
    let answers = join_all(writes).await;
    assert!(answers.iter().all(|one| one.status.is_success()), "{answers:?}");
    // The database breaks a deadlock after a second, and others wait meanwhile.
    assert_eq!(service.deadlocks().await, before);
}

#[on_both_engines]
async fn concurrent_invites_of_one_address_create_one_member(store: TestStore) {
    let service = Service::start(store).await;
    let [_, editor, _] = service.roles();
    let invite = |case: usize| {
        let email = if case.is_multiple_of(2) { "ann@example.org" } else { "ANN@Example.org" };
        let body = json!({"email": email, "name": "Ann", "roleId": editor});
        let service = &service;
        async move { service.post("/workspace-memberships", &body).await.status.as_u16() }
    };
    let statuses = join_all((0..16).map(invite)).await;
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 15, "{statuses:?}");
    let list = service.get("/workspace-memberships/list-members").await;
    assert_eq!(list.column("id").len(), 2);
}

#[on_both_engines]
async fn no_enabled_webhook_refers_to_a_deleted_group(store: TestStore) {
    let service = Service::start(store).await;
    for round in 0..10 {
        let group = service.create("/content-groups", &json!({"name": "g"})).await;
        let make = |number: usize| {
            let body = json!({"url": "https://hooks.invalid/", "name": format!("{round}-{number}"),
                "event": "contentPieceAdded", "metadata": {"contentGroupId": group}});
            let service = &service;
            async move { service.post("/webhooks", &body).await.status.as_u16() }
        };
        let path = format!("/content-groups?id={group}");
        let (made, deleted) = tokio::join!(join_all((0..6).map(make)), service.delete(&path));
        assert_eq!(deleted.status, 204);
        assert!(made.iter().all(|status| [201, 400].contains(status)), "{made:?}");
    }
    let webhooks = service.get("/webhooks/list?perPage=1000").await.body;
    assert!(webhooks.as_array().unwrap().iter().all(|one| one["enabled"] == false), "{webhooks}");
}

#[on_both_engines]
async fn concurrent_uses_of_a_name_succeed_once(store: TestStore) {
    let service = Service::start(store).await;
    let role = json!({"name": "Author", "permissions": []});
    let make = |_| async { service.post("/roles", &role).await.status.as_u16() };
    let statuses = join_all((0..16).map(make)).await;
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    let [_, _, viewer] = service.roles();
    let mut people = Vec::new();
    for number in 0..8 {
        people.push(service.person(&format!("p{number}"), &viewer).await);
    }
    let name = json!({"username": "wanted"});
    let takes =
        people.iter().map(|who| service.send_as(&who.token, Method::PUT, "/profile", Some(&name)));
    let answers = join_all(takes).await;
    let count = |status: u16| answers.iter().filter(|one| one.status == status).count();
    assert_eq!((count(204), count(409)), (1, 7), "{answers:?}");
    let list = service.get("/workspace-memberships/list-members").await.body;
    let names: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|member| member["profile"]["username"].as_str().unwrap().to_owned())
        .collect();
    let different: HashSet<_> = names.iter().collect();
    assert_eq!(different.len(), names.len(), "{names:?}");
}

fn names(stem: &str) -> Vec<String> {
    (0..16).map(|number| format!("{stem}{number}")).collect()
}

/// Records the ancestors of each group.
fn record_ancestors(groups: &Value, above: &[String], met: &mut HashMap<String, Vec<String>>) {
    for group in groups.as_array().unwrap() {
        let id = group["id"].as_str().unwrap().to_owned();
        let mut path = above.to_vec();
        let before = met.insert(id.clone(), path.clone());
        assert!(before.is_none(), "{id} is met twice");
        path.push(id);
        record_ancestors(&group["descendants"], &path, met);
    }
}
