//! The JSON representation of a content group.

use galley_domain::ContentGroupId;
use galley_domain::content_group::{ContentGroup, ContentGroupName, PreviewUrl};
use galley_domain::custom_data_schema::CustomDataSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::request::bodies;
use crate::schemas;

/// A content group. `descendants` has the identifiers of the child groups, or the whole subtree.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ContentGroup)]
#[serde(rename_all = "camelCase")]
pub struct ContentGroupBody<'a> {
    #[schema(value_type = schemas::ContentGroupId)]
    id: ContentGroupId,
    /// The name. It need not be unique.
    #[schema(example = "Posts")]
    name: &'a str,
    /// True if the slugs of the pieces in the group and its descendants are unique.
    unique_slugs: bool,
    /// The JSON Schema (2020-12) of the custom data of these pieces, unless a descendant has its
    /// own.
    #[schema(value_type = Option<Object>, example = json!({"type": "object"}))]
    custom_data_schema: Option<&'a RawValue>,
    /// The URL of the page that shows drafts of these pieces, unless a descendant has its own.
    #[schema(example = "https://example.org/preview?id={id}&token={token}")]
    preview_url: Option<&'a str>,
    /// The ancestors, from the top level down.
    #[schema(value_type = Vec<schemas::ContentGroupId>)]
    ancestors: &'a [ContentGroupId],
    /// The child groups.
    #[schema(inline, value_type = DescendantsSchema)]
    descendants: Descendants<'a>,
}

impl<'a> ContentGroupBody<'a> {
    /// Creates the representation of a group below its ancestors.
    pub fn new(
        group: &'a ContentGroup,
        ancestors: &'a [ContentGroupId],
        descendants: Descendants<'a>,
    ) -> Self {
        Self {
            id: group.id,
            name: group.name.as_str(),
            unique_slugs: group.unique_slugs,
            custom_data_schema: raw_schema(group),
            preview_url: preview_url(group),
            ancestors,
            descendants,
        }
    }
}

/// The child groups of a group.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Descendants<'a> {
    /// The ids of the child groups.
    Ids(&'a [ContentGroupId]),
    /// The child groups, each with its own subtree.
    Nested(Vec<NestedGroup>),
}

/// The OpenAPI schema of [`Descendants`].
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum DescendantsSchema {
    /// The identifiers of the child groups.
    Ids(Vec<schemas::ContentGroupId>),
    /// With `subtree=true`, the child groups, each with its own subtree.
    Nested(Vec<NestedGroup>),
}

/// A group nested in its parent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NestedGroup {
    #[schema(value_type = schemas::ContentGroupId)]
    id: ContentGroupId,
    /// The name. It need not be unique.
    #[schema(example = "Posts")]
    name: String,
    /// True if the slugs of the pieces in the group and its descendants are unique.
    unique_slugs: bool,
    /// The JSON Schema (2020-12) of the custom data of these pieces, unless a descendant has its
    /// own.
    #[schema(value_type = Option<Object>, example = json!({"type": "object"}))]
    custom_data_schema: Option<Box<RawValue>>,
    /// The URL of the page that shows drafts of these pieces, unless a descendant has its own.
    #[schema(example = "https://example.org/preview?id={id}&token={token}")]
    preview_url: Option<String>,
    /// The ancestors, from the top level down.
    #[schema(value_type = Vec<schemas::ContentGroupId>)]
    ancestors: Vec<ContentGroupId>,
    /// The child groups, each with its own subtree.
    #[schema(no_recursion, example = json!([]))]
    descendants: Vec<NestedGroup>,
}

/// Returns the JSON of a group's schema of custom data.
pub fn raw_schema(group: &ContentGroup) -> Option<&RawValue> {
    let schema = group.custom_data_schema.as_ref()?;
    serde_json::from_str(schema.as_str()).ok()
}

/// Returns the text of a group's preview URL.
fn preview_url(group: &ContentGroup) -> Option<&str> {
    group.preview_url.as_ref().map(PreviewUrl::as_str)
}

/// Returns the children of `parent`, each with its own subtree. `path` is the path of `parent`,
/// itself included. The limit on levels of groups bounds the recursion.
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
                unique_slugs: group.unique_slugs,
                custom_data_schema: raw_schema(group).map(ToOwned::to_owned),
                preview_url: preview_url(group).map(ToOwned::to_owned),
                ancestors: path.to_vec(),
                descendants: nest(by_parent, group.id, &below),
            }
        })
        .collect()
}

bodies! {
    /// A new content group.
    NewContentGroup,
    /// A change of a content group.
    ContentGroupChange of ContentGroupId {
        /// The name, without control characters. It need not be unique.
        name: required ContentGroupName = "Posts",
        /// The parent group. Null is the top level. In a new group, absent is the same as null.
        ancestor: optional ContentGroupId,
        /// True if the slugs of the pieces in the group and its descendants must be unique.
        unique_slugs: defaulted bool = false,
        /// A JSON Schema (2020-12) of the custom data of the pieces in the group and its
        /// descendants, at most 65,536 bytes. References must stay within it.
        custom_data_schema: optional CustomDataSchema,
        /// The URL of the page that shows drafts of the pieces in the group and its descendants: an
        /// absolute http or https URL with the placeholder `{token}` for a preview token, and
        /// optionally `{id}` for the piece.
        preview_url: optional PreviewUrl,
    }
}
