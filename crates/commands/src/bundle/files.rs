//! Reading of a bundle's files.

use std::fs;
use std::path::{Path, PathBuf};

use galley_application::operations::import_sources::NewSource;
use galley_domain::content_piece::ContentPiece;
use galley_domain::import_source::ImportSource;
use galley_domain::publication::{Publication, PublishedRevision};
use galley_domain::variant::VariantRef;
use galley_storage::content_piece_revisions::StoredRevision;
use galley_storage::content_piece_variants::Override;
use serde::de::DeserializeOwned;
use walkdir::WalkDir;

use super::format::{self};
use super::revisions::{self, NUMBER_LIMIT, PartStates};
use super::sanitize::{FILE_SIZE_LIMIT, description, references, sanitized_override, tree};
use crate::export::folder;

/// A valid piece of a bundle.
#[derive(Debug, Clone)]
pub(super) struct BundledPiece {
    pub(super) piece: ContentPiece,
    pub(super) content: String,
    /// Its overrides in variants.
    pub(super) overrides: Vec<Override>,
    pub(super) revisions: Vec<StoredRevision>,
    pub(super) sources: Vec<NewSource>,
}

/// Returns the files of the pieces in a fixed order, and messages about missing ones.
pub(super) fn pieces(folder: &Path) -> anyhow::Result<(Vec<PathBuf>, Vec<String>)> {
    let mut missing = Vec::new();
    for name in folder::exported_files(folder).unwrap_or_default() {
        if !folder.join(&name).exists() {
            missing.push(format!("{}: is missing", folder.join(&name).display()));
        }
    }
    let folder = folder.join("pieces");
    if missing.is_empty() && folder.is_symlink() {
        missing.push(format!("{}: is not a folder", folder.display()));
    }
    Ok((json_files(&folder)?, missing))
}

/// Returns the JSON files in a folder and below it, in a fixed order. Links are not followed.
pub(super) fn json_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if !folder.is_dir() || folder.is_symlink() {
        return Ok(files);
    }
    for entry in WalkDir::new(folder).follow_links(false).sort_by_file_name() {
        let entry = entry?;
        if entry.path().extension().is_some_and(|end| end == "json") {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}

/// Reads a file. Error messages begin with its path.
pub(super) fn file<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    parse_file(path).map_err(|problem| anyhow::anyhow!("{}{problem}", path.display()))
}

/// Parses a file. Error messages begin with a colon, and with the line if it is known.
pub(super) fn parse_file<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
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

fn publication(read: format::BundlePublication) -> Publication {
    let format::BundlePublication { published, publish_at, publish_revision, unpublish_at } = read;
    let published = published.map(|format::BundlePublishedRevision { revision, at, by }| {
        PublishedRevision { number: revision, at, by }
    });
    Publication { published, publish_at, publish_revision, unpublish_at }
}

/// Reads a piece and its revisions from a bundle.
pub(super) fn piece(bundle: &Path, path: &Path) -> Result<BundledPiece, String> {
    sanitized(bundle, parse_file(path)?)
}

/// Returns a piece as the service would store it, with its revisions from the bundle.
pub(super) fn sanitized(
    bundle: &Path,
    mut read: format::BundlePiece,
) -> Result<BundledPiece, String> {
    read.description = description(read.description.take())?;
    read.tags = references("tags", read.tags)?;
    read.members = references("members", read.members)?;
    let content = tree("content", &read.content)?;
    let mut overrides = Vec::new();
    for (variant, one) in std::mem::take(&mut read.variants) {
        let (fields, content) = sanitized_override(one)?;
        overrides.push((variant, fields, content));
    }
    let sources = std::mem::take(&mut read.sources).into_iter().map(|one| {
        let format::NotedSource { variant, source_hash, imported_hash } = one;
        let source = ImportSource { source_hash, imported_hash };
        NewSource { piece: read.id, variant: variant.map(VariantRef::Id), source }
    });
    let sources = sources.collect();
    let publication = read.publication.take().map_or_else(Publication::default, publication);
    let mut piece = ContentPiece {
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
        revision: None,
        publication,
        fields: read.into_fields(),
    };
    let states = PartStates::of(&piece, &content, &overrides);
    let revisions = revisions::read(bundle, piece.id, states)?;
    let published = publication.published.map(|published| published.number);
    let published = published.into_iter().chain(publication.publish_revision);
    if let Some(number) = published.clone().find(|number| !(1..NUMBER_LIMIT).contains(number)) {
        return Err(format!(": publication: the revision {number} can't exist"));
    }
    // The bundle lacks the revisions of deleted variants. A published one may be the latest.
    let latest = revisions.last().map(|latest| latest.revision.number);
    piece.revision = Some(published.chain(latest).max().unwrap_or(0));
    Ok(BundledPiece { piece, content, overrides, revisions, sources })
}
