//! `GET /content-pieces/list`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::content_piece::{ContentPieceBody, ReferencedResources};
use galley_api_types::problem::{Issue, Step};
use galley_application::operations::variants;
use galley_application::{Error, Rejection, Scope, StalenessBound, references};
use galley_domain::variant::VariantRef;
use galley_domain::{ContentGroupId, ContentPieceId, Invalid, OrderKey, TagId};
use galley_storage::Tx;
use galley_storage::content_piece_list::{self, ListQuery, Position, Sort, SortKey};
use galley_storage::content_pieces::{self, View};

use super::format::{FormatParameters, ResponseFormat};
use super::groups::GroupFilter;
use super::schema::ListParameters;
use crate::app::App;
use crate::extract::actor::{Actor, ReadContentPieces};
use crate::extract::pagination::{self, PageRequest};
use crate::extract::query::{Query, RequestedId};
use crate::problem::Problem;
use crate::resources::overload;
use crate::respond::{large_response, page_links, response};

/// List content pieces
///
/// Returns the pieces that match all filters. A filter by an unknown identifier matches no piece.
/// With `content=true` a page has at most 100 pieces. A page of more than 64 MiB is rejected with
/// 400: request fewer pieces.
#[utoipa::path(
    get,
    path = "/content-pieces/list",
    operation_id = "listContentPieces",
    params(ListParameters, FormatParameters),
    responses((status = 200, body = [ContentPieceBody<'_>])),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadContentPieces>,
    staleness: StalenessBound,
    mut query: Query,
) -> Result<Response, Problem> {
    let format = ResponseFormat::parse(&mut query);
    let most = if format.content.is_some() {
        pagination::PER_PAGE_WITH_CONTENT_MAX
    } else {
        pagination::PER_PAGE_MAX
    };
    let page = PageRequest::from_query(&mut query, most);
    let asked = ListRequest::read(&mut query);
    query.finish()?;
    let variant = asked.variant.clone().map(RequestedId::get).transpose()?;
    let has_cursor = !matches!(asked.start, Start::Beginning);
    // No index covers a variant's overrides of the date or title.
    let sorts_all = variant.is_some() && matches!(asked.sort.key, SortKey::Date | SortKey::Title);
    let scope = actor.scope();
    let sort = asked.sort;
    let heavy = page.is_heavy(has_cursor) || sorts_all || page.is_large();
    let page_max = app.limits().response_size_limit;
    let read = async move |tx: &Tx<'_>| {
        let variant = variants::find_named(tx, &scope, variant.as_ref()).await?;
        if asked.names_nothing {
            return Ok((Vec::new(), None, ReferencedResources::default()));
        }
        let view =
            View { variant: variant.map(|variant| variant.id), content: format.content.is_some() };
        let list = asked.to_list_query(tx, &scope, page, view).await?;
        let (mut listed, was_much) =
            content_piece_list::list_until(tx, scope.workspace, &list, page_max).await?;
        if was_much {
            return Err(Rejection::response_too_large("perPage", page_max).into());
        }
        let next =
            page.truncate(&mut listed).map(|(last, _)| cursor_text(sort, &sort.position(last)));
        let pieces = listed.iter().map(|(piece, _)| piece);
        let referenced = references::of_pieces(tx, scope.workspace, pieces).await?;
        Ok::<_, Error>((listed, next, referenced))
    };
    let database = app.database();
    let (listed, next, referenced) = if staleness.allows_stale() {
        staleness.read(database, "content_pieces.list", read).await?
    } else if heavy {
        overload::uncounted(Box::pin(database.read_long("content_pieces.list", read))).await?
    } else {
        database.read("content_pieces.list", read).await?
    };
    let size = listed.iter().map(content_pieces::size).sum();
    let space = large_response::reserve(&app, actor.workspace, size)?;
    let (shown, space) = format.render(&app, listed, space, "perPage").await?;
    let bodies: Vec<_> = shown.iter().map(|piece| piece.body(&referenced)).collect();
    let made = large_response::json(&app, space, &bodies)?
        .ok_or_else(|| Rejection::response_too_large("perPage", page_max))?;
    let mut response = response::reserved_resource(0, made);
    page_links::link_next(&mut response, &query, next.as_deref());
    Ok(response)
}

/// The filters, the sort and the start of the list in the query.
#[derive(Debug, Clone)]
struct ListRequest {
    groups: Option<Vec<ContentGroupId>>,
    subtree: bool,
    slug: Option<String>,
    tag: Option<TagId>,
    sort: Sort,
    start: Start,
    variant: Option<RequestedId<VariantRef>>,
    /// True if a filter can match no piece.
    names_nothing: bool,
}

#[derive(Debug, Clone)]
enum Start {
    Beginning,
    After(Position),
    AfterOrder(OrderKey),
}

impl ListRequest {
    fn read(query: &mut Query) -> Self {
        let sort = read_sort(query);
        let groups = GroupFilter::read(query);
        let tag = query.text("tagId").map(|text| text.parse::<TagId>());
        Self {
            names_nothing: groups.names_nothing || matches!(tag, Some(Err(_))),
            groups: groups.ids,
            subtree: query.boolean("subtree"),
            slug: query.text("slug"),
            tag: tag.and_then(Result::ok),
            sort,
            start: read_start(query, sort),
            variant: query.variant(),
        }
    }

    async fn to_list_query(
        &self,
        tx: &Tx<'_>,
        scope: &Scope,
        page: PageRequest,
        view: View,
    ) -> Result<ListQuery, Error> {
        let after = match &self.start {
            Start::Beginning => None,
            Start::After(position) => Some(position.clone()),
            Start::AfterOrder(order) => Some(position_of(tx, scope, order, self.sort, view).await?),
        };
        Ok(ListQuery {
            groups: self.groups.clone(),
            subtree: self.subtree,
            within: scope.content_groups.clone(),
            slug: self.slug.clone(),
            tag: self.tag,
            sort: self.sort,
            offset: page.offset(after.is_some()),
            after,
            limit: page.limit(),
            view,
        })
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

fn read_start(query: &mut Query, sort: Sort) -> Start {
    let malformed = Invalid::new("invalid_cursor", "is not a cursor of this list");
    let last_order = query.text("lastOrder");
    if let Some(cursor) = query.text("cursor") {
        let position =
            pagination::decode_cursor(&cursor).and_then(|parts| position_from_cursor(sort, &parts));
        return match position {
            Some(position) => Start::After(position),
            None => {
                query.add_issue("cursor", &malformed);
                Start::Beginning
            }
        };
    }
    let Some(last_order) = last_order else { return Start::Beginning };
    match OrderKey::parse(&last_order) {
        Ok(order) => Start::AfterOrder(order),
        Err(_) => {
            query.add_issue("lastOrder", &malformed);
            Start::Beginning
        }
    }
}

/// Returns the position of the piece with this `order` in a list of any sort.
///
/// In a list sorted by order, the position is known even after the piece is deleted. With other
/// sorts, a deleted piece is an error.
async fn position_of(
    tx: &Tx<'_>,
    scope: &Scope,
    order: &OrderKey,
    sort: Sort,
    view: View,
) -> Result<Position, Error> {
    if sort.key == SortKey::Order {
        return Ok(Position::Order(order.as_str().to_owned()));
    }
    let view = View { content: false, ..view };
    let found = content_piece_list::find_by_order(tx, scope.workspace, order, view).await?;
    let visible = match &found {
        Some((piece, _)) => scope.contains_group(tx, piece.content_group_id).await?,
        None => false,
    };
    found.filter(|_| visible).map(|(piece, _)| sort.position(&piece)).ok_or_else(|| {
        let message = "names a piece that does not exist; with this sort, use the Link header";
        let invalid = Invalid::new("invalid_cursor", message);
        let issue = Issue::new(vec![Step::Field("lastOrder".to_owned())], &invalid);
        Rejection::of_issues(vec![issue]).into()
    })
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
