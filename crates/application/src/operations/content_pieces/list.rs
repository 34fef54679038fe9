//! Lists of pieces.

use galley_api_types::content_piece::ReferencedResources;
use galley_domain::content_piece::ContentPiece;
use galley_domain::variant::VariantRef;
use galley_domain::{Invalid, OrderKey};
use galley_storage::content_piece_filters::PieceFilters;
use galley_storage::content_piece_list::{self, PieceListQuery, Position, Sort, SortKey};
use galley_storage::content_piece_view::View;
use galley_storage::{self as storage, Tx};

use crate::caller::Caller;
use crate::error::Error;
use crate::operations::variants;
use crate::references::StateBeforeRead;
use crate::rejection::Rejection;
use crate::scope::Scope;

/// The filters of pieces that a request names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestedFilters {
    /// The filters, without those by the scope and by the overrides of a variant.
    pub filters: PieceFilters,
    /// Lists only pieces with overrides in this variant.
    pub overridden_variant: Option<VariantRef>,
    /// Lists only pieces without overrides in this variant.
    pub missing_variant: Option<VariantRef>,
    /// True if a filter can match no piece.
    pub matches_none: bool,
}

impl RequestedFilters {
    /// Returns the filters with those of the scope. `None` if no piece can match.
    pub(crate) async fn find(
        &self,
        tx: &Tx<'_>,
        scope: &Scope,
    ) -> Result<Option<PieceFilters>, Error> {
        let of_piece = scope.piece.map(|piece| vec![piece]);
        let is_outside = |ids: &Vec<_>| scope.piece.is_some_and(|piece| !ids.contains(&piece));
        if self.matches_none || self.filters.ids.as_ref().is_some_and(is_outside) {
            return Ok(None);
        }
        let mut filters =
            PieceFilters { within: scope.content_groups.clone(), ..self.filters.clone() };
        filters.ids = of_piece.or(filters.ids);
        for (name, filter) in [
            (&self.overridden_variant, &mut filters.overridden_variant),
            (&self.missing_variant, &mut filters.missing_variant),
        ] {
            let Some(name) = name else { continue };
            let Some(found) = storage::variants::find_named(tx, scope.workspace, name).await?
            else {
                return Ok(None);
            };
            *filter = Some(found.id);
        }
        Ok(Some(filters))
    }
}

/// The filters, the sort, the view and the page of a list of pieces.
#[derive(Debug, Clone)]
pub struct PieceListRequest {
    /// The filters.
    pub filters: RequestedFilters,
    /// The sort.
    pub sort: Sort,
    /// The beginning of the page.
    pub start: PageStart,
    /// The limit on pieces of the page.
    pub per_page: i64,
    /// The number of pieces to skip; a page after a cursor skips none.
    pub offset: i64,
    /// The variant whose overrides apply.
    pub variant: Option<VariantRef>,
    /// The parts that are read, without a variant.
    pub view: View,
    /// The limit on bytes of a page. A larger page is rejected.
    pub size_limit: usize,
    /// True if the list is known to take long.
    pub is_heavy: bool,
    /// Counts the pieces of all pages up to this number.
    pub count_up_to: Option<i64>,
}

/// The beginning of a page.
#[derive(Debug, Clone)]
pub enum PageStart {
    /// The first page, or one at an offset.
    Beginning,
    /// The page after the position of a cursor.
    After(Position),
    /// The page after the piece with this order key.
    AfterOrder(OrderKey),
}

/// A page of pieces.
#[derive(Debug, Default)]
pub struct PiecePage {
    /// The pieces, each with its content if it was requested.
    pub pieces: Vec<(ContentPiece, Option<String>)>,
    /// The tags and members of the pieces.
    pub referenced: ReferencedResources,
    /// The position of the last piece, if more follow.
    pub next: Option<Position>,
    /// The number of pieces on all pages, if it was requested.
    pub total: Option<i64>,
}

impl PiecePage {
    /// Returns the page of a list without pieces.
    fn empty(request: &PieceListRequest) -> Self {
        Self { total: request.count_up_to.map(|_| 0), ..Self::default() }
    }
}

/// Lists pieces in the caller's scope.
pub async fn list(caller: &Caller, request: PieceListRequest) -> Result<PiecePage, Error> {
    let (scope, service) = (caller.scope(), caller.service().clone());
    let is_heavy = request.is_heavy;
    let state = StateBeforeRead::of(service.database(), scope.workspace);
    let read = async move |tx: &Tx<'_>| {
        let mut page = list_in(tx, &scope, &request).await?;
        let pieces = page.pieces.iter().map(|(piece, _)| piece);
        let cache = service.references();
        page.referenced = cache.of_pieces(state.as_ref(), tx, scope.workspace, pieces).await?;
        page.referenced.hides_emails = scope.hides_emails;
        Ok(page)
    };
    if is_heavy && !caller.allows_stale() {
        caller.read_long("content_pieces.list", read).await
    } else {
        caller.read("content_pieces.list", read).await
    }
}

async fn list_in(
    tx: &Tx<'_>,
    scope: &Scope,
    request: &PieceListRequest,
) -> Result<PiecePage, Error> {
    let variant = variants::find_named(tx, scope, request.variant.as_ref()).await?;
    let variant = variant.map(|variant| variant.id);
    let view = View { of: scope.view, variant, ..request.view };
    let Some(filters) = request.filters.find(tx, scope).await? else {
        return Ok(PiecePage::empty(request));
    };
    let total = match request.count_up_to {
        Some(limit) => {
            Some(content_piece_list::count(tx, scope.workspace, &filters, view, limit).await?)
        }
        None => None,
    };
    let query = to_list_query(tx, scope, request, filters, view).await?;
    let limit = request.size_limit;
    let (mut pieces, is_too_large) =
        content_piece_list::list_until(tx, scope.workspace, &query, limit).await?;
    if is_too_large {
        return Err(Rejection::response_too_large("perPage", limit).into());
    }
    let shown = usize::try_from(request.per_page).unwrap_or(usize::MAX);
    let has_more = pieces.len() > shown;
    pieces.truncate(shown);
    let last = pieces.last().filter(|_| has_more);
    let next = last.map(|(piece, _)| request.sort.position(piece));
    Ok(PiecePage { pieces, next, total, referenced: ReferencedResources::default() })
}

async fn to_list_query(
    tx: &Tx<'_>,
    scope: &Scope,
    request: &PieceListRequest,
    filters: PieceFilters,
    view: View,
) -> Result<PieceListQuery, Error> {
    let after = match &request.start {
        PageStart::Beginning => None,
        PageStart::After(position) => Some(position.clone()),
        PageStart::AfterOrder(order) => {
            Some(position_of(tx, scope, order, request.sort, view).await?)
        }
    };
    Ok(PieceListQuery {
        filters,
        sort: request.sort,
        offset: request.offset,
        after,
        limit: request.per_page + 1,
        view,
    })
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
        Rejection::of_field("lastOrder", &invalid).into()
    })
}
