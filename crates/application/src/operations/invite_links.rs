//! Further codes of a pending invite: a new mail, and a link that the inviter passes on.

use galley_domain::audit::AuditAction;
use galley_domain::people::{EmailAddress, FullName};
use galley_domain::permission::Resource;
use galley_domain::role::Role;
use galley_domain::{Permission, Timestamp, WorkspaceMemberId};
use galley_storage::WriteTx;
use galley_storage::invites::{self, Invite};
use galley_storage::members::{self, Member};

use crate::audit::AuditChanges;
use crate::caller::Caller;
use crate::error::Error;
use crate::idempotency::{self, CreatedResponse, IdempotentRequest, Respond};
use crate::operations::authority::Authority;
use crate::operations::invite_revocation::{INVITE_VALIDITY_MS, revoke_invites};
use crate::operations::members::{
    Invitation, check_rate, code_hash, find_role, insert_invite_and_mail,
};
use crate::rejection::{Reason, Rejection};

/// The permission that the operations here require.
const REQUIRED_PERMISSION: Permission = Permission::write(Resource::WorkspaceMemberships);

/// A link that the inviter passes on.
#[derive(Debug, Clone)]
pub struct InviteLink {
    /// The address of the page.
    pub url: String,
    /// The time at which it expires.
    pub expires_at: Timestamp,
}

/// Creates a link with a code of its own. The mailed code stays valid.
pub async fn create_link(
    caller: &Caller,
    id: WorkspaceMemberId,
    invites_per_hour: u32,
) -> Result<InviteLink, Error> {
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| {
        let (environment, actor) = (own.environment(), own.token());
        find_pending(tx, &own, id, invites_per_hour).await?;
        let now = environment.now();
        let code = environment.new_code();
        let invite = Invite {
            workspace: actor.workspace,
            member: id,
            inviter: Some(actor.user),
            expires_at: Timestamp::from_ms(now.ms() + INVITE_VALIDITY_MS),
            ended_at: None,
            is_copied: true,
        };
        invites::insert(tx, &code_hash(&code), &invite, now).await?;
        let action = AuditAction::WorkspaceMembershipInviteLink;
        own.record(tx, action, id, AuditChanges::default());
        let base = own.service().settings().public_url.trim_end_matches('/');
        Ok(InviteLink { url: format!("{base}/invite?code={code}"), expires_at: invite.expires_at })
    };
    caller.write("members.create_invite_link", write).await
}

/// Sends another mail. Earlier codes become void.
pub async fn resend(
    caller: &Caller,
    id: WorkspaceMemberId,
    invites_per_hour: u32,
    request: IdempotentRequest,
    respond: Respond<()>,
) -> Result<CreatedResponse, Error> {
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| {
        let (environment, actor) = (own.environment(), own.token());
        let (member, role) = find_pending(tx, &own, id, invites_per_hour).await?;
        revoke_invites(tx, actor.workspace, id, environment.now()).await?;
        let invitation = Invitation {
            email: EmailAddress::from_stored(member.invited_email.clone().unwrap_or_default()),
            name: FullName::from_stored(member.invited_name.clone().unwrap_or_default()),
            role: role.id,
        };
        let key = own.service().key();
        insert_invite_and_mail(tx, environment, key, actor, &invitation, &member, &role).await?;
        let action = AuditAction::WorkspaceMembershipResendInvite;
        own.record(tx, action, id, AuditChanges::default());
        Ok(())
    };
    idempotency::create(caller, "members.resend_invite", request, None, write, respond).await
}

/// Returns a pending member whom the caller may invite, and the role.
async fn find_pending(
    tx: &WriteTx<'_>,
    caller: &Caller,
    id: WorkspaceMemberId,
    invites_per_hour: u32,
) -> Result<(Member, Role), Error> {
    let (environment, actor) = (caller.environment(), caller.token());
    let workspace = actor.workspace;
    let authority = Authority::with_permission(tx, environment, actor, REQUIRED_PERMISSION).await?;
    authority.require_all_content()?;
    let member = members::find(tx, workspace, id).await?.ok_or_else(Error::not_found)?;
    if member.user.is_some() {
        let detail = "the member has accepted the invite";
        return Err(Rejection::new(Reason::AlreadyMember, detail).into());
    }
    let role = find_role(tx, workspace, member.role).await?;
    authority.require_role(&role)?;
    authority.require_no_expiry()?;
    authority.require_extension(None)?;
    check_rate(tx, workspace, environment.now(), invites_per_hour).await?;
    Ok((member, role))
}
