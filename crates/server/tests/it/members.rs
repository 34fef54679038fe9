//! `/workspace-memberships`: invites with their mails, roles, removal, and their events.

use std::time::Duration;

use galley_application::operations::members::{INVITE_MAIL, InviteMail, mail_aad};
use galley_domain::WorkspaceMemberId;
use galley_server::ServerLimits;
use galley_storage::{Tx, mails};
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{ALL, Service, TestResponse, TokenKind, key};

const PATH: &str = "/workspace-memberships";
const LIST: &str = "/workspace-memberships/list-members?perPage=100";
const WEEK: Duration = Duration::from_hours(7 * 24);

fn invitation(service: &Service, email: &str) -> Value {
    let [_, editor, _] = service.roles();
    json!({"email": email, "name": "Invited Ann", "roleId": editor})
}

/// Returns the member with this id from the list.
async fn listed(service: &Service, id: &str) -> Option<Value> {
    let list = service.get(LIST).await.body;
    list.as_array().unwrap().iter().find(|member| member["id"] == id).cloned()
}

/// Returns the mails of an invite with their contents.
pub(crate) async fn mails_of(
    service: &Service,
    member: &str,
) -> Vec<(mails::QueuedMail, InviteMail)> {
    let workspace = service.home.made.workspace;
    let member: WorkspaceMemberId = member.parse().unwrap();
    let read = async move |tx: &Tx<'_>| {
        let sql = "SELECT id, kind, member_id, recipient, sealed FROM mails
            WHERE workspace_id = ?1 AND member_id = ?2 ORDER BY id";
        tx.query(sql, &[workspace.into(), member.into()], |row| {
            Ok(mails::QueuedMail {
                id: row.get(0)?,
                kind: row.get(1)?,
                member: row.get(2)?,
                recipient: row.get(3)?,
                sealed: row.get(4)?,
            })
        })
        .await
    };
    let open = |mail: mails::QueuedMail| {
        let text = key().decrypt(&mail_aad(mail.id), &mail.sealed).unwrap();
        let says = serde_json::from_slice(&text).unwrap();
        (mail, says)
    };
    service.read(read).await.into_iter().map(open).collect()
}

#[on_both_engines]
async fn an_invite_is_a_pending_member_with_a_mail_and_an_event(store: TestStore) {
    let service = Service::start(store).await;
    let sequence = service.last_sequence().await;
    let answer = service.post(PATH, &invitation(&service, "Ann@Example.org")).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let id = answer.id();
    let [_, editor, _] = service.roles();
    let expected = json!({"id": id, "userId": null, "roleId": editor, "email": "Ann@Example.org",
        "name": "Invited Ann", "pendingInvite": true, "profile": null});
    assert_eq!(listed(&service, &id).await, Some(expected.clone()));
    let events = service.events_after(sequence).await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].event_type, "memberInvited");
    assert_eq!(serde_json::from_str::<Value>(&events[0].data).unwrap(), expected);

    let mails = mails_of(&service, &id).await;
    let [(mail, says)] = mails.as_slice() else { panic!("one mail: {mails:?}") };
    assert_eq!((mail.kind.as_str(), mail.recipient.as_str()), (INVITE_MAIL, "Ann@Example.org"));
    assert_eq!((says.name.as_str(), says.role.as_str()), ("Invited Ann", "Editor"));
    assert_eq!((says.inviter.as_str(), says.workspace.as_str()), ("home", "home"));
    assert_eq!(says.code.len(), 43, "256 bits in base 64");
    // The database contains no usable code.
    let sealed = String::from_utf8_lossy(&mail.sealed).into_owned();
    assert!(!sealed.contains(&says.code) && !sealed.contains("Invited"), "{sealed}");
}

#[on_both_engines]
async fn an_address_is_invited_once_regardless_of_case(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create(PATH, &invitation(&service, "ann@example.org")).await;
    for email in ["ann@example.org", "ANN@EXAMPLE.ORG"] {
        let answer = service.post(PATH, &invitation(&service, email)).await;
        answer.assert_problem(409, "already_invited", &[]);
    }
    let answer = service.post(PATH, &invitation(&service, "HOME@example.org")).await;
    answer.assert_problem(409, "already_member", &[]);
    assert_eq!(mails_of(&service, &id).await.len(), 1);
    // A user of another workspace may be invited like any other person.
    service.other_workspace().await;
    service.create(PATH, &invitation(&service, "other@example.org")).await;
    // A removed address may be invited again, and its first mail is cancelled.
    assert_eq!(service.delete(&format!("{PATH}?id={id}")).await.status, 204);
    assert_eq!(mails_of(&service, &id).await.len(), 0);
    let again = service.create(PATH, &invitation(&service, "ann@example.org")).await;
    assert_ne!(again, id);
}

#[on_both_engines]
async fn an_expired_invite_is_replaced(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create(PATH, &invitation(&service, "ann@example.org")).await;
    let mut piece = service.piece("by-ann");
    piece["members"] = json!([id]);
    let piece = service.create("/content-pieces", &piece).await;
    service.advance_clock(WEEK.saturating_sub(Duration::from_mins(1)));
    let answer = service.post(PATH, &invitation(&service, "ann@example.org")).await;
    answer.assert_problem(409, "already_invited", &[]);
    service.advance_clock(Duration::from_mins(2));
    let [_, _, viewer] = service.roles();
    let body = json!({"email": "ANN@example.org", "name": "Ann Again", "roleId": viewer});
    let again = service.create(PATH, &body).await;
    assert_eq!(again, id, "pieces that list the member go on to do so");
    let member = listed(&service, &id).await.unwrap();
    assert_eq!((&member["name"], &member["roleId"]), (&json!("Ann Again"), &json!(viewer)));
    assert_eq!(service.get(LIST).await.column("id").len(), 2);
    let mails = mails_of(&service, &id).await;
    assert_eq!(mails.len(), 1, "the old code's mail is void: {mails:?}");
    assert_eq!(mails[0].1.name, "Ann Again");
    let piece = service.get(&format!("/content-pieces?id={piece}")).await.body;
    assert_eq!(piece["members"], json!([{"id": id, "profile": null}]));
}

/// On PostgreSQL, a lock of another piece delays the removal.
#[on_both_engines]
async fn a_piece_that_gets_a_member_during_the_removal_does_not_keep_it(store: TestStore) {
    let service = Service::start(store).await;
    let member = service.create(PATH, &invitation(&service, "ann@example.org")).await;
    let mut body = service.piece("first");
    body["members"] = json!([member]);
    let first = service.create("/content-pieces", &body).await;
    let second = service.create("/content-pieces", &service.piece("second")).await;
    let client = service.postgres().await;
    if let Some(client) = &client {
        let lock = format!("BEGIN; SELECT 1 FROM content_pieces WHERE id = '{first}' FOR UPDATE");
        client.batch_execute(&lock).await.unwrap();
    }
    let path = format!("{PATH}?id={member}");
    let add = async {
        if let Some(client) = &client {
            let waits = "SELECT 1 FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event_type = 'Lock'";
            let is_waiting = async || !client.query(waits, &[]).await.unwrap().is_empty();
            let mut polls = 0;
            while !is_waiting().await {
                assert!(polls < 3_000, "the removal does not wait for the lock");
                polls += 1;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        let change = json!({"id": second, "members": [member]});
        let status = service.put("/content-pieces", &change).await.status.as_u16();
        if let Some(client) = &client {
            client.batch_execute("COMMIT").await.unwrap();
        }
        status
    };
    let (removed, added) = tokio::join!(service.delete(&path), add);
    assert_eq!(removed.status, 204, "{removed:?}");
    assert!(added == 204 || client.is_none(), "{added}");
    for piece in [first, second] {
        let found = service.get(&format!("/content-pieces?id={piece}")).await.body;
        assert_eq!(found["members"], json!([]));
        let change = json!({"id": piece, "referenceId": null});
        assert_eq!(service.put("/content-pieces", &change).await.status, 204);
    }
}

#[on_both_engines]
async fn invites_are_limited_by_the_hour(store: TestStore) {
    let limits = ServerLimits { invites_per_hour: 3, ..ServerLimits::default() };
    let service = Service::start_with(store, limits).await;
    for number in 0..3 {
        service.create(PATH, &invitation(&service, &format!("a{number}@example.org"))).await;
        service.advance_clock(Duration::from_mins(10));
    }
    // A removal does not raise the limit, as the mail may have been sent.
    let first = service.get(LIST).await.column("id")[1].clone();
    service.delete(&format!("{PATH}?id={first}")).await;
    let before = service.workspace_state().await;
    let answer = service.post(PATH, &invitation(&service, "b@example.org")).await;
    answer.assert_problem(429, "too_many_invites", &[]);
    let seconds: u64 = answer.header("retry-after").parse().unwrap();
    assert!((1_700..=1_801).contains(&seconds), "{seconds}");
    assert_eq!(service.workspace_state().await, before);
    service.advance_clock(Duration::from_secs(seconds));
    service.create(PATH, &invitation(&service, "b@example.org")).await;
}

#[on_both_engines]
async fn errors_of_invalid_invites_are_reported(store: TestStore) {
    let service = Service::start(store).await;
    let before = service.workspace_state().await;
    let answer = service.post(PATH, &json!({})).await;
    answer.assert_problem(400, "validation", &["email", "name", "roleId"]);
    let body = json!({"email": "ann", "name": "", "roleId": 3});
    service.post(PATH, &body).await.assert_problem(400, "validation", &["email", "name", "roleId"]);
    for role in ["role_00000000000000000000000000", "Admin", ""] {
        let body = json!({"email": "a@example.org", "name": "a", "roleId": role});
        service.post(PATH, &body).await.assert_problem(400, "unknown_reference", &["roleId"]);
        let body = json!({"id": service.home.made.member.to_string(), "roleId": role});
        service.put(PATH, &body).await.assert_problem(400, "unknown_reference", &["roleId"]);
    }
    service.put(PATH, &json!({"id": null})).await.assert_problem(
        400,
        "validation",
        &["id", "roleId"],
    );
    service.delete(PATH).await.assert_problem(400, "validation", &["id"]);
    service.delete(&format!("{PATH}?id=x")).await.assert_problem(404, "not_found", &[]);
    assert_eq!(service.workspace_state().await, before);
}

#[on_both_engines]
async fn a_new_role_applies_to_the_next_request(store: TestStore) {
    let service = Service::start(store).await;
    let [admin, editor, viewer] = service.roles();
    let ann = service.person("ann", &viewer).await;
    let tries = async || {
        let body = json!({"label": "a tag"});
        service.send_as(&ann.token, Method::POST, "/tags", Some(&body)).await.status.as_u16()
    };
    assert_eq!(tries().await, 403);
    let sequence = service.last_sequence().await;
    for (role, status) in [(&editor, 201), (&viewer, 403), (&admin, 201)] {
        let body = json!({"id": ann.member, "roleId": role});
        assert_eq!(service.put(PATH, &body).await.status, 204);
        assert_eq!(tries().await, status);
        assert_eq!(listed(&service, &ann.member).await.unwrap()["roleId"], json!(role));
    }
    let events = service.events_after(sequence).await;
    let types: Vec<_> = events.iter().map(|event| event.event_type.as_str()).collect();
    assert_eq!(types, ["tagChanged"; 2], "only those of the tags");
}

#[on_both_engines]
async fn removing_a_member_revokes_its_tokens_and_clears_it_from_pieces(store: TestStore) {
    let service = Service::start(store).await;
    let [_, editor, _] = service.roles();
    let ann = service.person("ann", &editor).await;
    let second = service.token_of(ann.user, TokenKind { permissions: "tags:read", ..ALL }).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let mut body = service.piece("by-ann");
    let owner = service.home.made.member.to_string();
    body["members"] = json!([ann.member, owner]);
    let piece = service.create("/content-pieces", &body).await;
    let change = json!({"id": piece, "variant": "de", "members": [ann.member]});
    assert_eq!(service.put("/content-pieces", &change).await.status, 204);
    let was = listed(&service, &ann.member).await.unwrap();
    let sequence = service.last_sequence().await;
    assert_eq!(service.delete(&format!("{PATH}?id={}", ann.member)).await.status, 204);
    for token in [&ann.token, &second] {
        let answer = service.send_as(token, Method::GET, "/tags/list", None).await;
        answer.assert_problem(401, "unauthorized", &[]);
    }
    let ids = async |query: &str| {
        let piece = service.get(&format!("/content-pieces?id={piece}{query}")).await.body;
        let members = piece["members"].as_array().unwrap().clone();
        members.iter().map(|member| member["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids("").await, [owner]);
    assert_eq!(ids("&variant=de").await, [""; 0]);
    let events = service.events_after(sequence).await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0].event_type, "memberRemoved");
    assert_eq!(serde_json::from_str::<Value>(&events[0].data).unwrap(), was);
    let again = service.delete(&format!("{PATH}?id={}", ann.member)).await;
    again.assert_problem(404, "not_found", &[]);
    let path = format!("/content-pieces?id={piece}");
    let etag = service.get(&path).await.header("etag").to_owned();
    assert!(etag.starts_with("\"3."), "removing the member was a change: {etag}");
}

#[on_both_engines]
async fn every_member_may_leave_by_an_unlimited_token(store: TestStore) {
    let service = Service::start(store).await;
    let [_, _, viewer] = service.roles();
    let ann = service.person("ann", &viewer).await;
    let path = format!("{PATH}?id={}", ann.member);
    let own = "contentPieces:read contentGroups:read tags:read variants:read assets:read roles:read \
        workspaceMemberships:read workspace:read profile:write";
    let kinds = [
        TokenKind { permissions: "profile:write", ..ALL },
        TokenKind { extension: Some("one"), ..ALL },
        TokenKind { groups: Some(&[service.home.group.as_str()]), ..ALL },
    ];
    for kind in kinds {
        let limited = service.token_of(ann.user, kind).await;
        let answer = service.send_as(&limited, Method::DELETE, &path, None).await;
        assert_eq!(answer.status, 403, "{kind:?} {answer:?}");
    }
    let whole = service.token_of(ann.user, TokenKind { permissions: own, ..ALL }).await;
    let answer = service.send_as(&whole, Method::DELETE, &path, None).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    assert!(listed(&service, &ann.member).await.is_none());
}

#[on_both_engines]
async fn the_last_admin_cannot_be_removed_or_demoted(store: TestStore) {
    let service = Service::start(store).await;
    let [admin, editor, _] = service.roles();
    let me = service.home.made.member.to_string();
    // A pending member does not count as an Admin.
    let mut pending = invitation(&service, "ann@example.org");
    pending["roleId"] = json!(admin);
    service.create(PATH, &pending).await;
    let body = json!({"id": me, "roleId": editor});
    let answer = service.put(PATH, &body).await;
    answer.assert_problem(409, "last_admin", &[]);
    let answer = service.delete(&format!("{PATH}?id={me}")).await;
    answer.assert_problem(409, "last_admin", &[]);
    service.person("second", &admin).await;
    assert_eq!(service.put(PATH, &body).await.status, 204);
}

#[on_both_engines]
async fn members_are_listed_and_paged_oldest_first(store: TestStore) {
    let service = Service::start(store).await;
    let [_, editor, _] = service.roles();
    let mut ids = vec![service.home.made.member.to_string()];
    for number in 0..6 {
        ids.push(if number % 2 == 0 {
            service.person(&format!("p{number}"), &editor).await.member
        } else {
            service.create(PATH, &invitation(&service, &format!("i{number}@example.org"))).await
        });
    }
    assert_eq!(service.get(LIST).await.column("id"), ids);
    let path = "/workspace-memberships/list-members";
    let page = service.get(&format!("{path}?perPage=3&page=2")).await;
    assert_eq!(page.column("id"), ids[3..6]);
    let after = service.get(&format!("{path}?perPage=3&lastId={}&page=7", ids[1])).await;
    assert_eq!(after.column("id"), ids[2..5]);
    let mut seen = Vec::new();
    let mut next = format!("{path}?perPage=2");
    loop {
        let page = service.get(&next).await;
        seen.extend(page.column("id"));
        let link = page.header("link");
        let Some(target) = link.split(['<', '>']).nth(1) else { break };
        next = target.to_owned();
    }
    assert_eq!(seen, ids);
}

#[on_both_engines]
async fn a_users_workspaces_are_listed_without_pending_ones(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let roles = &other.made.roles;
    let body = json!({"email": "home@example.org", "name": "Home", "roleId": roles[1].to_string()});
    let invited = service.send_as(&other.token, Method::POST, PATH, Some(&body)).await;
    assert_eq!(invited.status, 201, "{invited:?}");
    let path = "/workspace-memberships/list-workspaces";
    let only = service.get(path).await;
    assert_eq!(only.column("id"), [service.home.made.member.to_string()]);
    assert_eq!(only.body[0]["workspace"]["id"], json!(service.home.made.workspace.to_string()));
    assert_eq!(only.body[0]["role"], json!({"id": service.roles()[0], "name": "Admin"}));
    // Memberships that the operator adds are listed.
    let member: WorkspaceMemberId = invited.id().parse().unwrap();
    add_owner_to(&service, &other, member).await;
    let both = service.get(path).await;
    let workspaces = both.body.as_array().unwrap().iter();
    let ids: Vec<_> = workspaces.map(|one| one["workspace"]["id"].as_str().unwrap()).collect();
    let expected = [service.home.made.workspace, other.made.workspace].map(|id| id.to_string());
    assert_eq!(ids, expected);
    let second = service.get(&format!("{path}?lastId={}", expected[0])).await;
    assert_eq!(second.body, json!([both.body[1]]));
    assert_eq!(service.get(&format!("{path}?perPage=1&page=2")).await.body, second.body);
}

#[on_both_engines]
async fn updates_of_a_member_check_its_version(store: TestStore) {
    let service = Service::start(store).await;
    let [_, editor, viewer] = service.roles();
    let ann = service.person("ann", &viewer).await;
    let send = async |method, path: &str, body: Option<Value>, tag: &str| {
        let mut request = service.request(method, path).bearer_auth(&service.home.token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        TestResponse::of(request.header("if-match", tag)).await
    };
    let change = json!({"id": ann.member, "roleId": editor});
    let answer = send(Method::PUT, PATH, Some(change.clone()), "\"2.x\"").await;
    answer.assert_problem(412, "precondition_failed", &[]);
    let answer = send(Method::PUT, PATH, Some(change), "\"1.x\"").await;
    assert_eq!(answer.status, 204, "{answer:?}");
    let tag = answer.header("etag").to_owned();
    let path = format!("{PATH}?id={}", ann.member);
    let answer = send(Method::DELETE, &path, None, "\"1.x\"").await;
    answer.assert_problem(412, "precondition_failed", &[]);
    assert_eq!(send(Method::DELETE, &path, None, &tag).await.status, 204);
}

/// Adds the home workspace's owner to another workspace that has invited them.
async fn add_owner_to(
    service: &Service,
    other: &crate::service::TestWorkspace,
    invited: WorkspaceMemberId,
) {
    use galley_application::operations::members::{Invitation, add_without_invite};
    use galley_domain::people::{EmailAddress, FullName};
    let invitation = Invitation {
        email: EmailAddress::parse("home@example.org").unwrap(),
        name: FullName::parse("Home").unwrap(),
        role: other.made.roles[2],
    };
    let (environment, workspace) = (service.environment.clone(), other.made.workspace);
    let write = async move |tx: &galley_storage::WriteTx<'_>| {
        add_without_invite(tx, &environment, workspace, &invitation).await
    };
    let member = service.database.write("members.add", write).await.unwrap();
    assert_ne!(member.id, invited, "the invite is gone, and a member is there");
}
