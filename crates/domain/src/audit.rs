//! The audit log: one entry for each change of a resource.

use std::net::IpAddr;
use std::sync::Arc;

use crate::actor::Actor;
use crate::id::AuditEntryId;
use crate::named_enum;
use crate::time::Timestamp;

named_enum! {
    /// The change of an entry: the kind of the resource, and a verb.
    pub enum AuditAction {
        /// A piece was created.
        ContentPieceCreate = "contentPiece.create",
        /// The fields, the overrides in a variant, or the position of a piece were changed.
        ContentPieceUpdate = "contentPiece.update",
        /// A revision of a piece was restored.
        ContentPieceRestore = "contentPiece.restore",
        /// A piece was deleted.
        ContentPieceDelete = "contentPiece.delete",
        /// A piece was restored from the trash.
        ContentPieceUndelete = "contentPiece.undelete",
        /// A piece was removed for good, from the trash or from its group.
        ContentPiecePurge = "contentPiece.purge",
        /// A revision of a piece was published.
        ContentPiecePublish = "contentPiece.publish",
        /// A piece was unpublished.
        ContentPieceUnpublish = "contentPiece.unpublish",
        /// The schedule of a piece was changed.
        ContentPieceSchedule = "contentPiece.schedule",
        /// A preview token of a piece was created.
        ContentPiecePreview = "contentPiece.preview",
        /// The note of a revision was changed.
        RevisionUpdate = "revision.update",
        /// A revision was removed.
        RevisionPurge = "revision.purge",
        /// A group was created.
        ContentGroupCreate = "contentGroup.create",
        /// A group was changed or moved.
        ContentGroupUpdate = "contentGroup.update",
        /// A group was deleted, with everything in it.
        ContentGroupDelete = "contentGroup.delete",
        /// A group was restored from the trash, with everything in it.
        ContentGroupUndelete = "contentGroup.undelete",
        /// A group was removed for good, from the trash or from its level.
        ContentGroupPurge = "contentGroup.purge",
        /// A tag was created.
        TagCreate = "tag.create",
        /// A tag was changed.
        TagUpdate = "tag.update",
        /// A tag was deleted.
        TagDelete = "tag.delete",
        /// A variant was created.
        VariantCreate = "variant.create",
        /// A variant was changed.
        VariantUpdate = "variant.update",
        /// A variant was deleted.
        VariantDelete = "variant.delete",
        /// An asset was uploaded.
        AssetCreate = "asset.create",
        /// An asset was changed.
        AssetUpdate = "asset.update",
        /// An asset was deleted.
        AssetDelete = "asset.delete",
        /// A role was created.
        RoleCreate = "role.create",
        /// A role was changed.
        RoleUpdate = "role.update",
        /// A role was deleted.
        RoleDelete = "role.delete",
        /// A person was invited.
        WorkspaceMembershipInvite = "workspaceMembership.invite",
        /// Another mail of an invite was requested.
        WorkspaceMembershipResendInvite = "workspaceMembership.resendInvite",
        /// A link of an invite was created.
        WorkspaceMembershipInviteLink = "workspaceMembership.inviteLink",
        /// A person accepted an invite, or an operator added a member.
        WorkspaceMembershipCreate = "workspaceMembership.create",
        /// The role of a member was changed.
        WorkspaceMembershipUpdate = "workspaceMembership.update",
        /// A member or an invite was removed.
        WorkspaceMembershipDelete = "workspaceMembership.delete",
        /// The user of a member was changed.
        ProfileUpdate = "profile.update",
        /// The workspace was created.
        WorkspaceCreate = "workspace.create",
        /// The workspace was changed.
        WorkspaceUpdate = "workspace.update",
        /// Pieces were imported into the workspace.
        WorkspaceImport = "workspace.import",
        /// The workspace was restored from a bundle.
        WorkspaceRestore = "workspace.restore",
        /// A webhook was created.
        WebhookCreate = "webhook.create",
        /// A webhook was changed.
        WebhookUpdate = "webhook.update",
        /// A webhook was deleted.
        WebhookDelete = "webhook.delete",
        /// The secret of a webhook was replaced.
        WebhookRotateSecret = "webhook.rotateSecret",
        /// A delivery was requested again.
        WebhookRetry = "webhook.retry",
        /// The deliveries of a period were requested again.
        WebhookRecover = "webhook.recover",
        /// A test event was requested.
        WebhookTest = "webhook.test",
        /// An access token was created.
        TokenCreate = "token.create",
        /// An access token was changed.
        TokenUpdate = "token.update",
        /// An access token was revoked.
        TokenDelete = "token.delete",
        /// A user signed in.
        SessionCreate = "session.create",
        /// A session was ended.
        SessionDelete = "session.delete",
    }
}

impl AuditAction {
    /// Returns true if the changed fields may have the e-mail address of a person.
    pub fn is_of_person(self) -> bool {
        ["workspaceMembership", "profile"].contains(&self.target_type())
    }

    /// Returns the kind of the resource.
    pub fn target_type(self) -> &'static str {
        self.as_str().split_once('.').map_or("", |(resource, _)| resource)
    }
}

/// The request of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestOrigin {
    /// The id of the request.
    pub request_id: Arc<str>,
    /// The address of the client.
    pub remote_address: Option<IpAddr>,
}

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// The id. It has the time of the change.
    pub id: AuditEntryId,
    /// The author of the change.
    pub actor: Actor,
    /// The change.
    pub action: AuditAction,
    /// The id of the changed resource.
    pub target: String,
    /// The revision of the piece, if the action concerns one.
    pub revision: Option<i64>,
    /// The id of the request; `None` for a change by the server or by a command.
    pub request_id: Option<String>,
    /// The address of the client, as long as it is kept.
    pub remote_address: Option<String>,
    /// The changed fields as a JSON array; `None` if there are none.
    pub changes: Option<String>,
}

impl AuditEntry {
    /// The days for which entries are kept.
    pub const RETENTION_DAYS: u32 = 400;

    /// The days for which the addresses of clients are kept.
    pub const ADDRESS_RETENTION_DAYS: u32 = 90;

    /// Returns the time of the change.
    pub fn at(&self) -> Timestamp {
        self.id.created_at()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_action_names_a_resource_and_a_verb() {
        for action in AuditAction::ALL {
            let (resource, verb) = action.as_str().split_once('.').unwrap();
            assert!(!resource.is_empty() && !verb.is_empty() && !verb.contains('.'));
            assert_eq!(action.target_type(), resource);
            assert_eq!(action.as_str().parse(), Ok(*action));
        }
    }
}
