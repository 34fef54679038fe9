//! Schemas of the requests to `/content-pieces/sources`.

#![expect(dead_code, reason = "requests are read field by field; only the schemas are used")]

use utoipa::IntoParams;

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
