//! Searches in pieces, by relevance.

use std::collections::HashMap;

use galley_api_types::content_piece::ReferencedResources;
use galley_domain::ContentPieceId;
use galley_domain::content_piece::ContentPiece;
use galley_domain::language::LanguageTag;
use galley_domain::variant::VariantRef;
use galley_search::{Field, Highlight, Highlighter, Language, SearchQuery};
use galley_storage::content_piece_filters::PieceFilters;
use galley_storage::content_piece_list::{self, PieceListQuery};
use galley_storage::content_piece_view::{PieceInView, View};
use galley_storage::search_hits::{self, Hit, Search, SearchedPartition};
use galley_storage::{Tx, search_indexes};

use crate::caller::Caller;
use crate::error::Error;
use crate::operations::content_pieces::RequestedFilters;
use crate::operations::variants;
use crate::references;
use crate::scope::Scope;
use crate::search::{PieceTexts, analyzer, language};

/// The limit on passages of the content in a hit.
const PASSAGES_LIMIT: usize = 3;

/// A search.
#[derive(Debug, Clone)]
pub struct SearchRequest {
    /// The query; any text.
    pub query: String,
    /// The filters.
    pub filters: RequestedFilters,
    /// The variant in which is searched.
    pub variant: Option<VariantRef>,
    /// The parts that are read, without a variant.
    pub view: View,
    /// The limit on hits of the page.
    pub per_page: usize,
    /// The hit before the page.
    pub after: Option<SearchPosition>,
}

/// A position in the hits of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchPosition {
    /// The last row of the index at the first page. Later rows are ignored on all pages, so that
    /// new hits don't move others.
    pub last_row: i64,
    /// The row of the hit.
    pub row_id: i64,
    /// The number of hits up to it.
    pub shown: usize,
}

/// A page of hits.
#[derive(Debug, Default)]
pub struct SearchPage {
    /// The last event whose change the index has.
    pub sequence: i64,
    /// The hits, the most relevant first.
    pub hits: Vec<FoundPiece>,
    /// The tags and members of the pieces.
    pub referenced: ReferencedResources,
    /// The position of the last hit, if more follow.
    pub next: Option<SearchPosition>,
    /// The query, in the language of pieces themselves, and of the variant.
    queries: Queries,
}

/// A piece that matches.
#[derive(Debug)]
pub struct FoundPiece {
    /// The piece, with its content.
    pub piece: PieceInView,
    /// The relevance, above 0; that of the best hit is 1.
    pub score: f64,
    /// True if the texts are those of the variant.
    is_of_variant: bool,
}

/// The parts of a piece that match.
#[derive(Debug, Default)]
pub struct Highlights {
    /// The title.
    pub title: Option<Highlight>,
    /// The description.
    pub description: Option<Highlight>,
    /// Passages of the content, the best first.
    pub content: Vec<Highlight>,
}

/// A query in the languages of a search.
#[derive(Debug, Default)]
struct Queries {
    own: SearchQuery,
    language: Option<Language>,
    of_variant: Option<(SearchQuery, Option<Language>)>,
}

impl SearchPage {
    /// Returns the parts of a hit that match. Large contents take long.
    pub fn highlights(&self, found: &FoundPiece) -> Result<Highlights, Error> {
        let (piece, tree) = &found.piece;
        // The indexer reports a damaged content.
        let texts =
            PieceTexts::new(piece, tree.as_deref()).or_else(|_| PieceTexts::new(piece, None))?;
        let own = (&self.queries.own, self.queries.language);
        let (query, language) = match &self.queries.of_variant {
            Some((query, language)) if found.is_of_variant => (query, *language),
            _ => own,
        };
        let highlighter = Highlighter::new(analyzer(), language, query);
        Ok(Highlights {
            title: highlighter.whole(Field::Title, &texts.title),
            description: highlighter.whole(Field::Description, &texts.description),
            content: highlighter.passages(Field::Content, &texts.content, PASSAGES_LIMIT),
        })
    }
}

/// Searches pieces in the caller's scope.
///
/// The index may be behind the pieces, so each hit is read from the pieces themselves: a piece that
/// was deleted or unpublished, or that the caller may not see, is no hit.
pub async fn search(caller: &Caller, request: SearchRequest) -> Result<SearchPage, Error> {
    let scope = caller.scope();
    let read = async move |tx: &Tx<'_>| {
        let mut page = search_in(tx, &scope, &request).await?;
        let pieces = page.hits.iter().map(|hit| &hit.piece.0);
        page.referenced = references::of_pieces(tx, scope.workspace, pieces).await?;
        page.referenced.hides_emails = scope.hides_emails;
        Ok(page)
    };
    caller.read_current("search", read).await
}

/// Searches pieces in a transaction, without the tags and members of the hits.
pub async fn search_in(
    tx: &Tx<'_>,
    scope: &Scope,
    request: &SearchRequest,
) -> Result<SearchPage, Error> {
    let workspace = scope.workspace;
    let variant = variants::find_named(tx, scope, request.variant.as_ref()).await?;
    let filters = request.filters.find(tx, scope).await?;
    let variant_id = variant.as_ref().map(|variant| variant.id);
    let searched = search_indexes::find_searched(tx, workspace, scope.view, variant_id).await?;
    let Some(searched) = searched else {
        return Ok(SearchPage::default());
    };
    let index = &searched.index;
    let own = language(searched.language.as_ref().map(LanguageTag::as_str));
    let parse = |language| SearchQuery::parse(&request.query, analyzer(), language);
    let of_variant = variant.as_ref().map(|variant| {
        let language = language(Some(variant.key.as_str()));
        (parse(language), language)
    });
    let queries = Queries { own: parse(own), language: own, of_variant };
    let sequence = index.searched_sequence();
    let Some(filters) = filters else {
        return Ok(SearchPage { sequence, queries, ..SearchPage::default() });
    };
    let partition = |number: Option<i64>, query| {
        let number = number?;
        Some(SearchedPartition { number, prefix: index.prefix(number), query })
    };
    let in_variant =
        queries.of_variant.as_ref().and_then(|(query, _)| partition(searched.of_variant, query));
    let own = partition(searched.own, &queries.own);
    let partitions = in_variant.into_iter().chain(own).collect();
    let view = View { of: scope.view, variant: variant_id, content: true, ..request.view };
    let last_row = request.after.map_or(index.last_row, |after| after.last_row);
    let uses_frequencies = scope.content_groups.is_none() && scope.piece.is_none();
    let search = Search { view, partitions, filters: &filters, last_row, uses_frequencies };
    let hits = search_hits::list(tx, workspace, &search).await?;
    let best = hits.first().map_or(1, |hit| hit.score.max(1));
    let start = request.after.map_or(0, |after| {
        let place = hits.iter().position(|hit| hit.row_id == after.row_id);
        place.map_or(after.shown, |place| place + 1)
    });
    let rest = hits.get(start..).unwrap_or_default();
    let (found, read) = visible(tx, scope, &search, rest, request.per_page).await?;
    let last = rest[..read].last().filter(|_| read < rest.len());
    let next = last.map(|hit| SearchPosition { last_row, row_id: hit.row_id, shown: start + read });
    let found = found.into_iter().map(|(score, partition, piece)| FoundPiece {
        piece,
        score: relative_score(score, best),
        is_of_variant: Some(partition) == searched.of_variant,
    });
    let hits = found.collect();
    Ok(SearchPage { sequence, hits, referenced: ReferencedResources::default(), next, queries })
}

/// Returns a score relative to the best one, above 0, with six decimals.
fn relative_score(score: i64, best: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a score is approximate")]
    let relative = score.max(1) as f64 / best as f64;
    ((relative * 1e6).round() / 1e6).max(1e-6)
}

/// Reads the pieces of hits that still exist, until there are `limit`: each with the score and the
/// partition. Also returns the number of hits that were read.
async fn visible(
    tx: &Tx<'_>,
    scope: &Scope,
    search: &Search<'_>,
    hits: &[Hit],
    limit: usize,
) -> Result<(Vec<(i64, i64, PieceInView)>, usize), Error> {
    let (mut found, mut read) = (Vec::new(), 0);
    while found.len() < limit && read < hits.len() {
        let end = hits.len().min(read + limit - found.len());
        let chunk = &hits[read..end];
        let of_hits = search_hits::pieces(tx, scope.workspace, search, chunk).await?;
        let ids: Vec<ContentPieceId> = of_hits.iter().map(|one| one.piece).collect();
        let within = scope.content_groups.clone();
        let filters = PieceFilters { ids: Some(ids), within, ..PieceFilters::default() };
        let (view, limit) = (search.view, i64::try_from(chunk.len()).unwrap_or(i64::MAX));
        let query = PieceListQuery { filters, limit, view, ..PieceListQuery::default() };
        let pieces = content_piece_list::list(tx, scope.workspace, &query).await?;
        let mut pieces: HashMap<ContentPieceId, PieceInView> =
            pieces.into_iter().map(|piece| (piece.0.id, piece)).collect();
        found.extend(chunk.iter().filter_map(|hit| {
            let of_hit = of_hits.iter().find(|one| one.row_id == hit.row_id)?;
            Some((hit.score, of_hit.partition, pieces.remove(&of_hit.piece)?))
        }));
        read = end;
    }
    Ok((found, read))
}

impl FoundPiece {
    /// Returns the piece without its content.
    pub fn piece(&self) -> &ContentPiece {
        &self.piece.0
    }
}
