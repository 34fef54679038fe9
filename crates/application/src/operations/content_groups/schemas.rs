//! The schemas of custom data that apply to groups, and the pieces that violate them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use galley_api_types::problem::Issue;
use galley_domain::content_piece::CustomData;
use galley_domain::custom_data_schema::CustomDataSchema;
use galley_domain::variant::VariantKey;
use galley_domain::{ContentGroupId, ContentPieceId};
use galley_storage::content_piece_filters::PieceFilters;
use galley_storage::content_piece_list::{self, PieceListQuery, Position, Sort, SortKey};
use galley_storage::custom_data_schemas::{self, EffectiveSchema};
use galley_storage::{Tx, content_groups, content_piece_variants, variants};

use crate::caller::Caller;
use crate::custom_data_schema::{WORK_MAX, WorkBudget, validate};
use crate::error::Error;
use crate::scope::Scope;

/// The limit on pieces that are read for one page.
const READ_MAX: i64 = 1_000;

/// The limit on bytes of their custom data.
const READ_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The bytes of issues after which a page ends.
const ISSUE_BYTES_MAX: usize = 1024 * 1024;

/// The limit on violating variants of one piece that are listed.
const VARIANTS_MAX: usize = 100;

/// The schema that applies to the pieces of a group.
#[derive(Debug, Default)]
pub struct GroupSchema {
    /// The group that has it, if the caller sees it.
    pub group: Option<ContentGroupId>,
    /// The schema, if there is one.
    pub schema: Option<CustomDataSchema>,
}

/// A piece whose custom data violates its schema.
#[derive(Debug)]
pub struct Violation {
    /// The piece.
    pub piece: ContentPieceId,
    /// The variant whose override violates it; `None` for the piece's own custom data.
    pub variant: Option<VariantKey>,
    /// The issues.
    pub issues: Vec<Issue>,
}

/// A page of violations.
#[derive(Debug, Default)]
pub struct ViolationPage {
    /// The violations, in the order of the pieces' creation.
    pub violations: Vec<Violation>,
    /// The last piece that was read, if more follow.
    pub next: Option<ContentPieceId>,
}

/// Returns the schema that applies to the pieces of a group.
pub async fn schema(caller: &Caller, id: ContentGroupId) -> Result<GroupSchema, Error> {
    let scope = caller.scope();
    let read = async move |tx: &Tx<'_>| {
        let path = content_groups::path(tx, scope.workspace, id).await?;
        if !scope.contains(&path) {
            return Err(Error::not_found());
        }
        let found = custom_data_schemas::effective(tx, scope.workspace, id).await?;
        let Some(EffectiveSchema { group, schema }) = found else {
            return Ok(GroupSchema::default());
        };
        let group = scope.visible(&path).contains(&group).then_some(group);
        Ok(GroupSchema { group, schema: Some(schema) })
    };
    caller.read_current("content_groups.schema", read).await
}

/// Lists the pieces in a group's subtree whose custom data violates their schema. A page ends
/// early after many pieces, or much work, without violations.
pub async fn violations(
    caller: &Caller,
    id: ContentGroupId,
    after: Option<String>,
    max: usize,
) -> Result<ViolationPage, Error> {
    let scope = caller.scope();
    scope.require_current_view()?;
    let read = async move |tx: &Tx<'_>| violations_in(tx, &scope, id, after.clone(), max).await;
    caller.read_long("content_groups.violations", read).await
}

async fn violations_in(
    tx: &Tx<'_>,
    scope: &Scope,
    id: ContentGroupId,
    after: Option<String>,
    max: usize,
) -> Result<ViolationPage, Error> {
    let workspace = scope.workspace;
    if !scope.contains(&content_groups::path(tx, workspace, id).await?) {
        return Err(Error::not_found());
    }
    let query = PieceListQuery {
        filters: PieceFilters { within: Some(vec![id]), ..PieceFilters::default() },
        sort: Sort { key: SortKey::CreatedAt, descending: false },
        after: after.map(Position::Id),
        limit: READ_MAX,
        ..PieceListQuery::default()
    };
    let (pieces, is_cut) =
        content_piece_list::list_until(tx, workspace, &query, READ_BYTES_MAX).await?;
    let has_more = is_cut || i64::try_from(pieces.len()).is_ok_and(|count| count == READ_MAX);
    let mut schemas: HashMap<ContentGroupId, Option<EffectiveSchema>> = HashMap::new();
    let (mut page, mut work, mut bytes) = (ViolationPage::default(), 0, 0);
    for (index, (piece, _)) in pieces.iter().enumerate() {
        let group = piece.content_group_id;
        let found = match schemas.entry(group) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                new.insert(custom_data_schemas::effective(tx, workspace, group).await?)
            }
        };
        let Some(EffectiveSchema { schema, .. }) = found else { continue };
        let mut budget = WorkBudget::default();
        let mut validate =
            |data: Option<&CustomData>| validate(schema, data.map(CustomData::as_str), &mut budget);
        let mut found = vec![(None, validate(piece.fields.custom_data.as_ref()))];
        for &variant in &piece.variants {
            // One at a time, as all of them may be large.
            let stored = content_piece_variants::find(tx, workspace, piece.id, variant).await?;
            let Some(data) = stored.and_then(|stored| stored.custom_data) else { continue };
            let issues = validate(Some(&data));
            if !issues.is_empty() {
                let key = variants::find(tx, workspace, variant).await?.map(|one| one.key);
                found.push((key, issues));
            }
            if found.len() > VARIANTS_MAX {
                break;
            }
        }
        work += budget.used();
        let found = found.into_iter().filter(|(_, issues)| !issues.is_empty());
        for (variant, issues) in found {
            // The message contains the path.
            bytes += issues.iter().map(|issue| 2 * issue.message.len()).sum::<usize>();
            page.violations.push(Violation { piece: piece.id, variant, issues });
        }
        let is_full = page.violations.len() >= max || work >= WORK_MAX || bytes >= ISSUE_BYTES_MAX;
        if is_full && index + 1 < pieces.len() {
            page.next = Some(piece.id);
            return Ok(page);
        }
    }
    page.next = pieces.last().filter(|_| has_more).map(|(piece, _)| piece.id);
    Ok(page)
}
