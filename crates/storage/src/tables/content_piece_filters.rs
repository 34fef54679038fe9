//! Filters of lists of pieces, as joins and conditions on the pieces `p`. In a variant, its
//! overrides are `v`.

use galley_domain::publication::{ContentView, PublicationState};
use galley_domain::{
    ContentGroupId, ContentPieceId, TagId, Timestamp, VariantId, WorkspaceMemberId,
};

use crate::engine::{Value, in_list};
use crate::tables::content_piece_references::ReferenceTable;
use crate::tables::content_piece_view::View;
use crate::tables::content_pieces::under_filter;
use crate::tables::piece_tables::{PieceTables, tables};

/// The filters of a list. With a variant, slug, tags, member and dates are those of the variant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PieceFilters {
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
    /// Pieces with one of these tags only; all pieces if there are none.
    pub tags: Vec<TagId>,
    /// Pieces with all of those tags only.
    pub all_tags: bool,
    /// Pieces with this member only.
    pub member: Option<WorkspaceMemberId>,
    /// Pieces with overrides in this variant only.
    pub overridden_variant: Option<VariantId>,
    /// Pieces without overrides in this variant only.
    pub missing_variant: Option<VariantId>,
    /// Pieces in this state of their publication only, or with a scheduled one.
    pub publication: Option<PublicationFilter>,
}

/// A filter by the publication of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublicationFilter {
    /// Pieces in this state.
    State(PublicationState),
    /// Pieces that are going to be published.
    Scheduled,
}

impl PublicationFilter {
    /// Returns the condition on a piece in `view`. In the published one, all pieces are published,
    /// and none shows a schedule.
    const fn condition(self, view: ContentView) -> &'static str {
        match (self, view) {
            (Self::State(PublicationState::Published), ContentView::Published) => "",
            (_, ContentView::Published) => " AND 1 = 0",
            (Self::State(PublicationState::Draft), _) => " AND p.published_revision IS NULL",
            (Self::State(PublicationState::Published), _) => {
                " AND p.published_revision = COALESCE(p.revision, 0)"
            }
            (Self::State(PublicationState::Changed), _) => {
                " AND p.published_revision <> COALESCE(p.revision, 0)"
            }
            (Self::Scheduled, _) => " AND p.publish_at_ms IS NOT NULL",
        }
    }
}

/// The value for a missing date, which sorts before all dates.
pub(super) const NO_DATE: i64 = -9_223_372_036_854_775_807;

/// Returns the date of a piece as the index has it. No index covers the dates of a variant.
pub(super) fn date_expression(in_variant: bool) -> &'static str {
    if in_variant {
        "COALESCE(v.date_ms, p.date_ms, -9223372036854775807)"
    } else {
        "COALESCE(p.date_ms, -9223372036854775807)"
    }
}

/// Filters in SQL.
#[derive(Debug)]
pub(super) struct FilterSql {
    /// The rows `t` that find the pieces: none, those of one reference, or those of each of several
    /// tags. They are in the order of the pieces, so a page needs no sorting.
    pub(super) sources: Vec<ReferenceRows>,
    /// The conditions on the pieces `p`.
    pub(super) of_pieces: String,
    /// The conditions on the rows `t`: the other references.
    pub(super) of_rows: String,
}

impl FilterSql {
    /// Returns the statement that selects the ids of the pieces of `source`, up to its `rest`. If
    /// neither this nor the conditions need the pieces, in `tables`, only the rows are read.
    pub(super) fn ids(
        &self,
        source: &ReferenceRows,
        tables: &str,
        rest_is_of_rows: bool,
        rest: &str,
    ) -> String {
        let Self { of_pieces, of_rows, .. } = self;
        if of_pieces.is_empty() && rest_is_of_rows {
            let (table, condition) = (source.table.name(source.view), source.condition());
            return format!(
                "SELECT t.content_piece_id AS id FROM {table} t WHERE {condition}{of_rows}{rest}"
            );
        }
        let join = source.join();
        format!("SELECT p.id {tables}{join} WHERE p.workspace_id = ?1{of_pieces}{of_rows}{rest}")
    }
}

/// The rows `t` of one reference. The parameter `id` is the referenced id.
#[derive(Debug)]
pub(super) struct ReferenceRows {
    view: ContentView,
    table: ReferenceTable,
    id: usize,
}

impl ReferenceRows {
    fn condition(&self) -> String {
        format!("t.workspace_id = ?1 AND t.{} = ?{}", self.table.column(), self.id)
    }

    /// Returns the join of the pieces with these rows.
    pub(super) fn join(&self) -> String {
        let condition = self.condition();
        format!(
            " JOIN {} t ON {condition} AND t.content_piece_id = p.id",
            self.table.name(self.view)
        )
    }
}

impl PieceFilters {
    /// Returns true if there is no filter but that by groups.
    pub(super) fn is_of_groups(&self) -> bool {
        let times = [self.updated_since, self.date_from, self.date_to];
        self.within.is_none()
            && self.ids.is_none()
            && times.iter().all(Option::is_none)
            && self.slug.is_none()
            && self.tags.is_empty()
            && self.member.is_none()
            && self.overridden_variant.is_none()
            && self.missing_variant.is_none()
            && self.publication.is_none()
    }

    /// Returns the filters in SQL, for pieces as they are in `view`.
    pub(super) fn sql<'q>(&'q self, view: View, params: &mut Vec<Value<'q>>) -> FilterSql {
        let View { of, variant, .. } = view;
        let mut of_pieces = self.group_conditions(params);
        if let Some(ids) = &self.ids {
            of_pieces.push_str(&in_list("p.id", ids.iter().copied(), params));
        }
        self.push_time_conditions(variant.is_some(), &mut of_pieces, params);
        if let Some(missing) = self.missing_variant {
            params.push(missing.into());
            of_pieces.push_str(&format!(
                " AND NOT EXISTS (SELECT 1 FROM {} o WHERE o.workspace_id = ?1
                    AND o.variant_id = ?{} AND o.order_key = p.order_key
                    AND o.content_piece_id = p.id)",
                tables(of).overridden_variants,
                params.len()
            ));
        }
        if let Some(publication) = self.publication {
            of_pieces.push_str(publication.condition(of));
        }
        let (mut any, mut all) = (Vec::new(), Vec::new());
        if let Some(variant) = variant {
            of_pieces.push_str(&self.conditions_in_variant(of, variant, params));
        } else {
            if let Some(slug) = &self.slug {
                params.push(slug.into());
                of_pieces.push_str(&format!(" AND p.slug = ?{}", params.len()));
            }
            let tags = self.tags.iter().map(|&tag| (ReferenceTable::Tags, tag.into()));
            if self.all_tags {
                all.extend(tags);
            } else {
                any.extend(tags);
            }
            let member = self.member.map(|member| (ReferenceTable::Members, member.into()));
            all.extend(member);
        }
        let overridden = self.overridden_variant;
        all.extend(overridden.map(|id| (ReferenceTable::OverriddenVariants, id.into())));
        if any.is_empty() && !all.is_empty() {
            any.push(all.remove(0));
        }
        let mut rows = |(table, id): (ReferenceTable, Value<'q>)| {
            params.push(id);
            ReferenceRows { view: of, table, id: params.len() }
        };
        let sources = any.into_iter().map(&mut rows).collect();
        let others = all.into_iter().map(rows).map(|ReferenceRows { table, id, .. }| {
            format!(
                " AND EXISTS (SELECT 1 FROM {} r WHERE r.workspace_id = ?1 AND r.{} = ?{id}
                    AND r.order_key = t.order_key AND r.content_piece_id = t.content_piece_id)",
                table.name(of),
                table.column()
            )
        });
        FilterSql { sources, of_pieces, of_rows: others.collect() }
    }

    /// Returns the condition that the piece with the id in a column matches the filters.
    pub(super) fn matches<'q>(
        &'q self,
        view: View,
        id: &str,
        params: &mut Vec<Value<'q>>,
    ) -> String {
        let view = View { content: false, ..view };
        let tables = view.tables(params);
        let FilterSql { sources, of_pieces, of_rows } = self.sql(view, params);
        let exists = |join: &str| {
            format!(
                "EXISTS (SELECT 1 {tables}{join}
                    WHERE p.workspace_id = ?1 AND p.id = {id}{of_pieces}{of_rows})"
            )
        };
        if sources.is_empty() {
            return format!(" AND {}", exists(""));
        }
        // With the order key, the rows are found by their key.
        let joins = sources.iter().map(|one| one.join() + " AND t.order_key = p.order_key");
        let conditions: Vec<_> = joins.map(|join| exists(&join)).collect();
        format!(" AND ({})", conditions.join(" OR "))
    }

    fn group_conditions(&self, params: &mut Vec<Value<'_>>) -> String {
        let mut sql = String::new();
        match &self.groups {
            Some(groups) if self.subtree => sql.push_str(&under_filter(groups, params)),
            Some(groups) => {
                sql.push_str(&in_list("p.content_group_id", groups.iter().copied(), params));
            }
            None => {}
        }
        if let Some(roots) = &self.within {
            sql.push_str(&under_filter(roots, params));
        }
        sql
    }

    /// Adds the conditions by times, on the same expressions as the sorts by them.
    fn push_time_conditions(
        &self,
        in_variant: bool,
        sql: &mut String,
        params: &mut Vec<Value<'_>>,
    ) {
        let mut add = |expression: &str, comparison: &str, ms: i64| {
            params.push(ms.into());
            sql.push_str(&format!(" AND {expression} {comparison} ?{}", params.len()));
        };
        if let Some(since) = self.updated_since {
            add("p.updated_at_ms", ">=", since.ms());
        }
        let date = date_expression(in_variant);
        if let Some(to) = self.date_to {
            add(date, "<=", to.ms());
        }
        if self.date_from.is_some() || self.date_to.is_some() {
            // Pieces without a date are in no range.
            add(date, ">=", self.date_from.map_or(NO_DATE + 1, Timestamp::ms));
        }
    }

    /// Returns the conditions by slug, tags and member as seen in the variant. An index finds the
    /// pieces that match the first one; the others are checked for each of these pieces.
    fn conditions_in_variant<'q>(
        &'q self,
        view: ContentView,
        variant: VariantId,
        params: &mut Vec<Value<'q>>,
    ) -> String {
        let tags: Vec<Value<'_>> = self.tags.iter().copied().map(Value::from).collect();
        // With all tags, there is one condition for each; otherwise, one for all.
        let tag_sets = tags.chunks(if self.all_tags { 1 } else { tags.len().max(1) });
        let tag_sets = tag_sets.map(|set| (ReferenceTable::Tags, set.to_vec()));
        let member = self.member.map(|member| (ReferenceTable::Members, vec![member.into()]));
        let mut sets = tag_sets.chain(member);
        let mut sql = String::new();
        let first = if self.slug.is_none() { sets.next() } else { None };
        if self.slug.is_none() && first.is_none() {
            return sql;
        }
        params.push(variant.into());
        let variant = params.len();
        if let Some(slug) = &self.slug {
            params.push(slug.into());
            let slug = params.len();
            let overrides = overrides_of(view, "b.id", variant);
            let PieceTables { pieces, variants, .. } = tables(view);
            sql.push_str(&format!(
                " AND p.id IN (
                    SELECT s.content_piece_id FROM {variants} s
                    WHERE s.workspace_id = ?1 AND s.variant_id = ?{variant} AND s.slug = ?{slug}
                    UNION ALL SELECT b.id FROM {pieces} b {overrides}
                    WHERE b.workspace_id = ?1 AND b.slug = ?{slug} AND o.slug IS NULL)"
            ));
        }
        if let Some((table, ids)) = first {
            sql.push_str(&is_found_in_variant(view, table, &ids, variant, params));
        }
        for (table, ids) in sets {
            sql.push_str(&refers_in_variant(view, table, &ids, variant, params));
        }
        sql
    }
}

/// Returns the join with the overrides of a piece. The parameter `variant` is the variant's id.
fn overrides_of(view: ContentView, piece: &str, variant: usize) -> String {
    format!(
        "LEFT JOIN {} o ON o.workspace_id = ?1
            AND o.content_piece_id = {piece} AND o.variant_id = ?{variant}",
        tables(view).variants
    )
}

/// Returns the condition that a piece, as seen in the variant, refers to one of `ids`, by the
/// pieces that do. A piece does if its override does, or if the piece itself does and is not
/// overridden.
fn is_found_in_variant<'q>(
    view: ContentView,
    table: ReferenceTable,
    ids: &[Value<'q>],
    variant: usize,
    params: &mut Vec<Value<'q>>,
) -> String {
    let Some(in_variants) = table.in_variants(view) else { return String::new() };
    let (own, column) = (table.name(view), table.column());
    let overrides = overrides_of(view, "b.content_piece_id", variant);
    let of_variant = in_list(&format!("s.{column}"), ids.iter().cloned(), params);
    let of_piece = in_list(&format!("b.{column}"), ids.iter().cloned(), params);
    format!(
        " AND p.id IN (
            SELECT s.content_piece_id FROM {in_variants} s
            WHERE s.workspace_id = ?1 AND s.variant_id = ?{variant}{of_variant}
            UNION ALL SELECT b.content_piece_id FROM {own} b {overrides}
            WHERE b.workspace_id = ?1{of_piece} AND o.{column}s IS NULL)"
    )
}

/// Returns the same condition as a look-up for each piece. As a second list of pieces, PostgreSQL
/// would compute it for each piece of the first.
fn refers_in_variant<'q>(
    view: ContentView,
    table: ReferenceTable,
    ids: &[Value<'q>],
    variant: usize,
    params: &mut Vec<Value<'q>>,
) -> String {
    let Some(in_variants) = table.in_variants(view) else { return String::new() };
    let (own, column) = (table.name(view), table.column());
    let of_variant = in_list(&format!("s.{column}"), ids.iter().cloned(), params);
    let of_piece = in_list(&format!("b.{column}"), ids.iter().cloned(), params);
    format!(
        " AND (EXISTS (SELECT 1 FROM {in_variants} s WHERE s.workspace_id = ?1
                AND s.content_piece_id = p.id AND s.variant_id = ?{variant}{of_variant})
            OR (v.{column}s IS NULL AND EXISTS (SELECT 1 FROM {own} b WHERE b.workspace_id = ?1
                AND b.order_key = p.order_key AND b.content_piece_id = p.id{of_piece})))"
    )
}
