//! The JSON of pieces, and of files.

use std::collections::BTreeMap;

use anyhow::Context;
use galley_domain::publication::{Publication, PublishedRevision};
use galley_storage::content_piece_variants::Override;
use galley_storage::content_piece_view::PieceInView;
use galley_storage::import_sources::PieceSource;
use serde::Serialize;
use serde_json::Value;

use super::format;

/// Formats a value as indented JSON, readable for people and diff tools.
pub(super) fn text(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// Returns the JSON of a publication, if there is any.
fn bundle_publication(publication: &Publication) -> Option<format::BundlePublication> {
    let Publication { published, publish_at, publish_revision, unpublish_at } = *publication;
    let published = published.map(|PublishedRevision { number, at, by }| {
        format::BundlePublishedRevision { revision: number, at, by }
    });
    (*publication != Publication::default()).then_some(format::BundlePublication {
        published,
        publish_at,
        publish_revision,
        unpublish_at,
    })
}

/// Returns the JSON of a piece.
pub(super) fn bundle_piece(
    (piece, content): PieceInView,
    overrides: Vec<Override>,
    sources: Vec<PieceSource>,
) -> anyhow::Result<format::BundlePiece> {
    let tree = |json: &str| -> anyhow::Result<Value> {
        let tree = format::from_json(json.as_bytes());
        tree.with_context(|| format!("the content of {}", piece.id))
    };
    let mut variants = BTreeMap::new();
    for (variant, overrides, content) in overrides {
        let content = content.as_deref().map(tree).transpose()?;
        variants.insert(variant, format::BundleOverride::new(overrides, content));
    }
    let content = tree(content.as_deref().context("content was asked for")?)?;
    Ok(format::with_fields_of!(piece.fields => format::BundlePiece {
        id: piece.id,
        content_group_id: piece.content_group_id,
        order: piece.order,
        created_at: piece.created_at,
        updated_at: piece.updated_at,
        created_by: piece.created_by,
        updated_by: piece.updated_by,
        content,
        variants,
        publication: bundle_publication(&piece.publication),
        sources: sources
            .into_iter()
            .map(|one| format::NotedSource {
                variant: one.variant,
                source_hash: one.source.source_hash,
                imported_hash: one.source.imported_hash,
            })
            .collect(),
    }))
}
