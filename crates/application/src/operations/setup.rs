//! Creation of a workspace, with all resources that an owner needs to start.

use galley_domain::access_token::AccessToken;
use galley_domain::audit::AuditAction;
use galley_domain::content_group::{ContentGroup, ContentGroupName, GroupPath};
use galley_domain::people::{EmailAddress, FullName};
use galley_domain::role::{Role, RoleName, builtin_roles};
use galley_domain::text::ShortText;
use galley_domain::{ContentGroupId, RoleId, UserId, WorkspaceId, WorkspaceMemberId};
use galley_storage::members::Member;
use galley_storage::{WriteTx, content_groups, installation, members, roles, workspaces};

use crate::audit::{self, AuditChanges};
use crate::environment::Environment;
use crate::error::Error;
use crate::operations::members::find_or_create_user;
use crate::operations::tokens::{self, TokenRequest};
use crate::scope::Scope;

/// A workspace to create.
#[derive(Debug, Clone)]
pub struct NewWorkspace {
    /// Its name.
    pub name: String,
    /// The owner's e-mail address, of an existing user or of a new one.
    pub email: EmailAddress,
    /// The first content group's name.
    pub group: ContentGroupName,
    /// The first token's text.
    pub token: AccessToken,
}

/// The identifiers of a created workspace.
#[derive(Debug, Clone, Copy)]
pub struct CreatedWorkspace {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Its owner.
    pub user: UserId,
    /// The owner's membership.
    pub member: WorkspaceMemberId,
    /// The first content group.
    pub content_group: ContentGroupId,
    /// The roles Admin, Editor and Viewer.
    pub roles: [RoleId; 3],
}

/// Creates a workspace, if the database has none yet.
pub async fn create_first_workspace(
    tx: &WriteTx<'_>,
    environment: &Environment,
    new: &NewWorkspace,
) -> Result<Option<CreatedWorkspace>, Error> {
    // If several nodes start for the first time at once, one creates it.
    installation::lock(tx).await?;
    if workspaces::any(tx).await? {
        return Ok(None);
    }
    create_workspace(tx, environment, new).await.map(Some)
}

/// Creates a workspace with the built-in roles, an owner who is its Admin, a content group and a
/// token.
pub async fn create_workspace(
    tx: &WriteTx<'_>,
    environment: &Environment,
    new: &NewWorkspace,
) -> Result<CreatedWorkspace, Error> {
    let now = environment.now();
    let local_part = new.email.as_str().split('@').next().unwrap_or_default();
    let owner = FullName::from_stored(local_part);
    let user = find_or_create_user(tx, environment, &new.email, &owner).await?;
    let created = CreatedWorkspace {
        workspace: WorkspaceId::new(environment.new_id()),
        user: user.id,
        member: WorkspaceMemberId::new(environment.new_id()),
        content_group: ContentGroupId::new(environment.new_id()),
        roles: [(); 3].map(|()| RoleId::new(environment.new_id())),
    };
    workspaces::insert(tx, created.workspace, &new.name, now).await?;
    for (id, role) in created.roles.into_iter().zip(builtin_roles()) {
        let role = Role {
            id,
            name: RoleName::from_stored(role.name),
            description: Some(ShortText::from_stored(role.description)),
            permissions: role.permissions,
            base_type: role.base_type,
            version: 1,
        };
        roles::insert(tx, created.workspace, &role, now).await?;
    }
    let member = Member {
        id: created.member,
        user: Some(user),
        role: created.roles[0],
        invited_email: None,
        invited_name: None,
        version: 1,
    };
    members::insert(tx, created.workspace, &member, now).await?;
    let group = ContentGroup {
        id: created.content_group,
        name: new.group.clone(),
        unique_slugs: false,
        custom_data_schema: None,
        preview_url: None,
        version: 1,
    };
    content_groups::insert(tx, created.workspace, &group, &GroupPath::default(), now).await?;
    let scope = Scope::whole(created.workspace);
    let changes = AuditChanges::created(serde_json::json!({"name": new.name}));
    let action = AuditAction::WorkspaceCreate;
    audit::record(tx, environment, &scope, action, created.workspace, changes);
    let request = TokenRequest::unlimited(new.token.clone(), created.user, "first token");
    tokens::create(tx, environment, &scope, &request).await?;
    Ok(created)
}
