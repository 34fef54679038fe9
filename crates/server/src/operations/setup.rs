//! A new workspace, with all that somebody needs to start.

use galley_domain::access_token::AccessToken;
use galley_domain::content_group::{ContentGroup, ContentGroupName, GroupPath};
use galley_domain::role::builtin_roles;
use galley_domain::{
    ContentGroupId, PermissionSet, RoleId, UserId, WorkspaceId, WorkspaceMemberId,
};
use galley_storage::users::{self, User};
use galley_storage::{WriteTx, content_groups, members, roles, workspaces};

use crate::environment::Environment;
use crate::http::error::Error;
use crate::operations::tokens::{self, TokenRequest};

/// What a new workspace is to be like.
#[derive(Debug, Clone)]
pub struct NewWorkspace {
    /// Its name.
    pub name: String,
    /// Its owner's e-mail address.
    pub email: String,
    /// Its first content group's name.
    pub group: ContentGroupName,
    /// Its first token's text.
    pub token: AccessToken,
}

/// What was made.
#[derive(Debug, Clone, Copy)]
pub struct MadeWorkspace {
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

/// Makes a workspace, if the database has none yet.
pub async fn create_first_workspace(
    tx: &WriteTx<'_>,
    environment: &Environment,
    new: &NewWorkspace,
) -> Result<Option<MadeWorkspace>, Error> {
    if workspaces::any(tx).await? {
        return Ok(None);
    }
    create_workspace(tx, environment, new).await.map(Some)
}

/// Makes a workspace with the built-in roles, an owner who is its Admin, a content group and a
/// token.
pub async fn create_workspace(
    tx: &WriteTx<'_>,
    environment: &Environment,
    new: &NewWorkspace,
) -> Result<MadeWorkspace, Error> {
    let now = environment.now();
    let made = MadeWorkspace {
        workspace: WorkspaceId::new(environment.new_id()),
        user: UserId::new(environment.new_id()),
        member: WorkspaceMemberId::new(environment.new_id()),
        content_group: ContentGroupId::new(environment.new_id()),
        roles: [(); 3].map(|()| RoleId::new(environment.new_id())),
    };
    workspaces::insert(tx, made.workspace, &new.name, now).await?;
    for (id, role) in made.roles.into_iter().zip(builtin_roles()) {
        roles::insert_builtin(tx, made.workspace, id, &role, now).await?;
    }
    let local_part = new.email.split('@').next().unwrap_or_default();
    let user = User {
        id: made.user,
        email: new.email.clone(),
        username: local_part.to_owned(),
        full_name: local_part.to_owned(),
        avatar: None,
    };
    users::insert(tx, &user, now).await?;
    members::insert(tx, made.workspace, made.member, made.user, made.roles[0], now).await?;
    let group = ContentGroup { id: made.content_group, name: new.group.clone(), version: 1 };
    content_groups::insert(tx, made.workspace, &group, &GroupPath::default(), now).await?;
    let request = TokenRequest {
        token: new.token.clone(),
        user: made.user,
        name: "first token".to_owned(),
        permissions: PermissionSet::ALL,
        content_groups: None,
        expires_at: None,
    };
    tokens::create(tx, environment, made.workspace, &request).await?;
    Ok(made)
}
