//! `/profile`, `/workspace` and `/settings`: the token's user and workspace, and the installation.

use galley_api_types::setting::{SettingBody, SettingSource};
use galley_server::ServerLimits;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::Service;

#[on_both_engines]
async fn a_profile_change_shows_everywhere(store: TestStore) {
    let service = Service::start(store).await;
    let profile = service.get("/profile").await.body;
    assert_eq!(
        profile,
        json!({"id": service.home.made.user.to_string(), "email": "home@example.org",
        "fullName": "home", "username": "home", "avatar": null})
    );
    let sequence = service.last_sequence().await;
    let change = json!({"fullName": "Ann Home", "username": "ann", "avatar": "https://a.example/a.png",
        "email": "evil@example.org", "id": "usr_x"});
    assert_eq!(service.put("/profile", &change).await.status, 204);
    let changed = service.get("/profile").await.body;
    assert_eq!(
        changed,
        json!({"id": profile["id"], "email": "home@example.org",
        "fullName": "Ann Home", "username": "ann", "avatar": "https://a.example/a.png"})
    );
    let members = service.get("/workspace-memberships/list-members").await.body;
    assert_eq!(
        members[0]["profile"],
        json!({"fullName": "Ann Home", "username": "ann", "avatar": "https://a.example/a.png"})
    );
    assert_eq!(
        (&members[0]["name"], &members[0]["email"]),
        (&json!("Ann Home"), &json!("home@example.org"))
    );
    let mut body = service.piece("by-ann");
    body["members"] = json!([service.home.made.member.to_string()]);
    let piece = service.create("/content-pieces", &body).await;
    let piece = service.get(&format!("/content-pieces?id={piece}")).await.body;
    assert_eq!(piece["members"][0]["profile"]["username"], "ann");
    assert_eq!(service.put("/profile", &json!({"avatar": null})).await.status, 204);
    assert_eq!(service.get("/profile").await.body["avatar"], Value::Null);
    assert_eq!(service.last_sequence().await, sequence + 1, "the piece's event alone");
}

#[on_both_engines]
async fn usernames_are_unique_in_the_installation(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    for username in ["other", "OTHER"] {
        let answer = service.put("/profile", &json!({"username": username})).await;
        answer.assert_problem(409, "username_taken", &[]);
    }
    let change = json!({"username": "OTHER"});
    let mine = service.send_as(&other.token, Method::PUT, "/profile", Some(&change)).await;
    assert_eq!(mine.status, 204, "one may change one's own in case");
    let change = json!({"username": "a b", "fullName": "", "avatar": "javascript:x"});
    let answer = service.put("/profile", &change).await;
    answer.assert_problem(400, "validation", &["username", "fullName", "avatar"]);
    let answer = service.put("/profile", &json!({"username": null, "fullName": null})).await;
    answer.assert_problem(400, "validation", &["username", "fullName"]);
}

#[on_both_engines]
async fn a_workspace_is_read_and_updated(store: TestStore) {
    let service = Service::start(store).await;
    let sequence = service.last_sequence().await;
    let workspace = service.get("/workspace").await;
    assert_eq!(workspace.body["id"], json!(service.home.made.workspace.to_string()));
    assert_eq!((&workspace.body["name"], &workspace.body["logo"]), (&json!("home"), &Value::Null));
    let change = json!({"name": "The Harbour", "description": "News.", "logo": "/logo.svg"});
    assert_eq!(service.put("/workspace", &change).await.status, 204);
    let after = service.get("/workspace").await;
    assert_eq!(
        (&after.body["name"], &after.body["description"], &after.body["logo"]),
        (&json!("The Harbour"), &json!("News."), &json!("/logo.svg"))
    );
    assert_ne!(after.header("etag"), workspace.header("etag"));
    assert_eq!(service.put("/workspace", &json!({"description": null})).await.status, 204);
    assert_eq!(service.get("/workspace").await.body["description"], Value::Null);
    let answer =
        service.put("/workspace", &json!({"name": "", "logo": "ftp://x", "description": []})).await;
    answer.assert_problem(400, "validation", &["name", "logo", "description"]);
    let answer = service.put("/workspace", &json!({"name": null})).await;
    answer.assert_problem(400, "validation", &["name"]);
    assert_eq!(service.last_sequence().await, sequence, "no event is fired");
}

#[on_both_engines]
async fn the_settings_are_those_of_the_only_workspace(store: TestStore) {
    let shown = SettingBody {
        name: "revision-retention".to_owned(),
        value: "30".to_owned(),
        source: SettingSource::File,
    };
    let limits = ServerLimits { settings: vec![shown], ..ServerLimits::default() };
    let service = Service::start_with(store, limits).await;
    let listed = service.get("/settings").await;
    let setting = json!({"name": "revision-retention", "value": "30", "source": "file"});
    assert_eq!((listed.status.as_u16(), listed.body), (200, json!([setting])));
    let reader = service.token("workspace:read", None).await;
    let rejected = service.send_as(&reader, Method::GET, "/settings", None).await;
    rejected.assert_problem(403, "insufficient_permissions", &[]);
    // Another workspace may belong to another customer of the operator.
    let other = service.other_workspace().await;
    for token in [&service.home.token, &other.token] {
        let rejected = service.send_as(token, Method::GET, "/settings", None).await;
        rejected.assert_problem(403, "beyond_own_permissions", &[]);
        assert!(rejected.body["detail"].as_str().unwrap().contains("galley config"));
    }
}

#[on_both_engines]
async fn a_membership_states_the_permissions_of_its_role(store: TestStore) {
    let service = Service::start(store).await;
    let permissions = json!(["contentPieces:write", "tags:read"]);
    let role = service.create("/roles", &json!({"name": "A", "permissions": permissions})).await;
    let person = service.person("Ada", &role).await;
    let path = "/workspace-memberships/list-workspaces";
    let listed = service.send_as(&person.token, Method::GET, path, None).await;
    assert_eq!(listed.body[0]["permissions"], permissions);
    let all = &service.get(path).await.body[0]["permissions"];
    let roles = service.get("/roles/list").await;
    let admin = roles.body.as_array().unwrap().iter().find(|role| role["baseType"] == "admin");
    assert_eq!(all, &admin.unwrap()["permissions"]);
}
