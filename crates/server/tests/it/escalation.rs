//! Privilege escalation: attempts to gain or revoke more than the token's own permissions. Each is
//! rejected and changes nothing.

use galley_application::VersionPrecondition;
use galley_application::operations::workspace::{BillingUpdate, WorkspaceUpdate, update_in};
use galley_domain::Timestamp;
use galley_storage::WriteTx;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{ALL, Service, TestResponse, TokenKind, piece_in};

/// A request and its expected rejection.
struct EscalationAttempt<'a> {
    what: &'static str,
    token: &'a str,
    method: Method,
    path: String,
    body: Option<Value>,
    status: u16,
    reason: &'static str,
}

const BEYOND: &str = "beyond_own_permissions";
const LIMIT: &str = "outside_group_limit";

#[on_both_engines]
async fn privilege_escalations_are_rejected(store: TestStore) {
    let service = Service::start(store).await;
    let home = service.home.clone();
    let [admin, editor, viewer] = service.roles();

    // The manager may write members, roles, tokens and pieces, but neither groups nor webhooks.
    let manages = json!([
        "workspaceMemberships:write",
        "roles:write",
        "tokens:write",
        "contentPieces:write",
        "profile:write",
        "workspace:read"
    ]);
    let role = json!({"name": "Manager", "permissions": manages});
    let manager_role = service.create("/roles", &role).await;
    let small = json!({"name": "Small", "permissions": ["contentPieces:read"]});
    let small_role = service.create("/roles", &small).await;
    let large = json!({"name": "Large", "permissions": ["webhooks:write"]});
    let large_role = service.create("/roles", &large).await;
    let manager = service.person("manager", &manager_role).await;
    let everything = [
        "contentPieces",
        "contentGroups",
        "tags",
        "variants",
        "roles",
        "profile",
        "workspaceMemberships",
        "workspace",
        "webhooks",
        "tokens",
    ];
    let everything = everything.map(|what| format!("{what}:write"));
    let role = json!({"name": "Operations", "permissions": everything});
    let ops_role = service.create("/roles", &role).await;
    let ops = service.person("ops", &ops_role).await;
    let ed = service.person("ed", &editor).await;
    let vi = service.person("vi", &viewer).await;
    let second = service.person("second", &admin).await;
    let demoted = service.person("demoted", &admin).await;
    let body = json!({"id": demoted.member, "roleId": viewer});
    assert_eq!(service.put("/workspace-memberships", &body).await.status, 204);
    let pending = json!({"email": "p@example.org", "name": "P", "roleId": admin});
    let pending = service.create("/workspace-memberships", &pending).await;

    // The limited token sees `inside` and its subtree.
    let group = async |name: &str, ancestor: Option<&str>| {
        service.create("/content-groups", &json!({"name": name, "ancestor": ancestor})).await
    };
    let above = group("Above", None).await;
    let inside = group("Inside", Some(&above)).await;
    let under = group("Under", Some(&inside)).await;
    let beside = group("Beside", Some(&above)).await;
    let hidden = service.create("/content-pieces", &piece_in(&beside, "hidden")).await;
    let shown = service.create("/content-pieces", &piece_in(&inside, "shown")).await;
    let webhook = async |event: &str, group: Option<&str>| {
        let body = json!({"url": "https://hooks.invalid/", "name": "w", "event": event,
            "metadata": {"contentGroupId": group}});
        service.create("/webhooks", &body).await
    };
    let members_hook = webhook("memberAdded", None).await;
    let hidden_hook = webhook("contentPieceAdded", Some(&beside)).await;
    let shown_hook = webhook("contentPieceAdded", Some(&inside)).await;
    let all_groups_hook = webhook("contentGroupAdded", None).await;

    let owner = home.made.user;
    let soon = service.environment.now().ms() + 3_600_000;
    let (soon, later) = (Timestamp::from_ms(soon), Timestamp::from_ms(soon + 1));
    let of = async |kind: TokenKind<'_>| service.token_of(owner, kind).await;
    let reader = of(TokenKind { permissions: "tokens:write contentPieces:read", ..ALL }).await;
    let expiring = of(TokenKind { expires_at: Some(soon), ..ALL }).await;
    let extension = of(TokenKind { extension: Some("one"), ..ALL }).await;
    let limited = of(TokenKind { groups: Some(&[inside.as_str()]), ..ALL }).await;
    let hooks = of(TokenKind { permissions: "webhooks:write", ..ALL }).await;
    let only_leaves = of(TokenKind { permissions: "profile:read", ..ALL }).await;
    let ids = async |token: &str| service.token_id(token).await;
    let (reader_id, expiring_id) = (ids(&reader).await, ids(&expiring).await);
    let (extension_id, limited_id) = (ids(&extension).await, ids(&limited).await);
    let (owner_id, manager_id) = (ids(&home.token).await, ids(&manager.token).await);
    let second_id = ids(&second.token).await;

    let mut attempts = Vec::new();
    let mut add = |what, token, method: &str, path: &str, body: Value, status, reason| {
        let method = method.parse().unwrap();
        let body = (!body.is_null()).then_some(body);
        attempts.push(EscalationAttempt {
            what,
            token,
            method,
            path: path.to_owned(),
            body,
            status,
            reason,
        });
    };
    let members = "/workspace-memberships";
    let me = home.made.member.to_string();
    let by = |path: &str, id: &str| format!("{path}?id={id}");
    let no = || Value::Null;
    let tokens = "/tokens";

    // Members.
    let by_manager = manager.token.as_str();
    add(
        "invites an Admin",
        by_manager,
        "POST",
        members,
        json!({"email": "x@example.org", "name": "x", "roleId": admin}),
        403,
        BEYOND,
    );
    add(
        "invites an Editor, who writes tags",
        by_manager,
        "POST",
        members,
        json!({"email": "x@example.org", "name": "x", "roleId": editor}),
        403,
        BEYOND,
    );
    add(
        "makes itself Admin",
        by_manager,
        "PUT",
        members,
        json!({"id": manager.member, "roleId": admin}),
        403,
        BEYOND,
    );
    add(
        "gives itself a larger role",
        by_manager,
        "PUT",
        members,
        json!({"id": manager.member, "roleId": large_role}),
        403,
        BEYOND,
    );
    add(
        "demotes an Admin",
        by_manager,
        "PUT",
        members,
        json!({"id": me, "roleId": small_role}),
        403,
        BEYOND,
    );
    add(
        "demotes an Editor",
        by_manager,
        "PUT",
        members,
        json!({"id": ed.member, "roleId": small_role}),
        403,
        BEYOND,
    );
    add(
        "changes an invited Admin's role",
        by_manager,
        "PUT",
        members,
        json!({"id": pending, "roleId": small_role}),
        403,
        BEYOND,
    );
    add("removes an Admin", by_manager, "DELETE", &by(members, &me), no(), 403, BEYOND);
    add("removes an Editor", by_manager, "DELETE", &by(members, &ed.member), no(), 403, BEYOND);
    add("voids an Admin's invite", by_manager, "DELETE", &by(members, &pending), no(), 403, BEYOND);
    add(
        "removes somebody as an Editor",
        &ed.token,
        "DELETE",
        &by(members, &vi.member),
        no(),
        403,
        "insufficient_permissions",
    );
    add(
        "removes somebody as a Viewer",
        &vi.token,
        "DELETE",
        &by(members, &me),
        no(),
        403,
        "insufficient_permissions",
    );
    add(
        "makes itself Admin as a Viewer",
        &vi.token,
        "PUT",
        members,
        json!({"id": vi.member, "roleId": admin}),
        403,
        "insufficient_permissions",
    );
    add(
        "leaves by a token of few permissions",
        &only_leaves,
        "DELETE",
        &by(members, &me),
        no(),
        403,
        "insufficient_permissions",
    );
    add(
        "makes itself Admin again after being demoted",
        &demoted.token,
        "PUT",
        members,
        json!({"id": demoted.member, "roleId": admin}),
        403,
        "insufficient_permissions",
    );

    // All permissions together are less than an Admin has.
    add(
        "makes itself Admin by all permissions",
        &ops.token,
        "PUT",
        members,
        json!({"id": ops.member, "roleId": admin}),
        403,
        BEYOND,
    );
    add(
        "invites an Admin by all permissions",
        &ops.token,
        "POST",
        members,
        json!({"email": "x@example.org", "name": "x", "roleId": admin}),
        403,
        BEYOND,
    );
    add(
        "demotes an Admin by all permissions",
        &ops.token,
        "PUT",
        members,
        json!({"id": second.member, "roleId": viewer}),
        403,
        BEYOND,
    );
    add(
        "removes an Admin by all permissions",
        &ops.token,
        "DELETE",
        &by(members, &me),
        no(),
        403,
        BEYOND,
    );
    add(
        "sees an Admin's token by all permissions",
        &ops.token,
        "GET",
        &by(tokens, &owner_id),
        no(),
        404,
        "not_found",
    );

    // An expiring token cannot make permanent changes.
    add(
        "invites by a token that ends",
        &expiring,
        "POST",
        members,
        json!({"email": "x@example.org", "name": "x", "roleId": viewer}),
        403,
        BEYOND,
    );
    add(
        "raises somebody by a token that ends",
        &expiring,
        "PUT",
        members,
        json!({"id": vi.member, "roleId": admin}),
        403,
        BEYOND,
    );
    add(
        "makes a role by a token that ends",
        &expiring,
        "POST",
        "/roles",
        json!({"name": "x", "permissions": []}),
        403,
        BEYOND,
    );
    add(
        "widens a role by a token that ends",
        &expiring,
        "PUT",
        "/roles",
        json!({"id": small_role, "permissions": ["contentPieces:write"]}),
        403,
        BEYOND,
    );
    add(
        "revokes a longer-lived token",
        &expiring,
        "DELETE",
        &by(tokens, &reader_id),
        no(),
        403,
        BEYOND,
    );

    // Roles.
    add(
        "makes a role of more",
        by_manager,
        "POST",
        "/roles",
        json!({"name": "More", "permissions": ["contentGroups:read"]}),
        403,
        BEYOND,
    );
    add(
        "makes a role that writes what it reads",
        by_manager,
        "POST",
        "/roles",
        json!({"name": "More", "permissions": ["workspace:write"]}),
        403,
        BEYOND,
    );
    add(
        "adds to its own role",
        by_manager,
        "PUT",
        "/roles",
        json!({"id": manager_role, "permissions": ["roles:write", "webhooks:read"]}),
        403,
        BEYOND,
    );
    add(
        "adds to a smaller role",
        by_manager,
        "PUT",
        "/roles",
        json!({"id": small_role, "permissions": ["tags:write"]}),
        403,
        BEYOND,
    );
    add(
        "takes from a larger role",
        by_manager,
        "PUT",
        "/roles",
        json!({"id": large_role, "permissions": []}),
        403,
        BEYOND,
    );
    add(
        "renames a larger role",
        by_manager,
        "PUT",
        "/roles",
        json!({"id": editor, "name": "Mine"}),
        403,
        BEYOND,
    );
    add(
        "changes Admin",
        by_manager,
        "PUT",
        "/roles",
        json!({"id": admin, "permissions": []}),
        409,
        "builtin_role",
    );
    add(
        "changes Admin as one",
        &home.token,
        "PUT",
        "/roles",
        json!({"id": admin, "permissions": ["tags:read"]}),
        409,
        "builtin_role",
    );
    add("deletes Admin", &home.token, "DELETE", &by("/roles", &admin), no(), 409, "builtin_role");
    add(
        "deletes a larger role",
        by_manager,
        "DELETE",
        &by("/roles", &large_role),
        no(),
        403,
        BEYOND,
    );

    // Tokens.
    add(
        "makes a token of more",
        by_manager,
        "POST",
        tokens,
        json!({"name": "x", "permissions": ["contentGroups:write"]}),
        403,
        BEYOND,
    );
    add("sees an Admin's token", by_manager, "GET", &by(tokens, &owner_id), no(), 404, "not_found");
    add(
        "changes an Admin's token",
        by_manager,
        "PUT",
        tokens,
        json!({"id": owner_id, "permissions": []}),
        404,
        "not_found",
    );
    add(
        "revokes an Admin's token",
        by_manager,
        "DELETE",
        &by(tokens, &second_id),
        no(),
        404,
        "not_found",
    );
    add(
        "makes a token that writes",
        &reader,
        "POST",
        tokens,
        json!({"name": "x", "permissions": ["contentPieces:write"]}),
        403,
        BEYOND,
    );
    add(
        "widens itself",
        &reader,
        "PUT",
        tokens,
        json!({"id": reader_id, "permissions": ["tokens:write", "tags:read"]}),
        403,
        BEYOND,
    );
    add(
        "renames a wider token of its user",
        &reader,
        "PUT",
        tokens,
        json!({"id": owner_id, "name": "x"}),
        403,
        BEYOND,
    );
    add(
        "revokes a wider token of its user",
        &reader,
        "DELETE",
        &by(tokens, &owner_id),
        no(),
        403,
        BEYOND,
    );
    add(
        "makes a token without end",
        &expiring,
        "POST",
        tokens,
        json!({"name": "x", "permissions": []}),
        403,
        BEYOND,
    );
    add(
        "makes a token with a later end",
        &expiring,
        "POST",
        tokens,
        json!({"name": "x", "permissions": [], "expiresAt": later.to_string()}),
        403,
        BEYOND,
    );
    add(
        "lasts longer",
        &expiring,
        "PUT",
        tokens,
        json!({"id": expiring_id, "expiresAt": later.to_string()}),
        403,
        BEYOND,
    );
    add(
        "lasts forever",
        &expiring,
        "PUT",
        tokens,
        json!({"id": expiring_id, "expiresAt": null}),
        403,
        BEYOND,
    );
    add(
        "takes a longer-lived token over",
        &expiring,
        "PUT",
        tokens,
        json!({"id": manager_id, "permissions": []}),
        403,
        BEYOND,
    );
    add(
        "makes a token of no extension",
        &extension,
        "POST",
        tokens,
        json!({"name": "x", "permissions": []}),
        403,
        BEYOND,
    );
    add(
        "makes another extension's token",
        &extension,
        "POST",
        tokens,
        json!({"name": "x", "permissions": [], "extension": "two"}),
        403,
        BEYOND,
    );
    add(
        "leaves its extension",
        &extension,
        "PUT",
        tokens,
        json!({"id": extension_id, "extension": null}),
        403,
        BEYOND,
    );
    add(
        "changes its extension",
        &extension,
        "PUT",
        tokens,
        json!({"id": extension_id, "extension": "two"}),
        403,
        BEYOND,
    );
    add(
        "takes a token into its extension",
        &extension,
        "PUT",
        tokens,
        json!({"id": reader_id, "extension": "one"}),
        403,
        BEYOND,
    );
    add(
        "sees others' tokens as an extension",
        &extension,
        "GET",
        &by(tokens, &second_id),
        no(),
        404,
        "not_found",
    );

    // Limits to groups.
    let by_limited = limited.as_str();
    add(
        "makes an unlimited token",
        by_limited,
        "POST",
        tokens,
        json!({"name": "x", "permissions": []}),
        403,
        LIMIT,
    );
    for (what, group) in [("above", &above), ("beside", &beside)] {
        add(
            "makes a token for a group that it doesn't see",
            by_limited,
            "POST",
            tokens,
            json!({"name": what, "permissions": [], "contentGroupIds": [group]}),
            403,
            LIMIT,
        );
        add(
            "makes a token for that group and its own",
            by_limited,
            "POST",
            tokens,
            json!({"name": what, "permissions": [], "contentGroupIds": [under, group]}),
            403,
            LIMIT,
        );
        add(
            "moves its limit",
            by_limited,
            "PUT",
            tokens,
            json!({"id": limited_id, "contentGroupIds": [group]}),
            403,
            LIMIT,
        );
    }
    add(
        "lifts its limit",
        by_limited,
        "PUT",
        tokens,
        json!({"id": limited_id, "contentGroupIds": null}),
        403,
        LIMIT,
    );
    add(
        "changes an unlimited token",
        by_limited,
        "PUT",
        tokens,
        json!({"id": reader_id, "name": "x"}),
        403,
        LIMIT,
    );
    add(
        "makes a role",
        by_limited,
        "POST",
        "/roles",
        json!({"name": "x", "permissions": []}),
        403,
        LIMIT,
    );
    add(
        "changes a role",
        by_limited,
        "PUT",
        "/roles",
        json!({"id": small_role, "name": "x"}),
        403,
        LIMIT,
    );
    add(
        "invites",
        by_limited,
        "POST",
        members,
        json!({"email": "x@example.org", "name": "x", "roleId": small_role}),
        403,
        LIMIT,
    );
    add(
        "changes a member",
        by_limited,
        "PUT",
        members,
        json!({"id": vi.member, "roleId": small_role}),
        403,
        LIMIT,
    );
    add("leaves by a limited token", by_limited, "DELETE", &by(members, &me), no(), 403, LIMIT);
    add(
        "makes a group at the top",
        by_limited,
        "POST",
        "/content-groups",
        json!({"name": "x"}),
        403,
        LIMIT,
    );
    add(
        "makes a group outside",
        by_limited,
        "POST",
        "/content-groups",
        json!({"name": "x", "ancestor": beside}),
        400,
        "unknown_reference",
    );
    add(
        "moves its group to the top",
        by_limited,
        "PUT",
        "/content-groups",
        json!({"id": under, "ancestor": null}),
        403,
        LIMIT,
    );
    add(
        "moves a hidden group into its own",
        by_limited,
        "PUT",
        "/content-groups",
        json!({"id": beside, "ancestor": inside}),
        404,
        "not_found",
    );
    add(
        "deletes what is above",
        by_limited,
        "DELETE",
        &format!("/content-groups?id={above}&recursive=true"),
        no(),
        404,
        "not_found",
    );
    add(
        "reads a hidden piece",
        by_limited,
        "GET",
        &by("/content-pieces", &hidden),
        no(),
        404,
        "not_found",
    );
    add(
        "moves a hidden piece into view",
        by_limited,
        "PUT",
        "/content-pieces",
        json!({"id": hidden, "contentGroupId": inside}),
        404,
        "not_found",
    );
    add(
        "moves a piece out of view",
        by_limited,
        "PUT",
        "/content-pieces",
        json!({"id": shown, "contentGroupId": beside}),
        400,
        "unknown_reference",
    );
    add(
        "stands a piece after a hidden one",
        by_limited,
        "PUT",
        "/content-pieces",
        json!({"id": shown, "referenceId": hidden}),
        400,
        "unknown_reference",
    );

    // Webhooks.
    let hook = |event: &str, group: Option<&str>| {
        json!({"url": "https://8.8.8.8/",
        "name": "x", "event": event, "metadata": {"contentGroupId": group}})
    };
    add(
        "is told of pieces that it may not read",
        &hooks,
        "POST",
        "/webhooks",
        hook("contentPieceAdded", Some(&inside)),
        403,
        "insufficient_permissions",
    );
    add(
        "is told of members that it may not read",
        &hooks,
        "POST",
        "/webhooks",
        hook("memberInvited", None),
        403,
        "insufficient_permissions",
    );
    add(
        "turns a webhook to itself",
        &hooks,
        "PUT",
        "/webhooks",
        json!({"id": members_hook, "url": "https://8.8.8.8/"}),
        403,
        "insufficient_permissions",
    );
    add(
        "turns a webhook to another event",
        &hooks,
        "PUT",
        "/webhooks",
        json!({"id": members_hook, "event": "contentGroupAdded"}),
        403,
        "insufficient_permissions",
    );
    add(
        "is told of members by a limited token",
        by_limited,
        "POST",
        "/webhooks",
        hook("memberAdded", None),
        403,
        LIMIT,
    );
    add(
        "is told of all groups",
        by_limited,
        "POST",
        "/webhooks",
        hook("contentGroupAdded", None),
        403,
        LIMIT,
    );
    add(
        "is told of a hidden group",
        by_limited,
        "POST",
        "/webhooks",
        hook("contentGroupRemoved", Some(&beside)),
        403,
        LIMIT,
    );
    add(
        "turns its webhook to a hidden group",
        by_limited,
        "PUT",
        "/webhooks",
        json!({"id": shown_hook, "metadata": {"contentGroupId": beside}}),
        403,
        LIMIT,
    );
    add(
        "lifts its webhook's limit",
        by_limited,
        "PUT",
        "/webhooks",
        json!({"id": shown_hook, "event": "contentGroupAdded", "metadata": {"contentGroupId": null}}),
        403,
        LIMIT,
    );
    for (what, id) in [
        ("a hidden group's webhook", &hidden_hook),
        ("a members' webhook", &members_hook),
        ("all groups' webhook", &all_groups_hook),
    ] {
        add(what, by_limited, "GET", &by("/webhooks", id), no(), 404, "not_found");
        add(
            what,
            by_limited,
            "PUT",
            "/webhooks",
            json!({"id": id, "url": "https://8.8.8.8/"}),
            404,
            "not_found",
        );
        add(what, by_limited, "DELETE", &by("/webhooks", id), no(), 404, "not_found");
    }

    let before = service.workspace_state().await;
    for attempt in &attempts {
        let EscalationAttempt { what, token, method, path, body, status, reason } = attempt;
        for prefer in ["return=minimal", "return=representation"] {
            let mut request =
                service.request(method.clone(), path).bearer_auth(token).header("prefer", prefer);
            if let Some(body) = body {
                request = request.json(body);
            }
            let answer = TestResponse::of(request).await;
            assert_eq!(answer.status, *status, "{what}: {method} {path} {body:?}: {answer:?}");
            assert_eq!(answer.body["reason"], *reason, "{what}: {answer:?}");
        }
        let after = service.workspace_state().await;
        assert_eq!(after, before, "{what} changed something");
    }
    assert!(attempts.len() >= 25, "{}", attempts.len());
}

#[on_both_engines]
async fn changes_within_own_permissions_are_allowed(store: TestStore) {
    let service = Service::start(store).await;
    let manages =
        json!(["workspaceMemberships:write", "roles:write", "tokens:write", "contentPieces:write"]);
    let role = json!({"name": "Manager", "permissions": manages});
    let manager_role = service.create("/roles", &role).await;
    let manager = service.person("manager", &manager_role).await;
    let as_manager = async |method, path: &str, body: Value| {
        let answer = service.send_as(&manager.token, method, path, Some(&body)).await;
        assert!(answer.status.is_success(), "{body}: {answer:?}");
        answer.body
    };
    let body = json!({"name": "Small", "permissions": ["contentPieces:read"]});
    let small = as_manager(Method::POST, "/roles", body).await["id"].clone();
    let body = json!({"email": "new@example.org", "name": "New", "roleId": small});
    let new = as_manager(Method::POST, "/workspace-memberships", body).await["id"].clone();
    let body = json!({"id": new, "roleId": manager_role});
    as_manager(Method::PUT, "/workspace-memberships", body).await;
    let body = json!({"id": small, "permissions": manages});
    as_manager(Method::PUT, "/roles", body).await;
    let body = json!({"name": "t", "permissions": ["contentPieces:write"]});
    let token = as_manager(Method::POST, "/tokens", body).await;
    let body = json!({"id": token["id"], "permissions": manages});
    as_manager(Method::PUT, "/tokens", body).await;
    let path = format!("/workspace-memberships?id={}", new.as_str().unwrap());
    let removed = service.send_as(&manager.token, Method::DELETE, &path, None).await;
    assert_eq!(removed.status, 204, "{removed:?}");

    // An expiring token may revoke or reduce permissions that it has itself.
    let end = Some(Timestamp::from_ms(service.environment.now().ms() + 3_600_000));
    let ending =
        service.token_of(service.home.made.user, TokenKind { expires_at: end, ..ALL }).await;
    let [admin, editor, viewer] = service.roles();
    let ann = service.person("ann", &admin).await;
    for role in [&editor, &viewer] {
        let body = json!({"id": ann.member, "roleId": role});
        let answer =
            service.send_as(&ending, Method::PUT, "/workspace-memberships", Some(&body)).await;
        assert_eq!(answer.status, 204, "{answer:?}");
    }
    let path = format!("/workspace-memberships?id={}", ann.member);
    let answer = service.send_as(&ending, Method::DELETE, &path, None).await;
    assert_eq!(answer.status, 204, "{answer:?}");
}

#[on_both_engines]
async fn billing_is_set_by_the_operator_and_shown_with_workspace_write(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let text = |text: &str| Some(Some(text.to_owned()));
    let billing = BillingUpdate {
        customer_id: text("cus_42"),
        subscription_status: text("active"),
        subscription_plan: text("team"),
        subscription_data: text("{\"seats\":3}"),
        subscription_expires_at: Some(Some(Timestamp::from_ms(1_800_000_000_000))),
    };
    set_billing(&service, billing).await;
    let fields = [
        "customerId",
        "subscriptionStatus",
        "subscriptionPlan",
        "subscriptionData",
        "subscriptionExpiresAt",
    ];
    let shown = service.get("/workspace").await.body;
    assert_eq!(shown["subscriptionExpiresAt"], "2027-01-15T08:00:00.000Z");
    assert_eq!(shown["subscriptionData"], "{\"seats\":3}");
    // Clients cannot set these fields.
    let mut body = json!({"name": "Renamed"});
    for field in fields {
        body[field] = json!("hers");
    }
    assert_eq!(service.put("/workspace", &body).await.status, 204);
    let after = service.get("/workspace").await.body;
    assert_eq!(after["name"], "Renamed");
    assert!(fields.iter().all(|field| after[field] == shown[field]), "{after}");

    let reader = service.token("workspace:read", None).await;
    let nothing = service.token("", None).await;
    let [_, _, viewer] = service.roles();
    let viewer = service.person("viewer", &viewer).await.token;
    let list = "/workspace-memberships/list-workspaces";
    for token in [&reader, &viewer] {
        let workspace = service.send_as(token, Method::GET, "/workspace", None).await.body;
        assert!(fields.iter().all(|field| workspace[field].is_null()), "{workspace}");
    }
    for token in [&reader, &nothing, &viewer, &other.token] {
        let workspaces = service.send_as(token, Method::GET, list, None).await.body;
        assert_eq!(workspaces.as_array().unwrap().len(), 1);
        let workspace = &workspaces[0]["workspace"];
        assert!(fields.iter().all(|field| workspace[field].is_null()), "{workspace}");
    }
    let own = service.get(list).await.body;
    assert!(fields.iter().all(|field| own[0]["workspace"][field] == shown[field]), "{own}");
}

async fn set_billing(service: &Service, billing: BillingUpdate) {
    let workspace = service.home.made.workspace;
    let change = WorkspaceUpdate { billing, ..WorkspaceUpdate::default() };
    let write = async move |tx: &WriteTx<'_>| {
        update_in(tx, workspace, &change, &VersionPrecondition::Any).await.map(drop)
    };
    service.database.write("workspace.update", write).await.unwrap();
}
