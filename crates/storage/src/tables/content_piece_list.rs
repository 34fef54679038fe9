//! Lists of pieces: by group, subtree, slug or tag, in any order, from a page or a position.
//!
//! One statement returns the rows of a page, whatever its size. Two more read the tags and members
//! that the rows refer to ([`crate::tables::tags::find_all`],
//! [`crate::tables::members::profiles`]).

use galley_domain::content_piece::ContentPiece;
use galley_domain::{
    ContentGroupId, ContentPieceId, OrderKey, TagId, Timestamp, VariantId, WorkspaceId,
};

use crate::engine::{Result, Tx, Value, in_list, row};
use crate::tables::content_pieces::{self, PieceInView, View, under_filter};

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
    /// Pieces directly in one of these groups; `None` for all.
    pub groups: Option<Vec<ContentGroupId>>,
    /// Includes the subtrees of those groups.
    pub subtree: bool,
    /// Pieces in the subtree of one of these groups only; `None` for all.
    pub within: Option<Vec<ContentGroupId>>,
    /// Pieces with one of these ids only; `None` for all.
    pub ids: Option<Vec<ContentPieceId>>,
    /// Pieces changed at this time or later only.
    pub updated_since: Option<Timestamp>,
    /// Pieces with a date at this time or later only.
    pub date_from: Option<Timestamp>,
    /// Pieces with a date up to this time only.
    pub date_to: Option<Timestamp>,
    /// Pieces with this slug only.
    pub slug: Option<String>,
    /// Pieces with this tag only.
    pub tag: Option<TagId>,
    /// The order.
    pub sort: Sort,
    /// Pieces after this position only.
    pub after: Option<Position>,
    /// The limit of the page.
    pub limit: i64,
    /// The number of pieces to skip.
    pub offset: i64,
    /// The view. With a variant, slug, tag, title and date are those of the variant.
    pub view: View,
}

/// The value for a missing date, which sorts before all dates.
const NO_DATE: i64 = -9_223_372_036_854_775_807;

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
    fn expressions(self, in_variant: bool) -> &'static [&'static str] {
        match self.key {
            SortKey::Date if in_variant => {
                &["COALESCE(v.date_ms, p.date_ms, -9223372036854775807)", "p.id"]
            }
            SortKey::Title if in_variant => &[
                "substr(COALESCE(v.title, p.title), 1, 200)",
                "COALESCE(v.title, p.title)",
                "p.id",
            ],
            SortKey::Order => &["p.order_key"],
            SortKey::Date => &["COALESCE(p.date_ms, -9223372036854775807)", "p.id"],
            SortKey::CreatedAt => &["p.id"],
            SortKey::UpdatedAt => &["p.updated_at_ms", "p.id"],
            SortKey::Title => &["substr(p.title, 1, 200)", "p.title", "p.id"],
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
        read += content_pieces::size(viewed);
        read >= bytes
    };
    tx.query_until(&sql, &params, |row| query.view.read(row), is_enough).await
}

fn statement(workspace: WorkspaceId, query: &PieceListQuery) -> (String, Vec<Value<'_>>) {
    let mut params = vec![Value::from(workspace), query.limit.into(), query.offset.into()];
    let mut sql = query.view.select(&mut params);
    // The rows of the tag are in the order of the pieces, so a page needs no sorting.
    if let Some(tag) = own_tag(query) {
        params.push(tag.into());
        sql.push_str(&format!(
            " JOIN content_piece_tags t ON t.workspace_id = ?1 AND t.tag_id = ?{}
                AND t.content_piece_id = p.id",
            params.len()
        ));
    }
    sql.push_str(" WHERE p.workspace_id = ?1");
    sql.push_str(&group_filter(query, &mut params));
    if let Some(ids) = &query.ids {
        sql.push_str(&in_list("p.id", ids.iter().copied(), &mut params));
    }
    sql.push_str(&time_filters(query, &mut params));
    match query.view.variant {
        Some(variant) => sql.push_str(&variant_filters(query, variant, &mut params)),
        None => {
            if let Some(slug) = &query.slug {
                params.push(slug.into());
                sql.push_str(&format!(" AND p.slug = ?{}", params.len()));
            }
        }
    }
    let sort = sort_expressions(query);
    if let Some(position) = &query.after {
        sql.push_str(&after_filter(position, &sort, query.sort.descending, &mut params));
    }
    let direction = if query.sort.descending { " DESC" } else { "" };
    let order: Vec<_> = sort.iter().map(|column| format!("{column}{direction}")).collect();
    let offset = if skips_by_index(query) {
        sql.push_str(&skip_filter(query, direction, &mut params));
        ""
    } else {
        " OFFSET ?3"
    };
    sql.push_str(&format!(" ORDER BY {} LIMIT ?2{offset}", order.join(", ")));
    (sql, params)
}

/// The offset from which the first row of a page is looked up separately.
const SKIP_FROM: i64 = 200;

/// Returns true if an index alone finds the start of the page. With `OFFSET` in the statement
/// itself, SQLite reads the rows of all skipped pieces: 390 ms instead of 55 ms for 900,000.
fn skips_by_index(query: &PieceListQuery) -> bool {
    let is_of_index = match query.groups.as_deref() {
        None => true,
        Some(groups) => groups.len() == 1 && !query.subtree,
    };
    let times = [query.updated_since, query.date_from, query.date_to];
    let is_filtered = query.slug.is_some()
        || query.tag.is_some()
        || query.within.is_some()
        || query.ids.is_some()
        || times.iter().any(Option::is_some);
    let is_by_order = query.sort.key == SortKey::Order && query.after.is_none();
    query.offset >= SKIP_FROM && is_by_order && is_of_index && !is_filtered
}

/// Returns the condition that skips the pieces before the page.
fn skip_filter<'q>(
    query: &'q PieceListQuery,
    direction: &str,
    params: &mut Vec<Value<'q>>,
) -> String {
    let group = match query.groups.as_deref() {
        Some([group]) => {
            params.push((*group).into());
            format!(" AND k.content_group_id = ?{}", params.len())
        }
        _ => String::new(),
    };
    let sign = if query.sort.descending { "<=" } else { ">=" };
    format!(
        " AND p.order_key {sign} (SELECT k.order_key FROM content_pieces k
            WHERE k.workspace_id = ?1{group} ORDER BY k.order_key{direction} LIMIT 1 OFFSET ?3)"
    )
}

/// Returns the tag to filter the pieces' own tags by. With a variant, [`variant_filters`] applies
/// the tag.
fn own_tag(query: &PieceListQuery) -> Option<TagId> {
    query.tag.filter(|_| query.view.variant.is_none())
}

fn sort_expressions(query: &PieceListQuery) -> Vec<&'static str> {
    if own_tag(query).is_some() && query.sort.key == SortKey::Order {
        vec!["t.order_key"]
    } else {
        query.sort.expressions(query.view.variant.is_some()).to_vec()
    }
}

/// Returns the filters for the slug and the tag as seen in the variant. A piece matches if its
/// override matches, or if its own value matches and is not overridden. Both use an index.
fn variant_filters<'q>(
    query: &'q PieceListQuery,
    variant: VariantId,
    params: &mut Vec<Value<'q>>,
) -> String {
    let mut sql = String::new();
    if query.slug.is_none() && query.tag.is_none() {
        return sql;
    }
    params.push(variant.into());
    let variant = params.len();
    let overrides_of = |piece: &str| {
        format!(
            "LEFT JOIN content_piece_variants o ON o.workspace_id = ?1
                AND o.content_piece_id = {piece} AND o.variant_id = ?{variant}"
        )
    };
    if let Some(slug) = &query.slug {
        params.push(slug.into());
        let slug = params.len();
        let overrides = overrides_of("b.id");
        sql.push_str(&format!(
            " AND p.id IN (
                SELECT s.content_piece_id FROM content_piece_variants s
                WHERE s.workspace_id = ?1 AND s.variant_id = ?{variant} AND s.slug = ?{slug}
                UNION ALL SELECT b.id FROM content_pieces b {overrides}
                WHERE b.workspace_id = ?1 AND b.slug = ?{slug} AND o.slug IS NULL)"
        ));
    }
    if let Some(tag) = query.tag {
        params.push(tag.into());
        let tag = params.len();
        let overrides = overrides_of("b.content_piece_id");
        sql.push_str(&format!(
            " AND p.id IN (
                SELECT s.content_piece_id FROM content_piece_variant_tags s
                WHERE s.workspace_id = ?1 AND s.variant_id = ?{variant} AND s.tag_id = ?{tag}
                UNION ALL SELECT b.content_piece_id FROM content_piece_tags b {overrides}
                WHERE b.workspace_id = ?1 AND b.tag_id = ?{tag} AND o.tag_ids IS NULL)"
        ));
    }
    sql
}

fn group_filter(query: &PieceListQuery, params: &mut Vec<Value<'_>>) -> String {
    let mut sql = String::new();
    match &query.groups {
        Some(groups) if query.subtree => sql.push_str(&under_filter(groups, params)),
        Some(groups) => {
            sql.push_str(&in_list("p.content_group_id", groups.iter().copied(), params));
        }
        None => {}
    }
    if let Some(roots) = &query.within {
        sql.push_str(&under_filter(roots, params));
    }
    sql
}

/// Returns the filters by times, on the same expressions as the sorts by them.
fn time_filters(query: &PieceListQuery, params: &mut Vec<Value<'_>>) -> String {
    let mut sql = String::new();
    let mut add = |key: SortKey, comparison: &str, ms: i64| {
        let sort = Sort { key, descending: false };
        let expression = sort.expressions(query.view.variant.is_some())[0];
        params.push(ms.into());
        sql.push_str(&format!(" AND {expression} {comparison} ?{}", params.len()));
    };
    if let Some(since) = query.updated_since {
        add(SortKey::UpdatedAt, ">=", since.ms());
    }
    if let Some(to) = query.date_to {
        add(SortKey::Date, "<=", to.ms());
    }
    if query.date_from.is_some() || query.date_to.is_some() {
        // Pieces without a date are in no range.
        add(SortKey::Date, ">=", query.date_from.map_or(NO_DATE + 1, Timestamp::ms));
    }
    sql
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
