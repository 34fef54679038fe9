//! Reading of a bundle's files.

use std::collections::HashSet;
use std::fs;
use std::hash::Hash;
use std::path::{Path, PathBuf};

use galley_application::operations::import_sources::NewSource;
use galley_application::sanitize;
use galley_content::{ContentLimits, Tree};
use galley_domain::content_piece::{ContentPiece, Description, REFERENCES_MAX};
use galley_domain::import_source::ImportSource;
use galley_domain::variant::VariantRef;
use galley_storage::content_piece_variants::Override;
use serde::de::DeserializeOwned;
use serde_json::Value;
use walkdir::WalkDir;

use super::format::{self};
use crate::export::folder;

/// The size limit of a tree in bytes, as for one in a request.
const TREE_SIZE_LIMIT: usize = 16 * 1024 * 1024;

/// The size limit of a file.
const FILE_SIZE_LIMIT: u64 = 64 * 1024 * 1024;

/// A valid piece with its content, its overrides in variants, and its sources.
pub(super) type BundledPiece = (ContentPiece, String, Vec<Override>, Vec<NewSource>);

/// Returns the files of the pieces in a fixed order, and messages about missing ones.
pub(super) fn pieces(folder: &Path) -> anyhow::Result<(Vec<PathBuf>, Vec<String>)> {
    let mut missing = Vec::new();
    for name in folder::exported_files(folder).unwrap_or_default() {
        if !folder.join(&name).exists() {
            missing.push(format!("{}: is missing", folder.join(&name).display()));
        }
    }
    let folder = folder.join("pieces");
    if !folder.is_dir() || folder.is_symlink() {
        if missing.is_empty() && folder.is_symlink() {
            missing.push(format!("{}: is not a folder", folder.display()));
        }
        return Ok((Vec::new(), missing));
    }
    let mut files = Vec::new();
    for entry in WalkDir::new(folder).follow_links(false).sort_by_file_name() {
        let entry = entry?;
        if entry.path().extension().is_some_and(|end| end == "json") {
            files.push(entry.into_path());
        }
    }
    Ok((files, missing))
}

/// Reads a file. Error messages begin with its path.
pub(super) fn file<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    parse_file(path).map_err(|problem| anyhow::anyhow!("{}{problem}", path.display()))
}

/// Parses a file. Error messages begin with a colon, and with the line if it is known.
fn parse_file<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let metadata = fs::symlink_metadata(path).map_err(|error| format!(": {error}"))?;
    if !metadata.is_file() {
        return Err(": is not a regular file and is skipped".to_owned());
    }
    let size = metadata.len();
    if size > FILE_SIZE_LIMIT {
        return Err(format!(": has {size} bytes, more than the limit of {FILE_SIZE_LIMIT}"));
    }
    let text = fs::read(path).map_err(|error| format!(": {error}"))?;
    format::from_json(&text).map_err(|error| match error.line() {
        0 => format!(": {error}"),
        line => format!(":{line}: {error}"),
    })
}

pub(super) fn piece(path: &Path) -> Result<BundledPiece, String> {
    let mut read: format::BundlePiece = parse_file(path)?;
    read.description = description(read.description.take())?;
    read.tags = references("tags", read.tags)?;
    read.members = references("members", read.members)?;
    let content = tree("content", &read.content)?;
    let mut overrides = Vec::new();
    for (variant, mut one) in std::mem::take(&mut read.variants) {
        one.description = description(one.description.take())?;
        one.tags = one.tags.map(|tags| references("tags", tags)).transpose()?;
        one.members = one.members.map(|members| references("members", members)).transpose()?;
        let content = one.content.as_ref().map(|value| tree("content", value)).transpose()?;
        overrides.push((variant, one.into_overrides(), content));
    }
    let sources = std::mem::take(&mut read.sources).into_iter().map(|one| {
        let format::NotedSource { variant, source_hash, imported_hash } = one;
        let source = ImportSource { source_hash, imported_hash };
        NewSource { piece: read.id, variant: variant.map(VariantRef::Id), source }
    });
    let sources = sources.collect();
    let piece = ContentPiece {
        id: read.id,
        content_group_id: read.content_group_id,
        order: read.order.clone(),
        placed_at: read.created_at,
        // The restore assigns another version.
        version: 1,
        created_at: read.created_at,
        updated_at: read.updated_at,
        created_by: read.created_by,
        updated_by: read.updated_by,
        // The restore finds them by the overrides.
        variants: Vec::new(),
        fields: read.into_fields(),
    };
    Ok((piece, content, overrides, sources))
}

/// Removes unsafe HTML from a description: the file may come from any source.
fn description(given: Option<Description>) -> Result<Option<Description>, String> {
    let clean = |text: Description| sanitize::description(text.into());
    given.map(clean).transpose().map_err(|invalid| format!(": description {invalid}"))
}

/// Returns the ids in the given order without duplicates.
fn references<T: Copy + Eq + Hash>(name: &str, ids: Vec<T>) -> Result<Vec<T>, String> {
    let mut seen = HashSet::new();
    let ids: Vec<T> = ids.into_iter().filter(|&id| seen.insert(id)).collect();
    if ids.len() > REFERENCES_MAX {
        return Err(format!(": {name} must have at most {REFERENCES_MAX} items"));
    }
    Ok(ids)
}

/// Returns the tree that the service would produce from the same content.
fn tree(name: &str, value: &Value) -> Result<String, String> {
    let wrong = |error: &dyn std::fmt::Display| format!(": {name}: {error}");
    let given = Tree::from_json(&value.to_string()).map_err(|error| wrong(&error))?;
    let made = Tree::from_html(&given.to_html(), &ContentLimits::default());
    let made = made.map_err(|error| wrong(&error))?.to_json_within(TREE_SIZE_LIMIT);
    made.ok_or_else(|| format!(": {name}: exceeds {TREE_SIZE_LIMIT} bytes"))
}
