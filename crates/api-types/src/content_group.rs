//! A content group in JSON.

use galley_domain::ContentGroupId;
use galley_domain::content_group::ContentGroup;
use serde::Serialize;
use utoipa::ToSchema;

use crate::schemas;

/// A group. What is under it is named, or stands in it whole.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ContentGroup)]
pub struct ContentGroupBody<'a> {
    #[schema(value_type = schemas::ContentGroupId)]
    pub id: ContentGroupId,
    /// What people call it; not unique.
    #[schema(example = "Posts")]
    pub name: &'a str,
    /// The groups above it, from the top down.
    #[schema(value_type = Vec<schemas::ContentGroupId>)]
    pub ancestors: &'a [ContentGroupId],
    /// The groups directly under it.
    #[schema(inline, value_type = DescendantsSchema)]
    pub descendants: Descendants<'a>,
}

/// The groups directly under a group.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Descendants<'a> {
    /// By their ids.
    Ids(&'a [ContentGroupId]),
    /// Each with what is under it.
    Nested(Vec<NestedGroup>),
}

/// [`Descendants`] as they are described.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum DescendantsSchema {
    /// Their identifiers.
    Ids(Vec<schemas::ContentGroupId>),
    /// With `subtree=true` the groups themselves, each with what is under it.
    Nested(Vec<NestedGroup>),
}

/// A group within its parent.
#[derive(Debug, Serialize, ToSchema)]
pub struct NestedGroup {
    #[schema(value_type = schemas::ContentGroupId)]
    id: ContentGroupId,
    /// What people call it; not unique.
    #[schema(example = "Posts")]
    name: String,
    /// The groups above it, from the top down.
    #[schema(value_type = Vec<schemas::ContentGroupId>)]
    ancestors: Vec<ContentGroupId>,
    /// The groups directly under it, each with what is under it.
    #[schema(no_recursion, example = json!([]))]
    descendants: Vec<NestedGroup>,
}

/// The groups under `parent`, whose own path is `path` (itself included), each with what is under
/// it. Depth is bounded by how deep groups may stand.
pub fn nested(
    groups: &[(ContentGroup, Option<ContentGroupId>)],
    parent: ContentGroupId,
    path: &[ContentGroupId],
) -> Vec<NestedGroup> {
    let mut by_parent = std::collections::HashMap::<_, Vec<_>>::new();
    for (group, parent) in groups {
        by_parent.entry(*parent).or_default().push(group);
    }
    nest(&by_parent, parent, path)
}

fn nest(
    by_parent: &std::collections::HashMap<Option<ContentGroupId>, Vec<&ContentGroup>>,
    parent: ContentGroupId,
    path: &[ContentGroupId],
) -> Vec<NestedGroup> {
    let children = by_parent.get(&Some(parent)).map(Vec::as_slice).unwrap_or_default();
    children
        .iter()
        .map(|group| {
            let mut below = path.to_vec();
            below.push(group.id);
            NestedGroup {
                id: group.id,
                name: group.name.as_str().to_owned(),
                ancestors: path.to_vec(),
                descendants: nest(by_parent, group.id, &below),
            }
        })
        .collect()
}
