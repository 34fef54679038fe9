//! `/workspace-memberships`: the members of a workspace and their invites.

use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use galley_api_types::workspace_member::{
    InviteLinkBody, InviteToLink, InviteToResend, MemberChange, MembershipBody, NewInvite,
    WorkspaceMemberBody,
};
use galley_application::operations::invite_links::{self, InviteLink};
use galley_application::operations::members::{self, Invitation};
use galley_application::{CreatedResponse, Rejection};
use galley_domain::permission::{Permission, Resource};
use galley_domain::{WorkspaceId, WorkspaceMemberId};
use galley_storage::members::{Member, Membership};

use crate::extract::actor::{AnyUser, ReadWorkspaceMemberships, WriteWorkspaceMemberships};
use crate::extract::body::JsonBody;
use crate::extract::request;
use crate::routes::prelude::*;
use crate::routes::workspace::sees_billing;

/// List the members of the workspace
///
/// Returns the members and the pending invites, oldest first.
#[utoipa::path(
    get, path = "/workspace-memberships/list-members", operation_id = "listWorkspaceMembers",
    params(IdPageParams), responses((status = 200, body = [WorkspaceMemberBody<'_>])),
)]
pub(crate) async fn list_members(
    actor: Actor<ReadWorkspaceMemberships>,
    list: IdListQuery<WorkspaceMemberId>,
) -> Result<Response, Problem> {
    let mut members = members::list(actor.caller(), list.page()).await?;
    Ok(list.respond(&mut members, |member| member.id, WorkspaceMemberBody::from))
}

/// List the workspaces of the token's user
///
/// Returns the user's memberships, sorted by the identifier of the workspace; `lastId` is such an
/// identifier. Pending invites are left out. The billing fields are null except in the token's own
/// workspace, with the permission `workspace:write`.
#[utoipa::path(
    get, path = "/workspace-memberships/list-workspaces", operation_id = "listWorkspaces",
    params(
        IdPageParams,
        (
            "lastId" = Option<schemas::WorkspaceId>, Query,
            description = "The identifier of a workspace: the list continues after it, even if it \
                           was deleted."
        ),
    ),
    responses((status = 200, body = [MembershipBody<'_>])),
)]
pub(crate) async fn list_workspaces(
    actor: Actor<AnyUser>,
    list: IdListQuery<WorkspaceId>,
) -> Result<Response, Problem> {
    let mut memberships = members::list_workspaces(actor.caller(), list.page()).await?;
    let id = |membership: &Membership| membership.workspace.id;
    Ok(list.respond(&mut memberships, id, |membership| {
        let own = membership.workspace.id == actor.workspace;
        MembershipBody::new(membership, own && sees_billing(&actor))
    }))
}

/// Invite a member
///
/// The mail is stored in the same transaction, and sent as soon as mails can be sent. An expired
/// invite to the same address is replaced.
#[utoipa::path(
    post, path = "/workspace-memberships", operation_id = "inviteWorkspaceMember",
    request_body = NewInvite,
    responses(
        (status = 201, body = WorkspaceMemberBody<'_>),
        (status = 400, description = "unknown_reference"),
        (status = 403, description = "beyond_own_permissions, outside_group_limit"),
        (status = 409, description = "already_member, already_invited"),
        (status = 429, description = "too_many_invites"),
    ),
)]
pub(crate) async fn create(
    State(app): State<App>,
    actor: Actor<WriteWorkspaceMemberships>,
    request: CreateRequest<NewInvite>,
) -> Result<Response, Problem> {
    let (prefer, invite, request) = request.parse(actor.caller()).await?;
    let NewInvite { email, name, role_id: role } = invite;
    let (invitation, per_hour) = (Invitation { email, name, role }, app.limits().invites_per_hour);
    let respond = Respond::new(move |member: &Member| {
        created::created(prefer, member.id, member.version, &WorkspaceMemberBody::from(member))
    });
    let created = members::invite(actor.caller(), invitation, per_hour, request, respond).await?;
    Ok(created::respond(created))
}

/// Create a link for an invite
///
/// Returns a link for the inviter to pass on, beside the mail. It does not prove the address of the
/// person who opens it: it can't be accepted for a user who exists, unless that user is signed in.
/// A new user's sessions reach this workspace only, until the user signs in by mail.
#[utoipa::path(
    post, path = "/workspace-memberships/invite-link", operation_id = "createInviteLink",
    request_body = InviteToLink,
    responses(
        (status = 200, body = InviteLinkBody<'_>),
        (status = 403, description = "beyond_own_permissions, outside_group_limit"),
        (status = 404, description = "not_found"),
        (status = 409, description = "already_member"),
        (status = 429, description = "too_many_invites"),
    ),
)]
pub(crate) async fn create_invite_link(
    State(app): State<App>,
    actor: Actor<WriteWorkspaceMemberships>,
    JsonBody { fields, .. }: JsonBody,
) -> Result<Response, Problem> {
    let (id, InviteToLink {}) = request::parse(actor.caller(), fields).await?;
    let per_hour = app.limits().invites_per_hour;
    let InviteLink { url, expires_at } =
        invite_links::create_link(actor.caller(), id, per_hour).await?;
    let mut response = response::ok(&InviteLinkBody { url: &url, expires_at });
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Send the mail of an invite again
///
/// The new mail is valid for seven days. Earlier mails and links of the invite become void.
#[utoipa::path(
    post, path = "/workspace-memberships/resend-invite", operation_id = "resendInvite",
    request_body = InviteToResend,
    responses(
        (status = 204),
        (status = 403, description = "beyond_own_permissions, outside_group_limit"),
        (status = 409, description = "already_member"),
        (status = 429, description = "too_many_invites"),
    ),
)]
pub(crate) async fn resend_invite(
    State(app): State<App>,
    actor: Actor<WriteWorkspaceMemberships>,
    request: ActionRequest<InviteToResend>,
) -> Result<Response, Problem> {
    let (id, InviteToResend {}, request) = request.parse(actor.caller()).await?;
    let per_hour = app.limits().invites_per_hour;
    let respond = Respond::new(|(): &()| CreatedResponse::completed());
    let resent = invite_links::resend(actor.caller(), id, per_hour, request, respond).await?;
    Ok(created::respond(resent))
}

/// Change a member's role
#[utoipa::path(
    put, path = "/workspace-memberships", operation_id = "updateWorkspaceMember",
    request_body = MemberChange,
    responses(
        (status = 200, body = WorkspaceMemberBody<'_>),
        (status = 400, description = "unknown_reference"),
        (status = 403, description = "beyond_own_permissions, outside_group_limit"),
        (status = 409, description = "last_admin"),
    ),
)]
pub(crate) async fn update(
    actor: Actor<WriteWorkspaceMemberships>,
    request: ChangeRequest<MemberChange>,
) -> Result<Response, Problem> {
    let ParsedChange { prefer, expected, id, change } = request.parse(actor.caller()).await?;
    let member = members::change_role(actor.caller(), id, change.role_id, expected).await?;
    Ok(response::updated(prefer, member.version, &WorkspaceMemberBody::from(&member)))
}

/// Remove a member or an invite
///
/// Requires the permission `workspaceMemberships:write`. Without it, a token can remove its own
/// member if it has all permissions of its role, and no limit to groups or an extension. The
/// member's tokens of this workspace are revoked, and pieces no longer list the member.
#[utoipa::path(
    delete, path = "/workspace-memberships", operation_id = "removeWorkspaceMember",
    params(("id" = schemas::WorkspaceMemberId, Query)),
    responses(
        (status = 403, description = "insufficient_permissions, beyond_own_permissions, outside_group_limit"),
        (status = 409, description = "last_admin"),
    ),
)]
pub(crate) async fn delete(
    actor: Actor<AnyToken>,
    expected: VersionPrecondition,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<WorkspaceMemberId>();
    // Members can remove themselves without the permission that the removal of others needs.
    let leaves = id.is(actor.member) && actor.is_unlimited();
    let needed = Permission::write(Resource::WorkspaceMemberships);
    if !leaves && !actor.permissions.allows(needed) {
        return Err(Rejection::insufficient_permissions(&[needed]).into());
    }
    query.finish()?;
    members::remove(actor.caller(), id.get()?, expected).await?;
    Ok(response::no_content())
}
