//! Invitation, role change and removal of members.

use std::fmt;

use galley_api_types::workspace_member::WorkspaceMemberBody;
use galley_domain::audit::AuditAction;
use galley_domain::event::ResourceChange;
use galley_domain::people::{EmailAddress, FullName, Username};
use galley_domain::permission::Resource;
use galley_domain::role::Role;
use galley_domain::{
    MailId, Permission, RoleId, Timestamp, UserId, WorkspaceId, WorkspaceMemberId,
};
use galley_storage::authentication::Authentication;
use galley_storage::invites::{self, Invite};
use galley_storage::mails::{self, QueuedMail};
use galley_storage::members::{self, Member, Membership};
use galley_storage::users::{self, User};
use galley_storage::{
    Error as StorageError, IdPage, Tx, UniqueKey, WriteTx, content_piece_references, event_append,
    roles, sessions, tokens, workspaces,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::audit::{self, AuditChanges};
use crate::caller::Caller;
use crate::environment::Environment;
use crate::error::Error;
use crate::idempotency::{self, CreatedResponse, IdempotentRequest, Respond};
use crate::operations::authority::Authority;
use crate::operations::content_pieces::unknown_field;
use crate::operations::email_verification;
use crate::operations::event;
use crate::operations::invite_revocation::{
    INVITE_VALIDITY_MS, revoke_invites, revoke_invites_of_inviter,
};
use crate::precondition::VersionPrecondition;
use crate::rejection::{Reason, Rejection};
use crate::scope::Scope;
use crate::secrets::SecretKey;

/// The permission that every operation here requires, except leaving the workspace.
const REQUIRED_PERMISSION: Permission = Permission::write(Resource::WorkspaceMemberships);

const HOUR_MS: i64 = 60 * 60 * 1_000;

/// An invitation to send.
#[derive(Debug, Clone)]
pub struct Invitation {
    /// The address that the invite is sent to.
    pub email: EmailAddress,
    /// The name that is shown until the user has one.
    pub name: FullName,
    /// The role.
    pub role: RoleId,
}

/// The mail of an invite, as stored until it is sent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InviteMail {
    /// The code in the mail's link.
    pub code: String,
    /// The invited person's name.
    pub name: String,
    /// The inviter's name.
    pub inviter: String,
    /// The workspace's name.
    pub workspace: String,
    /// The role's name.
    pub role: String,
    /// The expiry time of the code.
    pub expires_at_ms: i64,
}

/// Hides the code.
impl fmt::Debug for InviteMail {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, role, workspace, .. } = self;
        out.debug_struct("InviteMail")
            .field("name", name)
            .field("role", role)
            .field("workspace", workspace)
            .finish_non_exhaustive()
    }
}

/// The proof of a new user's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressProof {
    /// The operator vouches for the address, or mail to it has arrived.
    Given,
    /// The user has only shown a copied link.
    Missing,
}

/// The kind of an invite's mail.
pub const INVITE_MAIL: &str = "invite";

/// Returns the hash by which an invite's code is stored.
pub fn code_hash(code: &str) -> [u8; 32] {
    Sha256::digest(code.as_bytes()).into()
}

/// Returns the associated data for the encryption of a mail's text.
pub fn mail_aad(mail: MailId) -> String {
    format!("mails {mail}")
}

/// Lists the members of the workspace.
pub async fn list(caller: &Caller, page: IdPage) -> Result<Vec<Member>, Error> {
    let workspace = caller.workspace();
    let read = async move |tx: &Tx<'_>| Ok(members::list(tx, workspace, &page).await?);
    caller.read("members.list", read).await
}

/// Lists the workspaces of the token's user.
pub async fn list_workspaces(caller: &Caller, page: IdPage) -> Result<Vec<Membership>, Error> {
    let own = caller.clone();
    let read = async move |tx: &Tx<'_>| {
        let token = own.token();
        let mut found = members::of_user(tx, token.user, &page).await?;
        found.retain(|one| !token.is_of_one_workspace || one.workspace.id == token.workspace);
        Ok(found)
    };
    caller.read("members.of_user", read).await
}

/// Invites a person to the workspace, within the limit of invites per hour.
pub async fn invite(
    caller: &Caller,
    invitation: Invitation,
    invites_per_hour: u32,
    request: IdempotentRequest,
    respond: Respond<Member>,
) -> Result<CreatedResponse, Error> {
    let own = caller.clone();
    let create =
        async move |tx: &WriteTx<'_>| invite_in(tx, &own, invites_per_hour, &invitation).await;
    idempotency::create(caller, "members.invite", request, None, create, respond).await
}

/// Changes the role of a member.
pub async fn change_role(
    caller: &Caller,
    id: WorkspaceMemberId,
    role: RoleId,
    expected: VersionPrecondition,
) -> Result<Member, Error> {
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| change_role_in(tx, &own, id, role, &expected).await;
    caller.write("members.change_role", write).await
}

/// Removes a member from the workspace.
pub async fn remove(
    caller: &Caller,
    id: WorkspaceMemberId,
    expected: VersionPrecondition,
) -> Result<(), Error> {
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| remove_in(tx, &own, id, &expected).await;
    caller.write("members.remove", write).await
}

/// Invites a person. The mail is committed with the invite.
async fn invite_in(
    tx: &WriteTx<'_>,
    caller: &Caller,
    invites_per_hour: u32,
    invitation: &Invitation,
) -> Result<Member, Error> {
    let (environment, actor) = (caller.environment(), caller.token());
    let key = caller.service().key();
    let workspace = actor.workspace;
    let authority = Authority::with_permission(tx, environment, actor, REQUIRED_PERMISSION).await?;
    authority.require_all_content()?;
    let role = find_role(tx, workspace, invitation.role).await?;
    authority.require_role(&role)?;
    authority.require_no_expiry()?;
    // Accepting the invite creates a token without an extension.
    authority.require_extension(None)?;
    let now = environment.now();
    check_rate(tx, workspace, now, invites_per_hour).await?;
    let pending = members::find_pending(tx, workspace, &invitation.email).await?;
    check_not_member(tx, workspace, &invitation.email).await?;
    let mut member = Member {
        id: WorkspaceMemberId::new(environment.new_id()),
        user: None,
        role: role.id,
        invited_email: Some(invitation.email.as_str().to_owned()),
        invited_name: Some(invitation.name.as_str().to_owned()),
        version: 1,
    };
    match pending {
        Some(pending) if invites::has_valid_code(tx, workspace, pending.id, now).await? => {
            let detail = "this address is invited already: remove the invite first to send another";
            return Err(Rejection::new(Reason::AlreadyInvited, detail).into());
        }
        // The old invite was not accepted. Its member is reused, so that pieces keep listing it.
        Some(expired) => {
            authority.require_role(&find_role(tx, workspace, expired.role).await?)?;
            revoke_invites(tx, workspace, expired.id, now).await?;
            member.id = expired.id;
            member.version = expired.version + 1;
            members::update(tx, workspace, &member).await?;
        }
        None => members::insert(tx, workspace, &member, now).await?,
    }
    insert_invite_and_mail(tx, environment, key, actor, invitation, &member, &role).await?;
    let changes = AuditChanges::created(WorkspaceMemberBody::from(&member));
    caller.record(tx, AuditAction::WorkspaceMembershipInvite, member.id, changes);
    append_member_event(tx, environment, workspace, ResourceChange::MemberInvited, &member).await?;
    Ok(member)
}

/// Stores an invite's code and its mail.
pub(super) async fn insert_invite_and_mail(
    tx: &WriteTx<'_>,
    environment: &Environment,
    key: &SecretKey,
    actor: &Authentication,
    invitation: &Invitation,
    member: &Member,
    role: &Role,
) -> Result<(), Error> {
    let (now, workspace) = (environment.now(), actor.workspace);
    let expires_at = Timestamp::from_ms(now.ms() + INVITE_VALIDITY_MS);
    let code = environment.new_code();
    let hash = code_hash(&code);
    let invite = Invite {
        workspace,
        member: member.id,
        inviter: Some(actor.user),
        expires_at,
        ended_at: None,
        is_copied: false,
    };
    invites::insert(tx, &hash, &invite, now).await?;
    let inviter = users::find(tx, actor.user).await?.ok_or_else(Error::not_found)?;
    let name = workspaces::find(tx, workspace).await?.ok_or_else(Error::not_found)?.name;
    let values = InviteMail {
        code,
        name: invitation.name.as_str().to_owned(),
        inviter: inviter.full_name,
        workspace: name.into(),
        role: role.name.as_str().to_owned(),
        expires_at_ms: expires_at.ms(),
    };
    let id = MailId::new(environment.new_id());
    let text = serde_json::to_vec(&values).expect("texts are JSON");
    let mail = QueuedMail {
        id,
        kind: INVITE_MAIL.to_owned(),
        member: Some(member.id),
        recipient: invitation.email.as_str().to_owned(),
        sealed: key.encrypt(&mail_aad(id), &text),
    };
    mails::insert(tx, workspace, &mail, now).await?;
    Ok(())
}

/// Enforces the limit on invites that a workspace sends in an hour.
pub(super) async fn check_rate(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    now: Timestamp,
    per_hour: u32,
) -> Result<(), Error> {
    if per_hour == 0 {
        return Ok(());
    }
    let since = Timestamp::from_ms(now.ms() - HOUR_MS);
    let nth = invites::nth_latest(tx, workspace, since, i64::from(per_hour)).await?;
    let Some(made) = nth else { return Ok(()) };
    let seconds = (made.ms() - since.ms()).div_euclid(1_000) + 1;
    let detail = format!("a workspace may send {per_hour} invites per hour");
    Err(Rejection::new(Reason::TooManyInvites, detail).retry_after(seconds).into())
}

async fn check_not_member(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    email: &EmailAddress,
) -> Result<(), Error> {
    let Some(user) = users::find_by_email(tx, email).await? else { return Ok(()) };
    if members::find_by_user(tx, workspace, user.id).await?.is_none() {
        return Ok(());
    }
    Err(Rejection::new(Reason::AlreadyMember, "a member already has this address").into())
}

/// Changes the role of a member or of a pending invite.
async fn change_role_in(
    tx: &WriteTx<'_>,
    caller: &Caller,
    id: WorkspaceMemberId,
    role: RoleId,
    expected: &VersionPrecondition,
) -> Result<Member, Error> {
    let (environment, actor) = (caller.environment(), caller.token());
    let workspace = actor.workspace;
    let authority = Authority::with_permission(tx, environment, actor, REQUIRED_PERMISSION).await?;
    authority.require_all_content()?;
    let before = members::find(tx, workspace, id).await?.ok_or_else(Error::not_found)?;
    expected.check_version(before.version)?;
    let new = find_role(tx, workspace, role).await?;
    if new.id == before.role {
        return Ok(before);
    }
    let old = find_role(tx, workspace, before.role).await?;
    authority.require_role(&old)?;
    authority.require_role(&new)?;
    if !old.includes(&new) {
        authority.require_no_expiry()?;
    }
    check_admin_left(tx, workspace, &before, &old).await?;
    let member = Member { role: new.id, version: before.version + 1, ..before.clone() };
    members::update(tx, workspace, &member).await?;
    let [old_body, new_body] = [&before, &member].map(WorkspaceMemberBody::from);
    let changes = AuditChanges::updated(old_body, new_body);
    caller.record(tx, AuditAction::WorkspaceMembershipUpdate, id, changes);
    if let Some(user) = member.user.as_ref().filter(|_| !new.includes(&old)) {
        revoke_invites_of_inviter(tx, workspace, user.id, environment.now()).await?;
    }
    Ok(member)
}

/// Removes a member, or voids an invite. Every member may remove itself.
async fn remove_in(
    tx: &WriteTx<'_>,
    caller: &Caller,
    id: WorkspaceMemberId,
    expected: &VersionPrecondition,
) -> Result<(), Error> {
    let (environment, actor) = (caller.environment(), caller.token());
    let workspace = actor.workspace;
    let authority = Authority::look_up(tx, environment, actor).await?;
    let is_leaving = id == actor.member && authority.token().is_unlimited();
    if !is_leaving {
        authority.require(REQUIRED_PERMISSION)?;
        authority.require_all_content()?;
    }
    let member = members::find(tx, workspace, id).await?.ok_or_else(Error::not_found)?;
    expected.check_version(member.version)?;
    let role = find_role(tx, workspace, member.role).await?;
    if !is_leaving {
        authority.require_role(&role)?;
    }
    check_admin_left(tx, workspace, &member, &role).await?;
    if let Some(user) = &member.user {
        tokens::delete_of_user(tx, workspace, user.id).await?;
        sessions::delete_of_member(tx, workspace, user.id).await?;
        revoke_invites_of_inviter(tx, workspace, user.id, environment.now()).await?;
    }
    revoke_invites(tx, workspace, id, environment.now()).await?;
    content_piece_references::remove_member(tx, workspace, id).await?;
    members::delete(tx, workspace, id).await?;
    let changes = AuditChanges::deleted(WorkspaceMemberBody::from(&member));
    caller.record(tx, AuditAction::WorkspaceMembershipDelete, id, changes);
    append_member_event(tx, environment, workspace, ResourceChange::MemberRemoved, &member).await
}

/// Adds a member without an invite, on behalf of the operator.
pub async fn add_without_invite(
    tx: &WriteTx<'_>,
    environment: &Environment,
    workspace: WorkspaceId,
    invitation: &Invitation,
) -> Result<Member, Error> {
    workspaces::lock(tx, workspace).await?;
    let role = find_role(tx, workspace, invitation.role).await?;
    check_not_member(tx, workspace, &invitation.email).await?;
    let now = environment.now();
    let user = find_or_create_user(tx, environment, &invitation.email, &invitation.name).await?;
    if let Some(pending) = members::find_pending(tx, workspace, &invitation.email).await? {
        revoke_invites(tx, workspace, pending.id, now).await?;
        content_piece_references::remove_member(tx, workspace, pending.id).await?;
        members::delete(tx, workspace, pending.id).await?;
        append_member_event(tx, environment, workspace, ResourceChange::MemberRemoved, &pending)
            .await?;
    }
    let member = Member {
        id: WorkspaceMemberId::new(environment.new_id()),
        user: Some(user),
        role: role.id,
        invited_email: None,
        invited_name: None,
        version: 1,
    };
    members::insert(tx, workspace, &member, now).await?;
    let (scope, action) = (Scope::whole(workspace), AuditAction::WorkspaceMembershipCreate);
    let changes = AuditChanges::created(WorkspaceMemberBody::from(&member));
    audit::record(tx, environment, &scope, action, member.id, changes);
    append_member_event(tx, environment, workspace, ResourceChange::MemberAdded, &member).await?;
    Ok(member)
}

/// Returns the user with this address, or creates one with a free username.
pub async fn find_or_create_user(
    tx: &WriteTx<'_>,
    environment: &Environment,
    email: &EmailAddress,
    full_name: &FullName,
) -> Result<User, Error> {
    if let Some(user) = users::find_by_email(tx, email).await? {
        // The operator vouches for the address.
        return email_verification::record(tx, environment, user, None).await;
    }
    let mut username = Username::from_email(email, 1);
    for number in 2.. {
        if !users::has_username(tx, &username).await? {
            break;
        }
        username = Username::from_email(email, number);
    }
    create_user(tx, environment, email, username, full_name, AddressProof::Given).await
}

/// Creates a user, after the caller has checked that its address and username are free.
pub async fn create_user(
    tx: &WriteTx<'_>,
    environment: &Environment,
    email: &EmailAddress,
    username: Username,
    full_name: &FullName,
    proof: AddressProof,
) -> Result<User, Error> {
    let user = User {
        id: UserId::new(environment.new_id()),
        email: email.as_str().to_owned(),
        username: username.into(),
        full_name: full_name.as_str().to_owned(),
        avatar: None,
        version: 1,
        email_verified_at: (proof == AddressProof::Given).then(|| environment.now()),
    };
    let inserted = users::insert(tx, &user, environment.now()).await;
    inserted.map_err(|error| match error {
        // A concurrent transaction created such a user: retry.
        StorageError::Taken(UniqueKey::UserEmail | UniqueKey::Username) => StorageError::Conflict,
        other => other,
    })?;
    Ok(user)
}

pub(super) async fn find_role(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: RoleId,
) -> Result<Role, Error> {
    let missing = || Rejection::of_issues(vec![unknown_field("roleId", "role")]).into();
    roles::find(tx, workspace, id).await?.ok_or_else(missing)
}

/// Rejects the removal or demotion of the last Admin.
async fn check_admin_left(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    member: &Member,
    role: &Role,
) -> Result<(), Error> {
    let counts = role.is_admin() && member.user.is_some();
    if !counts || members::has_other_admin(tx, workspace, member.id).await? {
        return Ok(());
    }
    let detail = "this is the workspace's last Admin: make another member an Admin first";
    Err(Rejection::new(Reason::LastAdmin, detail).into())
}

pub(crate) async fn append_member_event(
    tx: &WriteTx<'_>,
    environment: &Environment,
    workspace: WorkspaceId,
    occurrence: ResourceChange,
    member: &Member,
) -> Result<(), Error> {
    let body = WorkspaceMemberBody::from(member);
    let data = serde_json::to_string(&body).expect("resources are JSON");
    let event = event(environment, occurrence, data, None);
    event_append::append(tx, workspace, [event], environment.now()).await?;
    Ok(())
}
