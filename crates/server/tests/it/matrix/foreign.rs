//! Resources of another workspace.

use std::collections::BTreeSet;

use galley_application::Error;
use galley_domain::session::{SESSION_LIFETIME, SignInMethod};
use galley_domain::{SessionId, UserId};
use galley_storage::WriteTx;
use galley_storage::sessions::{self, Session};
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use super::target::{TargetRequest, absent, part_headers, seen, start};
use crate::query_count::without_background_statements;
use crate::response_validation::DOCUMENT;
use crate::service::{Service, TestWorkspace, piece_in};
use crate::text_requests::{Placeholders, parse};

/// Requests with ids of another workspace. The ids of the own workspace begin with `own`. `$new`
/// stands for the fields of a new piece.
const REQUESTS: &str = r#"
PUT /content-pieces/sources {"sources":[{"contentPieceId":"$piece",$hashes,"variant":null}]}
PUT /content-pieces/sources {"sources":[{"contentPieceId":"$changed",$hashes,"variant":"$variant"}]}
POST /imports {"contentGroupId":"$group","files":[{"name":"a.md","content":"x"}]}
POST /content-pieces/batch {"pieces":[{$first},{$second,"contentGroupId":"$group"}]}
POST /content-pieces/batch {"pieces":[{$first},{$second,"tags":["$tag"]}]}
POST /content-pieces/batch {"pieces":[{$first},{$second,"tags":[{"id":"$tag",$shown}]}]}
POST /content-pieces/batch {"pieces":[{$first},{$second,"members":["$member"]}]}
POST /content-pieces/batch {"pieces":[{$first},{$second,"members":[{"id":"$member",$shown}]}]}
POST /content-pieces/batch {"pieces":[{$first},{$second,"referenceId":"$piece"}]}
POST /content-pieces {$new,"tags":[{"id":"$tag",$shown}]}
POST /content-pieces {$new,"members":[{"id":"$member",$shown}]}
POST /content-pieces?dryRun=true {$tried,"tags":["$tag"]}
PUT /content-pieces {"id":"$own_piece","tags":[{"id":"$tag",$shown}]}
PUT /content-pieces {"id":"$own_piece","members":["$member"]}
PUT /content-pieces?dryRun=true {"id":"$piece","title":"x"}
PUT /content-pieces {"id":"$own_piece","variant":"$own_variant","tags":["$tag"]}
PUT /content-pieces {"id":"$own_piece","variant":"$own_variant","members":["$member"]}
PUT /content-pieces {"id":"$own_piece","variant":"theirs","title":"x"}
PUT /tokens {"id":"$own_token","contentGroupIds":["$group"]}
PUT /tokens {"id":"$own_token","contentGroupIds":[{"id":"$group",$shown}]}
POST /tokens {"name":"x","permissions":[],"contentGroupIds":[{"id":"$group",$shown}]}
GET /content-pieces/list?contentGroupId=$own_group,$group
GET /webhooks/deliveries?eventId=$event
GET /content-pieces?id=$piece&content=true
GET /content-pieces?id=$own_piece&variant=$variant
GET /content-pieces/revisions?id=$piece
GET /content-pieces/revisions?id=$own_piece&variant=$variant
GET /content-pieces/revision?id=$piece&revision=$revision
GET /content-pieces/revision?id=$own_piece&revision=$revision
GET /content-pieces/diff?id=$piece&from=$revision&to=$revision
GET /content-pieces/diff?id=$own_piece&from=$revision&to=$revision
GET /content-pieces/revision?id=$own_piece&revision=$own_revision&variant=$variant
GET /content-pieces/diff?id=$own_piece&from=$own_revision&to=$own_revision&variant=$variant
PUT /content-pieces/revision {"id":"$piece","revision":"$revision","note":"x"}
PUT /content-pieces/revision {"id":"$own_piece","revision":"$revision","note":"x"}
DELETE /content-pieces/revision?id=$piece&revision=$revision
DELETE /content-pieces/revision?id=$own_piece&revision=$revision
POST /content-pieces/undelete {"id":"$trashed"}
POST /content-pieces/undelete {"id":"$trashed_group"}
POST /content-pieces/undelete {"id":"$own_trashed","contentGroupId":"$group"}
DELETE /content-pieces?id=$trashed&permanent=true
DELETE /content-groups?id=$trashed_group&permanent=true
POST /content-pieces/restore {"id":"$piece","revision":"$revision"}
POST /content-pieces/publish {"id":"$piece"}
POST /content-pieces/publish {"id":"$piece","at":null}
POST /content-pieces/publish {"id":"$own_piece","revision":"$revision"}
POST /content-pieces/publish {"contentGroupId":"$group"}
POST /content-pieces/unpublish {"id":"$piece"}
POST /content-pieces/preview {"id":"$piece"}
POST /content-pieces/unpublish {"id":"$piece","at":"2027-01-01"}
POST /content-pieces/restore {"id":"$own_piece","revision":"$revision"}
GET /content-pieces/list?variant=$variant
DELETE /profile/sessions?id=$session
POST /workspace-memberships/invite-link {"id":"$member"}
POST /workspace-memberships/resend-invite {"id":"$member"}
GET /assets?id=$asset
PUT /assets {"id":"$asset"}
PUT /assets {"id":"$own_asset","contentGroupId":"$group"}
POST /assets?filename=x&contentGroupId=$group {"x":1}
DELETE /assets?id=$asset
GET /assets/used-by?id=$asset
GET /assets/uploads?id=$asset
PATCH /assets/uploads?id=$asset "x"
DELETE /assets/uploads?id=$asset
GET /content-pieces/search?query=x&variant=$variant
GET /content-pieces/search?query=x&contentGroupId=$group
GET /content-pieces/search?query=x&tagId=$tag
GET /content-pieces/search?query=x&memberId=$member
GET /content-pieces/search?query=x&hasVariant=$variant
GET /content-pieces/list?tagId=$tag
GET /content-pieces/list?memberId=$member
GET /content-pieces/list?hasVariant=$variant
GET /content-pieces/list?withoutVariant=$variant
GET /content-pieces/sources?contentGroupId=$group
GET /content-pieces/list?contentGroupId=$group
GET /content-pieces/list?contentGroupId=$group&subtree=true
GET /content-groups/list?ancestor=$group
GET /content-groups?id=$group&subtree=true
GET /content-groups/schema?id=$group
GET /content-groups/schema/violations?id=$group
GET /tags?id=$tag
GET /variants?id=$variant
GET /roles?id=$role
GET /tokens?id=$token
GET /webhooks?id=$webhook
POST /content-pieces {$new,"contentGroupId":"$group"}
POST /content-pieces {$new,"tags":["$tag"]}
POST /content-pieces {$new,"members":["$member"]}
POST /content-pieces {$new,"referenceId":"$piece"}
PUT /content-pieces {"id":"$piece","title":"x"}
PUT /content-pieces {"id":"$own_piece","tags":["$tag"]}
PUT /content-pieces {"id":"$own_piece","members":[{"id":"$member"}]}
PUT /content-pieces {"id":"$own_piece","contentGroupId":"$group"}
PUT /content-pieces {"id":"$own_piece","referenceId":"$piece"}
PUT /content-pieces {"id":"$own_piece","variant":"$variant","title":"x"}
POST /content-groups {"name":"x","ancestor":"$group"}
PUT /content-groups {"id":"$own_group","ancestor":"$group"}
PUT /content-groups {"id":"$group","name":"x"}
PUT /tags {"id":"$tag","label":"x"}
PUT /variants {"id":"$variant","label":"x"}
PUT /roles {"id":"$role","name":"x"}
PUT /tokens {"id":"$token","name":"x"}
POST /tokens {"name":"x","permissions":[],"contentGroupIds":["$group"]}
PUT /webhooks {"id":"$webhook","name":"x"}
POST /webhooks {$hook,"event":"contentPieceAdded","metadata":{"contentGroupId":"$group"}}
PUT /webhooks {"id":"$own_webhook","metadata":{"contentGroupId":"$group"}}
POST /workspace-memberships {"email":"x@example.org","name":"x","roleId":"$role"}
PUT /workspace-memberships {"id":"$member","roleId":"$own_role"}
PUT /workspace-memberships {"id":"$own_member","roleId":"$role"}
DELETE /content-pieces?id=$piece
DELETE /content-groups?id=$group&recursive=true
DELETE /tags?id=$tag
DELETE /variants?id=$variant
DELETE /roles?id=$role
DELETE /tokens?id=$token
DELETE /workspace-memberships?id=$member
GET /webhooks/deliveries?webhookId=$webhook
POST /webhooks/test {"id":"$webhook"}
POST /webhooks/rotate-secret {"id":"$webhook","secret":"another"}
POST /webhooks/recover {"id":"$webhook","since":"2026-11-20"}
POST /webhooks/deliveries/retry {"id":"$sample"}
DELETE /webhooks?id=$webhook
"#;

/// The lists with an id of another workspace as a position.
const LISTS: &str = "
/content-groups/list?lastId=$group
/tags/list?lastId=$tag
/variants/list?lastId=$variant
/roles/list?lastId=$role
/tokens/list?lastId=$token
/webhooks/list?lastId=$webhook
/webhooks/deliveries?lastId=$sample
/workspace-memberships/list-members?lastId=$member
/workspace-memberships/list-workspaces?lastId=$workspace
";

/// Creates a resource of each kind in the other workspace.
async fn add_foreign_ids(ids: &mut Placeholders, service: &Service, other: &TestWorkspace) {
    for (name, path, body) in [
        ("piece", "/content-pieces", piece_in(&other.group, "theirs")),
        ("tag", "/tags", json!({"label": "theirs"})),
        ("variant", "/variants", json!({"key": "theirs", "label": "theirs"})),
        ("role", "/roles", json!({"name": "theirs", "permissions": []})),
        ("token", "/tokens", json!({"name": "theirs", "permissions": []})),
        ("webhook", "/webhooks", webhook_named("theirs")),
        ("asset", "/assets?filename=theirs.txt", json!({"theirs": true})),
    ] {
        ids.add(name, service.create_as(&other.token, path, &body).await);
    }
    let revisions = format!("/content-pieces/revisions?id={}", ids.get("piece"));
    let listed = service.send_as(&other.token, Method::GET, &revisions, None).await;
    ids.add("revision", listed.column("id").remove(0));
    for (name, path, body) in [
        ("trashed", "/content-pieces", piece_in(&other.group, "trashed")),
        ("trashed_group", "/content-groups", json!({"name": "trashed"})),
    ] {
        let id = service.create_as(&other.token, path, &body).await;
        let path = format!("{path}?id={id}");
        let deleted = service.send_as(&other.token, Method::DELETE, &path, None).await;
        assert_eq!(deleted.status, 204);
        ids.add(name, id);
    }
    ids.add("group", &other.group);
    ids.add("member", other.made.member.to_string());
    ids.add("workspace", other.made.workspace.to_string());
    let body = json!({"id": ids.get("webhook")});
    let sample = service.send_as(&other.token, Method::POST, "/webhooks/test", Some(&body)).await;
    ids.add("sample", sample.id());
    let deliveries = format!("/webhooks/deliveries?webhookId={}", ids.get("webhook"));
    let delivered = service.send_as(&other.token, Method::GET, &deliveries, None).await;
    let delivery = &delivered.body[0];
    let event = delivery["payload"]["id"].as_str().or_else(|| delivery["eventId"].as_str());
    ids.add("event", event.unwrap_or_else(|| panic!("{delivered:?}")));
}

/// Creates resources in the home workspace. Returns the ids that requests for absent resources
/// contain, too.
async fn add_own_ids(ids: &mut Placeholders, service: &Service) -> Vec<String> {
    let mut kept = Vec::new();
    for (name, path, body) in [
        ("own_piece", "/content-pieces", service.piece("mine")),
        ("own_webhook", "/webhooks", webhook_named("mine")),
        ("own_variant", "/variants", json!({"key": "mine", "label": "mine"})),
        ("own_token", "/tokens", json!({"name": "mine", "permissions": []})),
        ("own_asset", "/assets?filename=mine.txt", json!({"mine": true})),
    ] {
        let id = service.create(path, &body).await;
        ids.add(name, &id);
        kept.push(id);
    }
    let trashed = service.create("/content-pieces", &service.piece("trashed")).await;
    assert_eq!(service.delete(&format!("/content-pieces?id={trashed}")).await.status, 204);
    ids.add("own_trashed", &trashed);
    kept.push(trashed);
    let revisions = format!("/content-pieces/revisions?id={}", ids.get("own_piece"));
    let revision = service.get(&revisions).await.column("id").remove(0);
    ids.add("own_revision", &revision);
    kept.push(revision);
    ids.add("own_group", &service.home.group);
    let member = service.home.made.member.to_string();
    ids.add("own_member", &member);
    ids.add("own_role", &service.roles()[2]);
    ids.add("changed", service.create("/content-pieces", &service.piece("mine")).await);
    kept.extend(service.roles().into_iter().chain([service.home.group.clone(), member]));
    kept
}

/// Creates a session of a user, and returns its id.
async fn session_of(service: &Service, user: UserId) -> String {
    let (id, now) = (SessionId::new(service.environment.new_id()), service.environment.now());
    let session = Session {
        id,
        user,
        workspace: None,
        method: SignInMethod::Mail,
        user_agent: None,
        remote_address: None,
        created_at: now,
        last_used_at: now,
        expires_at: now.later(SESSION_LIFETIME),
    };
    let insert = async move |tx: &WriteTx<'_>| {
        Ok::<_, Error>(sessions::insert(tx, &session, &[1; 32]).await?)
    };
    service.database.write("test", insert).await.unwrap();
    id.to_string()
}

/// Returns a disabled webhook, as its attempts would add statements.
fn webhook_named(name: &str) -> Value {
    json!({"url": "https://hooks.invalid/", "name": name, "event": "memberAdded",
        "enabled": false})
}

/// Adds parts of bodies, without their braces.
fn add_parts(ids: &mut Placeholders, service: &Service) {
    let fields = |body: &Value| body.to_string().trim_matches(['{', '}']).to_owned();
    for slug in ["new", "first", "second", "tried"] {
        ids.add(slug, fields(&service.piece(slug)));
    }
    ids.add("shown", fields(&json!({"name": "as a GET gave it"})));
    ids.add("hashes", fields(&json!({"sourceHash": "a", "importedHash": "b"})));
    ids.add("hook", fields(&json!({"url": "https://hooks.invalid/", "name": "x"})));
}

#[on_both_engines]
async fn foreign_resources_are_indistinguishable_from_absent_ones(store: TestStore) {
    let service = start(store).await;
    let other = service.other_workspace().await;
    let mut ids = Placeholders::default();
    add_foreign_ids(&mut ids, &service, &other).await;
    ids.add("session", session_of(&service, other.made.user).await);
    let kept = add_own_ids(&mut ids, &service).await;
    add_parts(&mut ids, &service);
    let requests = ids.fill(REQUESTS);
    let requests = requests.trim().lines().map(|line| {
        let (method, path, body) = parse(line);
        let mut target = TargetRequest { body, ..TargetRequest::without_body(path) };
        if path.starts_with("/assets/uploads") {
            target.headers = part_headers();
        }
        (method, target)
    });
    let requests: Vec<_> = requests.collect();
    // The requests cover every parameter and field that may contain an id.
    let tried = requests.iter().flat_map(|(method, target)| target.places(method.as_str(), &kept));
    let tried: BTreeSet<String> = tried.collect();
    let all = places_of_ids(&DOCUMENT);
    assert_eq!(all.difference(&tried).collect::<Vec<_>>(), Vec::<&String>::new(), "{tried:?}");
    let before = service.workspace_state().await;
    for (method, target) in requests {
        let absent = target.absent_but(&kept);
        let work = || without_background_statements(service.statements.take());
        service.forget_statements().await;
        let answer = target.ask(&service, Some(&service.home.token), method.as_str()).await;
        let foreign = work();
        let truly = absent.ask(&service, Some(&service.home.token), method.as_str()).await;
        // Both take the same statements, so that their duration is the same, too.
        assert_eq!(foreign, work(), "{method} {target:?} against {absent:?}");
        assert_eq!(seen(&answer), seen(&truly), "{method} {target:?} against {absent:?}");
        // A list of own and foreign groups equals the list of own groups.
        let beside = target.path.contains(&format!("{},", service.home.group));
        let refused = answer.status.is_client_error() || answer.body == json!([]);
        assert!(refused || beside, "{method} {target:?}: {answer:?}");
    }
    for list in ids.fill(LISTS).trim().lines() {
        // A foreign id works as a position like an adjacent id without a resource.
        let adjacent = if list.ends_with('0') { '1' } else { '0' };
        let adjacent = format!("{}{adjacent}", &list[..list.len() - 1]);
        let seen_at = async |path: &str| seen(&service.get(path).await);
        assert_eq!(seen_at(list).await, seen_at(&adjacent).await, "{list}");
    }
    assert_eq!(service.workspace_state().await, before);
    // A cursor contains a position, but no workspace.
    service.create_as(&other.token, "/content-pieces", &piece_in(&other.group, "next")).await;
    let list = "/content-pieces/list?perPage=1&sort=title";
    let first = service.send_as(&other.token, Method::GET, list, None).await;
    let next = first.header("link").split(['<', '>']).nth(1).unwrap();
    let page = service.get(next).await;
    assert!(page.column("slug").iter().all(|slug| slug == "mine"), "{page:?}");
}

/// Returns true if a parameter or field of this name may contain an id.
fn names_an_id(name: &str) -> bool {
    let is_one = ["id", "ancestor", "variant", "tags", "members"].contains(&name)
        || name.ends_with("Id")
        || name.ends_with("Ids");
    // A list position is not a reference to a resource.
    is_one && name != "lastId"
}

/// Returns every parameter and field of the OpenAPI document that may refer to an existing
/// resource.
fn places_of_ids(document: &Value) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let method = method.to_uppercase();
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap_or_default();
                if parameter["in"] == "query" && names_an_id(name) {
                    places.insert(format!("{method} {path}?{name}"));
                }
            }
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            let mut fields = Vec::new();
            fields_of(document, body, "", &mut fields);
            let last = |field: &String| {
                let names = field.trim_end_matches("[]").rsplit('.');
                names.into_iter().next().is_some_and(names_an_id)
            };
            places.extend(
                fields
                    .iter()
                    .filter(|field| last(field))
                    .map(|field| format!("{method} {path} {field}")),
            );
        }
    }
    places
}

/// Collects the paths of a schema's texts, such as `pieces[].tags[].id`.
fn fields_of(document: &Value, schema: &Value, at: &str, found: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        // A content tree has no ids, and its schema is recursive.
        if name.ends_with("/ContentTreeInput") {
            return;
        }
        let schema = document.pointer(name.trim_start_matches('#')).unwrap();
        return fields_of(document, schema, at, found);
    }
    for form in schema["anyOf"].as_array().into_iter().flatten() {
        // Beside properties, `anyOf` expresses conditions.
        if schema.get("properties").is_none() {
            fields_of(document, form, at, found);
        }
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let dot = if at.is_empty() { "" } else { "." };
        fields_of(document, field, &format!("{at}{dot}{name}"), found);
    }
    if let Some(items) = schema.get("items") {
        fields_of(document, items, &format!("{at}[]"), found);
    }
    let types = [&schema["type"], &schema["type"][0]];
    if types.contains(&&json!("string")) && !at.is_empty() {
        found.push(at.to_owned());
    }
}

/// Collects the paths of a body's texts.
fn texts_of(value: &Value, at: &str, found: &mut Vec<(String, String)>) {
    let dot = if at.is_empty() { "" } else { "." };
    match value {
        Value::String(text) => found.push((at.to_owned(), text.clone())),
        Value::Array(items) => {
            for item in items {
                texts_of(item, &format!("{at}[]"), found);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                texts_of(field, &format!("{at}{dot}{name}"), found);
            }
        }
        _ => {}
    }
}

impl TargetRequest {
    /// Returns the places of ids that do not belong to `home`, in the notation of
    /// [`places_of_ids`].
    fn places(&self, method: &str, home: &[String]) -> Vec<String> {
        let is_foreign = |text: &str| {
            text.split(',')
                .any(|id| id == "theirs" || (absent(id) != id && !home.iter().any(|own| own == id)))
        };
        let (path, query) = self.path.split_once('?').unwrap_or((&self.path, ""));
        let parameters = query.split('&').filter_map(|parameter| parameter.split_once('='));
        let parameters = parameters
            .filter(|(_, value)| is_foreign(value))
            .map(|(name, _)| format!("{method} {path}?{name}"));
        let mut texts = Vec::new();
        self.body.iter().for_each(|body| texts_of(body, "", &mut texts));
        let fields = texts.iter().filter(|(_, text)| is_foreign(text));
        parameters.chain(fields.map(|(at, _)| format!("{method} {path} {at}"))).collect()
    }

    /// Returns the same request with absent ids in place of all except `kept`.
    fn absent_but(&self, kept: &[String]) -> Self {
        let changed = |text: &str| {
            let mut text = text.to_owned();
            for (number, id) in kept.iter().enumerate() {
                text = text.replace(id, &format!("kept{number}kept"));
            }
            let mut text = absent(&text);
            for (number, id) in kept.iter().enumerate() {
                text = text.replace(&format!("kept{number}kept"), id);
            }
            text
        };
        let body = self.body.as_ref().map(|body| {
            serde_json::from_str(&changed(&body.to_string())).expect("ids are plain texts")
        });
        Self { path: changed(&self.path), headers: self.headers.clone(), body }
    }
}
