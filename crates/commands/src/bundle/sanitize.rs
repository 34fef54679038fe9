//! The limits and the sanitisation of a bundle's values.

use std::collections::HashSet;
use std::hash::Hash;

use galley_application::sanitize;
use galley_content::{ContentLimits, Tree};
use galley_domain::content_piece::{ContentPieceOverrides, Description, REFERENCES_MAX};
use serde_json::Value;

use super::format;

/// The size limit of a file.
pub(super) const FILE_SIZE_LIMIT: u64 = 64 * 1024 * 1024;

/// The size limit of a tree in bytes, as for one in a request.
const TREE_SIZE_LIMIT: usize = 16 * 1024 * 1024;

/// Returns overrides and their content, as the service would store them.
pub(super) fn sanitized_override(
    mut given: format::BundleOverride,
) -> Result<(ContentPieceOverrides, Option<String>), String> {
    given.description = description(given.description.take())?;
    given.tags = given.tags.map(|tags| references("tags", tags)).transpose()?;
    given.members = given.members.map(|members| references("members", members)).transpose()?;
    let content = given.content.as_ref().map(|value| tree("content", value)).transpose()?;
    Ok((given.into_overrides(), content))
}

/// Removes unsafe HTML from a description: the file may come from any source.
pub(super) fn description(given: Option<Description>) -> Result<Option<Description>, String> {
    let clean = |text: Description| sanitize::description(text.into());
    given.map(clean).transpose().map_err(|invalid| format!(": description {invalid}"))
}

/// Returns the ids in the given order without duplicates.
pub(super) fn references<T: Copy + Eq + Hash>(name: &str, ids: Vec<T>) -> Result<Vec<T>, String> {
    let mut seen = HashSet::new();
    let ids: Vec<T> = ids.into_iter().filter(|&id| seen.insert(id)).collect();
    if ids.len() > REFERENCES_MAX {
        return Err(format!(": {name} must have at most {REFERENCES_MAX} items"));
    }
    Ok(ids)
}

/// Returns the tree that the service would produce from the same content.
pub(super) fn tree(name: &str, value: &Value) -> Result<String, String> {
    let wrong = |error: &dyn std::fmt::Display| format!(": {name}: {error}");
    let given = Tree::from_json(&value.to_string()).map_err(|error| wrong(&error))?;
    let made = Tree::from_html(&given.to_html(), &ContentLimits::default());
    let made = made.map_err(|error| wrong(&error))?.to_json_within(TREE_SIZE_LIMIT);
    made.ok_or_else(|| format!(": {name}: exceeds {TREE_SIZE_LIMIT} bytes"))
}
