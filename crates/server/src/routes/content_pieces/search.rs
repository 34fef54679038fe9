//! `GET /content-pieces/search`

use std::io::Write;

use axum::http::HeaderValue;
use galley_api_types::search::{HighlightBody, HighlightsBody, RangeBody, SearchHitBody};
use galley_application::operations::search::{self, Highlights, SearchPosition, SearchRequest};
use galley_application::{Error, Rejection};
use galley_domain::Invalid;
use galley_search::Highlight;
use galley_storage::content_piece_view::size as viewed_size;
use galley_storage::search_hits::HITS_LIMIT;
use utoipa::IntoParams;

use crate::extract::actor::ReadContentPieces;
use crate::extract::pagination::{self, DEFAULT_PER_PAGE};
use crate::extract::query::RequestedId;
use crate::respond::large_response::{self, ResponseBuffer};
use crate::respond::page_links;
use crate::respond::response::SEARCH_SEQUENCE;
use crate::routes::content_pieces::format::{FormatParameters, ResponseFormat};
use crate::routes::content_pieces::list::{PieceFilterParameters, read_filters};
use crate::routes::prelude::*;

/// The limit on hits of a page.
const PER_PAGE_MAX: i64 = 100;

/// The limit on bytes of a query.
const QUERY_MAX: usize = 1_024;

/// The parameters of a search besides the filters.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
struct SearchParameters {
    /// The query: words, `"phrases"`, `prefix*`, `-excluded`, and `title:word`, `description:word`
    /// or `content:word`. All words must match. Any text of up to 1,024 bytes is a query; one
    /// without words finds nothing.
    #[param(max_length = 1024, example = "harbour \"old town\"")]
    query: Option<String>,
    /// The limit on hits in a page.
    #[param(minimum = 1, maximum = 100, default = 20, example = 50)]
    per_page: Option<i64>,
    /// The cursor of the next page, from the `Link` header of the previous response.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
}

/// Search content pieces
///
/// Returns the pieces that match the query and all filters, the most relevant first: at most 200 on
/// all pages. Title, description, text of the content, labels of tags, and the strings of custom
/// data that the schema of the group marks with `"x-search": true` are searched. The index follows
/// changes, normally within 100 ms. The header `Search-Sequence` has the `sequence` of the last
/// event that it includes.
#[utoipa::path(
    get,
    path = "/content-pieces/search",
    operation_id = "searchContentPieces",
    params(SearchParameters, PieceFilterParameters, FormatParameters),
    responses((status = 200, body = [SearchHitBody<'_>])),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadContentPieces>,
    mut query: Query,
) -> Result<Response, Problem> {
    let format = ResponseFormat::parse(&mut query);
    let text = read_text(&mut query);
    let per_page = query.integer("perPage", 1, PER_PAGE_MAX).unwrap_or(DEFAULT_PER_PAGE);
    let after = read_cursor(&mut query);
    let filters = read_filters(&mut query);
    let variant = query.variant();
    query.finish()?;
    let request = SearchRequest {
        query: text,
        filters,
        variant: variant.map(RequestedId::get).transpose()?,
        view: format.view(),
        per_page: usize::try_from(per_page).unwrap_or_default(),
        after,
    };
    let mut page = search::search(actor.caller(), request).await?;
    let size = page.hits.iter().map(|hit| viewed_size(&hit.piece)).sum();
    let reservation = large_response::reserve(&app, actor.workspace, size)?;
    let highlight = move || {
        let highlights = page.hits.iter().map(|hit| page.highlights(hit).map(highlights_body));
        let highlights = highlights.collect::<Result<Vec<_>, Error>>()?;
        let scores: Vec<f64> = page.hits.iter().map(|hit| hit.score).collect();
        let pieces = std::mem::take(&mut page.hits).into_iter().map(|hit| hit.piece);
        let shown = pieces.map(|(piece, tree)| (piece, tree.filter(|_| format.content.is_some())));
        Ok::<_, Error>((shown.collect::<Vec<_>>(), scores, highlights, page))
    };
    let (pieces, scores, highlights, page) = app.run_by_size(size, highlight).await??;
    let (shown, reservation) = format.render(&app, pieces, reservation, "perPage").await?;
    let hits = shown.iter().zip(scores).zip(&highlights);
    let write = |out: &mut ResponseBuffer| {
        out.write_all(b"[")?;
        for (index, ((piece, score), highlights)) in hits.clone().enumerate() {
            out.write_all(if index == 0 { b"{\"piece\":" } else { b",{\"piece\":" })?;
            piece.write_json(&page.referenced, out)?;
            write!(out, ",\"score\":{score},\"highlights\":")?;
            serde_json::to_writer(&mut *out, highlights)?;
            out.write_all(b"}")?;
        }
        out.write_all(b"]")
    };
    let size_max = app.limits().response_size_limit;
    let json = large_response::written(&app, reservation, write)?
        .ok_or_else(|| Rejection::response_too_large("perPage", size_max))?;
    let mut response = response::reserved_resource(0, json);
    let next = page.next.map(cursor_text);
    page_links::link_next(&mut response, &query, next.as_deref());
    response.headers_mut().insert(SEARCH_SEQUENCE, HeaderValue::from(page.sequence));
    Ok(response)
}

/// Reads the query. Without one, nothing is found.
fn read_text(query: &mut Query) -> String {
    let text = query.text("query").unwrap_or_default();
    if text.len() > QUERY_MAX {
        query.add_issue("query", &Invalid::too_long(QUERY_MAX, "bytes"));
    }
    text
}

fn read_cursor(query: &mut Query) -> Option<SearchPosition> {
    let cursor = query.text("cursor")?;
    let position = pagination::decode_cursor(&cursor).and_then(|parts| match &parts[..] {
        [kind, last_row, row_id, shown] if kind == "search" => Some(SearchPosition {
            last_row: last_row.parse().ok()?,
            row_id: row_id.parse().ok()?,
            shown: shown.parse().ok().filter(|&shown: &usize| shown <= usize::from(HITS_LIMIT))?,
        }),
        _ => None,
    });
    if position.is_none() {
        query.add_issue("cursor", &Invalid::new("invalid_cursor", "is not a cursor of this list"));
    }
    position
}

fn cursor_text(position: SearchPosition) -> String {
    let SearchPosition { last_row, row_id, shown } = position;
    let numbers = [last_row.to_string(), row_id.to_string(), shown.to_string()];
    let parts: Vec<String> = std::iter::once("search".to_owned()).chain(numbers).collect();
    pagination::encode_cursor(&parts)
}

fn highlights_body(highlights: Highlights) -> HighlightsBody {
    HighlightsBody {
        title: highlights.title.map(highlight_body),
        description: highlights.description.map(highlight_body),
        content: highlights.content.into_iter().map(highlight_body).collect(),
    }
}

fn highlight_body(highlight: Highlight) -> HighlightBody {
    let ranges = highlight.utf16_ranges().into_iter();
    HighlightBody {
        ranges: ranges.map(|range| RangeBody { start: range.start, end: range.end }).collect(),
        text: highlight.text,
    }
}
