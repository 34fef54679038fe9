//! References of a piece to missing resources.

use std::collections::HashMap;
use std::hash::Hash;

use galley_api_types::content_piece::ReferencedResources;
use galley_api_types::problem::{Issue, Step};
use galley_domain::content_piece::{ContentPiece, ContentPieceFields};
use galley_domain::{ContentGroupId, ContentPieceId, TagId, WorkspaceMemberId};
use galley_storage::{Tx, content_groups};

use crate::error::Error;
use crate::operations::content_pieces::order_keys::find_reference;
use crate::references;
use crate::scope::Scope;

/// The noun for a group in messages.
pub(super) const GROUP_NOUN: &str = "content group";

/// The references in a request, item by item. `None` is an item that is no identifier.
#[derive(Debug, Clone, Default)]
pub struct RequestReferences {
    /// The tags.
    pub tags: Vec<Option<TagId>>,
    /// The members.
    pub members: Vec<Option<WorkspaceMemberId>>,
    /// The group.
    pub content_group_id: Option<ContentGroupId>,
    /// The piece after which it is placed.
    pub reference_id: Option<ContentPieceId>,
}

impl RequestReferences {
    /// Returns an issue for each reference that does not exist or is outside the scope.
    pub async fn missing(&self, tx: &Tx<'_>, scope: &Scope) -> Result<Vec<Issue>, Error> {
        let tags: Vec<_> = self.tags.iter().copied().flatten().collect();
        let members: Vec<_> = self.members.iter().copied().flatten().collect();
        let referenced = references::find(tx, scope.workspace, &tags, &members).await?;
        let mut issues = missing_items("tags", "tag", &self.tags, &referenced.tags);
        issues.extend(missing_items(
            "members",
            "workspace member",
            &self.members,
            &referenced.members,
        ));
        if let Some(group) = self.content_group_id {
            let path = content_groups::path(tx, scope.workspace, group).await?;
            issues.extend(
                (!scope.contains(&path)).then(|| unknown_field("contentGroupId", GROUP_NOUN)),
            );
        }
        if self.reference_id.is_some() {
            let reference = find_reference(tx, scope, self.reference_id).await?;
            let group = self.content_group_id.or(reference.as_ref().map(|r| r.content_group_id));
            issues.extend(reference_issue(reference.as_ref(), group));
        }
        Ok(issues)
    }
}

/// Returns an issue unless the reference is in the group of the piece.
pub(super) fn reference_issue(
    reference: Option<&ContentPiece>,
    group: Option<ContentGroupId>,
) -> Option<Issue> {
    match reference {
        Some(piece) if Some(piece.content_group_id) == group => None,
        _ => Some(unknown_field("referenceId", "content piece in this content group")),
    }
}

pub(super) fn missing_references(
    fields: &ContentPieceFields,
    referenced: &ReferencedResources,
) -> Vec<Issue> {
    let mut issues = missing_tags(&fields.tags, referenced);
    issues.extend(missing_members(&fields.members, referenced));
    issues
}

pub(super) fn missing_tags(tags: &[TagId], referenced: &ReferencedResources) -> Vec<Issue> {
    let tags: Vec<_> = tags.iter().copied().map(Some).collect();
    missing_items("tags", "tag", &tags, &referenced.tags)
}

pub(super) fn missing_members(
    members: &[WorkspaceMemberId],
    referenced: &ReferencedResources,
) -> Vec<Issue> {
    let members: Vec<_> = members.iter().copied().map(Some).collect();
    missing_items("members", "workspace member", &members, &referenced.members)
}

/// Returns an issue for each item of a list that `known` lacks.
fn missing_items<T: Copy + Eq + Hash, V>(
    field: &str,
    noun: &str,
    items: &[Option<T>],
    known: &HashMap<T, V>,
) -> Vec<Issue> {
    let missing = |item: &Option<T>| item.is_some_and(|id| !known.contains_key(&id));
    let indexed = items.iter().enumerate().filter(|(_, item)| missing(item));
    indexed.map(|(index, _)| unknown_item(field, index, noun)).collect()
}

pub(crate) fn unknown_field(field: &str, what: &str) -> Issue {
    Issue::unknown_reference(vec![Step::Field(field.to_owned())], what)
}

pub(crate) fn unknown_item(field: &str, index: usize, what: &str) -> Issue {
    Issue::unknown_reference(vec![Step::Field(field.to_owned()), Step::Item(index)], what)
}
