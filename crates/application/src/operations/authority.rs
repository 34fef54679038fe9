//! Authorization: a token can't grant or revoke more than it has.

use galley_domain::publication::ContentView;
use galley_domain::role::{BaseType, Role};
use galley_domain::{ContentGroupId, Permission, PermissionSet, Timestamp};
use galley_storage::authentication::{self, Authentication};
use galley_storage::{WriteTx, workspaces};

use crate::environment::Environment;
use crate::error::Error;
use crate::rejection::{Reason, Rejection};
use crate::scope::Scope;

/// The token of a request, as read in this transaction, with the checks of its authority.
#[derive(Debug)]
pub struct Authority(Authentication);

impl Authority {
    /// Reads the token again under the workspace's lock, which concurrent changes of permissions
    /// need as well. Rejects a token that lacks `permission`.
    pub async fn with_permission(
        tx: &WriteTx<'_>,
        environment: &Environment,
        actor: &Authentication,
        permission: Permission,
    ) -> Result<Self, Error> {
        let authority = Self::look_up(tx, environment, actor).await?;
        authority.require(permission)?;
        Ok(authority)
    }

    /// Reads the token as [`Authority::with_permission`] does, for operations that depend on more
    /// than a permission.
    pub async fn look_up(
        tx: &WriteTx<'_>,
        environment: &Environment,
        actor: &Authentication,
    ) -> Result<Self, Error> {
        workspaces::lock(tx, actor.workspace).await?;
        let found = authentication::find(tx, actor.workspace, actor.credential).await?;
        let now = environment.now();
        let is_unexpired = |found: &Authentication| found.expires_at.is_none_or(|end| end > now);
        match found.filter(is_unexpired) {
            Some(found) => Ok(Self(found)),
            None => {
                Err(Rejection::unauthorized("the access token was revoked during the request")
                    .into())
            }
        }
    }

    /// Returns the token in its current state.
    pub fn token(&self) -> &Authentication {
        &self.0
    }

    /// Returns the scope of the token.
    pub fn scope(&self) -> Scope {
        Scope::of_token(&self.0)
    }

    /// Rejects a token that lacks a permission.
    pub fn require(&self, permission: Permission) -> Result<(), Error> {
        if self.0.permissions.allows(permission) {
            return Ok(());
        }
        Err(Rejection::insufficient_permissions(&[permission]).into())
    }

    /// Rejects an operation on all content by a token that is limited to some groups, or to the
    /// published view.
    pub fn require_all_content(&self) -> Result<(), Error> {
        self.require_view(ContentView::Current)?;
        if self.0.content_groups.is_none() {
            return Ok(());
        }
        let detail = "the token is limited to some groups and the operation affects others";
        Err(Rejection::new(Reason::OutsideGroupLimit, detail).into())
    }

    /// Rejects granting or revoking permissions that the token lacks.
    pub fn require_permissions(&self, permissions: PermissionSet) -> Result<(), Error> {
        let Some(missing) = permissions.iter().find(|&one| !self.0.permissions.allows(one)) else {
            return Ok(());
        };
        Err(exceeds_token(&format!("the token lacks {missing} itself")))
    }

    /// Rejects granting or revoking a role with more permissions than the token. An Admin also sees
    /// the tokens of all users, which no permission allows.
    pub fn require_role(&self, role: &Role) -> Result<(), Error> {
        if role.is_admin() && self.0.base_type != Some(BaseType::Admin) {
            return Err(exceeds_token("only an Admin's token may grant or revoke the role Admin"));
        }
        self.require_permissions(role.permissions)
    }

    /// Rejects granting something without expiry by a token that expires.
    pub fn require_no_expiry(&self) -> Result<(), Error> {
        match self.0.grant_limit() {
            Some(own) => Err(exceeds_token(&format!(
                "the token itself expires at {own} and the grant would not"
            ))),
            None => Ok(()),
        }
    }

    /// Rejects a token of another extension, or of none, by a token that belongs to an extension.
    pub fn require_extension(&self, extension: Option<&str>) -> Result<(), Error> {
        match &self.0.extension {
            Some(own) if extension != Some(own) => {
                Err(exceeds_token("the token belongs to an extension and the grant would not"))
            }
            _ => Ok(()),
        }
    }

    /// Rejects the current view by a token that sees the published one.
    pub fn require_view(&self, view: ContentView) -> Result<(), Error> {
        if view == ContentView::Current && self.0.view == ContentView::Published {
            return Err(exceeds_token("the token sees published content only"));
        }
        Ok(())
    }

    /// Rejects an expiry later than the token's own.
    pub fn require_expiry(&self, expires_at: Option<Timestamp>) -> Result<(), Error> {
        match self.0.grant_limit() {
            Some(own) if expires_at.is_none_or(|end| end > own) => {
                Err(exceeds_token(&format!("the token itself expires at {own}")))
            }
            _ => Ok(()),
        }
    }

    /// Rejects a group limit that includes more than the token sees.
    pub async fn require_groups(
        &self,
        tx: &WriteTx<'_>,
        groups: Option<&[ContentGroupId]>,
    ) -> Result<(), Error> {
        if self.0.content_groups.is_none() {
            return Ok(());
        }
        if let Some(groups) = groups
            && self.scope().contains_all(tx, groups).await?
        {
            return Ok(());
        }
        let detail = "the token is limited to some groups and can't grant access to others";
        Err(Rejection::new(Reason::OutsideGroupLimit, detail).into())
    }
}

fn exceeds_token(detail: &str) -> Error {
    Rejection::new(
        Reason::BeyondOwn,
        format!("the request exceeds the token's own permissions: {detail}"),
    )
    .into()
}
