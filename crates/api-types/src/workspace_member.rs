//! The JSON representations of members, users and memberships.

use galley_domain::language::LanguageTag;
use galley_domain::people::{EmailAddress, FullName, Username};
use galley_domain::text::{ShortText, WebReference};
use galley_domain::workspace::{Workspace, WorkspaceName};
use galley_domain::{RoleId, Timestamp, UserId, WorkspaceId, WorkspaceMemberId};
use galley_storage::members::{Member, Membership};
use galley_storage::users::User;
use serde::Serialize;
use utoipa::ToSchema;

use crate::request::body;
use crate::role::permissions;
use crate::schemas;

/// A member of the workspace, or a pending invite.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WorkspaceMember)]
pub struct WorkspaceMemberBody<'a> {
    #[schema(value_type = schemas::WorkspaceMemberId)]
    id: WorkspaceMemberId,
    /// Null while the invite is pending.
    #[schema(value_type = Option<schemas::UserId>)]
    user_id: Option<UserId>,
    #[schema(value_type = schemas::RoleId)]
    role_id: RoleId,
    /// The address that the invite was sent to. For a member without an invite, the user's address.
    #[schema(example = "ann@example.org")]
    email: &'a str,
    /// The name in the invite. For a member without an invite, the user's name.
    #[schema(example = "Ann Example")]
    name: &'a str,
    #[schema(example = false)]
    pending_invite: bool,
    /// Null while the invite is pending.
    profile: Option<LimitedProfileBody<'a>>,
}

/// The part of a user's profile that other members see.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WorkspaceMemberProfile)]
struct LimitedProfileBody<'a> {
    #[schema(example = "Ann Example")]
    full_name: &'a str,
    #[schema(example = "ann")]
    username: &'a str,
    /// The address of the picture.
    #[schema(example = "https://example.org/ann.png")]
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

/// The profile of the token's user.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Profile)]
pub struct ProfileBody<'a> {
    #[schema(value_type = schemas::UserId)]
    id: UserId,
    #[schema(example = "ann@example.org")]
    email: &'a str,
    #[schema(example = "Ann Example")]
    full_name: &'a str,
    #[schema(example = "ann")]
    username: &'a str,
    /// The address of the picture.
    #[schema(example = "https://example.org/ann.png")]
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

/// A workspace. The billing fields are null without the permission `workspace:write`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Workspace)]
pub struct WorkspaceBody<'a> {
    #[schema(value_type = schemas::WorkspaceId)]
    id: WorkspaceId,
    #[schema(example = "The Harbour Times")]
    name: &'a str,
    #[schema(example = "News from the harbour.")]
    description: Option<&'a str>,
    /// The address of the logo.
    #[schema(example = "https://example.org/logo.png")]
    logo: Option<&'a str>,
    /// The language of pieces without a variant.
    #[schema(example = "en")]
    language: Option<&'a str>,
    /// The payment provider's identifier of the customer.
    #[schema(example = "cus_42")]
    customer_id: Option<&'a str>,
    #[schema(example = "active")]
    subscription_status: Option<&'a str>,
    #[schema(example = "team")]
    subscription_plan: Option<&'a str>,
    /// The payment provider's data, as a JSON string.
    #[schema(example = "{}")]
    subscription_data: Option<&'a str>,
    /// The end of the billing cycle.
    #[schema(value_type = Option<schemas::Time>)]
    subscription_expires_at: Option<Timestamp>,
}

impl<'a> WorkspaceBody<'a> {
    /// Creates the representation of a workspace, with or without its billing.
    pub fn new(workspace: &'a Workspace, with_billing: bool) -> Self {
        let billing = with_billing.then_some(&workspace.billing);
        Self {
            id: workspace.id,
            name: workspace.name.as_str(),
            description: workspace.description.as_ref().map(galley_domain::text::ShortText::as_str),
            logo: workspace.logo.as_ref().map(galley_domain::text::WebReference::as_str),
            language: workspace.language.as_ref().map(LanguageTag::as_str),
            customer_id: billing.and_then(|billing| billing.customer_id.as_deref()),
            subscription_status: billing.and_then(|billing| billing.subscription_status.as_deref()),
            subscription_plan: billing.and_then(|billing| billing.subscription_plan.as_deref()),
            subscription_data: billing.and_then(|billing| billing.subscription_data.as_deref()),
            subscription_expires_at: billing.and_then(|billing| billing.subscription_expires_at),
        }
    }
}

/// A user's membership in a workspace.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Membership)]
pub struct MembershipBody<'a> {
    #[schema(value_type = schemas::WorkspaceMemberId)]
    id: WorkspaceMemberId,
    workspace: WorkspaceBody<'a>,
    role: RoleReferenceBody<'a>,
    /// The permissions of the role. A write permission includes the read permission. A token may
    /// have fewer.
    #[schema(value_type = Vec<schemas::Permission>)]
    permissions: Vec<String>,
}

/// A role with its name.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MembershipRole)]
struct RoleReferenceBody<'a> {
    #[schema(value_type = schemas::RoleId)]
    id: RoleId,
    #[schema(example = "Editor")]
    name: &'a str,
}

impl<'a> MembershipBody<'a> {
    /// Creates the representation of a membership. `with_billing` is as for [`WorkspaceBody::new`].
    pub fn new(membership: &'a Membership, with_billing: bool) -> Self {
        Self {
            id: membership.id,
            workspace: WorkspaceBody::new(&membership.workspace, with_billing),
            role: RoleReferenceBody { id: membership.role.id, name: membership.role.name.as_str() },
            permissions: permissions(membership.role.permissions),
        }
    }
}

body! {
    /// A new invite.
    new NewInvite {
        /// The e-mail address of the invite.
        ///
        /// It must not contain `=?`, which mail programs decode.
        email: required EmailAddress = "ann@example.org",
        /// The name of the invited person, without control characters. The page of the invite
        /// suggests it as the full name of a new user.
        name: required FullName,
        role_id: required RoleId,
    }
}

body! {
    /// A change of a member's role.
    new MemberChange of WorkspaceMemberId {
        role_id: required RoleId,
    }
}

body! {
    /// The acceptance of an invite.
    new InviteAcceptance {
        /// The code in the link of the invite's mail.
        code: required String = "kG1p0i3nYcYQ3X1bHc2mZq7n5T0uE8w4rJv9sLdAfBg",
        /// The short name of a new user: 1 to 64 characters, without white space or control
        /// characters. It is unique in the installation, regardless of case.
        username: required Username,
        /// The display name of a new user, without control characters.
        full_name: required FullName,
    }
}

body! {
    /// A change of the profile of the token's user.
    change ProfileChange {
        /// The display name, without control characters.
        full_name: required FullName,
        /// The short name, without white space or control characters. It is unique in the
        /// installation.
        username: required Username,
        /// The address of the picture: an absolute http or https URL, or a relative reference.
        avatar: optional WebReference = "https://example.org/ann.png",
    }
}

body! {
    /// A change of the token's workspace.
    change WorkspaceChange {
        /// The name, without control characters.
        name: required WorkspaceName = "The Harbour Times",
        /// A short description.
        description: optional ShortText = "News from the harbour.",
        /// The address of the logo: an absolute http or https URL, or a relative reference.
        logo: optional WebReference = "https://example.org/logo.png",
        /// The language of pieces without a variant: a language tag, such as `en` or `pt-BR`.
        /// Searches find other forms of words by its rules.
        language: optional LanguageTag = "en",
    }
}

body! {
    /// An invite for which a link is created.
    new InviteToLink of WorkspaceMemberId {}
}

body! {
    /// An invite whose mail is sent again.
    new InviteToResend of WorkspaceMemberId {}
}

/// A link of an invite.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = InviteLink)]
#[serde(rename_all = "camelCase")]
pub struct InviteLinkBody<'a> {
    /// The address of the page on which the invite is accepted. It is shown once.
    #[schema(example = "https://galley.example.org/invite?code=kG1p0i3nYcYQ3X1bHc2mZq7n5T0uE8w4")]
    pub url: &'a str,
    /// The expiry time.
    #[schema(value_type = schemas::Time)]
    pub expires_at: Timestamp,
}
