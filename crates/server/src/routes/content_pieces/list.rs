//! `GET /content-pieces/list`

use std::io::Write;

use galley_api_types::content_piece::ContentPieceBody;
use galley_api_types::request::RequestedTime;
use galley_application::Rejection;
use galley_application::operations::content_pieces::{
    self, PageStart, PieceListRequest, PiecePage,
};
use galley_domain::variant::VariantRef;
use galley_domain::{ContentGroupId, ContentPieceId, Invalid, OrderKey, TagId, Timestamp};
use galley_storage::content_piece_list::{Position, Sort, SortKey};
use galley_storage::content_pieces::size as viewed_size;
use utoipa::{IntoParams, ToSchema};

use crate::extract::actor::ReadContentPieces;
use crate::extract::pagination::{self, PageRequest};
use crate::extract::query::RequestedId;
use crate::resources::overload;
use crate::respond::large_response::{self, ResponseBuffer};
use crate::respond::page_links;
use crate::routes::content_pieces::format::{FormatParameters, ResponseFormat};
use crate::routes::content_pieces::id_filter::IdFilter;
use crate::routes::prelude::*;

/// The query parameters of the list of pieces.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
struct PieceListParameters {
    /// List the pieces directly in one of these groups: up to 100 identifiers, separated by commas.
    /// The parameter may be repeated.
    content_group_id: Option<String>,
    /// Include the pieces in all groups below these groups.
    #[param(default = false)]
    subtree: Option<bool>,
    /// List those of these pieces that exist: up to 100 identifiers, separated by commas. The
    /// parameter may be repeated.
    ids: Option<String>,
    /// List the pieces that were changed at this time or later. With `sort=updatedAt` or
    /// `sort=-updatedAt` only these pieces are read.
    #[param(inline)]
    updated_since: Option<RequestedTime>,
    /// List the pieces with a `date` at this time or later. With `sort=date` or `sort=-date` only
    /// these pieces are read.
    #[param(inline)]
    date_from: Option<RequestedTime>,
    /// List the pieces with a `date` up to this time, included. A date without a time includes the
    /// whole day.
    #[param(inline)]
    date_to: Option<RequestedTime>,
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
#[expect(dead_code, reason = "only its description is used")]
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

/// List content pieces
///
/// Returns the pieces that match all filters. A filter by an unknown identifier matches no piece.
/// With `content=true` a page has at most 100 pieces. A page of more than 64 MiB is rejected with
/// 400: request fewer pieces.
#[utoipa::path(
    get,
    path = "/content-pieces/list",
    operation_id = "listContentPieces",
    params(PieceListParameters, FormatParameters),
    responses((status = 200, body = [ContentPieceBody<'_>])),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadContentPieces>,
    staleness: StalenessBound,
    mut query: Query,
) -> Result<Response, Problem> {
    let format = ResponseFormat::parse(&mut query);
    let per_page_max = if format.content.is_some() {
        pagination::PER_PAGE_WITH_CONTENT_MAX
    } else {
        pagination::PER_PAGE_MAX
    };
    let page = PageRequest::from_query(&mut query, per_page_max);
    let filters = ListFilters::read(&mut query);
    query.finish()?;
    let variant = filters.variant.clone().map(RequestedId::get).transpose()?;
    let has_cursor = !matches!(filters.start, PageStart::Beginning);
    let sort = filters.sort;
    // No index covers a variant's overrides of the date or title.
    let sorts_all = variant.is_some() && matches!(sort.key, SortKey::Date | SortKey::Title);
    let is_heavy = page.is_heavy(has_cursor) || sorts_all || filters.filters_by_unsorted_time();
    let page_max = app.limits().response_size_limit;
    let request = PieceListRequest {
        groups: filters.groups,
        subtree: filters.subtree,
        ids: filters.ids,
        updated_since: filters.updated_since,
        date_from: filters.date_from,
        date_to: filters.date_to,
        slug: filters.slug,
        tag: filters.tag,
        sort,
        start: filters.start,
        per_page: page.per_page(),
        offset: page.offset(has_cursor),
        variant,
        content: format.content.is_some(),
        size_limit: page_max,
        is_heavy,
        matches_none: filters.matches_none,
    };
    let counts_as_load = !is_heavy || staleness.allows_stale();
    let caller = actor.stale_caller(staleness);
    let list = content_pieces::list(&caller, request);
    let page =
        if counts_as_load { list.await? } else { overload::uncounted(Box::pin(list)).await? };
    let PiecePage { pieces: listed, referenced, next } = page;
    let next = next.map(|position| cursor_text(sort, &position));
    let size = listed.iter().map(viewed_size).sum();
    let reservation = large_response::reserve(&app, actor.workspace, size)?;
    let (shown, reservation) = format.render(&app, listed, reservation, "perPage").await?;
    let write = |out: &mut ResponseBuffer| {
        out.write_all(b"[")?;
        for (index, piece) in shown.iter().enumerate() {
            if index > 0 {
                out.write_all(b",")?;
            }
            piece.write_json(&referenced, out)?;
        }
        out.write_all(b"]")
    };
    let json = large_response::written(&app, reservation, write)?
        .ok_or_else(|| Rejection::response_too_large("perPage", page_max))?;
    let mut response = response::reserved_resource(0, json);
    page_links::link_next(&mut response, &query, next.as_deref());
    Ok(response)
}

/// The filters, the sort and the start of the list in the query.
#[derive(Debug, Clone)]
struct ListFilters {
    groups: Option<Vec<ContentGroupId>>,
    subtree: bool,
    ids: Option<Vec<ContentPieceId>>,
    updated_since: Option<Timestamp>,
    date_from: Option<Timestamp>,
    date_to: Option<Timestamp>,
    slug: Option<String>,
    tag: Option<TagId>,
    sort: Sort,
    start: PageStart,
    variant: Option<RequestedId<VariantRef>>,
    /// True if a filter can match no piece.
    matches_none: bool,
}

impl ListFilters {
    fn read(query: &mut Query) -> Self {
        let sort = read_sort(query);
        let groups = IdFilter::read(query, "contentGroupId");
        let pieces = IdFilter::read(query, "ids");
        let tag = query.text("tagId").map(|text| text.parse::<TagId>());
        Self {
            matches_none: groups.matches_none()
                || pieces.matches_none()
                || matches!(tag, Some(Err(_))),
            groups: groups.ids,
            subtree: query.boolean("subtree"),
            ids: pieces.ids,
            updated_since: query.time("updatedSince", Timestamp::parse_iso8601),
            date_from: query.time("dateFrom", Timestamp::parse_iso8601),
            date_to: query.time("dateTo", Timestamp::parse_iso8601_end),
            slug: query.text("slug"),
            tag: tag.and_then(Result::ok),
            sort,
            start: read_start(query, sort),
            variant: query.variant(),
        }
    }

    /// Returns true if a filter is by a time that isn't the sort key. No index has both, so the
    /// pieces in the range are sorted, or those outside are skipped.
    fn filters_by_unsorted_time(&self) -> bool {
        let filters_by_date = self.date_from.is_some() || self.date_to.is_some();
        (self.updated_since.is_some() && self.sort.key != SortKey::UpdatedAt)
            || (filters_by_date && self.sort.key != SortKey::Date)
    }
}

const fn ascending(key: SortKey) -> Sort {
    Sort { key, descending: false }
}

const fn descending(key: SortKey) -> Sort {
    Sort { key, descending: true }
}

/// The sorts, by their names in queries and cursors.
const SORTS: [(&str, Sort); 10] = [
    ("order", ascending(SortKey::Order)),
    ("-order", descending(SortKey::Order)),
    ("date", ascending(SortKey::Date)),
    ("-date", descending(SortKey::Date)),
    ("createdAt", ascending(SortKey::CreatedAt)),
    ("-createdAt", descending(SortKey::CreatedAt)),
    ("updatedAt", ascending(SortKey::UpdatedAt)),
    ("-updatedAt", descending(SortKey::UpdatedAt)),
    ("title", ascending(SortKey::Title)),
    ("-title", descending(SortKey::Title)),
];

fn read_sort(query: &mut Query) -> Sort {
    query.choice("sort", &SORTS).unwrap_or(ascending(SortKey::Order))
}

fn read_start(query: &mut Query, sort: Sort) -> PageStart {
    let malformed = Invalid::new("invalid_cursor", "is not a cursor of this list");
    let last_order = query.text("lastOrder");
    if let Some(cursor) = query.text("cursor") {
        let position =
            pagination::decode_cursor(&cursor).and_then(|parts| position_from_cursor(sort, &parts));
        return match position {
            Some(position) => PageStart::After(position),
            None => {
                query.add_issue("cursor", &malformed);
                PageStart::Beginning
            }
        };
    }
    let Some(last_order) = last_order else { return PageStart::Beginning };
    match OrderKey::parse(&last_order) {
        Ok(order) => PageStart::AfterOrder(order),
        Err(_) => {
            query.add_issue("lastOrder", &malformed);
            PageStart::Beginning
        }
    }
}

/// Returns the sort's name in a cursor. A cursor of one sort is invalid with another sort.
fn sort_name(sort: Sort) -> &'static str {
    SORTS.iter().find(|(_, known)| *known == sort).map_or("", |(name, _)| name)
}

fn cursor_text(sort: Sort, position: &Position) -> String {
    let mut parts = vec![sort_name(sort).to_owned()];
    match position {
        Position::Order(key) | Position::Id(key) => parts.push(key.clone()),
        Position::Time(time, id) => parts.extend([time.to_string(), id.clone()]),
        Position::Title(title, id) => parts.extend([title.clone(), id.clone()]),
    }
    pagination::encode_cursor(&parts)
}

fn position_from_cursor(sort: Sort, parts: &[String]) -> Option<Position> {
    let (name, values) = parts.split_first()?;
    if *name != sort_name(sort) {
        return None;
    }
    let piece_id = |id: &String| id.parse::<ContentPieceId>().is_ok();
    match (sort.key, values) {
        (SortKey::Order, [key]) => OrderKey::parse(key).ok().map(|_| Position::Order(key.clone())),
        (SortKey::CreatedAt, [id]) if piece_id(id) => Some(Position::Id(id.clone())),
        (SortKey::Date | SortKey::UpdatedAt, [time, id]) if piece_id(id) => {
            Some(Position::Time(time.parse().ok()?, id.clone()))
        }
        (SortKey::Title, [title, id]) if piece_id(id) && !title.contains('\0') => {
            Some(Position::Title(title.clone(), id.clone()))
        }
        _ => None,
    }
}
