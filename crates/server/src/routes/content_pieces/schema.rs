//! Schemas of the requests to `/content-pieces`.

#![expect(dead_code, reason = "requests are read field by field; only the schemas are used")]

use utoipa::{IntoParams, ToSchema};

/// The query parameters of the list of pieces.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct PieceListParameters {
    /// List the pieces directly in one of these groups: up to 100 identifiers, separated by commas.
    /// The parameter may be repeated.
    content_group_id: Option<String>,
    /// Include the pieces in all groups below these groups.
    #[param(default = false)]
    subtree: Option<bool>,
    /// List the pieces with exactly this slug.
    slug: Option<String>,
    /// List the pieces with this tag.
    tag_id: Option<String>,
    #[param(inline, default = "order")]
    sort: Option<SortSchema>,
    /// The page number, from 1. Ignored with `cursor` or `lastOrder`.
    #[param(minimum = 1, maximum = 1_000_000_000_000_i64, default = 1, example = 1)]
    page: Option<i64>,
    /// The limit on pieces in a page. With `content=true` it is at most 100.
    #[param(minimum = 1, maximum = 1000, default = 20, example = 50)]
    per_page: Option<i64>,
    /// The `order` of a piece. The list continues after it.
    #[param(pattern = "^([0-9A-Za-z]{5})*(?!0{5})[0-9A-Za-z]{5}$")]
    last_order: Option<String>,
    /// The cursor of the next page, from the `Link` header of the previous response.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
}

/// The sort key of the list. A leading `-` reverses the order.
#[derive(ToSchema)]
#[schema(as = Sort)]
enum SortSchema {
    #[schema(rename = "order")]
    Order,
    #[schema(rename = "-order")]
    OrderDown,
    #[schema(rename = "date")]
    Date,
    #[schema(rename = "-date")]
    DateDown,
    #[schema(rename = "createdAt")]
    CreatedAt,
    #[schema(rename = "-createdAt")]
    CreatedAtDown,
    #[schema(rename = "updatedAt")]
    UpdatedAt,
    #[schema(rename = "-updatedAt")]
    UpdatedAtDown,
    #[schema(rename = "title")]
    Title,
    #[schema(rename = "-title")]
    TitleDown,
}
