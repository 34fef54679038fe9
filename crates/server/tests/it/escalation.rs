//! Privilege escalation: attempts to gain or revoke more than the token's own permissions. Each is
//! rejected and changes nothing.

use galley_application::operations::workspace::{BillingUpdate, WorkspaceUpdate, update_in};
use galley_application::{Scope, VersionPrecondition};
use galley_domain::Timestamp;
use galley_storage::WriteTx;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{ALL, Service, TestResponse, TokenKind, piece_in};
use crate::text_requests::{Placeholders, parse};

// A table has sections. A section opens with the token and the expected status and reason. Its rows
// have the form `attempt: method path body`; a line may break after the colon. A name after `$` is
// an id of the fixture.

const MEMBERS: &str = r#"
manager 403 beyond_own_permissions
    invites an Admin:
        POST /workspace-memberships {"email":"x@example.org","name":"x","roleId":"$admin"}
    invites an Editor, who writes tags:
        POST /workspace-memberships {"email":"x@example.org","name":"x","roleId":"$editor"}
    makes itself Admin: PUT /workspace-memberships {"id":"$manager","roleId":"$admin"}
    gives itself a larger role: PUT /workspace-memberships {"id":"$manager","roleId":"$large_role"}
    demotes an Admin: PUT /workspace-memberships {"id":"$owner","roleId":"$small_role"}
    demotes an Editor: PUT /workspace-memberships {"id":"$ed","roleId":"$small_role"}
    changes an invited Admin's role:
        PUT /workspace-memberships {"id":"$pending","roleId":"$small_role"}
    removes an Admin: DELETE /workspace-memberships?id=$owner
    removes an Editor: DELETE /workspace-memberships?id=$ed
    revokes an Admin's invite: DELETE /workspace-memberships?id=$pending
ed 403 insufficient_permissions
    removes a member as an Editor: DELETE /workspace-memberships?id=$vi
vi 403 insufficient_permissions
    removes a member as a Viewer: DELETE /workspace-memberships?id=$owner
    makes itself Admin as a Viewer: PUT /workspace-memberships {"id":"$vi","roleId":"$admin"}
profile_reader 403 insufficient_permissions
    leaves by a token of few permissions: DELETE /workspace-memberships?id=$owner
demoted 403 insufficient_permissions
    makes itself Admin again after being demoted:
        PUT /workspace-memberships {"id":"$demoted","roleId":"$admin"}
ops 403 beyond_own_permissions
    makes itself Admin by all permissions:
        PUT /workspace-memberships {"id":"$ops","roleId":"$admin"}
    invites an Admin by all permissions:
        POST /workspace-memberships {"email":"x@example.org","name":"x","roleId":"$admin"}
    demotes an Admin by all permissions:
        PUT /workspace-memberships {"id":"$second","roleId":"$viewer"}
    removes an Admin by all permissions: DELETE /workspace-memberships?id=$owner
expiring 403 beyond_own_permissions
    invites by an expiring token:
        POST /workspace-memberships {"email":"x@example.org","name":"x","roleId":"$viewer"}
    promotes a member by an expiring token:
        PUT /workspace-memberships {"id":"$vi","roleId":"$admin"}
"#;

const ROLES: &str = r#"
manager 403 beyond_own_permissions
    makes a role of more: POST /roles {"name":"More","permissions":["contentGroups:read"]}
    makes a role that writes what it reads:
        POST /roles {"name":"More","permissions":["workspace:write"]}
    adds to its own role:
        PUT /roles {"id":"$manager_role","permissions":["roles:write","webhooks:read"]}
    adds to a smaller role: PUT /roles {"id":"$small_role","permissions":["tags:write"]}
    takes from a larger role: PUT /roles {"id":"$large_role","permissions":[]}
    renames a larger role: PUT /roles {"id":"$editor","name":"Mine"}
    deletes a larger role: DELETE /roles?id=$large_role
manager 409 builtin_role
    changes Admin: PUT /roles {"id":"$admin","permissions":[]}
owner 409 builtin_role
    changes Admin as one: PUT /roles {"id":"$admin","permissions":["tags:read"]}
    deletes Admin: DELETE /roles?id=$admin
expiring 403 beyond_own_permissions
    makes a role by an expiring token: POST /roles {"name":"x","permissions":[]}
    widens a role by an expiring token:
        PUT /roles {"id":"$small_role","permissions":["contentPieces:write"]}
"#;

const TOKENS: &str = r#"
manager 403 beyond_own_permissions
    makes a token of more: POST /tokens {"name":"x","permissions":["contentGroups:write"]}
manager 404 not_found
    sees an Admin's token: GET /tokens?id=$owner_token
    changes an Admin's token: PUT /tokens {"id":"$owner_token","permissions":[]}
    revokes an Admin's token: DELETE /tokens?id=$second_token
ops 404 not_found
    sees an Admin's token by all permissions: GET /tokens?id=$owner_token
reader 403 beyond_own_permissions
    makes a token that writes: POST /tokens {"name":"x","permissions":["contentPieces:write"]}
    widens itself: PUT /tokens {"id":"$reader_token","permissions":["tokens:write","tags:read"]}
    renames a wider token of its user: PUT /tokens {"id":"$owner_token","name":"x"}
    revokes a wider token of its user: DELETE /tokens?id=$owner_token
expiring 403 beyond_own_permissions
    makes a token without expiry: POST /tokens {"name":"x","permissions":[]}
    makes a token with a later expiry:
        POST /tokens {"name":"x","permissions":[],"expiresAt":"$later"}
    postpones its expiry: PUT /tokens {"id":"$expiring_token","expiresAt":"$later"}
    removes its expiry: PUT /tokens {"id":"$expiring_token","expiresAt":null}
    changes a longer-lived token: PUT /tokens {"id":"$manager_token","permissions":[]}
    revokes a longer-lived token: DELETE /tokens?id=$reader_token
extension 403 beyond_own_permissions
    makes a token of no extension: POST /tokens {"name":"x","permissions":[]}
    makes another extension's token:
        POST /tokens {"name":"x","permissions":[],"extension":"two"}
    leaves its extension: PUT /tokens {"id":"$extension_token","extension":null}
    changes its extension: PUT /tokens {"id":"$extension_token","extension":"two"}
    takes a token into its extension: PUT /tokens {"id":"$reader_token","extension":"one"}
extension 404 not_found
    sees others' tokens as an extension: GET /tokens?id=$second_token
"#;

const GROUP_LIMITS: &str = r#"
limited 403 outside_group_limit
    makes an unlimited token: POST /tokens {"name":"x","permissions":[]}
    makes a token for the group above:
        POST /tokens {"name":"above","permissions":[],"contentGroupIds":["$above"]}
    makes a token for the group above and its own:
        POST /tokens {"name":"above","permissions":[],"contentGroupIds":["$under","$above"]}
    moves its limit above: PUT /tokens {"id":"$limited_token","contentGroupIds":["$above"]}
    makes a token for a hidden group:
        POST /tokens {"name":"beside","permissions":[],"contentGroupIds":["$beside"]}
    makes a token for a hidden group and its own:
        POST /tokens {"name":"beside","permissions":[],"contentGroupIds":["$under","$beside"]}
    moves its limit to a hidden group:
        PUT /tokens {"id":"$limited_token","contentGroupIds":["$beside"]}
    lifts its limit: PUT /tokens {"id":"$limited_token","contentGroupIds":null}
    changes an unlimited token: PUT /tokens {"id":"$reader_token","name":"x"}
    makes a role: POST /roles {"name":"x","permissions":[]}
    changes a role: PUT /roles {"id":"$small_role","name":"x"}
    invites: POST /workspace-memberships {"email":"x@example.org","name":"x","roleId":"$small_role"}
    changes a member: PUT /workspace-memberships {"id":"$vi","roleId":"$small_role"}
    leaves: DELETE /workspace-memberships?id=$owner
    makes a group at the top: POST /content-groups {"name":"x"}
    moves its group to the top: PUT /content-groups {"id":"$under","ancestor":null}
limited 404 not_found
    moves a hidden group into its own: PUT /content-groups {"id":"$beside","ancestor":"$inside"}
    deletes the group above: DELETE /content-groups?id=$above&recursive=true
    reads a hidden piece: GET /content-pieces?id=$hidden
    moves a hidden piece into view:
        PUT /content-pieces {"id":"$hidden","contentGroupId":"$inside"}
limited 400 unknown_reference
    makes a group outside: POST /content-groups {"name":"x","ancestor":"$beside"}
    moves a piece out of view: PUT /content-pieces {"id":"$shown","contentGroupId":"$beside"}
    places a piece after a hidden one: PUT /content-pieces {"id":"$shown","referenceId":"$hidden"}
"#;

const WEBHOOKS: &str = r#"
hooks 403 insufficient_permissions
    subscribes to pieces that it may not read: POST /webhooks {$hook,"event":"contentPieceAdded",
        "metadata":{"contentGroupId":"$inside"}}
    subscribes to members that it may not read: POST /webhooks {$hook,"event":"memberInvited",
        "metadata":{"contentGroupId":null}}
    redirects a webhook to itself: PUT /webhooks {"id":"$members_hook","url":"https://8.8.8.8/"}
    changes a webhook to another event:
        PUT /webhooks {"id":"$members_hook","event":"contentGroupAdded"}
limited 403 outside_group_limit
    subscribes to members: POST /webhooks {$hook,"event":"memberAdded",
        "metadata":{"contentGroupId":null}}
    subscribes to all groups: POST /webhooks {$hook,"event":"contentGroupAdded",
        "metadata":{"contentGroupId":null}}
    subscribes to a hidden group: POST /webhooks {$hook,"event":"contentGroupRemoved",
        "metadata":{"contentGroupId":"$beside"}}
    moves its webhook to a hidden group:
        PUT /webhooks {"id":"$shown_hook","metadata":{"contentGroupId":"$beside"}}
    lifts its webhook's limit: PUT /webhooks {"id":"$shown_hook","event":"contentGroupAdded",
        "metadata":{"contentGroupId":null}}
limited 404 not_found
    sees a hidden group's webhook: GET /webhooks?id=$hidden_hook
    changes a hidden group's webhook: PUT /webhooks {"id":"$hidden_hook","url":"https://8.8.8.8/"}
    deletes a hidden group's webhook: DELETE /webhooks?id=$hidden_hook
    sees a webhook of members: GET /webhooks?id=$members_hook
    changes a webhook of members: PUT /webhooks {"id":"$members_hook","url":"https://8.8.8.8/"}
    deletes a webhook of members: DELETE /webhooks?id=$members_hook
    sees a webhook of all groups: GET /webhooks?id=$all_groups_hook
    changes a webhook of all groups:
        PUT /webhooks {"id":"$all_groups_hook","url":"https://8.8.8.8/"}
    deletes a webhook of all groups: DELETE /webhooks?id=$all_groups_hook
"#;

/// A service with members, roles, groups and tokens of several extents.
struct Fixture {
    service: Service,
    ids: Placeholders,
    tokens: Placeholders,
}

impl Fixture {
    async fn new(store: TestStore) -> Self {
        let service = Service::start(store).await;
        let (ids, tokens) = (Placeholders::default(), Placeholders::default());
        let mut fixture = Self { service, ids, tokens };
        fixture.add_members().await;
        fixture.add_groups().await;
        fixture.add_tokens().await;
        fixture
    }

    async fn create(&mut self, name: &'static str, path: &str, body: Value) -> String {
        let id = self.service.create(path, &body).await;
        self.ids.add(name, &id);
        id
    }

    async fn add_members(&mut self) {
        let [admin, editor, viewer] = self.service.roles();
        for (name, id) in [("admin", &admin), ("editor", &editor), ("viewer", &viewer)] {
            self.ids.add(name, id);
        }
        self.ids.add("owner", self.service.home.made.member.to_string());
        self.tokens.add("owner", self.service.home.token.clone());
        // The manager may write members, roles, tokens and pieces, but neither groups nor webhooks.
        let manages = "workspaceMemberships:write roles:write tokens:write contentPieces:write \
            profile:write workspace:read";
        let everything = "contentPieces:write contentGroups:write tags:write variants:write \
            roles:write profile:write workspaceMemberships:write workspace:write webhooks:write \
            tokens:write";
        for (name, permissions) in [
            ("manager_role", manages),
            ("small_role", "contentPieces:read"),
            ("large_role", "webhooks:write"),
            ("ops_role", everything),
        ] {
            let permissions: Vec<&str> = permissions.split(' ').collect();
            let role = json!({"name": name, "permissions": permissions});
            self.create(name, "/roles", role).await;
        }
        for (name, role) in [
            ("manager", self.ids.get("manager_role").to_owned()),
            ("ops", self.ids.get("ops_role").to_owned()),
            ("ed", editor),
            ("vi", viewer.clone()),
            ("second", admin.clone()),
            ("demoted", admin.clone()),
        ] {
            let person = self.service.person(name, &role).await;
            self.ids.add(name, person.member);
            self.tokens.add(name, person.token);
        }
        let body = json!({"id": self.ids.get("demoted"), "roleId": viewer});
        assert_eq!(self.service.put("/workspace-memberships", &body).await.status, 204);
        let pending = json!({"email": "p@example.org", "name": "P", "roleId": admin});
        self.create("pending", "/workspace-memberships", pending).await;
    }

    /// Adds groups with pieces and webhooks. The limited token sees `inside` and its subtree.
    async fn add_groups(&mut self) {
        let group =
            |name: &str, ancestor: Option<&str>| json!({"name": name, "ancestor": ancestor});
        let above = self.create("above", "/content-groups", group("Above", None)).await;
        let inside = self.create("inside", "/content-groups", group("Inside", Some(&above))).await;
        self.create("under", "/content-groups", group("Under", Some(&inside))).await;
        let beside = self.create("beside", "/content-groups", group("Beside", Some(&above))).await;
        self.create("hidden", "/content-pieces", piece_in(&beside, "hidden")).await;
        self.create("shown", "/content-pieces", piece_in(&inside, "shown")).await;
        for (name, event, group) in [
            ("members_hook", "memberAdded", None),
            ("hidden_hook", "contentPieceAdded", Some(&beside)),
            ("shown_hook", "contentPieceAdded", Some(&inside)),
            ("all_groups_hook", "contentGroupAdded", None),
        ] {
            let body = json!({"url": "https://hooks.invalid/", "name": "w", "event": event,
                "metadata": {"contentGroupId": group}});
            self.create(name, "/webhooks", body).await;
        }
        self.ids.add("hook", "\"url\":\"https://8.8.8.8/\",\"name\":\"x\"".to_owned());
    }

    async fn add_tokens(&mut self) {
        let soon = self.service.environment.now().ms() + 3_600_000;
        let (soon, later) = (Timestamp::from_ms(soon), Timestamp::from_ms(soon + 1));
        self.ids.add("later", later.to_string());
        let inside = self.ids.get("inside").to_owned();
        for (name, kind) in [
            ("reader", TokenKind { permissions: "tokens:write contentPieces:read", ..ALL }),
            ("expiring", TokenKind { expires_at: Some(soon), ..ALL }),
            ("extension", TokenKind { extension: Some("one"), ..ALL }),
            ("limited", TokenKind { groups: Some(&[inside.as_str()]), ..ALL }),
            ("hooks", TokenKind { permissions: "webhooks:write", ..ALL }),
            ("profile_reader", TokenKind { permissions: "profile:read", ..ALL }),
        ] {
            let token = self.service.token_of(self.service.home.made.user, kind).await;
            self.tokens.add(name, token);
        }
        for (id, name) in [
            ("reader_token", "reader"),
            ("expiring_token", "expiring"),
            ("extension_token", "extension"),
            ("limited_token", "limited"),
            ("owner_token", "owner"),
            ("manager_token", "manager"),
            ("second_token", "second"),
        ] {
            let id_of_token = self.service.token_id(self.tokens.get(name)).await;
            self.ids.add(id, id_of_token);
        }
    }

    /// Makes each attempt of a table.
    async fn assert_rejected(&self, table: &str) {
        let table = self.ids.fill(&table.replace(":\n", ": ").replace(",\n", ","));
        let before = self.service.workspace_state().await;
        let (mut section, mut count) = ("", 0);
        for line in table.lines().filter(|line| !line.is_empty()) {
            match line.strip_prefix(' ') {
                None => section = line,
                Some(row) => {
                    self.attempt(section, row.trim()).await;
                    let after = self.service.workspace_state().await;
                    assert_eq!(after, before, "{row} changed something");
                    count += 1;
                }
            }
        }
        assert!(count >= 10, "{count}");
    }

    async fn attempt(&self, section: &str, row: &str) {
        let [token, status, reason] = section.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{section}")
        };
        let (_, request) = row.split_once(": ").unwrap();
        let (method, path, body) = parse(request);
        for prefer in ["return=minimal", "return=representation"] {
            let request = self.service.request(method.clone(), path);
            let mut request = request.bearer_auth(self.tokens.get(token)).header("prefer", prefer);
            if let Some(body) = &body {
                request = request.json(body);
            }
            let answer = TestResponse::of(request).await;
            assert_eq!(answer.status.as_str(), status, "{row}: {answer:?}");
            assert_eq!(answer.body["reason"], reason, "{row}: {answer:?}");
        }
    }
}

#[on_both_engines]
async fn members_beyond_own_permissions_are_not_changed(store: TestStore) {
    Fixture::new(store).await.assert_rejected(MEMBERS).await;
}

#[on_both_engines]
async fn roles_beyond_own_permissions_are_not_changed(store: TestStore) {
    Fixture::new(store).await.assert_rejected(ROLES).await;
}

#[on_both_engines]
async fn tokens_beyond_own_permissions_are_not_changed(store: TestStore) {
    Fixture::new(store).await.assert_rejected(TOKENS).await;
}

#[on_both_engines]
async fn limited_tokens_change_nothing_outside_their_groups(store: TestStore) {
    Fixture::new(store).await.assert_rejected(GROUP_LIMITS).await;
}

#[on_both_engines]
async fn webhooks_reveal_nothing_beyond_own_permissions(store: TestStore) {
    Fixture::new(store).await.assert_rejected(WEBHOOKS).await;
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
    let environment = service.environment.clone();
    let write = async move |tx: &WriteTx<'_>| {
        let (scope, expected) = (Scope::whole(workspace), VersionPrecondition::Any);
        update_in(tx, &environment, &scope, &change, &expected).await.map(drop)
    };
    service.database.write("workspace.update", write).await.unwrap();
}
