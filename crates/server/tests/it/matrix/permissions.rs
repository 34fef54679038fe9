//! Authentication and permissions of every route.

use galley_domain::{Timestamp, WorkspaceId};
use galley_testing::{TestStore, on_both_engines};
use serde_json::json;

use super::target::{
    OF_SESSIONS, OPEN, RESOURCES, TargetRequest, ids, routes, seen, start, target,
};
use crate::service::{ALL, SITE, Service, TestResponse, TokenKind};
use crate::sign_in::{Browser, OWNER};

/// The permission of each route, and the expected statuses: for a token that may do it, for a token
/// with this permission only, for a token limited to a group that does not contain the resource,
/// for an extension's token, and for the Admin of another workspace. All routes return 401 without
/// a valid token, and 403 without the permission.
const ROWS: &str = "
    GET    /content-pieces                       contentPieces:read         200 200 404 200 404
    PUT    /content-pieces                       contentPieces:write        204 204 404 204 404
    POST   /content-pieces                       contentPieces:write        201 201 400 201 400
    POST   /content-pieces/batch                 contentPieces:write        201 201 400 201 400
    POST   /content-pieces/convert               contentPieces:read         200 200 200 200 200
    DELETE /content-pieces                       contentPieces:write        204 204 404 204 404
    GET    /content-pieces/list                  contentPieces:read         200 200 200 200 404
    GET    /content-pieces/search                contentPieces:read         200 200 200 200 404
    GET    /content-pieces/revisions             contentPieces:read         200 200 404 200 404
    GET    /content-pieces/revision              contentPieces:read         200 200 404 200 404
    PUT    /content-pieces/revision              contentPieces:write        204 204 404 204 404
    GET    /content-pieces/diff                  contentPieces:read         200 200 404 200 404
    DELETE /content-pieces/revision              trash:write                204 204 404 204 404
    POST   /content-pieces/restore               contentPieces:write        204 204 404 204 404
    POST   /content-pieces/publish               publishing:write           204 403 404 204 404
    POST   /content-pieces/unpublish             publishing:write           204 403 404 204 404
    POST   /content-pieces/preview               contentPieces:read         200 200 404 200 404
    GET    /content-pieces/trash                 contentPieces:read         200 200 200 200 200
    POST   /content-pieces/undelete              contentPieces:write        204 204 404 204 404
    GET    /content-pieces/sources               contentPieces:read         200 200 200 200 200
    PUT    /content-pieces/sources               contentPieces:write        204 204 400 204 400
    POST   /imports                              contentPieces:write        200 403 403 200 400
    GET    /content-groups                       contentGroups:read         200 200 404 200 404
    PUT    /content-groups                       contentGroups:write        204 204 404 204 404
    POST   /content-groups                       contentGroups:write        201 201 400 201 400
    DELETE /content-groups                       contentGroups:write        204 204 404 204 404
    GET    /content-groups/list                  contentGroups:read         200 200 200 200 200
    GET    /content-groups/schema                contentGroups:read         200 200 404 200 404
    GET    /content-groups/schema/violations     contentPieces:read         200 200 404 200 404
    GET    /tags                                 tags:read                  200 200 200 200 404
    PUT    /tags                                 tags:write                 204 204 204 204 404
    POST   /tags                                 tags:write                 201 201 201 201 201
    DELETE /tags                                 tags:write                 204 204 204 204 404
    GET    /tags/list                            tags:read                  200 200 200 200 200
    GET    /variants                             variants:read              200 200 200 200 404
    PUT    /variants                             variants:write             204 204 204 204 404
    POST   /variants                             variants:write             201 201 201 201 201
    DELETE /variants                             variants:write             204 204 204 204 404
    GET    /variants/list                        variants:read              200 200 200 200 200
    GET    /assets                               assets:read                200 200 404 200 404
    PUT    /assets                               assets:write               204 204 404 204 404
    POST   /assets                               assets:write               201 201 400 201 400
    DELETE /assets                               assets:write               204 204 404 204 404
    GET    /assets/list                          assets:read                200 200 200 200 200
    GET    /assets/used-by                       assets:read                200 200 404 200 404
    GET    /assets/uploads                       assets:write               200 200 404 200 404
    POST   /assets/uploads                       assets:write               201 201 400 201 400
    PATCH  /assets/uploads                       assets:write               204 204 404 204 404
    DELETE /assets/uploads                       assets:write               204 204 404 204 404
    GET    /roles                                roles:read                 200 200 200 200 404
    PUT    /roles                                roles:write                204 403 403 204 404
    POST   /roles                                roles:write                201 403 403 201 201
    DELETE /roles                                roles:write                204 403 403 204 404
    GET    /roles/list                           roles:read                 200 200 200 200 200
    GET    /tokens                               tokens:read                200 200 200 200 404
    PUT    /tokens                               tokens:write               204 403 403 403 404
    POST   /tokens                               tokens:write               201 403 403 403 201
    DELETE /tokens                               tokens:write               204 403 403 403 404
    GET    /tokens/list                          tokens:read                200 200 200 200 200
    GET    /profile                              profile:read               200 200 200 200 200
    PUT    /profile                              profile:write              204 204 204 204 204
    GET    /profile/sessions                     none                       403 403 403 403 403
    DELETE /profile/sessions                     none                       403 403 403 403 403
    POST   /sign-out                             none                       403 403 403 403 403
    GET    /workspace                            workspace:read             200 200 200 200 200
    PUT    /workspace                            workspace:write            204 204 204 204 204
    GET    /settings                             workspace:write            403 403 403 403 403
    GET    /workspace-memberships/list-members   workspaceMemberships:read  200 200 200 200 200
    GET    /workspace-memberships/list-workspaces none                       200 200 200 200 200
    PUT    /workspace-memberships                workspaceMemberships:write 204 403 403 204 404
    POST   /workspace-memberships                workspaceMemberships:write 201 403 403 403 400
    POST   /workspace-memberships/invite-link    workspaceMemberships:write 200 403 403 403 404
    POST   /workspace-memberships/resend-invite  workspaceMemberships:write 204 403 403 403 404
    DELETE /workspace-memberships                workspaceMemberships:write 204 403 403 204 404
    GET    /webhooks                             webhooks:read              200 200 404 200 404
    PUT    /webhooks                             webhooks:write             204 403 404 204 404
    POST   /webhooks                             webhooks:write             201 403 403 201 400
    DELETE /webhooks                             webhooks:write             204 204 404 204 404
    GET    /webhooks/list                        webhooks:read              200 200 200 200 200
    POST   /webhooks/test                        webhooks:write             202 202 404 202 404
    POST   /webhooks/recover                     webhooks:write             202 403 404 202 404
    GET    /webhooks/deliveries                  webhooks:read              200 200 404 200 404
    POST   /webhooks/deliveries/retry            webhooks:write             202 403 404 202 404
    POST   /webhooks/rotate-secret               webhooks:write             204 204 404 204 404
    GET    /audit                                audit:read                 200 200 403 200 200
    GET    /events                               FEED                       200 200 200 200 200
    GET    /events/position                      FEED                       200 200 200 200 200
    POST   /events/ticket                        FEED                       200 200 200 200 200
";

/// The permissions of which the feed requires one.
const FEED: &[&str] = &[
    "contentPieces:read",
    "contentGroups:read",
    "workspaceMemberships:read",
    "tags:read",
    "variants:read",
    "assets:read",
];

/// The reads that are 404 in the published view: of a piece that is not published, of a tag that no
/// published piece has, and of what only editors see.
const HIDDEN_FROM_SITES: [&str; 11] = [
    "/content-pieces",
    "/content-pieces/revisions",
    "/content-pieces/revision",
    "/content-pieces/diff",
    "/content-pieces/preview",
    "/content-pieces/trash",
    "/content-pieces/sources",
    "/content-groups/schema/violations",
    "/tags",
    "/assets",
    "/assets/used-by",
];

/// The routes at which a session need not name a workspace.
const WITHOUT_WORKSPACE: [&str; 2] = ["/profile", "/workspace-memberships/list-workspaces"];

/// A row of [`ROWS`].
struct RouteExpectation {
    /// The permissions of which one is required; none if any token is enough.
    permissions: Vec<&'static str>,
    success: u16,
    alone: u16,
    limited: u16,
    extension: u16,
    foreign_admin: u16,
}

fn row(method: &str, path: &str) -> RouteExpectation {
    let mut rows = ROWS.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| row.starts_with(&[method, path]));
    let row = row.unwrap_or_else(|| panic!("{method} {path} has no row in this test"));
    let status = |column: usize| row[column].parse().unwrap();
    RouteExpectation {
        permissions: match row[2] {
            "none" => Vec::new(),
            "FEED" => FEED.to_vec(),
            permission => vec![permission],
        },
        success: status(3),
        alone: status(4),
        limited: status(5),
        extension: status(6),
        foreign_admin: status(7),
    }
}

const EDITOR: &str = "contentPieces:write publishing:write tags:write profile:write contentGroups:read \
    variants:read assets:write workspaceMemberships:read roles:read workspace:read";

const VIEWER: &str = "contentPieces:read contentGroups:read tags:read variants:read assets:read roles:read \
    workspaceMemberships:read workspace:read profile:write";

fn has(held: &str, permission: &str) -> bool {
    let write = permission.replace(":read", ":write");
    held.split(' ').any(|one| one == permission || one == write)
}

/// Returns all permissions that do not include one of `permissions`.
fn all_but(permissions: &[&'static str]) -> String {
    let held = |resource: &&str| {
        let split = |permission: &&'static str| permission.split_once(':').unwrap();
        let lacks = permissions.iter().map(split).find(|(lacks, _)| lacks == resource);
        match lacks {
            Some((_, "write")) => Some(format!("{resource}:read")),
            Some(_) => None,
            None => Some(format!("{resource}:write")),
        }
    };
    RESOURCES.iter().filter_map(held).collect::<Vec<_>>().join(" ")
}

/// The clients, by their tokens.
struct Callers {
    editor: String,
    viewer: String,
    limited: String,
    extension: String,
    /// A token of the published view.
    site: String,
    other: String,
    /// The cookie of the Admin's session.
    session: String,
    /// Descriptions and tokens of clients that must get 401.
    unauthorized: Vec<(&'static str, Option<String>)>,
}

async fn callers(service: &Service) -> Callers {
    let [_, editor, viewer] = service.roles();
    let owner = service.home.made.user;
    let elsewhere = service.create("/content-groups", &json!({"name": "Elsewhere"})).await;
    let groups = [elsewhere.as_str()];
    let revoked = service.token("contentPieces:read", None).await;
    let path = format!("/tokens?id={}", service.token_id(&revoked).await);
    assert_eq!(service.delete(&path).await.status, 204);
    let over = TokenKind { expires_at: Some(Timestamp::from_ms(1)), ..ALL };
    let unauthorized = vec![
        ("no token", None),
        ("a malformed token", Some("galley_x".to_owned())),
        ("an unknown token", Some(service.environment.new_access_token().reveal().to_owned())),
        ("an expired token", Some(service.token_of(owner, over).await)),
        ("a revoked token", Some(revoked)),
    ];
    Callers {
        editor: service.person("editor", &editor).await.token,
        viewer: service.person("viewer", &viewer).await.token,
        limited: service.token("all", Some(&groups)).await,
        extension: service.token_of(owner, TokenKind { extension: Some("ext"), ..ALL }).await,
        site: service.token_of(owner, SITE).await,
        other: service.other_workspace().await.token,
        session: {
            let mut browser = Browser::default();
            browser.sign_in(service, OWNER).await;
            browser.cookie_header()
        },
        unauthorized,
    }
}

/// The test of all routes with all clients.
struct Matrix {
    service: Service,
    callers: Callers,
    /// The number of resources.
    resources: usize,
    /// The number of checked responses.
    cells: usize,
}

impl Matrix {
    async fn target(&mut self, method: &str, route: &str) -> TargetRequest {
        self.resources += 1;
        target(&self.service, method, route, self.resources).await
    }

    async fn check_open_route(&mut self, method: &str, path: &str, status: u16) {
        let target = TargetRequest::without_body(path);
        for (who, token) in &self.callers.unauthorized {
            let answer = target.ask(&self.service, token.as_deref(), method).await;
            assert_eq!(answer.status, status, "{method} {path} by {who}");
            self.cells += 1;
        }
    }

    async fn check_unauthorized(&mut self, method: &str, route: &str, kept: &TargetRequest) {
        for (who, token) in &self.callers.unauthorized {
            let answer = kept.ask(&self.service, token.as_deref(), method).await;
            assert_eq!(answer.status, 401, "{method} {route} by {who}: {answer:?}");
            assert!(answer.header("www-authenticate").starts_with("Bearer"), "{answer:?}");
            self.cells += 1;
        }
    }

    /// Returns the clients of the workspace with their tokens and expected statuses.
    async fn expected(
        &self,
        row: &RouteExpectation,
        is_hidden: bool,
    ) -> Vec<(&'static str, String, u16)> {
        let Self { service, callers, .. } = self;
        let by_permission = |held: &str| {
            let needed = &row.permissions;
            let is_allowed = needed.is_empty() || needed.iter().any(|needed| has(held, needed));
            if is_allowed { row.success } else { 403 }
        };
        let site = if is_hidden { 404 } else { by_permission(SITE.permissions) };
        let mut expected = vec![
            ("an Admin", service.home.token.clone(), row.success),
            ("an Editor", callers.editor.clone(), by_permission(EDITOR)),
            ("a Viewer", callers.viewer.clone(), by_permission(VIEWER)),
            ("a token of no permissions", service.token("", None).await, by_permission("")),
            ("a limited token", callers.limited.clone(), row.limited),
            ("an extension's token", callers.extension.clone(), row.extension),
            ("a site's token", callers.site.clone(), site),
        ];
        if !row.permissions.is_empty() {
            let fewer = service.token(&all_but(&row.permissions), None).await;
            expected.push(("a token with all other permissions", fewer, 403));
        }
        for permission in &row.permissions {
            let alone = service.token(permission, None).await;
            expected.push(("a token with this permission alone", alone, row.alone));
        }
        expected
    }

    async fn check_clients(&mut self, method: &str, route: &str, kept: &TargetRequest) {
        let row = row(method, route);
        let is_read = method == "GET" || route.ends_with("/preview");
        let is_hidden = is_read && HIDDEN_FROM_SITES.contains(&route);
        for (who, token, status) in self.expected(&row, is_hidden).await {
            let changes = status < 400 && method != "GET";
            let fresh = if changes { self.target(method, route).await } else { kept.clone() };
            let answer = fresh.ask(&self.service, Some(&token), method).await;
            assert_eq!(answer.status, status, "{method} {route} by {who}: {answer:?}");
            if status == 403 && answer.body["reason"] == "insufficient_permissions" {
                let detail = answer.body["detail"].as_str().unwrap();
                assert!(
                    row.permissions.iter().all(|it| detail.contains(it)) || who.contains("alone"),
                    "{method} {route} by {who}: {detail}"
                );
            }
            if status == 404 {
                let truly = fresh.absent().ask(&self.service, Some(&token), method).await;
                assert_eq!(seen(&answer), seen(&truly), "{method} {route} by {who}");
            }
            self.cells += 1;
        }
    }

    /// Checks the session of the Admin: it has the Admin's rights in the workspace that the request
    /// names, and only for pages of the service.
    async fn check_session(&mut self, method: &str, route: &str, kept: &TargetRequest) {
        let success = row(method, route).success;
        let home = self.service.home.made.workspace.to_string();
        let foreign = WorkspaceId::new(1).to_string();
        let is_of_user = WITHOUT_WORKSPACE.contains(&route);
        for (workspace, site, status) in [
            (Some(&home), "cross-site", 403),
            (None, "cross-site", 403),
            (Some(&foreign), "same-origin", 404),
            (None, "same-origin", if is_of_user { success } else { 400 }),
            (Some(&home), "same-origin", success),
        ] {
            let changes = status < 400 && method != "GET";
            let fresh = if changes { self.target(method, route).await } else { kept.clone() };
            let request = fresh.request(&self.service, method).header("sec-fetch-site", site);
            let mut request = request.header("cookie", &self.callers.session);
            if let Some(workspace) = workspace {
                request = request.header("galley-workspace", workspace);
            }
            let answer = TestResponse::of(request).await;
            let place = format!("{method} {route} by a session, {workspace:?}, {site}");
            assert_eq!(answer.status, status, "{place}: {answer:?}");
            if site == "cross-site" {
                assert_eq!(answer.body["reason"], "foreign_origin", "{place}");
            }
            self.cells += 1;
        }
    }

    /// Checks that another workspace's Admin gets the same response as for an absent resource.
    async fn check_foreign_admin(&mut self, method: &str, route: &str, kept: &TargetRequest) {
        let status = row(method, route).foreign_admin;
        let (service, other) = (&self.service, &self.callers.other);
        let answer = kept.ask(service, Some(other), method).await;
        assert_eq!(answer.status, status, "{method} {route} by a foreign Admin: {answer:?}");
        if status >= 400 || method == "GET" {
            let truly = kept.absent().ask(service, Some(other), method).await;
            assert_eq!(seen(&answer), seen(&truly), "{method} {route} by a foreign Admin");
            let home = kept.absent().ask(service, Some(&service.home.token), method).await;
            if status >= 400 {
                assert_eq!(seen(&home), seen(&truly), "{method} {route} at home");
            }
        }
        let everything = service.workspace_state().await.to_string();
        let shown = answer.body.to_string();
        let shown_ids: Vec<_> = ids(&shown);
        let leaked =
            shown_ids.iter().find(|id| !id.starts_with("usr_") && everything.contains(**id));
        assert_eq!(leaked, None, "{method} {route} shows a foreign Admin an id: {shown}");
        self.cells += 1;
    }
}

#[on_both_engines]
async fn every_route_enforces_authentication_and_permissions(store: TestStore) {
    let service = start(store).await;
    let callers = callers(&service).await;
    let mut matrix = Matrix { service, callers, resources: 0, cells: 0 };
    for (method, route) in &routes() {
        let is_route = |open: &&(&str, &str, &str, u16)| (open.0, open.1) == (method, route);
        if let Some((_, _, path, status)) = OPEN.iter().find(is_route) {
            matrix.check_open_route(method, path, *status).await;
            continue;
        }
        // Rejected requests must leave this resource unchanged.
        let kept = matrix.target(method, route).await;
        matrix.check_unauthorized(method, route, &kept).await;
        matrix.check_clients(method, route, &kept).await;
        if !OF_SESSIONS.contains(&(method.as_str(), route.as_str())) {
            matrix.check_session(method, route, &kept).await;
        }
        matrix.check_foreign_admin(method, route, &kept).await;
        let token = &matrix.service.home.token;
        let answer = kept.ask(&matrix.service, Some(token), method).await;
        let success = row(method, route).success;
        assert_eq!(answer.status, success, "{method} {route} in the end: {answer:?}");
    }
    assert!(matrix.cells > 500, "{}", matrix.cells);
}
