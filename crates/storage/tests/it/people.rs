//! The functions for people, tokens and webhooks, called by `conformance.rs`.

use galley_domain::access_token::TokenName;
use galley_domain::event::{EventType, EventTypes};
use galley_domain::people::{EmailAddress, Username};
use galley_domain::publication::ContentView;
use galley_domain::role::{BaseType, Role, RoleName};
use galley_domain::webhook::{DisabledReason, Webhook, WebhookName, WebhookUrl};
use galley_domain::workspace::WorkspaceName;
use galley_domain::{
    ContentGroupId, ContentPieceId, Credential, MailId, PermissionSet, RoleId, Timestamp, TokenId,
    UserId, WebhookId, WorkspaceId, WorkspaceMemberId,
};
use galley_storage::authentication;
use galley_storage::event_tickets::{self, EventTicket};
use galley_storage::invites::{self, Invite};
use galley_storage::mails::{self, FailingMail, MailOutcome, QueuedMail};
use galley_storage::members::{self, Member};
use galley_storage::preview_tokens::{self, PreviewToken};
use galley_storage::tokens::{self, Token};
use galley_storage::users::{self, User};
use galley_storage::webhooks::{self, VisibleWebhooks, WebhookListQuery};
use galley_storage::{Error, IdPage, WriteTx, idempotency, installation, roles, workspaces};

use crate::store::{NOW, id};

const LATER: Timestamp = Timestamp::from_ms(NOW.ms() + 1_000);

/// Calls every function, and keeps one member.
pub(crate) async fn exercise(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    group: ContentGroupId,
) -> Result<WorkspaceMemberId, Error> {
    the_workspace(tx, workspace).await?;
    let role = the_roles(tx, workspace).await?;
    let member = the_members(tx, workspace, role).await?;
    the_tokens(tx, workspace, &member).await?;
    crate::sign_in::exercise(tx, workspace, &member).await?;
    the_webhooks(tx, workspace, group).await?;
    idempotency_keys(tx, workspace).await?;
    installation::lock(tx).await?;
    assert_eq!(installation::find_key_check(tx).await?, None);
    installation::insert_key_check(tx, &[1, 2]).await?;
    installation::insert_key_check(tx, &[3]).await?;
    assert_eq!(installation::find_key_check(tx).await?, Some(vec![1, 2]), "the first counts");
    Ok(member.id)
}

/// Deletes that member.
pub(crate) async fn leave(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    member: WorkspaceMemberId,
) -> Result<(), Error> {
    members::delete(tx, workspace, member).await?;
    assert_eq!(members::find(tx, workspace, member).await?, None);
    Ok(())
}

async fn the_workspace(tx: &WriteTx<'_>, workspace: WorkspaceId) -> Result<(), Error> {
    assert!(workspaces::any(tx).await?);
    assert!(!workspaces::has_others(tx, workspace).await?);
    assert!(workspaces::has_others(tx, WorkspaceId::new(1)).await?);
    assert_eq!(workspaces::list(tx).await?, [(workspace, "Test".to_owned())]);
    workspaces::lock(tx, workspace).await?;
    let mut changed = workspaces::find(tx, workspace).await?.expect("it is there");
    changed.name = WorkspaceName::parse("Other").unwrap();
    changed.billing.subscription_plan = Some("large".to_owned());
    changed.billing.subscription_expires_at = Some(LATER);
    changed.version = 2;
    workspaces::update(tx, &changed).await?;
    assert_eq!(workspaces::find(tx, workspace).await?, Some(changed));
    assert_eq!(workspaces::find(tx, WorkspaceId::new(1)).await?, None);
    Ok(())
}

async fn the_roles(tx: &WriteTx<'_>, workspace: WorkspaceId) -> Result<Role, Error> {
    let mut admin = Role {
        id: RoleId::new(id()),
        name: RoleName::parse("Admin").unwrap(),
        description: None,
        permissions: PermissionSet::ALL,
        base_type: Some(BaseType::Admin),
        version: 1,
    };
    let spare = Role {
        id: RoleId::new(id()),
        name: RoleName::parse("Spare").unwrap(),
        base_type: None,
        ..admin.clone()
    };
    for role in [&admin, &spare] {
        roles::insert(tx, workspace, role, NOW).await?;
    }
    admin.version = 2;
    roles::update(tx, workspace, &admin).await?;
    assert_eq!(roles::find(tx, workspace, admin.id).await?, Some(admin.clone()));
    assert_eq!(roles::find(tx, WorkspaceId::new(1), admin.id).await?, None);
    let listed = roles::list(tx, workspace, &IdPage::default()).await?;
    assert_eq!(listed, [admin.clone(), spare.clone()]);
    assert!(!roles::is_in_use(tx, workspace, spare.id).await?);
    roles::delete(tx, workspace, spare.id).await?;
    assert_eq!(roles::list(tx, workspace, &IdPage::default()).await?, [admin.clone()]);
    Ok(admin)
}

async fn the_members(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    role: Role,
) -> Result<Member, Error> {
    let mut user = User {
        id: UserId::new(id()),
        email: "Ann@Example.org".to_owned(),
        username: "Ann".to_owned(),
        full_name: "Ann Ex".to_owned(),
        avatar: None,
        version: 1,
        email_verified_at: None,
    };
    users::insert(tx, &user, NOW).await?;
    user.full_name = "Ann Example".to_owned();
    user.version = 2;
    users::update(tx, &user).await?;
    assert_eq!(users::find(tx, user.id).await?.as_ref(), Some(&user));
    assert_eq!(users::find_for_update(tx, user.id).await?.as_ref(), Some(&user));
    let email = EmailAddress::parse("ann@example.ORG").unwrap();
    assert_eq!(users::find_by_email(tx, &email).await?.as_ref(), Some(&user));
    assert!(users::has_username(tx, &Username::parse("aNN").unwrap()).await?);
    assert!(!users::has_username(tx, &Username::parse("ben").unwrap()).await?);

    let member = Member {
        id: WorkspaceMemberId::new(id()),
        user: Some(user.clone()),
        role: role.id,
        invited_email: None,
        invited_name: None,
        version: 1,
    };
    members::insert(tx, workspace, &member, NOW).await?;
    assert_eq!(members::find(tx, workspace, member.id).await?.as_ref(), Some(&member));
    assert_eq!(members::find(tx, WorkspaceId::new(1), member.id).await?, None);
    let found = members::find_by_user(tx, workspace, user.id).await?;
    assert_eq!(found.as_ref(), Some(&member));
    assert_eq!(members::find_first_admin(tx, workspace).await?, Some((member.id, user.id)));
    let told = members::list_admin_addresses(tx, workspace).await?;
    assert_eq!(told, [(member.id, user.email.clone())]);
    assert!(!members::has_other_admin(tx, workspace, member.id).await?);
    let profiles = members::profiles(tx, workspace, &[member.id]).await?;
    assert_eq!(profiles[0].user.as_ref(), Some(&user));
    let memberships = members::of_user(tx, user.id, &IdPage::default()).await?;
    assert_eq!(memberships.len(), 1);
    assert_eq!((memberships[0].workspace.id, &memberships[0].role), (workspace, &role));
    assert!(roles::is_in_use(tx, workspace, role.id).await?);
    invited(tx, workspace, &member).await?;
    Ok(member)
}

async fn invited(tx: &WriteTx<'_>, workspace: WorkspaceId, admin: &Member) -> Result<(), Error> {
    let mut pending = Member {
        id: WorkspaceMemberId::new(id()),
        user: None,
        invited_email: Some("Ben@example.org".to_owned()),
        invited_name: Some("Ben".to_owned()),
        ..admin.clone()
    };
    members::insert(tx, workspace, &pending, NOW).await?;
    pending.version = 2;
    members::update(tx, workspace, &pending).await?;
    let email = EmailAddress::parse("ben@Example.org").unwrap();
    let found = members::find_pending(tx, workspace, &email).await?;
    assert_eq!(found.as_ref(), Some(&pending));
    assert!(!members::has_other_admin(tx, workspace, admin.id).await?, "it is an invite only");
    let listed = members::list(tx, workspace, &IdPage::default()).await?;
    assert_eq!(listed, [admin.clone(), pending.clone()]);
    let after = IdPage { after: Some(admin.id.to_string()), ..IdPage::default() };
    let listed = members::list(tx, workspace, &after).await?;
    assert_eq!(listed, [pending.clone()]);

    let invite = Invite {
        workspace,
        member: pending.id,
        inviter: admin.user.as_ref().map(|user| user.id),
        expires_at: LATER,
        ended_at: None,
        is_copied: true,
    };
    invites::insert(tx, &[5; 32], &invite, NOW).await?;
    assert_eq!(invites::find(tx, &[5; 32]).await?, Some(invite));
    assert_eq!(invites::find(tx, &[6; 32]).await?, None);
    assert!(invites::has_valid_code(tx, workspace, pending.id, NOW).await?);
    assert!(!invites::has_valid_code(tx, workspace, pending.id, LATER).await?, "it has ended");
    let before = Timestamp::from_ms(NOW.ms() - 1);
    assert_eq!(invites::nth_latest(tx, workspace, before, 1).await?, Some(NOW));
    assert_eq!(invites::nth_latest(tx, workspace, before, 2).await?, None);
    assert_eq!(invites::nth_latest(tx, workspace, NOW, 1).await?, None);
    let open_of = async |user, since| invites::list_pending_by(tx, workspace, user, since).await;
    let inviter = invite.inviter.unwrap();
    assert_eq!(open_of(inviter, before).await?, [pending.id]);
    assert_eq!(open_of(inviter, NOW).await?, []);
    let open_of_role =
        async |role, since| invites::list_pending_by_role(tx, workspace, role, since).await;
    assert_eq!(open_of_role(admin.role, before).await?, [pending.id]);
    assert_eq!(open_of_role(admin.role, NOW).await?, []);
    assert_eq!(open_of_role(RoleId::new(id()), before).await?, []);
    assert_eq!(open_of(UserId::new(id()), before).await?, []);
    invites::revoke(tx, workspace, pending.id, NOW).await?;
    assert_eq!(open_of(inviter, before).await?, []);
    assert!(!invites::has_valid_code(tx, workspace, pending.id, NOW).await?);
    assert_eq!(invites::find(tx, &[5; 32]).await?.unwrap().ended_at, Some(NOW));

    let mail = QueuedMail {
        id: MailId::new(id()),
        kind: "invite".to_owned(),
        member: Some(pending.id),
        recipient: "ben@example.org".to_owned(),
        sealed: vec![0, 255],
    };
    mails::insert(tx, workspace, &mail, NOW).await?;
    assert_eq!(mail_ids(tx, workspace).await?, [mail.id]);
    send_mail(tx, workspace, &mail).await?;
    mails::delete_of_member(tx, workspace, pending.id).await?;
    assert_eq!(mail_ids(tx, workspace).await?, []);
    let joined = users::find_by_email(tx, &EmailAddress::parse("ben@example.org").unwrap()).await?;
    assert_eq!(joined, None);
    let ben = User {
        id: UserId::new(id()),
        email: "ben@example.org".to_owned(),
        username: "ben-the-invited".to_owned(),
        full_name: "Ben".to_owned(),
        avatar: None,
        version: 1,
        email_verified_at: None,
    };
    users::insert(tx, &ben, NOW).await?;
    members::join(tx, workspace, pending.id, ben.id, 3).await?;
    let joined = members::find(tx, workspace, pending.id).await?.unwrap();
    assert_eq!((joined.user, joined.version), (Some(ben), 3));
    assert_eq!(joined.invited_email, pending.invited_email);
    members::delete(tx, workspace, pending.id).await?;
    Ok(())
}

/// Exercises a mail that is leased by one worker at a time, retried, and abandoned.
async fn send_mail(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    mail: &QueuedMail,
) -> Result<(), Error> {
    let lease = async |now| mails::lease(tx, now, Timestamp::from_ms(now.ms() + 100), 10).await;
    let at = |ms| Timestamp::from_ms(NOW.ms() + ms);
    let postponed = |ms| MailOutcome::Postponed(at(ms), "421 not now".to_owned());
    assert!(mails::is_any_due(tx, NOW).await?);
    assert!(!mails::is_any_due(tx, at(-1)).await?);
    let first = lease(NOW).await?;
    assert!(!mails::is_any_due(tx, NOW).await?, "it is being sent");
    assert_eq!(first.iter().map(|one| &one.mail).collect::<Vec<_>>(), [mail]);
    assert_eq!((first[0].workspace, first[0].created_at, first[0].attempts), (workspace, NOW, 1));
    assert_eq!(lease(at(99)).await?, []);
    let second = lease(at(100)).await?;
    assert_eq!(second[0].attempts, 2);
    // A result with an expired lease is ignored.
    mails::record_outcome(tx, &first[0], &MailOutcome::Sent, NOW).await?;
    assert_eq!(mails::list_failing(tx, workspace).await?, []);
    mails::record_outcome(tx, &second[0], &postponed(1_000), NOW).await?;
    assert_eq!(lease(at(999)).await?, []);
    let trouble = |is_given_up, error: &str| FailingMail {
        member: mail.member,
        error: error.to_owned(),
        is_abandoned: is_given_up,
    };
    assert_eq!(mails::list_failing(tx, workspace).await?, [trouble(false, "421 not now")]);
    assert_eq!(mails::counts(tx).await?, (1, 0));
    let third = lease(at(1_000)).await?;
    let given_up = MailOutcome::GivenUp("550 nobody".to_owned());
    mails::record_outcome(tx, &third[0], &given_up, at(2_000)).await?;
    assert_eq!(mails::list_failing(tx, workspace).await?, [trouble(true, "550 nobody")]);
    assert_eq!(mails::counts(tx).await?, (0, 1));
    assert_eq!(lease(at(100_000)).await?, []);
    assert!(!mails::is_any_due(tx, at(100_000)).await?);
    assert_eq!(mails::delete_abandoned(tx, at(2_000), 10).await?, 0);
    assert_eq!(mails::delete_abandoned(tx, at(2_001), 10).await?, 1);
    let another = QueuedMail { id: MailId::new(id()), ..mail.clone() };
    mails::insert(tx, workspace, &another, NOW).await?;
    let leased = lease(NOW).await?;
    mails::record_outcome(tx, &leased[0], &MailOutcome::Sent, NOW).await?;
    assert_eq!(mails::counts(tx).await?, (0, 0));
    mails::insert(tx, workspace, mail, NOW).await
}

async fn the_tokens(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    member: &Member,
) -> Result<(), Error> {
    let user = member.user.as_ref().expect("they are a user").id;
    let limits = vec![ContentGroupId::new(id()), ContentGroupId::new(id())];
    let mut token = Token {
        id: TokenId::new(id()),
        user,
        name: TokenName::parse("t").unwrap(),
        description: None,
        permissions: "tags:write".parse::<PermissionSet>().unwrap(),
        content_groups: Some(limits.clone()),
        view: ContentView::Published,
        extension: None,
        expires_at: Some(LATER),
        last_used_at: None,
        created_at: NOW,
        version: 1,
    };
    tokens::insert(tx, workspace, &token, &[9; 32]).await?;
    token.version = 2;
    tokens::update(tx, workspace, &token).await?;
    tokens::record_use(tx, workspace, token.id, LATER).await?;
    tokens::record_use(tx, workspace, token.id, NOW).await?;
    token.last_used_at = Some(LATER);
    assert_eq!(tokens::find(tx, workspace, token.id).await?.as_ref(), Some(&token));
    let found = authentication::find_by_token_hash(tx, &[9; 32]).await?.expect("it was kept");
    assert_eq!((found.workspace, found.member), (workspace, member.id));
    assert_eq!(found.content_groups.as_ref(), Some(&limits));
    assert_eq!(found.permissions.to_string(), "tags:write");
    assert_eq!(found.base_type, Some(BaseType::Admin));
    assert!(!found.is_unlimited());
    let again = authentication::find(tx, workspace, Credential::Token(token.id)).await?;
    assert_eq!(again.as_ref(), Some(&found));
    let with_generation = authentication::find_by_token_hash_with_generation(tx, &[9; 32]).await?;
    assert_eq!(with_generation.map(|(found, _)| found), Some(found));
    assert_eq!(authentication::find_by_token_hash(tx, &[8; 32]).await?, None);
    for whose in [None, Some(user)] {
        let listed = tokens::list(tx, workspace, whose, &IdPage::default()).await?;
        assert_eq!(listed, [token.clone()]);
    }
    assert_eq!(tokens::list(tx, workspace, Some(UserId::new(1)), &IdPage::default()).await?, []);
    let listed = tokens::list_with_users(tx, workspace).await?;
    assert_eq!((listed.len(), listed[0].username.as_str()), (1, "Ann"));
    assert!(!tokens::delete(tx, WorkspaceId::new(1), token.id).await?, "of another workspace");
    the_tickets(tx, workspace, token.id).await?;
    assert!(!tokens::delete(tx, workspace, token.id).await?, "it is deleted");
    tokens::insert(tx, workspace, &token, &[9; 32]).await?;
    tokens::delete_of_user(tx, workspace, user).await?;
    assert_eq!(tokens::find(tx, workspace, token.id).await?, None);
    Ok(())
}

async fn the_webhooks(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    group: ContentGroupId,
) -> Result<(), Error> {
    let mut webhook = Webhook {
        id: WebhookId::new(id()),
        hides_emails: false,
        url: WebhookUrl::parse("https://example.org/").unwrap(),
        name: WebhookName::parse("h").unwrap(),
        description: None,
        event: EventType::ContentPieceAdded,
        events: EventTypes::new([EventType::ContentPieceAdded]),
        content_group_id: Some(group),
        view: ContentView::Current,
        extension: Some("ours".to_owned()),
        enabled: true,
        disabled_reason: None,
        failing_since: None,
        dropped: 0,
        version: 1,
    };
    webhooks::insert(tx, workspace, &webhook, Some(&[1, 0, 255]), NOW).await?;
    let sql = "SELECT sealed_secret FROM webhooks WHERE workspace_id = ?1 AND id = ?2";
    let key = [workspace.into(), webhook.id.into()];
    let sealed: Vec<u8> = tx.get(sql, &key, |row| row.get(0)).await?;
    assert_eq!(sealed, [1, 0, 255]);
    let found = webhooks::find_sealed_secret(tx, workspace, webhook.id).await?;
    assert_eq!(found, Some(sealed));
    webhooks::rotate_secret(tx, workspace, webhook.id, &[2], found.as_deref(), NOW).await?;
    assert_eq!(webhooks::find_sealed_secret(tx, workspace, webhook.id).await?, Some(vec![2]));
    webhook.version = 2;
    webhooks::update(tx, workspace, &webhook).await?;
    for (within, found) in
        [(None, true), (Some([group]), true), (Some([ContentGroupId::new(1)]), false)]
    {
        let within = within.as_ref().map(<[_; 1]>::as_slice);
        let visible = VisibleWebhooks { within, view: ContentView::Current };
        let shown = webhooks::find(tx, workspace, webhook.id, visible).await?;
        assert_eq!(shown.as_ref() == Some(&webhook), found);
        for (extension, wanted) in
            [(None, true), (Some(None), true), (Some(Some("ours")), true), (Some(Some("x")), false)]
        {
            let query = WebhookListQuery { extension, visible, page: IdPage::default() };
            let listed = webhooks::list(tx, workspace, &query).await?;
            assert_eq!(listed.len(), usize::from(found && wanted));
        }
    }
    webhooks::disable_on_group(tx, workspace, group).await?;
    let disabled = webhooks::find(tx, workspace, webhook.id, VisibleWebhooks::default())
        .await?
        .expect("it is there");
    assert_eq!(disabled.disabled_reason, Some(DisabledReason::GroupDeleted));
    assert_eq!((disabled.enabled, disabled.version), (false, 3));
    webhooks::delete(tx, workspace, webhook.id).await?;
    assert_eq!(webhooks::find(tx, workspace, webhook.id, VisibleWebhooks::default()).await?, None);
    Ok(())
}

/// Calls the functions for tickets of the event stream.
async fn the_tickets(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    token: TokenId,
) -> Result<(), Error> {
    let credential = Credential::Token(token);
    let ticket =
        EventTicket { workspace, credential, origin_hash: None, is_used: false, expires_at: NOW };
    event_tickets::insert(tx, &[1; 32], &ticket).await?;
    event_tickets::record_first_use(tx, &[2; 32], None, LATER).await?;
    assert_eq!(event_tickets::find(tx, &[1; 32]).await?.as_ref(), Some(&ticket));
    event_tickets::record_first_use(tx, &[1; 32], Some(&[3]), LATER).await?;
    event_tickets::record_first_use(tx, &[1; 32], None, NOW).await?;
    let used = EventTicket {
        origin_hash: Some(vec![3]),
        is_used: true,
        expires_at: LATER,
        ..ticket.clone()
    };
    assert_eq!(event_tickets::find(tx, &[1; 32]).await?, Some(used));
    assert_eq!(event_tickets::delete_expired(tx, NOW, 10).await?, 0);
    assert_eq!(event_tickets::delete_expired(tx, LATER, 10).await?, 1);
    event_tickets::insert(tx, &[1; 32], &ticket).await?;
    let preview =
        PreviewToken { workspace, credential, piece: ContentPieceId::new(1), expires_at: LATER };
    preview_tokens::insert(tx, &[4; 32], &preview).await?;
    assert_eq!(preview_tokens::find(tx, &[4; 32]).await?.as_ref(), Some(&preview));
    assert_eq!(preview_tokens::delete_expired(tx, NOW, 10).await?, 0);
    assert_eq!(preview_tokens::delete_expired(tx, LATER, 10).await?, 1);
    assert!(tokens::delete(tx, workspace, token).await?);
    assert_eq!(authentication::find(tx, workspace, credential).await?, None);
    Ok(())
}

async fn idempotency_keys(tx: &WriteTx<'_>, workspace: WorkspaceId) -> Result<(), Error> {
    let token = Credential::Token(TokenId::new(id()));
    let before = Timestamp::from_ms(NOW.ms() - 1);
    assert!(idempotency::claim(tx, workspace, token, "k", &[1; 32], NOW, before).await?);
    idempotency::store_response(tx, workspace, token, "k", "{}").await?;
    assert!(!idempotency::claim(tx, workspace, token, "k", &[2; 32], NOW, before).await?);
    let kept = idempotency::find(tx, workspace, token, "k").await?.expect("it is there");
    assert_eq!((kept.request_hash, kept.answer.as_deref()), (vec![1; 32], Some("{}")));
    assert!(idempotency::claim(tx, workspace, token, "k", &[2; 32], LATER, NOW).await?, "too old");
    assert_eq!(idempotency::delete_expired(tx, NOW, 10).await?, 0);
    assert_eq!(idempotency::delete_expired(tx, LATER, 10).await?, 1);
    Ok(())
}

/// Returns the ids of the workspace's stored mails.
async fn mail_ids(tx: &WriteTx<'_>, workspace: WorkspaceId) -> Result<Vec<MailId>, Error> {
    let sql = "SELECT id FROM mails WHERE workspace_id = ?1 ORDER BY id LIMIT 10";
    tx.query(sql, &[workspace.into()], |row| row.get(0)).await
}
