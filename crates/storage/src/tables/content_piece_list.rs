//! Lists of pieces: by filters ([`crate::tables::content_piece_filters`]), in any order, from a
//! page or a position.
//!
//! One statement returns the rows of a page, whatever its size. Two more read the tags and members
//! that the rows refer to ([`crate::tables::tags::find_all`],
//! [`crate::tables::members::profiles`]).

use galley_domain::content_piece::ContentPiece;
use galley_domain::{OrderKey, Timestamp, WorkspaceId};

use crate::engine::{Result, Tx, Value, row};
use crate::tables::content_piece_filters::{NO_DATE, PieceFilters, ReferenceRows, date_expression};
use crate::tables::content_piece_view::{self, PieceInView, View};
use crate::tables::piece_tables::tables;

/// The sort key of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortKey {
    /// The pieces' own order.
    #[default]
    Order,
    /// The author's date; pieces without one count as the earliest.
    Date,
    /// The time of creation.
    CreatedAt,
    /// The time of the last change.
    UpdatedAt,
    /// The title, byte by byte.
    Title,
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sort {
    /// The sort key.
    pub key: SortKey,
    /// True for descending order.
    pub descending: bool,
}

/// A position in a sorted list: the sort values of one of its pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Position {
    /// The order key.
    Order(String),
    /// A time, and the id of the piece.
    Time(i64, String),
    /// The id of the piece.
    Id(String),
    /// A title, and the id of the piece.
    Title(String, String),
}

/// The filters, the order and the page of a list.
#[derive(Debug, Clone, Default)]
pub struct PieceListQuery {
    /// The filters.
    pub filters: PieceFilters,
    /// The order.
    pub sort: Sort,
    /// Pieces after this position only.
    pub after: Option<Position>,
    /// The limit of the page.
    pub limit: i64,
    /// The number of pieces to skip.
    pub offset: i64,
    /// The view. With a variant, title and date are those of the variant.
    pub view: View,
}

impl Sort {
    /// Returns the position of `piece` in a list with this order.
    pub fn position(self, piece: &ContentPiece) -> Position {
        let id = piece.id.to_string();
        match self.key {
            SortKey::Order => Position::Order(piece.order.as_str().to_owned()),
            SortKey::Date => Position::Time(piece.fields.date.map_or(NO_DATE, Timestamp::ms), id),
            SortKey::CreatedAt => Position::Id(id),
            SortKey::UpdatedAt => Position::Time(piece.updated_at.ms(), id),
            SortKey::Title => Position::Title(piece.fields.title.as_str().to_owned(), id),
        }
    }

    /// Returns the sort expressions, as the indexes have them. No index covers values that a
    /// variant may override.
    fn expressions(self, in_variant: bool) -> Vec<&'static str> {
        match self.key {
            SortKey::Title if in_variant => vec![
                "substr(COALESCE(v.title, p.title), 1, 200)",
                "COALESCE(v.title, p.title)",
                "p.id",
            ],
            SortKey::Order => vec!["p.order_key"],
            SortKey::Date => vec![date_expression(in_variant), "p.id"],
            SortKey::CreatedAt => vec!["p.id"],
            SortKey::UpdatedAt => vec!["p.updated_at_ms", "p.id"],
            SortKey::Title => vec!["substr(p.title, 1, 200)", "p.title", "p.id"],
        }
    }
}

/// Finds the piece with this order key.
pub async fn find_by_order(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    order: &OrderKey,
    view: View,
) -> Result<Option<PieceInView>> {
    let mut params = row![workspace, order].to_vec();
    let select = view.select(&mut params);
    let sql = format!("{select} WHERE p.workspace_id = ?1 AND p.order_key = ?2");
    tx.find(&sql, &params, |row| view.read(row)).await
}

/// Lists pieces.
pub async fn list(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    query: &PieceListQuery,
) -> Result<Vec<PieceInView>> {
    Ok(list_until(tx, workspace, query, usize::MAX).await?.0)
}

/// Lists pieces until their total size reaches `bytes`. Also returns true if pieces were left out.
pub async fn list_until(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    query: &PieceListQuery,
    bytes: usize,
) -> Result<(Vec<PieceInView>, bool)> {
    let (sql, params) = statement(workspace, query);
    let mut read = 0;
    let is_enough = |viewed: &PieceInView| {
        read += content_piece_view::size(viewed);
        read >= bytes
    };
    tx.query_until(&sql, &params, |row| query.view.read(row), is_enough).await
}

/// Returns the number of pieces that match the filters, up to `limit`.
pub async fn count(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    filters: &PieceFilters,
    view: View,
    limit: i64,
) -> Result<i64> {
    let mut params = vec![Value::from(workspace), limit.into()];
    let view = View { content: false, ..view };
    let tables = view.tables(&mut params);
    let filters = filters.sql(view, &mut params);
    // With a variant, only the tables of the pieces use its parameter.
    let by_rows = view.variant.is_none();
    let ids = if filters.sources.is_empty() {
        let conditions = &filters.of_pieces;
        format!("SELECT p.id {tables} WHERE p.workspace_id = ?1{conditions} LIMIT ?2")
    } else {
        union_of(filters.sources.iter().map(|one| filters.ids(one, &tables, by_rows, " LIMIT ?2")))
    };
    let sql = format!("SELECT count(*) FROM ({ids}) AS matching");
    let counted = tx.find(&sql, &params, |row| row.get(0)).await?;
    Ok(counted.unwrap_or(0).min(limit))
}

fn statement(workspace: WorkspaceId, query: &PieceListQuery) -> (String, Vec<Value<'_>>) {
    let mut params = vec![Value::from(workspace), query.limit.into(), query.offset.into()];
    let select = query.view.select(&mut params);
    let filters = query.filters.sql(query.view, &mut params);
    let direction = if query.sort.descending { " DESC" } else { "" };
    let order_by = |sort: &[&str]| {
        let columns: Vec<_> = sort.iter().map(|column| format!("{column}{direction}")).collect();
        format!(" ORDER BY {}", columns.join(", "))
    };
    let sort_of_pieces = query.sort.expressions(query.view.variant.is_some());
    let by_rows = query.sort.key == SortKey::Order && !filters.sources.is_empty();
    let sort = if by_rows { vec!["t.order_key"] } else { sort_of_pieces.clone() };
    let after = query.after.as_ref().map_or_else(String::new, |position| {
        after_filter(position, &sort, query.sort.descending, &mut params)
    });
    let order = order_by(&sort);
    if filters.sources.len() > 1 {
        // The first pieces with each tag include the first pieces with any of them.
        params.push((query.limit + query.offset).into());
        let rest = format!("{after}{order} LIMIT ?{}", params.len());
        let pieces = format!("FROM {} p", tables(query.view.of).pieces);
        let ids = filters.sources.iter().map(|one| filters.ids(one, &pieces, by_rows, &rest));
        let (ids, order) = (union_of(ids), order_by(&sort_of_pieces));
        let sql = format!(
            "{select} WHERE p.workspace_id = ?1 AND p.id IN ({ids}){order} LIMIT ?2 OFFSET ?3"
        );
        return (sql, params);
    }
    let join = filters.sources.first().map_or_else(String::new, ReferenceRows::join);
    let mut conditions = filters.of_pieces + &filters.of_rows + &after;
    let offset = if skips_by_index(query) {
        conditions.push_str(&skip_filter(query, direction, &mut params));
        ""
    } else {
        " OFFSET ?3"
    };
    let sql =
        format!("{select}{join} WHERE p.workspace_id = ?1{conditions}{order} LIMIT ?2{offset}");
    (sql, params)
}

/// Returns the union of statements that have limits of their own.
fn union_of(statements: impl Iterator<Item = String>) -> String {
    let numbered = statements.enumerate();
    let selects = numbered.map(|(number, sql)| format!("SELECT id FROM ({sql}) AS u{number}"));
    selects.collect::<Vec<_>>().join(" UNION ")
}

/// The offset from which the first row of a page is looked up separately.
const SKIP_FROM: i64 = 200;

/// Returns true if an index alone finds the start of the page. With `OFFSET` in the statement
/// itself, SQLite reads the rows of all skipped pieces: 390 ms instead of 55 ms for 900,000.
fn skips_by_index(query: &PieceListQuery) -> bool {
    let filters = &query.filters;
    let is_of_index = match filters.groups.as_deref() {
        None => true,
        Some(groups) => groups.len() == 1 && !filters.subtree,
    };
    let is_by_order = query.sort.key == SortKey::Order && query.after.is_none();
    query.offset >= SKIP_FROM && is_by_order && is_of_index && filters.is_of_groups()
}

/// Returns the condition that skips the pieces before the page.
fn skip_filter<'q>(
    query: &'q PieceListQuery,
    direction: &str,
    params: &mut Vec<Value<'q>>,
) -> String {
    let group = match query.filters.groups.as_deref() {
        Some([group]) => {
            params.push((*group).into());
            format!(" AND k.content_group_id = ?{}", params.len())
        }
        _ => String::new(),
    };
    let sign = if query.sort.descending { "<=" } else { ">=" };
    format!(
        " AND p.order_key {sign} (SELECT k.order_key FROM {} k
            WHERE k.workspace_id = ?1{group} ORDER BY k.order_key{direction} LIMIT 1 OFFSET ?3)",
        tables(query.view.of).pieces
    )
}

/// Returns the condition for rows after `position`, as a row value that the index on the same
/// expressions supports.
fn after_filter<'q>(
    position: &'q Position,
    sort: &[&str],
    descending: bool,
    params: &mut Vec<Value<'q>>,
) -> String {
    let mut push = |value: Value<'q>| {
        params.push(value);
        params.len()
    };
    let values = match position {
        Position::Order(key) | Position::Id(key) => format!("?{}", push(key.into())),
        Position::Time(time, id) => {
            format!("?{}, ?{}", push((*time).into()), push(id.into()))
        }
        Position::Title(title, id) => {
            let title = push(title.into());
            format!("substr(CAST(?{title} AS TEXT), 1, 200), ?{title}, ?{}", push(id.into()))
        }
    };
    let comparison = if descending { "<" } else { ">" };
    format!(" AND ({}) {comparison} ({values})", sort.join(", "))
}
