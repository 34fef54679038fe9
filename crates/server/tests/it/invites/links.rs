//! Links of invites that the inviter passes on, mails that are sent again, and the sessions that
//! the page starts.

use std::time::Duration;

use galley_application::operations::members::{self, Invitation};
use galley_domain::people::{EmailAddress, FullName};
use galley_storage::WriteTx;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::json;

use super::forms::form;
use super::{accept, by, invite, state};
use crate::members::mails_of;
use crate::secrets;
use crate::service::{Service, TestResponse, TestWorkspace};
use crate::sign_in::Browser;

const LINK: &str = "/workspace-memberships/invite-link";

const RESEND: &str = "/workspace-memberships/resend-invite";

/// Returns the code of a new link of an invite.
async fn copied_code(service: &Service, member: &str) -> String {
    let answer = service.post(LINK, &json!({ "id": member })).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("cache-control"), "no-store");
    let url = answer.body["url"].as_str().unwrap();
    let (page, code) = url.split_once("/invite?code=").unwrap();
    assert_eq!(page, service.url);
    secrets::record_secret_for_log(code);
    code.to_owned()
}

async fn submit(browser: &mut Browser, service: &Service, code: &str, name: &str) -> TestResponse {
    let fields = [("code", code), ("username", name), ("fullName", name)];
    browser.post(service, "/invite", &fields).await
}

/// Returns the status of a request with a browser's session in a workspace.
async fn status_in(browser: &mut Browser, service: &Service, workspace: &TestWorkspace) -> u16 {
    let request = service.request(Method::GET, "/content-pieces/list");
    let workspace = workspace.made.workspace.to_string();
    browser.send(request.header("galley-workspace", workspace)).await.status.as_u16()
}

/// Adds a member to a workspace on behalf of the operator.
async fn add_member(service: &Service, workspace: &TestWorkspace, email: &str) {
    let invitation = Invitation {
        email: EmailAddress::parse(email).unwrap(),
        name: FullName::parse("Ann").unwrap(),
        role: workspace.made.roles[1],
    };
    let (environment, workspace) = (service.environment.clone(), workspace.made.workspace);
    let write = async move |tx: &WriteTx<'_>| {
        members::add_without_invite(tx, &environment, workspace, &invitation).await
    };
    service.database.write("members.add", write).await.unwrap();
}

async fn methods(browser: &mut Browser, service: &Service) -> Vec<String> {
    browser.get(service, "/profile/sessions").await.column("method")
}

#[on_both_engines]
async fn sessions_from_before_the_proof_of_an_address_end_with_it(store: TestStore) {
    let service = Service::start(store).await;
    let (member, mailed) = invite(&service, "ann@example.org", "Ann").await;
    let code = copied_code(&service, &member).await;
    assert_ne!(code, mailed);
    let mut browser = Browser::default();
    let page = browser.get(&service, &format!("/invite?code={code}")).await;
    assert!(page.body.as_str().unwrap().contains("Join home"), "{page:?}");
    let done = submit(&mut browser, &service, &code, "ann").await;
    assert_eq!(done.status, 200, "{done:?}");
    assert_eq!(methods(&mut browser, &service).await, ["inviteLink"]);

    let home = service.home.clone();
    assert_eq!(status_in(&mut browser, &service, &home).await, 200);
    let listed = browser.get(&service, "/workspace-memberships/list-workspaces").await;
    assert_eq!(listed.column("id"), [member]);

    let mut proven = Browser::default();
    proven.sign_in(&service, "ann@example.org").await;
    assert_eq!(status_in(&mut browser, &service, &home).await, 401, "earlier sessions end");
    assert_eq!(status_in(&mut proven, &service, &home).await, 200);
    assert_eq!(methods(&mut proven, &service).await, ["mail"]);
    let mut later = Browser::default();
    later.sign_in(&service, "ann@example.org").await;
    assert_eq!(status_in(&mut proven, &service, &home).await, 200, "the first proof counts");
}

#[on_both_engines]
async fn a_copied_link_joins_no_existing_user_who_is_not_signed_in(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let email = "other@example.org";
    let (member, _) = invite(&service, email, "Other").await;
    let code = copied_code(&service, &member).await;
    let before = state(&service).await;
    let mut stranger = Browser::default();
    let page = submit(&mut stranger, &service, &code, "x").await;
    assert_eq!(page.status, 403, "{page:?}");
    assert!(page.body.as_str().unwrap().contains("href=\"/sign-in\""), "{page:?}");
    accept(&service, &by(&code, "x")).await.assert_problem(403, "sign_in_required", &[]);
    // Another person who is signed in is no better.
    stranger.sign_in(&service, "home@example.org").await;
    assert_eq!(submit(&mut stranger, &service, &code, "x").await.status, 403);
    assert_eq!(before["members"], state(&service).await["members"]);

    let mut browser = Browser::default();
    browser.sign_in(&service, email).await;
    let done = submit(&mut browser, &service, &code, "").await;
    assert_eq!(done.status, 200, "{done:?}");
    for workspace in [&service.home.clone(), &other] {
        assert_eq!(status_in(&mut browser, &service, workspace).await, 200);
    }
}

#[on_both_engines]
async fn a_copied_link_does_not_join_a_user_whose_address_is_not_proven(store: TestStore) {
    let service = Service::start(store).await;
    let (member, _) = invite(&service, "ann@example.org", "Ann").await;
    let mut browser = Browser::default();
    let code = copied_code(&service, &member).await;
    assert_eq!(submit(&mut browser, &service, &code, "ann").await.status, 200);
    let other = service.other_workspace().await;
    let body = json!({"email": "ann@example.org", "name": "Ann",
        "roleId": other.made.roles[1].to_string()});
    let member = service.create_as(&other.token, "/workspace-memberships", &body).await;
    let body = json!({ "id": member });
    let link = service.send_as(&other.token, Method::POST, LINK, Some(&body)).await;
    let link = link.body["url"].as_str().unwrap().to_owned();
    let (_, code) = link.split_once("code=").unwrap();
    assert_eq!(submit(&mut browser, &service, code, "ann").await.status, 403);
}

#[on_both_engines]
async fn the_page_of_a_mailed_invite_signs_in_to_its_workspace(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let home = service.home.clone();
    // A mail that was passed on must not open the other workspaces of its user.
    for email in ["ann@example.org", "other@example.org"] {
        let (_, code) = invite(&service, email, "Ann").await;
        let mut browser = Browser::default();
        let done = submit(&mut browser, &service, &code, "ann").await;
        assert_eq!(done.status, 200, "{done:?}");
        assert_eq!(methods(&mut browser, &service).await, ["invite"]);
        assert_eq!(status_in(&mut browser, &service, &home).await, 200);
        assert_eq!(status_in(&mut browser, &service, &other).await, 404);
    }
}

#[on_both_engines]
async fn a_signed_in_user_stays_signed_in_everywhere_after_an_invite(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let (_, code) = invite(&service, "other@example.org", "Other").await;
    let mut browser = Browser::default();
    browser.sign_in(&service, "other@example.org").await;
    assert_eq!(submit(&mut browser, &service, &code, "").await.status, 200);
    for workspace in [&service.home.clone(), &other] {
        assert_eq!(status_in(&mut browser, &service, workspace).await, 200);
    }
}

#[on_both_engines]
async fn a_session_of_one_workspace_does_not_act_for_its_user_elsewhere(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let (_, code) = invite(&service, "other@example.org", "Other").await;
    let mut limited = Browser::default();
    assert_eq!(submit(&mut limited, &service, &code, "").await.status, 200);
    let mut full = Browser::default();
    full.sign_in(&service, "other@example.org").await;

    let listed = limited.get(&service, "/workspace-memberships/list-workspaces").await;
    assert_eq!(listed.column("id").len(), 1, "{listed:?}");
    let change = service.request(Method::PUT, "/profile").json(&json!({"fullName": "X"}));
    let answer = limited.send(change).await;
    answer.assert_problem(403, "beyond_own_permissions", &[]);
    assert_eq!(methods(&mut limited, &service).await, ["invite"]);
    let sessions = full.get(&service, "/profile/sessions").await.column("id");
    let path = format!("/profile/sessions?id={}", sessions[1]);
    let answer = limited.send(service.request(Method::DELETE, &path)).await;
    answer.assert_problem(404, "not_found", &[]);
    let all = service.request(Method::DELETE, "/profile/sessions?all=true");
    assert_eq!(limited.send(all).await.status, 204);
    assert_eq!(status_in(&mut full, &service, &other).await, 200);
}

#[on_both_engines]
async fn a_copied_link_grants_no_more_than_its_inviter_has(store: TestStore) {
    let service = Service::start(store).await;
    let [admin, editor, viewer] = service.roles();
    let role = json!({"name": "Inviter", "permissions": ["workspaceMemberships:write",
        "contentPieces:read", "contentGroups:read", "tags:read", "variants:read", "assets:read", "roles:read",
        "workspace:read", "profile:write"]});
    let role = service.create("/roles", &role).await;
    let inviter = service.person("mallory", &role).await;
    let body = json!({"email": "boss@example.org", "name": "Boss", "roleId": viewer});
    let member = service.create_as(&inviter.token, "/workspace-memberships", &body).await;
    let body = json!({ "id": member });
    let link = service.send_as(&inviter.token, Method::POST, LINK, Some(&body)).await;
    let (_, code) = link.body["url"].as_str().unwrap().split_once("code=").unwrap();
    for raised in [&editor, &admin] {
        let change = json!({"id": member, "roleId": raised});
        assert_eq!(service.put("/workspace-memberships", &change).await.status, 204);
        accept(&service, &by(code, "x")).await.assert_problem(410, "invite_ended", &[]);
    }
    let change = json!({"id": member, "roleId": viewer});
    assert_eq!(service.put("/workspace-memberships", &change).await.status, 204);
    assert_eq!(accept(&service, &by(code, "x")).await.status, 200);
}

#[on_both_engines]
async fn a_copied_link_does_not_show_who_has_the_address(store: TestStore) {
    let service = Service::start(store).await;
    service.other_workspace().await;
    let (member, mailed) = invite(&service, "other@example.org", "Other").await;
    let copied = copied_code(&service, &member).await;
    let mut browser = Browser::default();
    let page = async |browser: &mut Browser, code: &str| {
        let page = browser.get(&service, &format!("/invite?code={code}")).await;
        page.body.as_str().unwrap().contains("You join as")
    };
    assert!(!page(&mut browser, &copied).await);
    assert!(page(&mut browser, &mailed).await);
    browser.sign_in(&service, "other@example.org").await;
    assert!(page(&mut browser, &copied).await);
}

#[on_both_engines]
async fn tokens_from_before_the_proof_of_an_address_end_with_it(store: TestStore) {
    let service = Service::start(store).await;
    let (member, _) = invite(&service, "ann@example.org", "Ann").await;
    let code = copied_code(&service, &member).await;
    let accepted = accept(&service, &by(&code, "ann")).await;
    let token = accepted.body["token"].as_str().unwrap().to_owned();
    let read = async || service.send_as(&token, Method::GET, "/profile", None).await.status;
    assert_eq!(read().await, 200);
    Browser::default().sign_in(&service, "ann@example.org").await;
    assert_eq!(read().await, 401);
}

#[on_both_engines]
async fn a_removed_members_session_does_not_come_back(store: TestStore) {
    let service = Service::start(store).await;
    let (member, _) = invite(&service, "ann@example.org", "Ann").await;
    let code = copied_code(&service, &member).await;
    let mut browser = Browser::default();
    assert_eq!(submit(&mut browser, &service, &code, "ann").await.status, 200);
    let home = service.home.clone();
    let path = format!("/workspace-memberships?id={member}");
    assert_eq!(service.delete(&path).await.status, 204);
    assert_eq!(status_in(&mut browser, &service, &home).await, 401);
    add_member(&service, &home, "ann@example.org").await;
    assert_eq!(status_in(&mut browser, &service, &home).await, 401);
}

#[on_both_engines]
async fn a_resent_invite_replaces_the_earlier_codes(store: TestStore) {
    let service = Service::start(store).await;
    let (member, first) = invite(&service, "ann@example.org", "Ann").await;
    let copied = copied_code(&service, &member).await;
    let resend = async || {
        let request = service.request(Method::POST, RESEND).bearer_auth(&service.home.token);
        let request = request.json(&json!({ "id": member })).header("idempotency-key", "k");
        TestResponse::of(request).await
    };
    assert_eq!(resend().await.status, 204);
    assert_eq!(resend().await.header("idempotency-replayed"), "true");
    let mails = mails_of(&service, &member).await;
    assert_eq!(mails.len(), 1, "the earlier mail is not sent any more");
    let newest = &mails[0].1.code;
    secrets::record_secret_for_log(newest);
    for code in [&first, &copied] {
        accept(&service, &by(code, "ann")).await.assert_problem(410, "invite_ended", &[]);
    }
    assert_eq!(accept(&service, &by(newest, "ann")).await.status, 200);
    for path in [LINK, RESEND] {
        let answer = service.post(path, &json!({ "id": member })).await;
        answer.assert_problem(409, "already_member", &[]);
    }
}

#[on_both_engines]
async fn an_expired_invite_is_renewed_by_a_link_or_a_mail(store: TestStore) {
    let service = Service::start(store).await;
    for path in [LINK, RESEND] {
        let email = format!("{}@example.org", path.len());
        let (member, code) = invite(&service, &email, "Ann").await;
        service.advance_clock(Duration::from_hours(7 * 24));
        accept(&service, &by(&code, "ann")).await.assert_problem(410, "invite_ended", &[]);
        let code = match path {
            LINK => copied_code(&service, &member).await,
            _ => {
                assert_eq!(service.post(RESEND, &json!({ "id": member })).await.status, 204);
                mails_of(&service, &member).await.pop().unwrap().1.code
            }
        };
        secrets::record_secret_for_log(&code);
        let name = format!("ann{}", path.len());
        assert_eq!(accept(&service, &by(&code, &name)).await.status, 200);
    }
}

#[on_both_engines]
async fn links_and_mails_count_for_the_limit_on_invites(store: TestStore) {
    let limits = galley_server::ServerLimits { invites_per_hour: 3, ..Default::default() };
    let service = Service::start_with(store, limits).await;
    let (member, _) = invite(&service, "ann@example.org", "Ann").await;
    copied_code(&service, &member).await;
    assert_eq!(service.post(RESEND, &json!({ "id": member })).await.status, 204);
    for path in [LINK, RESEND] {
        let answer = service.post(path, &json!({ "id": member })).await;
        answer.assert_problem(429, "too_many_invites", &[]);
    }
}

#[on_both_engines]
async fn a_form_of_another_origin_accepts_no_invite(store: TestStore) {
    let service = Service::start(store).await;
    let (_, code) = invite(&service, "ann@example.org", "Ann").await;
    let before = state(&service).await;
    let fields = [("code", code.as_str()), ("username", "ann"), ("fullName", "Ann")];
    let request = form(service.request(Method::POST, "/invite"), &fields);
    let answer = TestResponse::of(request.header("sec-fetch-site", "cross-site")).await;
    assert_eq!(answer.status, 403, "{answer:?}");
    assert_eq!(answer.headers.get("set-cookie"), None);
    assert!(answer.body.as_str().unwrap().contains("Another site sent the request"), "{answer:?}");
    assert_eq!(before, state(&service).await);
}
