//! References of requests to missing resources.

use std::collections::HashMap;
use std::hash::Hash;

use galley_api_types::content_piece::ReferencedResources;
use galley_api_types::problem::{Issue, Step};
use galley_api_types::request::{Reference, ReferencesWithPaths};
use galley_domain::content_piece::{ContentPiece, ContentPieceFields};
use galley_domain::{ContentGroupId, TagId, WorkspaceMemberId};
use galley_storage::{Tx, content_groups, roles};

use crate::caller::Caller;
use crate::error::Error;
use crate::operations::content_pieces::order_keys::find_reference;
use crate::references;
use crate::scope::Scope;

/// The noun for a group in messages.
pub(super) const GROUP_NOUN: &str = "content group";

/// Returns issues for the references of a request to missing resources.
pub async fn missing_references(
    caller: &Caller,
    references: ReferencesWithPaths,
) -> Result<Vec<Issue>, Error> {
    if references.is_empty() {
        return Ok(Vec::new());
    }
    let scope = caller.scope();
    let read = async move |tx: &Tx<'_>| missing_in(tx, &scope, &references).await;
    caller.read_current("missing_references", read).await
}

/// Returns issues for the references of several requests to missing resources.
pub async fn missing_references_of_several(
    caller: &Caller,
    references: Vec<ReferencesWithPaths>,
) -> Result<Vec<Vec<Issue>>, Error> {
    let scope = caller.scope();
    let read = async move |tx: &Tx<'_>| {
        let mut missing = Vec::with_capacity(references.len());
        for references in &references {
            missing.push(missing_in(tx, &scope, references).await?);
        }
        Ok(missing)
    };
    caller.read_current("missing_references", read).await
}

/// Returns an issue for each reference that does not exist or is outside the scope.
async fn missing_in(
    tx: &Tx<'_>,
    scope: &Scope,
    references: &ReferencesWithPaths,
) -> Result<Vec<Issue>, Error> {
    let (mut tags, mut members, mut group) = (Vec::new(), Vec::new(), None);
    for (_, reference) in references {
        match *reference {
            Reference::Tag(id) => tags.push(id),
            Reference::WorkspaceMember(id) => members.push(id),
            Reference::ContentGroup(id) => group = Some(id),
            Reference::ContentPiece(_) | Reference::Role(_) => {}
        }
    }
    let found = references::find(tx, scope.workspace, &tags, &members, &[]).await?;
    let mut issues = Vec::new();
    for (path, reference) in references {
        let (exists, noun) = match *reference {
            Reference::Tag(id) => (found.tags.contains_key(&id), "tag"),
            Reference::WorkspaceMember(id) => (found.members.contains_key(&id), "workspace member"),
            Reference::Role(id) => (roles::find(tx, scope.workspace, id).await?.is_some(), "role"),
            Reference::ContentGroup(id) => {
                let path = content_groups::path(tx, scope.workspace, id).await?;
                (scope.contains(&path), GROUP_NOUN)
            }
            Reference::ContentPiece(id) => {
                let piece = find_reference(tx, scope, Some(id)).await?;
                let group = group.or(piece.as_ref().map(|piece| piece.content_group_id));
                issues.extend(reference_issue(piece.as_ref(), group));
                continue;
            }
        };
        if !exists {
            issues.push(Issue::unknown_reference(path.clone(), noun));
        }
    }
    Ok(issues)
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

pub(super) fn missing_in_fields(
    fields: &ContentPieceFields,
    referenced: &ReferencedResources,
) -> Vec<Issue> {
    let mut issues = missing_tags(&fields.tags, referenced);
    issues.extend(missing_members(&fields.members, referenced));
    issues
}

pub(super) fn missing_tags(tags: &[TagId], referenced: &ReferencedResources) -> Vec<Issue> {
    missing_items("tags", "tag", tags, &referenced.tags)
}

pub(super) fn missing_members(
    members: &[WorkspaceMemberId],
    referenced: &ReferencedResources,
) -> Vec<Issue> {
    missing_items("members", "workspace member", members, &referenced.members)
}

/// Returns an issue for each item of a list that `known` lacks.
fn missing_items<T: Copy + Eq + Hash, V>(
    field: &str,
    noun: &str,
    items: &[T],
    known: &HashMap<T, V>,
) -> Vec<Issue> {
    let indexed = items.iter().enumerate().filter(|(_, id)| !known.contains_key(id));
    indexed.map(|(index, _)| unknown_item(field, index, noun)).collect()
}

pub(crate) fn unknown_field(field: &str, what: &str) -> Issue {
    Issue::unknown_reference(vec![Step::Field(field.to_owned())], what)
}

pub(crate) fn unknown_item(field: &str, index: usize, what: &str) -> Issue {
    Issue::unknown_reference(vec![Step::Field(field.to_owned()), Step::Item(index)], what)
}
