//! Searches: the pieces that match a query, the most relevant ones first.
//!
//! Both engines find the same pieces, as they compare the same terms. SQLite ranks by BM25;
//! PostgreSQL has no frequencies of terms, and ranks by `ts_rank`.

use std::cmp::Reverse;
use std::collections::HashMap;

use galley_domain::{ContentPieceId, WorkspaceId};
use galley_search::{Clause, SearchQuery, TermPrefix};

use crate::engine::{FullTextEngine, Result, Row, Tx, Value, in_list, params, read_row};
use crate::tables::content_piece_filters::PieceFilters;
use crate::tables::content_piece_view::View;

/// The limit on hits of a search.
pub const HITS_LIMIT: u16 = 200;

/// The limit on matches that are ranked. Of more matches, those that were indexed last are ranked.
const RANKED_LIMIT: i64 = 5_000;

/// The limit on matches that PostgreSQL ranks by all their terms, as it decompresses these. Those
/// after them, by title and description, follow in that order.
const RANKED_BY_TEXT_LIMIT: usize = 100;

/// The weights of title, description, content and other texts in BM25.
const BM25: &str = "bm25(search_terms, 10.0, 4.0, 1.0, 1.0)";

/// The same in `ts_rank`, in the opposite order. The largest weight is 1.
const TS_WEIGHTS: &str = "'{0.1, 0.1, 0.4, 1.0}'";

/// A partition in which is searched, with the query in its language.
#[derive(Debug)]
pub struct SearchedPartition<'q> {
    /// The number of the partition.
    pub number: i64,
    /// The prefix of its terms.
    pub prefix: TermPrefix,
    /// The query.
    pub query: &'q SearchQuery,
}

/// A search.
#[derive(Debug)]
pub struct Search<'q> {
    /// The view of the pieces.
    pub view: View,
    /// The partitions. The document of a piece in an earlier one hides that in a later one.
    pub partitions: Vec<SearchedPartition<'q>>,
    /// The filters of the pieces.
    pub filters: &'q PieceFilters,
    /// The row after which documents are ignored, as they were indexed later.
    pub last_row: i64,
    /// False to rank without the frequencies of terms in other pieces, which the caller may not
    /// see.
    pub uses_frequencies: bool,
}

/// A document that matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// The row of its terms.
    pub row_id: i64,
    /// The relevance, which is comparable within the search only.
    pub score: i64,
}

/// The piece of a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HitPiece {
    /// The row of the hit.
    pub row_id: i64,
    /// The piece.
    pub piece: ContentPieceId,
    /// The partition of the document.
    pub partition: i64,
}

/// Lists the best matches, at most [`HITS_LIMIT`].
pub async fn list(tx: &Tx<'_>, workspace: WorkspaceId, search: &Search<'_>) -> Result<Vec<Hit>> {
    if search.partitions.iter().all(|partition| partition.query.is_empty()) {
        return Ok(Vec::new());
    }
    match tx.full_text_engine() {
        FullTextEngine::Tsvector => search.rank_by_title_and_text(tx, workspace).await,
        FullTextEngine::Fts5 => {
            let mut hits = search.query(tx, search.to_fts5_sql(workspace)).await?;
            if !search.uses_frequencies && !search.has_one_clause() {
                search.rank_without_frequencies(tx, &mut hits).await?;
            }
            // SQLite would sort them in a B-tree, which takes longer.
            sort(&mut hits);
            hits.truncate(HITS_LIMIT.into());
            Ok(hits)
        }
    }
}

/// Sorts hits by relevance, and those of the same relevance by age, the newest first.
fn sort(hits: &mut [Hit]) {
    hits.sort_unstable_by_key(|hit| Reverse((hit.score, hit.row_id)));
}

/// Finds the pieces of some hits, in any order. Hits that no longer exist, or that the document of
/// the piece in an earlier partition hides, are left out.
pub async fn pieces(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    search: &Search<'_>,
    hits: &[Hit],
) -> Result<Vec<HitPiece>> {
    if hits.is_empty() {
        return Ok(Vec::new());
    }
    let mut params = params![workspace].to_vec();
    let rows = in_list("d.row_id", hits.iter().map(|hit| hit.row_id), &mut params);
    let hidden = search.hidden_condition(&mut params);
    let sql = format!(
        "SELECT d.row_id, d.content_piece_id, d.partition_number FROM search_documents d
         WHERE d.workspace_id = ?1{rows}{hidden}"
    );
    tx.query(&sql, &params, |row| Ok(read_row!(row, 0 => HitPiece { row_id, piece, partition })))
        .await
}

impl Search<'_> {
    async fn query(
        &self,
        tx: &Tx<'_>,
        (sql, params): (String, Vec<Value<'_>>),
    ) -> Result<Vec<Hit>> {
        tx.query(&sql, &params, |row| Ok(read_row!(row, 0 => Hit { row_id, score }))).await
    }

    /// Returns the condition that the piece of a row matches the filters.
    fn filter_condition<'v>(&'v self, row_id: &str, params: &mut Vec<Value<'v>>) -> String {
        if *self.filters == PieceFilters::default() {
            return String::new();
        }
        let matches = self.filters.matches(self.view, "d.content_piece_id", params);
        format!(
            " AND EXISTS (SELECT 1 FROM search_documents d
                WHERE d.workspace_id = ?1 AND d.row_id = {row_id}{matches})"
        )
    }

    /// Returns the condition on a document `d`: no earlier partition has its piece.
    fn hidden_condition(&self, params: &mut Vec<Value<'_>>) -> String {
        let [first, _, ..] = self.partitions.as_slice() else { return String::new() };
        params.push(first.number.into());
        let number = params.len();
        format!(
            " AND (d.partition_number = ?{number} OR NOT EXISTS (SELECT 1 FROM search_documents o
                WHERE o.workspace_id = ?1 AND o.content_piece_id = d.content_piece_id
                    AND o.partition_number = ?{number}))"
        )
    }

    fn to_fts5(&self) -> String {
        let of_partition =
            |one: &SearchedPartition<'_>| format!("({})", one.query.to_fts5(&one.prefix));
        let queries = self.partitions.iter().filter(|one| !one.query.is_empty()).map(of_partition);
        queries.collect::<Vec<_>>().join(" OR ")
    }

    fn to_fts5_sql(&self, workspace: WorkspaceId) -> (String, Vec<Value<'_>>) {
        let mut params = vec![workspace.into(), self.to_fts5().into(), self.last_row.into()];
        let filter = self.filter_condition("search_terms.rowid", &mut params);
        // FTS5 computes the rank of the rows that the limit leaves.
        let sql = format!(
            "SELECT search_terms.rowid, CAST({BM25} * -1e12 AS INTEGER) FROM search_terms
             WHERE search_terms MATCH ?2 AND search_terms.rowid <= ?3{filter}
             ORDER BY search_terms.rowid DESC LIMIT {RANKED_LIMIT}"
        );
        (sql, params)
    }

    fn has_one_clause(&self) -> bool {
        let required = |one: &SearchedPartition<'_>| one.query.required().count();
        self.partitions.iter().map(required).sum::<usize>() == 1
    }

    /// Ranks the matches by each clause apart. Relative to the best match, the rank by one clause
    /// does not depend on its frequency.
    async fn rank_without_frequencies(&self, tx: &Tx<'_>, hits: &mut [Hit]) -> Result<()> {
        let rows = hits.iter().map(|hit| hit.row_id);
        let (Some(first), Some(last)) = (rows.clone().min(), rows.max()) else {
            return Ok(());
        };
        let mut scores: HashMap<i64, i64> = hits.iter().map(|hit| (hit.row_id, 0)).collect();
        for partition in &self.partitions {
            let phrase = partition.query.phrase();
            for clause in partition.query.required().chain(&phrase) {
                let sql = format!(
                    "SELECT search_terms.rowid, CAST({BM25} * -1e12 AS INTEGER) FROM search_terms
                     WHERE search_terms MATCH ?1 AND search_terms.rowid BETWEEN ?2 AND ?3"
                );
                let query = clause.to_fts5(&partition.prefix);
                let params = [query.into(), first.into(), last.into()];
                let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
                let mut ranks: Vec<(i64, i64)> = tx.query(&sql, &params, read).await?;
                ranks.retain(|(row, _)| scores.contains_key(row));
                let best = ranks.iter().map(|(_, score)| *score).max().unwrap_or(1).max(1);
                for (row, score) in ranks {
                    let relative = i128::from(score) * 1_000_000_000 / i128::from(best);
                    *scores.entry(row).or_default() += i64::try_from(relative).unwrap_or_default();
                }
            }
        }
        for hit in hits {
            hit.score = scores.get(&hit.row_id).copied().unwrap_or_default();
        }
        Ok(())
    }

    /// Ranks the matches by title and description, and the best of them by all their terms.
    async fn rank_by_title_and_text(
        &self,
        tx: &Tx<'_>,
        workspace: WorkspaceId,
    ) -> Result<Vec<Hit>> {
        let candidates = self.query(tx, self.to_tsvector_sql(workspace)).await?;
        let (ranked, others) = candidates.split_at(candidates.len().min(RANKED_BY_TEXT_LIMIT));
        if ranked.is_empty() {
            return Ok(candidates);
        }
        let mut hits = self.query(tx, self.to_rank_sql(workspace, ranked)).await?;
        sort(&mut hits);
        hits.extend(others.iter().map(|hit| Hit { score: 0, ..*hit }));
        Ok(hits)
    }

    /// Joins the queries of all partitions.
    fn join(&self, query: impl Fn(&SearchedPartition<'_>) -> String) -> String {
        let queries = self.partitions.iter().filter(|one| !one.query.is_empty()).map(query);
        queries.map(|query| format!("({query})")).collect::<Vec<_>>().join(" | ")
    }

    fn to_tsvector_sql(&self, workspace: WorkspaceId) -> (String, Vec<Value<'_>>) {
        let query = self.join(|one| one.query.to_tsquery(&one.prefix));
        let ranking = self.join(|one| one.query.to_ranking_tsquery(&one.prefix));
        let mut params: Vec<Value<'_>> =
            vec![workspace.into(), query.into(), self.last_row.into(), ranking.into()];
        let filter = self.filter_condition("w.row_id", &mut params);
        let split = self.split_rows(&mut params);
        // Without the offset, PostgreSQL would read the newest documents until enough match.
        let ranked = format!(
            "SELECT n.row_id, CAST(ts_rank({TS_WEIGHTS}, n.head, CAST(CAST(?4 AS TEXT) AS tsquery))
                    * 1e12 AS BIGINT) AS score
             FROM (
                SELECT m.row_id, m.head FROM (
                    SELECT w.row_id, w.head FROM search_terms w
                    WHERE w.workspace_id = ?1 AND w.row_id <= ?3 AND NOT w.is_split
                        AND w.terms @@ CAST(CAST(?2 AS TEXT) AS tsquery){filter}
                    UNION ALL SELECT w.row_id, w.head FROM search_terms w
                    WHERE w.workspace_id = ?1 AND w.row_id <= ?3 AND w.is_split AND w.part = 0
                        AND w.row_id IN ({split}){filter}
                    OFFSET 0) AS m
                ORDER BY m.row_id DESC LIMIT {RANKED_LIMIT}) AS n
             ORDER BY score DESC, n.row_id DESC LIMIT {HITS_LIMIT}"
        );
        (ranked, params)
    }

    /// Returns the select of the rank of some hits by all their terms.
    fn to_rank_sql(&self, workspace: WorkspaceId, hits: &[Hit]) -> (String, Vec<Value<'_>>) {
        let ranking = self.join(|one| one.query.to_ranking_tsquery(&one.prefix));
        let mut params: Vec<Value<'_>> = vec![workspace.into(), ranking.into()];
        let query = |number: usize| format!("CAST(CAST(?{number} AS TEXT) AS tsquery)");
        let rank = |query: &str| format!("ts_rank({TS_WEIGHTS}, w.terms, {query}, 1)");
        let mut score = rank(&query(2));
        for one in &self.partitions {
            // The rank by words in a row counts those near each other, too. It is twice as high
            // for a text that has them in a row.
            if let Some(phrase) = one.query.phrase() {
                params.push(phrase.to_tsquery(&one.prefix).into());
                let query = query(params.len());
                let factor = format!("CASE WHEN w.terms @@ {query} THEN 2 ELSE 1 END");
                score = format!("{score} + {} * {factor}", rank(&query));
            }
        }
        let rows = in_list("w.row_id", hits.iter().map(|hit| hit.row_id), &mut params);
        let sql = format!(
            "SELECT w.row_id, CAST(({score}) * 1e12 AS BIGINT) FROM search_terms w
             WHERE w.workspace_id = ?1 AND w.part = 0{rows}"
        );
        (sql, params)
    }

    /// Returns the select of the rows of split documents that match. A part has some of the terms
    /// only, so each clause is met by some part.
    fn split_rows(&self, params: &mut Vec<Value<'_>>) -> String {
        let of_partition = |one: &SearchedPartition<'_>| {
            let mut rows = |clause: &Clause| {
                params.push(clause.to_tsquery(&one.prefix).into());
                format!(
                    "SELECT a.row_id FROM search_terms a WHERE a.workspace_id = ?1 AND a.is_split
                        AND a.terms @@ CAST(CAST(?{} AS TEXT) AS tsquery)",
                    params.len()
                )
            };
            let required: Vec<_> = one.query.required().map(&mut rows).collect();
            let excluded = one.query.clauses().iter().filter(|clause| clause.is_excluded);
            let excluded: Vec<_> = excluded.map(rows).collect();
            let mut select = required.join(" INTERSECT ");
            for rows in excluded {
                select = format!("{select} EXCEPT {rows}");
            }
            format!("({select})")
        };
        let partitions = self.partitions.iter().filter(|one| !one.query.is_empty());
        partitions.map(of_partition).collect::<Vec<_>>().join(" UNION ALL ")
    }
}
