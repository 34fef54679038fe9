//! Members, users and memberships in JSON.

use galley_domain::workspace::Workspace;
use galley_domain::{RoleId, Timestamp, UserId, WorkspaceId, WorkspaceMemberId};
use galley_storage::members::{Member, Membership};
use galley_storage::users::User;
use serde::Serialize;

/// A member of the workspace, or somebody invited.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkspaceMemberBody<'a> {
    id: WorkspaceMemberId,
    user_id: Option<UserId>,
    role_id: RoleId,
    email: &'a str,
    name: &'a str,
    pending_invite: bool,
    profile: Option<LimitedProfileBody<'a>>,
}

/// What others see of a user.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LimitedProfileBody<'a> {
    full_name: &'a str,
    username: &'a str,
    avatar: Option<&'a str>,
}

impl<'a> From<&'a Member> for WorkspaceMemberBody<'a> {
    fn from(member: &'a Member) -> Self {
        let user = member.user.as_ref();
        let email = member.invited_email.as_deref();
        let name = member.invited_name.as_deref();
        Self {
            id: member.id,
            user_id: user.map(|user| user.id),
            role_id: member.role,
            email: email.or(user.map(|user| &*user.email)).unwrap_or_default(),
            name: name.or(user.map(|user| &*user.full_name)).unwrap_or_default(),
            pending_invite: user.is_none(),
            profile: user.map(|user| LimitedProfileBody {
                full_name: &user.full_name,
                username: &user.username,
                avatar: user.avatar.as_deref(),
            }),
        }
    }
}

/// The token's own user.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProfileBody<'a> {
    id: UserId,
    email: &'a str,
    full_name: &'a str,
    username: &'a str,
    avatar: Option<&'a str>,
}

impl<'a> From<&'a User> for ProfileBody<'a> {
    fn from(user: &'a User) -> Self {
        Self {
            id: user.id,
            email: &user.email,
            full_name: &user.full_name,
            username: &user.username,
            avatar: user.avatar.as_deref(),
        }
    }
}

/// A workspace. Its billing is shown to those who may change it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkspaceBody<'a> {
    id: WorkspaceId,
    name: &'a str,
    description: Option<&'a str>,
    logo: Option<&'a str>,
    customer_id: Option<&'a str>,
    subscription_status: Option<&'a str>,
    subscription_plan: Option<&'a str>,
    subscription_data: Option<&'a str>,
    subscription_expires_at: Option<Timestamp>,
}

impl<'a> WorkspaceBody<'a> {
    /// The workspace as somebody sees it who may, or may not, see its billing.
    pub(crate) fn new(workspace: &'a Workspace, with_billing: bool) -> Self {
        let billing = with_billing.then_some(&workspace.billing);
        Self {
            id: workspace.id,
            name: workspace.name.as_str(),
            description: workspace.description.as_ref().map(|text| text.as_str()),
            logo: workspace.logo.as_ref().map(|text| text.as_str()),
            customer_id: billing.and_then(|billing| billing.customer_id.as_deref()),
            subscription_status: billing.and_then(|billing| billing.subscription_status.as_deref()),
            subscription_plan: billing.and_then(|billing| billing.subscription_plan.as_deref()),
            subscription_data: billing.and_then(|billing| billing.subscription_data.as_deref()),
            subscription_expires_at: billing.and_then(|billing| billing.subscription_expires_at),
        }
    }
}

/// A user's membership in a workspace.
#[derive(Debug, Serialize)]
pub(crate) struct MembershipBody<'a> {
    id: WorkspaceMemberId,
    workspace: WorkspaceBody<'a>,
    role: RoleReferenceBody<'a>,
}

/// A role by its name.
#[derive(Debug, Serialize)]
struct RoleReferenceBody<'a> {
    id: RoleId,
    name: &'a str,
}

impl<'a> MembershipBody<'a> {
    /// The membership; `with_billing` as for [`WorkspaceBody::new`].
    pub(crate) fn new(membership: &'a Membership, with_billing: bool) -> Self {
        Self {
            id: membership.id,
            workspace: WorkspaceBody::new(&membership.workspace, with_billing),
            role: RoleReferenceBody { id: membership.role.id, name: membership.role.name.as_str() },
        }
    }
}
