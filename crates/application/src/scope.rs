//! The part of the data that an operation sees, and the author of its changes.

use galley_domain::audit::RequestOrigin;
use galley_domain::content_group::GroupPath;
use galley_domain::permission::Resource;
use galley_domain::publication::ContentView;
use galley_domain::revision::Origin;
use galley_domain::role::BaseType;
use galley_domain::{Actor, ContentGroupId, ContentPieceId, Credential, Permission, WorkspaceId};
use galley_storage::authentication::Authentication;
use galley_storage::webhooks::VisibleWebhooks;
use galley_storage::{Tx, content_groups as groups};

use crate::error::Error;

/// The permission to see the e-mail addresses of members and the names of actors.
pub(crate) const EMAIL_PERMISSION: Permission = Permission::read(Resource::WorkspaceMemberships);

/// The part of the data that an operation sees: one workspace, with all of its content or with some
/// groups and the groups below them. It also has the author of the operation's changes.
#[derive(Debug, Clone)]
pub struct Scope {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The groups; `None` for all content.
    pub content_groups: Option<Vec<ContentGroupId>>,
    /// The only piece that is seen; `None` for all pieces of the groups.
    pub piece: Option<ContentPieceId>,
    /// The view of the content.
    pub view: ContentView,
    /// True if the e-mail addresses of members and the names of actors are hidden.
    pub hides_emails: bool,
    /// True if pieces may be read.
    pub sees_pieces: bool,
    /// True if the tokens of all users are visible.
    pub sees_all_tokens: bool,
    /// The author of changes.
    pub author: Actor,
    /// The entry point of changes.
    pub origin: Origin,
    /// The request of changes; `None` for a command or the server itself.
    pub request: Option<RequestOrigin>,
}

impl Scope {
    /// Returns the scope of an operator's command in a whole workspace.
    pub fn whole(workspace: WorkspaceId) -> Self {
        Self {
            workspace,
            content_groups: None,
            piece: None,
            view: ContentView::Current,
            hides_emails: false,
            sees_pieces: true,
            sees_all_tokens: true,
            author: Actor::System,
            origin: Origin::Api,
            request: None,
        }
    }

    /// Returns the scope of a token.
    pub fn of_token(token: &Authentication) -> Self {
        Self {
            workspace: token.workspace,
            content_groups: token.content_groups.clone(),
            piece: token.preview_of,
            view: token.view,
            hides_emails: !token.permissions.allows(EMAIL_PERMISSION),
            sees_pieces: token.permissions.allows(Permission::read(Resource::ContentPieces)),
            sees_all_tokens: token.base_type == Some(BaseType::Admin)
                && token.content_groups.is_none()
                && token.view == ContentView::Current
                && token.extension.is_none(),
            author: token.credential.author(token.member),
            origin: match token.credential {
                Credential::Token(_) => Origin::Api,
                Credential::Session(_) => Origin::Console,
            },
            request: None,
        }
    }

    /// Returns the webhooks that are in the scope.
    pub fn visible_webhooks(&self) -> VisibleWebhooks<'_> {
        VisibleWebhooks { within: self.content_groups.as_deref(), view: self.view }
    }

    /// Rejects the published view, which has no such resource.
    pub fn require_current_view(&self) -> Result<(), Error> {
        match self.view {
            ContentView::Current => Ok(()),
            ContentView::Published => Err(Error::not_found()),
        }
    }

    /// Returns true if all of these groups are in the scope. If it has all content, they are not
    /// looked up.
    pub async fn contains_all(&self, tx: &Tx<'_>, ids: &[ContentGroupId]) -> Result<bool, Error> {
        let Some(limits) = &self.content_groups else { return Ok(true) };
        let seen = groups::existing(tx, self.workspace, ids, Some(limits)).await?;
        Ok(ids.iter().all(|id| seen.contains(id)))
    }

    /// Returns true if the group at the end of `path` is in the scope. An empty path has no group.
    pub fn contains(&self, path: &GroupPath) -> bool {
        match &self.content_groups {
            None => !path.groups().is_empty(),
            Some(limits) => limits.iter().any(|&group| path.contains(group)),
        }
    }

    /// Returns the part of `path` that is in the scope.
    pub fn visible<'p>(&self, path: &'p GroupPath) -> &'p [ContentGroupId] {
        let groups = path.groups();
        match &self.content_groups {
            None => groups,
            Some(limits) => {
                let first = groups.iter().position(|group| limits.contains(group));
                first.map_or(&[], |first| &groups[first..])
            }
        }
    }

    /// Returns true if this group is in the scope.
    pub async fn contains_group(&self, tx: &Tx<'_>, group: ContentGroupId) -> Result<bool, Error> {
        if self.content_groups.is_none() {
            return Ok(true);
        }
        Ok(self.contains(&groups::path(tx, self.workspace, group).await?))
    }
}
