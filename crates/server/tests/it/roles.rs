//! `/roles`: every endpoint's success and errors.

use galley_testing::{TestStore, on_both_engines};
use serde_json::{Value, json};

use crate::service::Service;

#[on_both_engines]
async fn a_workspace_starts_with_three_roles(store: TestStore) {
    let service = Service::start(store).await;
    let list = service.get("/roles/list").await;
    assert_eq!(list.column("name"), ["Admin", "Editor", "Viewer"]);
    assert_eq!(list.column("id"), service.roles());
    let base: Vec<_> =
        list.body.as_array().unwrap().iter().map(|role| role["baseType"].clone()).collect();
    assert_eq!(base, [json!("admin"), Value::Null, json!("viewer")]);
    assert_eq!(
        list.body[0]["permissions"],
        json!([
            "contentPieces:write",
            "contentGroups:write",
            "tags:write",
            "variants:write",
            "assets:write",
            "roles:write",
            "workspaceMemberships:write",
            "workspace:write",
            "webhooks:write",
            "tokens:write",
            "profile:write",
            "trash:write",
            "publishing:write",
            "audit:write"
        ])
    );
    let editor = &list.body[1]["permissions"];
    assert_eq!(
        *editor,
        json!([
            "contentPieces:write",
            "contentGroups:read",
            "tags:write",
            "variants:read",
            "assets:write",
            "roles:read",
            "workspaceMemberships:read",
            "workspace:read",
            "profile:write",
            "publishing:write"
        ])
    );
    let viewer = &list.body[2]["permissions"];
    assert_eq!(
        *viewer,
        json!([
            "contentPieces:read",
            "contentGroups:read",
            "tags:read",
            "variants:read",
            "assets:read",
            "roles:read",
            "workspaceMemberships:read",
            "workspace:read",
            "profile:write"
        ])
    );
}

#[on_both_engines]
async fn roles_are_created_updated_and_deleted(store: TestStore) {
    let service = Service::start(store).await;
    let sequence = service.last_sequence().await;
    let body = json!({"name": "Author", "description": "Writes.",
        "permissions": ["tags:read", "contentPieces:read", "contentPieces:write"]});
    let made = service.post("/roles", &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let id = made.id();
    assert_eq!(made.header("location"), format!("/roles?id={id}"));
    let path = format!("/roles?id={id}");
    let expected = json!({"id": id, "name": "Author", "description": "Writes.", "baseType": null,
        "permissions": ["contentPieces:write", "tags:read"]});
    assert_eq!(service.get(&path).await.body, expected, "write includes read");
    let change = json!({"id": id, "description": null, "permissions": []});
    assert_eq!(service.put("/roles", &change).await.status, 204);
    let role = service.get(&path).await.body;
    assert_eq!(
        (&role["description"], &role["permissions"], &role["name"]),
        (&Value::Null, &json!([]), &json!("Author"))
    );
    assert_eq!(service.delete(&path).await.status, 204);
    service.get(&path).await.assert_problem(404, "not_found", &[]);
    service.delete(&path).await.assert_problem(404, "not_found", &[]);
    assert_eq!(service.last_sequence().await, sequence, "no event is fired");
}

#[on_both_engines]
async fn role_names_are_unique_in_a_workspace(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let id = service.create("/roles", &json!({"name": "Author", "permissions": []})).await;
    let answer = service.post("/roles", &json!({"name": "Author", "permissions": []})).await;
    answer.assert_problem(409, "name_taken", &[]);
    let answer = service.put("/roles", &json!({"id": id, "name": "Editor"})).await;
    answer.assert_problem(409, "name_taken", &[]);
    let body = json!({"name": "Author", "permissions": []});
    let theirs = service.send_as(&other.token, reqwest::Method::POST, "/roles", Some(&body)).await;
    assert_eq!(theirs.status, 201, "another workspace has names of its own");
}

#[on_both_engines]
async fn a_role_in_use_cannot_be_deleted(store: TestStore) {
    let service = Service::start(store).await;
    let role = service.create("/roles", &json!({"name": "Author", "permissions": []})).await;
    let other = service.create("/roles", &json!({"name": "Other", "permissions": []})).await;
    let invite = json!({"email": "a@example.org", "name": "a", "roleId": role});
    let invited = service.create("/workspace-memberships", &invite).await;
    let path = format!("/roles?id={role}");
    service.delete(&path).await.assert_problem(409, "role_in_use", &[]);
    let change = json!({"id": invited, "roleId": other});
    assert_eq!(service.put("/workspace-memberships", &change).await.status, 204);
    assert_eq!(service.delete(&path).await.status, 204);
    // All roles except Admin can be changed, and deleted when no member has them.
    let [admin, editor, viewer] = service.roles();
    let answer = service.delete(&format!("/roles?id={admin}")).await;
    answer.assert_problem(409, "builtin_role", &[]);
    for id in [editor, viewer] {
        let change = json!({"id": id, "permissions": ["tags:read"]});
        assert_eq!(service.put("/roles", &change).await.status, 204);
        assert_eq!(service.delete(&format!("/roles?id={id}")).await.status, 204);
    }
}

#[on_both_engines]
async fn a_role_change_applies_to_the_next_request(store: TestStore) {
    let service = Service::start(store).await;
    let role = service.create("/roles", &json!({"name": "A", "permissions": ["tags:read"]})).await;
    let ann = service.person("ann", &role).await;
    let tries = async || {
        service.send_as(&ann.token, reqwest::Method::GET, "/tags/list", None).await.status.as_u16()
    };
    assert_eq!(tries().await, 200);
    for (permissions, status) in [(json!([]), 403), (json!(["tags:write"]), 200)] {
        let change = json!({"id": role, "permissions": permissions});
        assert_eq!(service.put("/roles", &change).await.status, 204);
        assert_eq!(tries().await, status);
    }
}

#[on_both_engines]
async fn errors_of_invalid_roles_are_reported(store: TestStore) {
    let service = Service::start(store).await;
    service.post("/roles", &json!({})).await.assert_problem(
        400,
        "validation",
        &["name", "permissions"],
    );
    let body = json!({"name": "", "permissions": ["tags:read", "tags:delete", 3, "tags"], "description": 4});
    service.post("/roles", &body).await.assert_problem(
        400,
        "validation",
        &["name", "permissions[1]", "permissions[2]", "permissions[3]", "description"],
    );
    let body = json!({"id": service.roles()[1], "permissions": null, "name": null});
    service.put("/roles", &body).await.assert_problem(400, "validation", &["name", "permissions"]);
}
