//! `GET /content-pieces/list`

use std::io::Write;

use axum::http::HeaderValue;
use galley_api_types::content_piece::ContentPieceBody;
use galley_api_types::request::RequestedTime;
use galley_application::Rejection;
use galley_application::operations::content_pieces::{
    self, PageStart, PieceListRequest, PiecePage, RequestedFilters,
};
use galley_domain::content_piece::without_repeats;
use galley_domain::publication::PublicationState;
use galley_domain::variant::VariantRef;
use galley_domain::{ContentPieceId, Invalid, OrderKey, TagId, Timestamp};
use galley_storage::content_piece_filters::{PieceFilters, PublicationFilter};
use galley_storage::content_piece_list::{Position, Sort, SortKey};
use galley_storage::content_piece_view::size as viewed_size;
use utoipa::{IntoParams, ToSchema};

use crate::extract::actor::PreviewContentPieces;
use crate::extract::pagination::{self, PageRequest};
use crate::extract::query::RequestedId;
use crate::resources::overload;
use crate::respond::large_response::{self, ResponseBuffer};
use crate::respond::page_links;
use crate::respond::response::TOTAL_COUNT;
use crate::routes::content_pieces::format::{FormatParameters, ResponseFormat};
use crate::routes::content_pieces::id_filter::IdFilter;
use crate::routes::prelude::*;

/// The query parameters of filters of pieces.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct PieceFilterParameters {
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
    /// List the pieces with one of these tags: up to 20 identifiers, separated by commas. The
    /// parameter may be repeated.
    tag_id: Option<String>,
    /// List only the pieces with all tags of `tagId`. The pieces with the first tag are read, so
    /// name the rarest tag first.
    #[param(default = false)]
    all_tags: Option<bool>,
    /// List the pieces with this member.
    member_id: Option<String>,
    /// List the pieces that override fields or their content in this variant: its identifier or
    /// key.
    #[param(example = "de")]
    has_variant: Option<String>,
    /// List the pieces that override nothing in this variant: its identifier or key.
    #[param(example = "de")]
    without_variant: Option<String>,
    /// List the pieces in this state of their publication. `scheduled` ones are going to be
    /// published, in whichever state they are now.
    #[param(inline)]
    state: Option<StateSchema>,
}

/// The query parameters of the list of pieces.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
struct PieceListParameters {
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
    /// Return the number of pieces on all pages in the header `Total-Count`: up to 10,000, and
    /// `10000+` if there are more. Counting reads all these pieces.
    #[param(default = false)]
    total: Option<bool>,
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

/// The filter by the state of a publication.
#[derive(ToSchema)]
#[schema(as = PublicationFilter, rename_all = "lowercase")]
#[expect(dead_code, reason = "only its description is used")]
enum StateSchema {
    Draft,
    Published,
    Changed,
    Scheduled,
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
    params(PieceFilterParameters, PieceListParameters, FormatParameters),
    responses((status = 200, body = [ContentPieceBody<'_>])),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<PreviewContentPieces>,
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
    let requested = RequestedList::read(&mut query);
    query.finish()?;
    let variant = requested.variant.clone().map(RequestedId::get).transpose()?;
    let has_cursor = !matches!(requested.start, PageStart::Beginning);
    let sort = requested.sort;
    // No index covers a variant's overrides of the date or title.
    let sorts_all = variant.is_some() && matches!(sort.key, SortKey::Date | SortKey::Title);
    let is_heavy = page.is_heavy(has_cursor)
        || sorts_all
        || requested.sorts_by_another_time()
        || requested.reads_many_references()
        || requested.filters.missing_variant.is_some()
        || requested.filters.filters.publication.is_some()
        || requested.counts;
    let page_max = app.limits().response_size_limit;
    let request = PieceListRequest {
        filters: requested.filters,
        sort,
        start: requested.start,
        per_page: page.per_page(),
        offset: page.offset(has_cursor),
        variant,
        view: format.view(),
        size_limit: page_max,
        is_heavy,
        count_up_to: requested.counts.then_some(TOTAL_MAX + 1),
    };
    let counts_as_load = !is_heavy || staleness.allows_stale();
    let caller = actor.stale_caller(staleness);
    let list = content_pieces::list(&caller, request);
    let page =
        if counts_as_load { list.await? } else { overload::uncounted(Box::pin(list)).await? };
    let PiecePage { pieces: listed, referenced, next, total } = page;
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
    if let Some(total) = total {
        response.headers_mut().insert(TOTAL_COUNT, total_count(total));
    }
    Ok(response)
}

/// The limit on pieces that are counted.
const TOTAL_MAX: i64 = 10_000;

/// Returns the value of `Total-Count`.
fn total_count(total: i64) -> HeaderValue {
    if total <= TOTAL_MAX {
        return HeaderValue::from(total);
    }
    HeaderValue::try_from(format!("{TOTAL_MAX}+")).expect("digits and a plus sign")
}

/// The list that a query requests.
#[derive(Debug, Clone)]
pub(crate) struct RequestedList {
    pub(crate) filters: RequestedFilters,
    sort: Sort,
    start: PageStart,
    variant: Option<RequestedId<VariantRef>>,
    /// True if the pieces of all pages are counted.
    counts: bool,
}

/// The limit on tags in a filter. A list reads a page of pieces for each of them.
const FILTERED_TAGS_LIMIT: usize = 20;

impl RequestedList {
    pub(crate) fn read(query: &mut Query) -> Self {
        let filters = read_filters(query);
        let sort = read_sort(query);
        Self {
            filters,
            sort,
            start: read_start(query, sort),
            variant: query.variant(),
            counts: query.boolean("total"),
        }
    }

    /// Returns true if the references of more pieces are read than those of the page: with another
    /// sort, in a variant, or for several tags of each piece.
    fn reads_many_references(&self) -> bool {
        let filters = &self.filters.filters;
        let in_variant = !filters.tags.is_empty() || filters.member.is_some();
        let is_filtered = in_variant || self.filters.overridden_variant.is_some();
        (is_filtered && self.sort.key != SortKey::Order)
            || (in_variant && self.variant.is_some())
            || (filters.all_tags && filters.tags.len() > 1)
    }

    /// Returns true if a filter is by a time that isn't the sort key. No index has both, so the
    /// pieces in the range are sorted, or those outside are skipped.
    fn sorts_by_another_time(&self) -> bool {
        let filters = &self.filters.filters;
        let filters_by_date = filters.date_from.is_some() || filters.date_to.is_some();
        (filters.updated_since.is_some() && self.sort.key != SortKey::UpdatedAt)
            || (filters_by_date && self.sort.key != SortKey::Date)
    }
}

/// Reads the filters of a list or search.
pub(crate) fn read_filters(query: &mut Query) -> RequestedFilters {
    let groups = IdFilter::read(query, "contentGroupId");
    let pieces = IdFilter::read(query, "ids");
    let tags = IdFilter::<TagId>::read_up_to(query, "tagId", FILTERED_TAGS_LIMIT);
    let all_tags = query.boolean("allTags");
    let member = query.text("memberId").map(|text| text.parse());
    let mut variant = |name| query.text(name).map(|text| text.parse::<VariantRef>());
    let (overridden, missing) = (variant("hasVariant"), variant("withoutVariant"));
    let matches_none = groups.matches_none()
        || pieces.matches_none()
        || tags.matches_none()
        || (all_tags && tags.has_malformed)
        || matches!(member, Some(Err(_)))
        || matches!(overridden, Some(Err(_)))
        || matches!(missing, Some(Err(_)));
    let filters = PieceFilters {
        groups: groups.ids,
        subtree: query.boolean("subtree"),
        within: None,
        ids: pieces.ids,
        updated_since: query.time("updatedSince", Timestamp::parse_iso8601),
        date_from: query.time("dateFrom", Timestamp::parse_iso8601),
        date_to: query.time("dateTo", Timestamp::parse_iso8601_end),
        slug: query.text("slug"),
        tags: without_repeats(tags.ids.unwrap_or_default()),
        all_tags,
        member: member.and_then(Result::ok),
        overridden_variant: None,
        missing_variant: None,
        publication: query.choice("state", &STATES),
    };
    RequestedFilters {
        filters,
        overridden_variant: overridden.and_then(Result::ok),
        missing_variant: missing.and_then(Result::ok),
        matches_none,
    }
}

/// The filters by publication, by their names in queries.
const STATES: [(&str, PublicationFilter); 4] = [
    ("draft", PublicationFilter::State(PublicationState::Draft)),
    ("published", PublicationFilter::State(PublicationState::Published)),
    ("changed", PublicationFilter::State(PublicationState::Changed)),
    ("scheduled", PublicationFilter::Scheduled),
];

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
