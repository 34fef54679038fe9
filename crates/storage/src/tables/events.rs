//! Events: one row for each change of a resource, inserted in its transaction.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use futures_util::future::{try_join, try_join3};
use galley_domain::content_group::GroupPath;
use galley_domain::event::{EventScope, EventType, ResourceChange};
use galley_domain::{ContentGroupId, ContentPieceId, EventId, Timestamp, WorkspaceId};

use crate::engine::{
    Affects, Error, Result, Row, Tx, Value, WriteTx, in_list, params, read_row, row,
};
use crate::tables::content_groups;

/// An event to insert.
#[derive(Debug, Clone)]
pub struct NewEvent {
    /// The id.
    pub id: EventId,
    /// The type and the groups of the event.
    pub occurrence: ResourceChange,
    /// The resource as JSON, after the change or before its deletion.
    pub data: String,
    /// The resource before a move from one group to another.
    pub data_before: Option<String>,
    /// The piece whose custom data `data` omits, and its version. Readers receive the custom data
    /// as long as the piece has this version: a later one may be in another group.
    pub custom_data_of: Option<(ContentPieceId, i64)>,
}

/// An event as seen in the scope of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its sequence number, in the order of the workspace's commits.
    pub sequence: i64,
    /// The id.
    pub id: EventId,
    /// The type.
    pub event_type: String,
    /// The time of the event.
    pub created_at: Timestamp,
    /// The resource as JSON.
    pub data: String,
}

/// Numbers and inserts events, in this order, each with the webhooks that it matches.
///
/// Must be called last in a transaction: from here on, all other changes of the workspace wait for
/// the next number.
pub async fn append(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    events: &[NewEvent],
    now: Timestamp,
) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    // From here to the commit, all other writers of the workspace wait, so the statements are
    // pipelined. Their order matters: the current state can be read only under the lock.
    let (lock, last) = (lock_statement(tx), last_statement());
    tx.prepare(&lock).await?;
    tx.prepare(&last).await?;
    let locked = async {
        if !tx.has_other_writers() {
            return Ok(());
        }
        tx.exists(&lock, params![workspace]).await.map(drop)
    };
    let workspace_only = params![workspace];
    let last = tx.get(&last, workspace_only, |row| row.get::<i64>(0));
    let moved = Box::pin(current_paths(tx, workspace, events));
    let ((), last, moved) = try_join3(locked, last, moved).await?;
    // The id of the last event serves as the next generation.
    tx.note_next_generation(workspace);
    let numbered: Vec<NumberedEvent<'_>> = events
        .iter()
        .zip(last + 1..)
        .map(|(event, sequence)| {
            let occurrence = with_current_paths(&event.occurrence, &moved);
            NumberedEvent { sequence, event, occurrence }
        })
        .collect();
    let rows = numbered.iter().map(|event| parameters(workspace, event, now));
    let sql = "INSERT INTO events (workspace_id, sequence, id, type, created_at_ms, path_before,
            path_after, data, data_before, custom_data_of, custom_data_version)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    let inserted = tx.change_each(sql, rows, Affects::Nothing);
    let ((), webhooks) = try_join(inserted, candidates(tx, workspace, &numbered)).await?;
    insert_matches(tx, workspace, &numbered, &webhooks).await?;
    tx.notify_on_commit();
    Ok(())
}

/// Returns the statement that prevents other transactions from numbering events of the workspace.
/// It only locks the row. A counter in the row would leave a dead version for each event since the
/// oldest open transaction began. Each event would then have to scan these versions.
fn lock_statement(tx: &WriteTx<'_>) -> String {
    let lock = tx.for_no_key_update();
    format!("SELECT 1 FROM workspace_sequences WHERE workspace_id = ?1{lock}")
}

/// The number of the last event, which is never deleted. If an older program did delete it, the
/// number is in `workspace_sequences s`.
pub(crate) const LAST: &str = "COALESCE((SELECT e.sequence FROM events e WHERE e.workspace_id = ?1
    ORDER BY e.sequence DESC LIMIT 1), s.last_sequence)";

fn last_statement() -> String {
    format!("SELECT {LAST} FROM workspace_sequences s WHERE s.workspace_id = ?1")
}

/// An event with its number and the current paths of its groups.
struct NumberedEvent<'e> {
    sequence: i64,
    event: &'e NewEvent,
    occurrence: ResourceChange,
}

/// Returns the current paths of the groups of pieces. A group may have been moved after the piece's
/// path was read, and the event of that move has a lower number. The lock prevents further moves
/// from being numbered.
async fn current_paths(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    events: &[NewEvent],
) -> Result<HashMap<ContentGroupId, GroupPath>> {
    let mut found = HashMap::new();
    if !tx.has_other_writers() {
        return Ok(found);
    }
    for event in events.iter().filter(|event| event.occurrence.is_of_piece()) {
        let occurrence = &event.occurrence;
        for path in [occurrence.path_before(), occurrence.path_after()].into_iter().flatten() {
            let Some(&group) = path.groups().last() else { continue };
            if let Entry::Vacant(place) = found.entry(group) {
                place.insert(content_groups::path(tx, workspace, group).await?);
            }
        }
    }
    // A group that this transaction deletes has no path any more; the event has its last one.
    found.retain(|_, path| !path.groups().is_empty());
    Ok(found)
}

fn with_current_paths(
    occurrence: &ResourceChange,
    moved: &HashMap<ContentGroupId, GroupPath>,
) -> ResourceChange {
    if !occurrence.is_of_piece() || moved.is_empty() {
        return occurrence.clone();
    }
    occurrence.clone().map_paths(|path| {
        let now = path.groups().last().and_then(|group| moved.get(group)).cloned();
        now.unwrap_or(path)
    })
}

fn parameters<'e>(
    workspace: WorkspaceId,
    numbered: &'e NumberedEvent<'_>,
    now: Timestamp,
) -> [Value<'e>; 11] {
    let NumberedEvent { sequence, event, occurrence } = numbered;
    let seen = occurrence.as_seen_in(EventScope::Workspace);
    let event_type = seen.expect("the workspace sees every event");
    row! {
        workspace, *sequence, event.id, event_type, now, occurrence.path_before(),
        occurrence.path_after(), &event.data, &event.data_before,
        event.custom_data_of.map(|(piece, _)| piece),
        event.custom_data_of.map(|(_, version)| version)
    }
}

/// A webhook that may match an event.
struct CandidateWebhook {
    id: String,
    event: EventType,
    group: Option<ContentGroupId>,
}

/// A run of consecutive events that match the same webhooks.
struct MatchRun<'e> {
    id: EventId,
    event_type: EventType,
    webhook_ids: Vec<&'e CandidateWebhook>,
    first_sequence: i64,
    last_sequence: i64,
}

/// Returns the runs of consecutive events that the same webhooks receive.
fn match_runs<'e>(
    events: &[NumberedEvent<'e>],
    webhooks: &'e [CandidateWebhook],
) -> Vec<MatchRun<'e>> {
    let mut runs: Vec<MatchRun<'_>> = Vec::new();
    // The first run that includes the previous event.
    let mut open = 0;
    for NumberedEvent { sequence, event, occurrence } in events {
        let begin = runs.len();
        for &event_type in occurrence.types() {
            let sees = |candidate: &&CandidateWebhook| {
                let group = candidate.group.as_slice();
                let scope = if group.is_empty() {
                    EventScope::Workspace
                } else {
                    EventScope::Groups(group)
                };
                candidate.event == event_type && occurrence.as_seen_in(scope) == Some(event_type)
            };
            let webhook_ids: Vec<&CandidateWebhook> = webhooks.iter().filter(sees).collect();
            if webhook_ids.is_empty() {
                continue;
            }
            let same = runs[open..begin].iter_mut().find(|run| {
                run.event_type == event_type
                    && run.last_sequence == sequence - 1
                    && run
                        .webhook_ids
                        .iter()
                        .map(|one| &one.id)
                        .eq(webhook_ids.iter().map(|one| &one.id))
            });
            match same {
                Some(run) => run.last_sequence = *sequence,
                None => runs.push(MatchRun {
                    id: event.id,
                    event_type,
                    webhook_ids,
                    first_sequence: *sequence,
                    last_sequence: *sequence,
                }),
            }
        }
        let still = |run: &MatchRun<'_>| run.last_sequence == *sequence;
        open = runs.iter().position(still).unwrap_or(runs.len());
    }
    runs
}

/// Stores the webhooks that match the events, as the webhooks are now.
async fn insert_matches(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    events: &[NumberedEvent<'_>],
    webhooks: &[CandidateWebhook],
) -> Result<()> {
    if webhooks.is_empty() {
        return Ok(());
    }
    let runs = match_runs(events, webhooks);
    let mut rows = Vec::new();
    for run in &runs {
        for (part, webhooks) in (0_i64..).zip(run.webhook_ids.chunks(WEBHOOKS_PER_ROW)) {
            let ids: Vec<_> = webhooks.iter().map(|webhook| webhook.id.as_str()).collect();
            rows.push(row! {
                run.id, run.event_type, part, workspace, run.first_sequence, run.last_sequence,
                ids.join(",")
            });
        }
    }
    let sql = "INSERT INTO event_matches (id, event_type, part, workspace_id, first_sequence,
            last_sequence, webhook_ids)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    tx.change_each(sql, rows, Affects::Nothing).await
}

/// The limit of webhooks in one row.
const WEBHOOKS_PER_ROW: usize = 64;

/// The number of groups from which webhooks are not filtered by group.
const GROUP_FILTER_LIMIT: usize = 200;

/// Returns the webhooks that may match one of the events, by id.
async fn candidates(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    events: &[NumberedEvent<'_>],
) -> Result<Vec<CandidateWebhook>> {
    let occurrences = || events.iter().map(|event| &event.occurrence);
    let types: BTreeSet<&str> = occurrences()
        .flat_map(|occurrence| occurrence.types().iter().map(|event| event.as_str()))
        .collect();
    let paths = occurrences().flat_map(|one| [one.path_before(), one.path_after()]).flatten();
    let groups: BTreeSet<ContentGroupId> =
        paths.flat_map(GroupPath::groups).take(16 * GROUP_FILTER_LIMIT).copied().collect();
    let mut params = vec![Value::from(workspace)];
    let of_types = in_list("h.event", types.iter().copied(), &mut params);
    let on_groups = if groups.is_empty() || groups.len() > GROUP_FILTER_LIMIT {
        String::new()
    } else {
        let listed = in_list("h.content_group_id", groups.iter().copied(), &mut params);
        let listed = listed.trim_start_matches(" AND ");
        format!(" AND (h.content_group_id IS NULL OR {listed})")
    };
    let sql = format!(
        "SELECT h.id, h.event, h.content_group_id FROM webhooks h
         WHERE h.workspace_id = ?1{of_types}{on_groups} ORDER BY h.id"
    );
    tx.query(&sql, &params, |row| Ok(read_row!(row, 0 => CandidateWebhook { id, event, group })))
        .await
}

/// An event with the data that determine its visibility and its type in each scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventWithPaths {
    /// The event as seen in the scope of the workspace.
    pub event: Event,
    /// The type and the groups of the event.
    pub occurrence: ResourceChange,
    /// The resource before a move from one group to another.
    pub data_before: Option<String>,
}

/// The limit up to which a page is read whatever its size; the size of the default page.
const UNSIZED_PAGE_LIMIT: i64 = 32;

/// Lists events after a sequence number, with their groups. A longer page ends once its total size
/// reaches `bytes`. Also returns true if events may have been left out.
pub async fn list_with_paths(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    after: i64,
    limit: i64,
    bytes: usize,
) -> Result<(Vec<EventWithPaths>, bool)> {
    let sized = async {
        let sql = format!(
            "SELECT e.sequence, CAST(octet_length(e.data) + COALESCE(octet_length(e.data_before), 0)
                + COALESCE(octet_length({CUSTOM_DATA}), 0) AS BIGINT)
             FROM events e WHERE e.workspace_id = ?1 AND e.sequence > ?2
             ORDER BY e.sequence LIMIT ?3"
        );
        let size = |row: &Row<'_>| Ok((row.get(0)?, row.get::<usize>(1)?));
        let sizes = tx.query(&sql, params![workspace, after, limit], size).await?;
        let (mut last, mut read_bytes) = (after, 0);
        for (sequence, size) in sizes {
            if read_bytes >= bytes {
                break;
            }
            (last, read_bytes) = (sequence, read_bytes + size);
        }
        Ok::<_, Error>((last, read_bytes >= bytes))
    };
    // The database doesn't send the rows that are left out.
    let (last, is_much) = if limit > UNSIZED_PAGE_LIMIT { sized.await? } else { (i64::MAX, false) };
    if last == after {
        return Ok((Vec::new(), false));
    }
    let sql = format!(
        "SELECT e.sequence, e.id, e.type, e.created_at_ms, e.data, {CUSTOM_DATA}, e.path_before,
            e.path_after, e.data_before
         FROM events e WHERE e.workspace_id = ?1 AND e.sequence > ?2 AND e.sequence <= ?4
         ORDER BY e.sequence LIMIT ?3"
    );
    let found = tx
        .query(&sql, params![workspace, after, limit, last], |row| {
            let event = read(row)?;
            let occurrence = read_change(row.get(2)?, row, 6)?;
            Ok(EventWithPaths { event, occurrence, data_before: row.get(8)? })
        })
        .await?;
    Ok((found, is_much))
}

/// Reads the change of an event. Its paths before and after start at `first`.
pub(crate) fn read_change(
    event_type: EventType,
    row: &Row<'_>,
    first: usize,
) -> Result<ResourceChange> {
    let change = ResourceChange::from_event(event_type, row.get(first)?, row.get(first + 1)?);
    change.ok_or_else(|| Error::corrupt("an event without its group paths"))
}

/// Returns the numbers of the first stored event, if there is one, and of the last event ever.
pub async fn bounds(tx: &Tx<'_>, workspace: WorkspaceId) -> Result<(Option<i64>, i64)> {
    let sql = format!(
        "SELECT
            (SELECT sequence FROM events WHERE workspace_id = ?1 ORDER BY sequence LIMIT 1), {LAST}
         FROM workspace_sequences s WHERE s.workspace_id = ?1"
    );
    tx.get(&sql, params![workspace], |row| Ok((row.get(0)?, row.get(1)?))).await
}

/// Deletes events from before `before`, at most `limit`, except the last one. Returns their number.
pub async fn delete_expired(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    before: Timestamp,
    limit: i64,
) -> Result<u64> {
    // In the order of their numbers, so that the stored events have no gaps.
    let sql = "DELETE FROM events WHERE workspace_id = ?1 AND sequence < (
        SELECT COALESCE(
            (SELECT sequence FROM (SELECT sequence, created_at_ms FROM events
                WHERE workspace_id = ?1 ORDER BY sequence LIMIT ?3) AS first
            WHERE created_at_ms >= ?2 ORDER BY sequence LIMIT 1),
            (SELECT MAX(sequence) + 1 FROM (SELECT sequence FROM events
                WHERE workspace_id = ?1 ORDER BY sequence LIMIT ?3) AS slice),
            0))
        AND sequence < (SELECT MAX(sequence) FROM events WHERE workspace_id = ?1)";
    tx.execute(sql, params![workspace, before, limit], Affects::Nothing).await
}

fn read(row: &Row<'_>) -> Result<Event> {
    let data = with_custom_data(row.text(4)?, row.opt_text(5)?);
    Ok(read_row!(row, 0 => Event { sequence, id, event_type, created_at; data }))
}

/// The custom data that `data` of the event `e` omits. The statement's first parameter is the
/// workspace.
pub(crate) const CUSTOM_DATA: &str = "(SELECT x.custom_data FROM content_piece_custom_data x
    JOIN content_pieces p ON p.workspace_id = x.workspace_id AND p.id = x.content_piece_id
    WHERE x.workspace_id = ?1 AND x.content_piece_id = e.custom_data_of
        AND p.version = e.custom_data_version)";

/// Inserts the custom data that an event's data omits.
///
/// In JSON text, a member's name in unescaped quotes can't be part of a string. So the first
/// occurrence is the member itself.
pub(crate) fn with_custom_data(data: &str, custom_data: Option<&str>) -> String {
    let Some(custom_data) = custom_data else { return data.to_owned() };
    let value = serde_json::Value::from(custom_data);
    data.replacen("\"customData\":null", &format!("\"customData\":{value}"), 1)
}
