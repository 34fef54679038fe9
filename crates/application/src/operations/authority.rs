//! Nobody gives or takes more than they have.

use galley_domain::role::{BaseType, Role};
use galley_domain::{ContentGroupId, Permission, PermissionSet, Timestamp};
use galley_storage::tokens::{self, Authentication};
use galley_storage::{WriteTx, workspaces};

use crate::environment::Environment;
use crate::error::Error;
use crate::rejection::{Reason, Rejection};
use crate::scope::Scope;

/// What the holder of a token may give and take, by what holds in this transaction.
#[derive(Debug)]
pub struct Authority(Authentication);

impl Authority {
    /// Looks the token up again, when no other change of who may do what can come in between, and
    /// refuses one that lacks `permission`.
    pub async fn confirm(
        tx: &WriteTx<'_>,
        environment: &Environment,
        actor: &Authentication,
        permission: Permission,
    ) -> Result<Self, Error> {
        let authority = Self::look_up(tx, environment, actor).await?;
        authority.needs(permission)?;
        Ok(authority)
    }

    /// As [`Authority::confirm`], for what depends on more than a permission.
    pub async fn look_up(
        tx: &WriteTx<'_>,
        environment: &Environment,
        actor: &Authentication,
    ) -> Result<Self, Error> {
        workspaces::lock(tx, actor.workspace).await?;
        let found = tokens::find_authentication(tx, actor.workspace, actor.token).await?;
        let now = environment.now();
        let works = |found: &Authentication| found.expires_at.is_none_or(|end| end > now);
        match found.filter(works) {
            Some(found) => Ok(Self(found)),
            None => Err(Rejection::unauthorized("the access token was revoked meanwhile").into()),
        }
    }

    /// The token as it stands.
    pub fn token(&self) -> &Authentication {
        &self.0
    }

    /// What of the workspace it sees.
    pub fn scope(&self) -> Scope {
        Scope::of(&self.0)
    }

    /// Refuses what needs a permission that the token has not.
    pub fn needs(&self, permission: Permission) -> Result<(), Error> {
        if self.0.permissions.allows(permission) {
            return Ok(());
        }
        Err(Rejection::insufficient_permissions(permission).into())
    }

    /// Refuses what is about all content, by a token that sees some of it.
    pub fn needs_all_groups(&self) -> Result<(), Error> {
        if self.0.content_groups.is_none() {
            return Ok(());
        }
        let detail = "the token is limited to some groups, and this would reach beyond them";
        Err(Rejection::new(Reason::OutsideGroupLimit, detail).into())
    }

    /// Refuses to give, or to take away, more permissions than the token has.
    pub fn covers(&self, permissions: PermissionSet) -> Result<(), Error> {
        let Some(missing) = permissions.iter().find(|&one| !self.0.permissions.allows(one)) else {
            return Ok(());
        };
        Err(beyond(&format!("the token has not {missing} itself")))
    }

    /// Refuses to give, or to take away, a role that holds more. An Admin also sees everybody's
    /// tokens, which no permission allows.
    pub fn covers_role(&self, role: &Role) -> Result<(), Error> {
        if role.is_admin() && self.0.base_type != Some(BaseType::Admin) {
            return Err(beyond("the role Admin is more than all permissions together"));
        }
        self.covers(role.permissions)
    }

    /// Refuses to give what lasts, by a token that ends.
    pub fn needs_no_end(&self) -> Result<(), Error> {
        match self.0.expires_at {
            Some(own) => {
                Err(beyond(&format!("the token itself ends at {own}, and this would last")))
            }
            None => Ok(()),
        }
    }

    /// Refuses a token of another extension, or of none, to one that belongs to an extension.
    pub fn covers_extension(&self, extension: Option<&str>) -> Result<(), Error> {
        match &self.0.extension {
            Some(own) if extension != Some(own) => Err(beyond(
                "the token belongs to an extension, and what would come of this does not",
            )),
            _ => Ok(()),
        }
    }

    /// Refuses a token that works longer than this one.
    pub fn covers_expiry(&self, expires_at: Option<Timestamp>) -> Result<(), Error> {
        match self.0.expires_at {
            Some(own) if expires_at.is_none_or(|end| end > own) => {
                Err(beyond(&format!("the token itself ends at {own}")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a limit to groups that shows more than this token sees.
    pub async fn covers_groups(
        &self,
        tx: &WriteTx<'_>,
        groups: Option<&[ContentGroupId]>,
    ) -> Result<(), Error> {
        if self.0.content_groups.is_none() {
            return Ok(());
        }
        if let Some(groups) = groups
            && self.scope().holds_all(tx, groups).await?
        {
            return Ok(());
        }
        let detail = "the token is limited to some groups, and can't give a view beyond them";
        Err(Rejection::new(Reason::OutsideGroupLimit, detail).into())
    }
}

fn beyond(detail: &str) -> Error {
    Rejection::new(
        Reason::BeyondOwn,
        format!("nobody gives or takes more than they have: {detail}"),
    )
    .into()
}
