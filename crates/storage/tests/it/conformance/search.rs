//! Calls of the functions of search indexes.

use galley_domain::publication::ContentView;
use galley_domain::{ContentPieceId, VariantId};
use galley_search::{AnalyzedDocument, Analyzer, DocumentTexts, SearchQuery};
use galley_storage::content_piece_filters::PieceFilters;
use galley_storage::content_piece_view::View;
use galley_storage::search_hits::{Search, SearchedPartition};
use galley_storage::search_indexes::{DocumentTerms, IndexedDocument, Partition};
use galley_storage::{Error, WriteTx, search_hits, search_indexes};

use super::ConformanceFixture;
use crate::store::id;

/// The version of the analysis.
const ANALYSIS: i64 = 1;

/// Returns the slots of the hits of a query, in each of the ways to search.
async fn hits(
    tx: &WriteTx<'_>,
    open: &ConformanceFixture,
    query: &str,
) -> Result<Vec<ContentPieceId>, Error> {
    let workspace = open.workspace;
    let index = search_indexes::find(tx, workspace).await?.unwrap();
    let query = SearchQuery::parse(query, &Analyzer::default(), None);
    let all = PieceFilters::default();
    let groups = Some(vec![open.group]);
    let of_group = PieceFilters { groups, ..PieceFilters::default() };
    let mut found: Option<Vec<ContentPieceId>> = None;
    for (numbers, filters, uses_frequencies) in [
        (&[0][..], &all, true),
        (&[1, 0], &all, true),
        (&[0], &of_group, true),
        (&[0], &of_group, false),
        (&[1, 0], &of_group, false),
    ] {
        let partition = |&number| {
            let prefix = index.prefix(number);
            SearchedPartition { number, prefix, query: &query }
        };
        let partitions = numbers.iter().map(partition).collect();
        let (view, last_row) = (View::default(), index.last_row);
        let search = Search { view, partitions, filters, last_row, uses_frequencies };
        let hits = search_hits::list(tx, workspace, &search).await?;
        assert!(hits.iter().all(|hit| hit.score > 0));
        let pieces = search_hits::pieces(tx, workspace, &search, &hits).await?;
        let pieces: Vec<_> = pieces.into_iter().map(|found| found.piece).collect();
        assert_eq!(*found.get_or_insert(pieces.clone()), pieces);
    }
    Ok(found.unwrap())
}

/// Exercises the search index of a workspace with two pieces.
pub(super) async fn search(tx: &WriteTx<'_>, open: &ConformanceFixture) -> Result<(), Error> {
    let (workspace, first, second) = (open.workspace, open.first.id, open.second.id);
    let is_behind = async || {
        let behind = search_indexes::behind(tx, ANALYSIS, None, 100).await?;
        Ok::<_, Error>(behind.iter().any(|one| one.workspace == workspace))
    };
    assert!(is_behind().await?);
    assert_eq!(search_indexes::find(tx, workspace).await?, None);
    let searched = search_indexes::find_searched(tx, workspace, ContentView::Current, None).await?;
    assert_eq!(searched, None);
    search_indexes::request_rebuild(tx, workspace).await?;
    search_indexes::insert(tx, workspace, ANALYSIS).await?;
    assert!(is_behind().await?);
    let mut index = search_indexes::find_for_update(tx, workspace).await?.unwrap();
    assert_eq!(index.searched_sequence(), 0);
    index.end_rebuild();
    search_indexes::update(tx, workspace, &index).await?;
    search_indexes::request_rebuild(tx, workspace).await?;
    search_indexes::request_rebuild(tx, workspace).await?;
    index = search_indexes::find(tx, workspace).await?.unwrap();
    assert!(index.rebuild_after.is_some() && index.rebuild_again);
    index.end_rebuild();
    assert!(index.rebuild_after.is_some() && !index.rebuild_again);
    index.end_rebuild();
    assert!(index.rebuild_after.is_none() && index.is_complete);
    let changes = search_indexes::changes(tx, workspace, 0, 10).await?;
    assert!(changes.windows(2).all(|two| two[0].sequence + 1 == two[1].sequence));

    let variant = Some(VariantId::new(id()));
    for (number, variant) in [(0, None), (1, variant)] {
        let partition = Partition { view: ContentView::Current, variant };
        search_indexes::insert_partition(tx, workspace, partition, number).await?;
    }
    assert_eq!(search_indexes::partitions(tx, workspace).await?[1].0.variant, variant);
    let engine = tx.full_text_engine();
    let long = "sea ".repeat(300) + &"w ".repeat(20_000) + "end";
    for (number, (piece, partition, title, content)) in (1..).zip([
        (first, 0, "Ferry", "to the islands"),
        (second, 0, "Harbour", long.as_str()),
        (first, 1, "Boat", "to the islands"),
    ]) {
        let texts = DocumentTexts { title, content, ..DocumentTexts::default() };
        let document = AnalyzedDocument::new(&Analyzer::default(), None, &texts);
        let terms = DocumentTerms::new(engine, &document, &index.prefix(partition));
        let row_id = index.last_row + number;
        let indexed = IndexedDocument { piece, partition, row_id, hash: vec![1] };
        search_indexes::insert_documents(tx, workspace, &[(indexed, &terms)]).await?;
    }
    index.last_row += 3;
    search_indexes::update(tx, workspace, &index).await?;
    search_indexes::merge_pending_terms(tx).await?;
    for (view, variant, numbers) in [
        (ContentView::Current, None, (Some(0), None)),
        (ContentView::Current, variant, (Some(0), Some(1))),
        (ContentView::Published, variant, (None, None)),
    ] {
        let found = search_indexes::find_searched(tx, workspace, view, variant).await?.unwrap();
        assert_eq!((found.own, found.of_variant), numbers);
        assert_eq!((found.index, found.language), (index.clone(), None));
    }
    for (query, expected) in [
        ("harbour", vec![second]),
        ("harbour sea \"w end\" -ferry", vec![second]),
        ("harbour -end", vec![]),
        ("title:sea", vec![]),
        ("", vec![]),
    ] {
        assert_eq!(hits(tx, open, query).await?, expected, "{query}");
    }

    let pieces = search_indexes::pieces(tx, workspace, "", 10).await?;
    assert!(pieces.contains(&first) && pieces.contains(&second));
    let documents = search_indexes::documents(tx, workspace, &[first, second]).await?;
    assert_eq!(documents.len(), 3);
    search_indexes::delete_documents(tx, workspace, &documents).await?;
    assert!(search_indexes::documents(tx, workspace, &[first, second]).await?.is_empty());
    assert!(hits(tx, open, "harbour").await?.is_empty());
    Ok(())
}
