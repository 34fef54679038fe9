//! The JSON representation of a piece's import sources.

use galley_domain::import_source::{ImportSource, SourceHash};
use galley_domain::variant::{VariantKey, VariantRef};
use galley_domain::{ContentGroupId, ContentPieceId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::request::{Objects, body};
use crate::schemas;

/// A content piece with the sources that it was imported from.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ContentPieceSources)]
pub struct PieceSourcesBody<'a> {
    /// The identifier of the piece.
    #[schema(value_type = schemas::ContentPieceId)]
    pub id: ContentPieceId,
    /// The group that directly contains the piece.
    #[schema(value_type = schemas::ContentGroupId)]
    pub content_group_id: ContentGroupId,
    /// The name of the file that the piece was imported from.
    #[schema(example = "posts/hello.md")]
    pub filename: Option<&'a str>,
    /// The sources of the piece itself and of its variants, if they were imported.
    pub sources: Vec<ImportSourceBody<'a>>,
}

/// The source of a piece, or of a piece in a variant.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ImportSource)]
pub struct ImportSourceBody<'a> {
    /// The key of the variant; null for the piece itself.
    #[schema(example = "de")]
    variant: Option<&'a str>,
    /// The hash of the source that was last imported.
    #[schema(example = "3f786850e387550fdab836ed7e6dc881")]
    source_hash: &'a str,
    /// The hash of the piece directly after that import.
    #[schema(example = "89e6c98d92887913cadf06b2adb97f26")]
    imported_hash: &'a str,
}

impl<'a> From<&'a (Option<VariantKey>, ImportSource)> for ImportSourceBody<'a> {
    fn from((variant, source): &'a (Option<VariantKey>, ImportSource)) -> Self {
        Self {
            variant: variant.as_ref().map(VariantKey::as_str),
            source_hash: source.source_hash.as_str(),
            imported_hash: source.imported_hash.as_str(),
        }
    }
}

body! {
    /// The source of a piece, or of a piece in a variant.
    new NewImportSource {
        content_piece_id: required ContentPieceId,
        /// The identifier or key of a variant. Absent or null for the piece itself.
        variant: optional VariantRef = "de",
        /// A hash of the source. The importer chooses the algorithm.
        source_hash: required SourceHash = "3f786850e387550fdab836ed7e6dc881",
        /// A hash of the piece directly after the import. The importer chooses the algorithm.
        imported_hash: required SourceHash = "89e6c98d92887913cadf06b2adb97f26",
    }
}

body! {
    /// The sources to record.
    new ContentPieceSourcesUpdate {
        sources: required Objects<NewImportSource>,
    }
}
