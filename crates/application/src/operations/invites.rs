//! Accepting an invite. The code in the mail's link is the only credential.

use galley_api_types::workspace_member::WorkspaceMemberBody;
use galley_domain::access_token::AccessToken;
use galley_domain::audit::{AuditAction, RequestOrigin};
use galley_domain::event::ResourceChange;
use galley_domain::people::{EmailAddress, FullName, Username};
use galley_domain::session::SignInMethod;
use galley_domain::{Actor, Credential, Timestamp, UserId, WorkspaceId, WorkspaceMemberId};
use galley_storage::idempotency::RETENTION_MS;
use galley_storage::invites::{self, Invite};
use galley_storage::members::{self, Member};
use galley_storage::users::{self, User};
use galley_storage::{
    Error as StorageError, Tx, UniqueKey, WriteTx, authentication, roles, tokens as stored_tokens,
    workspaces,
};

use crate::audit::{self, AuditChanges};
use crate::environment::Environment;
use crate::error::Error;
use crate::operations::email_verification;
use crate::operations::invite_revocation::revoke_invites;
use crate::operations::members::{AddressProof, append_member_event, code_hash, create_user};
use crate::operations::profile::map_username_taken;
use crate::operations::sessions::{self, Browser, StartedSession};
use crate::operations::tokens::{self, TokenRequest};
use crate::rejection::{Reason, Rejection};
use crate::scope::Scope;
use crate::service::Service;

/// The state of an invite's code.
#[derive(Debug, Clone)]
pub enum InviteLookup {
    /// The invite can be accepted.
    Open(Box<OpenInvite>),
    /// No invite has this code.
    Unknown,
    /// The invite has expired.
    Expired,
    /// The invite was accepted.
    Used,
    /// The invite was withdrawn or replaced by another one.
    Withdrawn,
}

/// An invite that can be accepted.
#[derive(Debug, Clone)]
pub struct OpenInvite {
    /// The workspace's name.
    pub workspace: String,
    /// The role's name.
    pub role: String,
    /// The inviter's name, if the user still exists.
    pub inviter: Option<String>,
    /// The address that the invite was sent to.
    pub email: String,
    /// The name in the invite.
    pub name: String,
    /// The expiry time.
    pub expires_at: Timestamp,
    /// The user with this address, if there is one.
    pub user: Option<User>,
    /// True if the code was copied, so that it does not prove the address.
    pub is_copied: bool,
}

/// A request to accept an invite.
#[derive(Debug, Clone)]
pub struct AcceptInviteRequest {
    /// The code of the invite.
    pub code: String,
    /// The username for a new user.
    pub username: Username,
    /// The display name for a new user.
    pub full_name: FullName,
    /// The first token of the member. A retry of the same acceptance sends the same token.
    pub token: AccessToken,
    /// The user who is signed in where the invite is accepted.
    pub signed_in: Option<UserId>,
    /// The browser in which the new member is to be signed in.
    pub browser: Option<Browser>,
}

/// The result of an accepted invite.
#[derive(Debug, Clone)]
pub struct AcceptedInvite {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The workspace's name.
    pub workspace_name: String,
    /// The membership.
    pub member: WorkspaceMemberId,
    /// The user.
    pub user: User,
    /// The session that was started, if a browser was given.
    pub session: Option<StartedSession>,
    /// True if an earlier request had accepted the invite.
    pub is_repeated: bool,
}

/// Returns the invite with this code, or why it can't be accepted.
pub async fn find(service: &Service, code: &str) -> Result<InviteLookup, Error> {
    let (now, code) = (service.environment().now(), code.to_owned());
    let read = async move |tx: &Tx<'_>| find_in(tx, now, &code).await;
    service.database().read("invites.find", read).await
}

/// Accepts an invite.
pub async fn accept(
    service: &Service,
    request: AcceptInviteRequest,
    origin: RequestOrigin,
) -> Result<AcceptedInvite, Error> {
    let environment = service.environment().clone();
    let accept = async move |tx: &WriteTx<'_>| accept_in(tx, &environment, &request, &origin).await;
    service.database().write("invites.accept", accept).await
}

/// Returns the result of the request that accepted an invite with this token, for its repetition.
pub async fn find_accepted(
    service: &Service,
    code: &str,
    token: &AccessToken,
) -> Result<Option<AcceptedInvite>, Error> {
    let (now, code, token) = (service.environment().now(), code.to_owned(), token.clone());
    let read = async move |tx: &Tx<'_>| find_accepted_in(tx, now, &code, &token).await;
    service.database().read("invites.accepted_before", read).await
}

/// Returns the state of the invite with this code.
async fn find_in(tx: &Tx<'_>, now: Timestamp, code: &str) -> Result<InviteLookup, Error> {
    let Some(invite) = invites::find(tx, &code_hash(code)).await? else {
        return Ok(InviteLookup::Unknown);
    };
    let member = match check_open(tx, now, &invite).await? {
        Ok(member) => member,
        Err(ended) => return Ok(ended),
    };
    let role = roles::find(tx, invite.workspace, member.role).await?;
    let workspace = workspaces::find(tx, invite.workspace).await?;
    let (Some(role), Some(workspace)) = (role, workspace) else {
        return Ok(InviteLookup::Withdrawn);
    };
    let inviter = match invite.inviter {
        Some(user) => users::find(tx, user).await?,
        None => None,
    };
    Ok(InviteLookup::Open(Box::new(OpenInvite {
        workspace: workspace.name.into(),
        role: role.name.as_str().to_owned(),
        inviter: inviter.map(|user| user.full_name),
        user: users::find_by_email(tx, &address(&member)).await?,
        email: member.invited_email.unwrap_or_default(),
        name: member.invited_name.unwrap_or_default(),
        expires_at: invite.expires_at,
        is_copied: invite.is_copied,
    })))
}

/// Returns the pending member, or the reason why the invite can't be accepted.
async fn check_open(
    tx: &Tx<'_>,
    now: Timestamp,
    invite: &Invite,
) -> Result<Result<Member, InviteLookup>, Error> {
    let member = members::find(tx, invite.workspace, invite.member).await?;
    let is_member = member.as_ref().is_some_and(|member| member.user.is_some());
    Ok(match member {
        Some(_) if invite.ended_at.is_some() && is_member => Err(InviteLookup::Used),
        Some(member) if invite.ended_at.is_none() && !is_member => {
            if invite.expires_at > now {
                Ok(member)
            } else {
                Err(InviteLookup::Expired)
            }
        }
        _ => Err(InviteLookup::Withdrawn),
    })
}

fn address(member: &Member) -> EmailAddress {
    EmailAddress::from_stored(member.invited_email.as_deref().unwrap_or_default())
}

/// Accepts an invite: the member becomes the existing user with the address, or a new one.
async fn accept_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    acceptance: &AcceptInviteRequest,
    origin: &RequestOrigin,
) -> Result<AcceptedInvite, Error> {
    let now = environment.now();
    let hash = code_hash(&acceptance.code);
    let unknown = || Error::from(Rejection::new(Reason::NotFound, "no invite has this code"));
    let workspace = invites::find(tx, &hash).await?.ok_or_else(unknown)?.workspace;
    workspaces::lock(tx, workspace).await?;
    // Reads again, as the workspace is locked now.
    let invite = invites::find(tx, &hash).await?.ok_or_else(unknown)?;
    let member = match check_open(tx, now, &invite).await? {
        Ok(member) => member,
        Err(ended) => {
            let accepted = find_accepted_in(tx, now, &acceptance.code, &acceptance.token).await?;
            return accepted.ok_or_else(|| ended.rejection());
        }
    };
    let name = workspaces::find(tx, workspace).await?.ok_or_else(unknown)?.name;
    let email = address(&member);
    let existing = users::find_by_email(tx, &email).await?;
    if let Some(user) = &existing
        && members::find_by_user(tx, workspace, user.id).await?.is_some()
    {
        let detail = "you are a member of this workspace already";
        return Err(Rejection::new(Reason::AlreadyMember, detail).into());
    }
    if invite.is_copied && !may_grant(tx, &invite, &member).await? {
        return Err(InviteLookup::Withdrawn.rejection());
    }
    let is_signed_in = existing.as_ref().map(|user| user.id) == acceptance.signed_in;
    let is_new = existing.is_none();
    let user = match existing {
        Some(user) if invite.is_copied && !(is_signed_in && user.has_verified_email()) => {
            let detail = "the address belongs to a user: sign in by mail first";
            return Err(Rejection::new(Reason::SignInRequired, detail).into());
        }
        Some(user) => email_verification::record(tx, environment, user, Some(origin)).await?,
        None => create_invited_user(tx, environment, acceptance, &email, invite.is_copied).await?,
    };
    let version = member.version + 1;
    members::join(tx, workspace, member.id, user.id, version).await?;
    revoke_invites(tx, workspace, member.id, now).await?;
    let request = TokenRequest::unlimited(acceptance.token.clone(), user.id, "from the invite");
    let system = Scope { request: Some(origin.clone()), ..Scope::whole(workspace) };
    let token = tokens::create(tx, environment, &system, &request).await?;
    let member = Member { user: Some(user.clone()), version, ..member };
    let author = Actor::Token { token: token.id, member: member.id };
    let (scope, action) = (Scope { author, ..system }, AuditAction::WorkspaceMembershipCreate);
    let changes = AuditChanges::created(WorkspaceMemberBody::from(&member));
    audit::record(tx, environment, &scope, action, member.id, changes);
    append_member_event(tx, environment, workspace, ResourceChange::MemberAdded, &member).await?;
    let session = match &acceptance.browser {
        None => None,
        Some(browser) => {
            let method =
                if invite.is_copied { SignInMethod::InviteLink } else { SignInMethod::Invite };
            // The code of an invite is no sign-in to the other workspaces of its user.
            let is_proven = user.has_verified_email() && (is_new || is_signed_in);
            let only = (!is_proven).then_some(workspace);
            Some(sessions::start(tx, environment, &user, method, only, browser).await?)
        }
    };
    Ok(AcceptedInvite {
        workspace,
        workspace_name: name.into(),
        member: member.id,
        user,
        session,
        is_repeated: false,
    })
}

/// Creates the user who accepts an invite to an address without a user.
async fn create_invited_user(
    tx: &WriteTx<'_>,
    environment: &Environment,
    acceptance: &AcceptInviteRequest,
    email: &EmailAddress,
    is_copied: bool,
) -> Result<User, Error> {
    if users::has_username(tx, &acceptance.username).await? {
        return Err(map_username_taken(StorageError::Taken(UniqueKey::Username)));
    }
    let username = acceptance.username.clone();
    let proof = if is_copied { AddressProof::Missing } else { AddressProof::Given };
    create_user(tx, environment, email, username, &acceptance.full_name, proof).await
}

/// Returns true if the inviter may still grant the role of the member, which may have got further
/// permissions since the link was copied.
async fn may_grant(tx: &WriteTx<'_>, invite: &Invite, member: &Member) -> Result<bool, Error> {
    let Some(inviter) = invite.inviter else { return Ok(false) };
    let Some(inviter) = members::find_by_user(tx, invite.workspace, inviter).await? else {
        return Ok(false);
    };
    let own = roles::find(tx, invite.workspace, inviter.role).await?;
    let granted = roles::find(tx, invite.workspace, member.role).await?;
    Ok(own.zip(granted).is_some_and(|(own, granted)| {
        own.includes(&granted) && (own.is_admin() || !granted.is_admin())
    }))
}

/// Returns the result of an invite that this token accepted within the retention of idempotency
/// keys. A client that lost the response gets it again.
async fn find_accepted_in(
    tx: &Tx<'_>,
    now: Timestamp,
    code: &str,
    token: &AccessToken,
) -> Result<Option<AcceptedInvite>, Error> {
    let Some(invite) = invites::find(tx, &code_hash(code)).await? else { return Ok(None) };
    let workspace = invite.workspace;
    let Some(accepted_token) = authentication::find_by_token_hash(tx, &token.hash()).await? else {
        return Ok(None);
    };
    if (accepted_token.workspace, accepted_token.member) != (workspace, invite.member) {
        return Ok(None);
    }
    let Credential::Token(accepted_token_id) = accepted_token.credential else { return Ok(None) };
    let stored_token = stored_tokens::find(tx, workspace, accepted_token_id).await?;
    let since = Timestamp::from_ms(now.ms() - RETENTION_MS);
    let name = workspaces::find(tx, workspace).await?.map(|workspace| workspace.name);
    let user = users::find(tx, accepted_token.user).await?;
    Ok(match (stored_token, name, user) {
        (Some(kept), Some(name), Some(user)) if kept.created_at > since => Some(AcceptedInvite {
            workspace,
            workspace_name: name.into(),
            member: accepted_token.member,
            user,
            session: None,
            is_repeated: true,
        }),
        _ => None,
    })
}

impl InviteLookup {
    /// Returns the rejection for a code that can't be accepted.
    fn rejection(&self) -> Error {
        let detail = match self {
            Self::Open(_) | Self::Unknown => return Error::not_found(),
            Self::Expired => "the invite has expired: request a new one from the inviter",
            Self::Used => "the invite was accepted before",
            Self::Withdrawn => "the invite was withdrawn or replaced by a newer one",
        };
        Rejection::new(Reason::InviteEnded, detail).into()
    }
}
