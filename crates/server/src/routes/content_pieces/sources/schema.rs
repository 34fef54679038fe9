//! Schemas of the requests to `/content-pieces/sources`.

#![expect(dead_code, reason = "requests are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use utoipa::{IntoParams, ToSchema};

/// The query parameters of the list of sources.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct SourceListParameters {
    /// List the pieces directly in one of these groups: up to 100 identifiers, separated by commas.
    /// The parameter may be repeated.
    content_group_id: Option<String>,
    /// Include the pieces in all groups below these groups.
    #[param(default = false)]
    subtree: Option<bool>,
}

/// The sources to record.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct ContentPieceSourcesUpdate {
    #[schema(min_items = 1, max_items = 100)]
    sources: Vec<NewImportSource>,
}

/// The source of a piece, or of a piece in a variant.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct NewImportSource {
    #[schema(value_type = schemas::ContentPieceId)]
    content_piece_id: String,
    /// The identifier or key of a variant. Absent or null for the piece itself.
    #[schema(example = "de")]
    variant: Option<String>,
    /// A hash of the source. The importer chooses the algorithm.
    #[schema(
        min_length = 1,
        max_length = 128,
        pattern = "^[A-Za-z0-9+/=_:-]+$",
        example = "3f786850e387550fdab836ed7e6dc881"
    )]
    source_hash: String,
    /// A hash of the piece directly after the import. The importer chooses the algorithm.
    #[schema(
        min_length = 1,
        max_length = 128,
        pattern = "^[A-Za-z0-9+/=_:-]+$",
        example = "89e6c98d92887913cadf06b2adb97f26"
    )]
    imported_hash: String,
}
