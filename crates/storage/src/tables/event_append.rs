//! The insertion of events at the end of a transaction.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures_util::future::{BoxFuture, try_join, try_join_all, try_join3};
use galley_domain::content_group::GroupPath;
use galley_domain::event::{EventScope, EventType, EventTypes, ResourceChange};
use galley_domain::publication::ContentView;
use galley_domain::{ContentGroupId, EventId, Timestamp, WorkspaceId};

pub use crate::engine::NewEvent;
use crate::engine::{
    Affects, AppendedEvent, Error, Result, Row, Value, WriteTx, in_list, read_row, row,
};
use crate::tables::events::last_sequence;
use crate::tables::{audit, content_groups, webhooks};

/// The size of appended events, in bytes, above which a transaction inserts them before its end.
const BUFFER_SIZE_LIMIT: usize = 32 << 20;

/// Appends events, in this order. They are inserted at the end of the transaction, or earlier if
/// they are large.
pub async fn append(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    events: impl IntoIterator<Item = NewEvent>,
    now: Timestamp,
) -> Result<()> {
    let events = events.into_iter();
    let events = events.map(|event| AppendedEvent { workspace, event, created_at: now });
    let size = tx.append_events(events);
    if size > BUFFER_SIZE_LIMIT && !tx.is_shared() {
        insert_appended(tx).await?;
    }
    Ok(())
}

/// Inserts the appended entries of the audit log, and numbers and inserts the appended events, each
/// with the webhooks that it matches.
///
/// From here to the commit, all other writers of these workspaces wait. So this comes last, and its
/// statements are pipelined. Their order matters: the current state can be read only under the
/// lock.
///
/// The future is boxed, so that it is compiled once and not for each write.
pub(crate) fn insert_appended<'t>(tx: &'t WriteTx<'_>) -> BoxFuture<'t, Result<()>> {
    Box::pin(async {
        let (audit_entries, appended) = (tx.take_audit_entries(), tx.take_appended_events());
        let audited = audit::insert(tx, &audit_entries);
        if appended.is_empty() {
            return audited.await;
        }
        try_join(audited, insert(tx, &appended)).await.map(drop)
    })
}

async fn insert(tx: &WriteTx<'_>, appended: &[AppendedEvent]) -> Result<()> {
    let mut of_workspaces: BTreeMap<WorkspaceId, Vec<&AppendedEvent>> = BTreeMap::new();
    for event in appended {
        of_workspaces.entry(event.workspace).or_default().push(event);
    }
    let workspaces: Vec<WorkspaceId> = of_workspaces.keys().copied().collect();
    let mut ids = Vec::new();
    let listed = in_list("s.workspace_id", workspaces.iter().copied(), &mut ids);
    let last = last_sequence(if workspaces.len() == 1 { "?1" } else { "s.workspace_id" });
    let last =
        format!("SELECT s.workspace_id, {last} FROM workspace_sequences s WHERE TRUE{listed}");
    tx.prepare(LOCK_EVENTS).await?;
    tx.prepare(&last).await?;
    let locked = lock_events(tx, &workspaces);
    let last = tx.query(&last, &ids, |row| Ok((row.get(0)?, row.get::<i64>(1)?)));
    let moved = Box::pin(current_paths(tx, &workspaces, appended));
    let ((), last, moved) = try_join3(locked, last, moved).await?;
    let last: HashMap<WorkspaceId, i64> = last.into_iter().collect();
    let mut numbered = Vec::with_capacity(appended.len());
    for (workspace, events) in of_workspaces {
        // The id of the last event serves as the next generation.
        tx.note_next_generation(workspace);
        let last = last.get(&workspace).ok_or_else(|| Error::corrupt("a row is missing"))?;
        let first = last + 1;
        numbered.extend(events.into_iter().zip(first..).map(|(appended, sequence)| {
            let occurrence = with_current_paths(&appended.event.occurrence, &moved);
            NumberedEvent { sequence, appended, occurrence }
        }));
    }
    let rows = numbered.iter().map(parameters);
    let sql = "INSERT INTO events (workspace_id, sequence, id, type, created_at_ms, path_before,
            path_after, data, data_before, custom_data_of, custom_data_version, is_published)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    let inserted = tx.insert_each(sql, rows, Affects::Nothing);
    let ((), webhooks) = try_join(inserted, candidates(tx, &workspaces, &numbered)).await?;
    insert_matches(tx, &numbered, &webhooks).await?;
    tx.notify_on_commit();
    Ok(())
}

/// Prevents other transactions from numbering events of the workspace. The statement only locks the
/// row. A counter in the row would leave a dead version for each event since the oldest open
/// transaction began. Each event would then have to scan these versions.
const LOCK_EVENTS: &str =
    "SELECT 1 FROM workspace_sequences WHERE workspace_id = ?1 FOR NO KEY UPDATE";

/// Locks the events of workspaces, unless there are no other writers.
async fn lock_events(tx: &WriteTx<'_>, workspaces: &[WorkspaceId]) -> Result<()> {
    if !tx.has_other_writers() {
        return Ok(());
    }
    // In the same order in each transaction, to avoid a deadlock. Workspaces that were changed
    // without an event are among them, as their generation is set afterwards.
    let mut changed = tx.change_scope().workspaces();
    changed.extend(workspaces);
    let locks =
        changed.into_iter().map(|one| async move { tx.exists(LOCK_EVENTS, &row![one]).await });
    try_join_all(locks).await.map(drop)
}

/// An event with its number and the current paths of its groups.
struct NumberedEvent<'e> {
    sequence: i64,
    appended: &'e AppendedEvent,
    occurrence: ResourceChange,
}

/// Returns the current paths of the groups of pieces. A group may have been moved after the piece's
/// path was read, and the event of that move has a lower number. The lock prevents further moves
/// from being numbered.
///
/// A group that the transaction deletes has no path any more; the event has its last one.
async fn current_paths(
    tx: &WriteTx<'_>,
    workspaces: &[WorkspaceId],
    events: &[AppendedEvent],
) -> Result<HashMap<ContentGroupId, GroupPath>> {
    if !tx.has_other_writers() {
        return Ok(HashMap::new());
    }
    let of_pieces = events.iter().map(|one| &one.event.occurrence).filter(|one| one.is_of_piece());
    let groups: BTreeSet<ContentGroupId> = of_pieces
        .flat_map(|occurrence| [occurrence.path_before(), occurrence.path_after()])
        .filter_map(|path| path?.groups().last().copied())
        .collect();
    content_groups::paths(tx, workspaces, &groups).await
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

fn parameters<'e>(numbered: &'e NumberedEvent<'_>) -> [Value<'e>; 12] {
    let NumberedEvent { sequence, appended, occurrence } = numbered;
    let AppendedEvent { workspace, event, created_at } = appended;
    let seen = occurrence.as_seen_in(EventScope::Workspace);
    let event_type = seen.expect("the workspace sees every event");
    row! {
        *workspace, *sequence, event.id, event_type, *created_at, occurrence.path_before(),
        occurrence.path_after(), &event.data, &event.data_before,
        event.custom_data_of.map(|(piece, _)| piece),
        event.custom_data_of.map(|(_, version)| version), event.view == ContentView::Published
    }
}

/// A webhook that may match an event.
struct CandidateWebhook {
    workspace: WorkspaceId,
    id: String,
    events: EventTypes,
    view: ContentView,
    group: Option<ContentGroupId>,
    /// True if the webhook was disabled with its group. It still receives the events of the
    /// deletion, but no others.
    group_deleted: bool,
}

impl CandidateWebhook {
    /// Returns true if the webhook receives an event as `event_type`.
    fn receives(&self, event: &NumberedEvent<'_>, event_type: EventType) -> bool {
        let group = self.group.as_slice();
        let scope =
            if group.is_empty() { EventScope::Workspace } else { EventScope::Groups(group) };
        self.events.contains(event_type)
            && (event_type.is_of_groups() || !self.group_deleted)
            && (event.appended.event.view == self.view || !event.occurrence.is_of_piece())
            && (self.view == ContentView::Current || !event_type.is_of_current_view())
            && self.workspace == event.appended.workspace
            && event.occurrence.as_seen_in(scope) == Some(event_type)
    }
}

/// A run of consecutive events that match the same webhooks.
struct MatchRun<'e> {
    workspace: WorkspaceId,
    id: EventId,
    event_type: EventType,
    webhook_ids: Vec<&'e str>,
    first_sequence: i64,
    last_sequence: i64,
}

/// Returns the runs of consecutive events that the same webhooks receive.
fn match_runs<'e>(
    events: &[NumberedEvent<'_>],
    webhooks: &'e [CandidateWebhook],
) -> Vec<MatchRun<'e>> {
    let mut runs: Vec<MatchRun<'_>> = Vec::new();
    // The first run that includes the previous event.
    let mut open = 0;
    for numbered in events {
        let (sequence, workspace) = (numbered.sequence, numbered.appended.workspace);
        let begin = runs.len();
        for &event_type in numbered.occurrence.types() {
            let webhook_ids: Vec<&str> = webhooks
                .iter()
                .filter(|webhook| webhook.receives(numbered, event_type))
                .map(|webhook| webhook.id.as_str())
                .collect();
            if webhook_ids.is_empty() {
                continue;
            }
            let same = runs[open..begin].iter_mut().find(|run| {
                run.event_type == event_type
                    && run.workspace == workspace
                    && run.last_sequence == sequence - 1
                    && run.webhook_ids == webhook_ids
            });
            match same {
                Some(run) => run.last_sequence = sequence,
                None => runs.push(MatchRun {
                    workspace,
                    id: numbered.appended.event.id,
                    event_type,
                    webhook_ids,
                    first_sequence: sequence,
                    last_sequence: sequence,
                }),
            }
        }
        let still =
            |run: &MatchRun<'_>| run.workspace == workspace && run.last_sequence == sequence;
        open = runs.iter().position(still).unwrap_or(runs.len());
    }
    runs
}

/// Stores the webhooks that match the events, as the webhooks are now.
async fn insert_matches(
    tx: &WriteTx<'_>,
    events: &[NumberedEvent<'_>],
    webhooks: &[CandidateWebhook],
) -> Result<()> {
    if webhooks.is_empty() {
        return Ok(());
    }
    let runs = match_runs(events, webhooks);
    let mut rows = Vec::new();
    for run in &runs {
        for (part, ids) in (0_i64..).zip(run.webhook_ids.chunks(WEBHOOKS_PER_ROW)) {
            rows.push(row! {
                run.id, run.event_type, part, run.workspace, run.first_sequence,
                run.last_sequence, ids.join(",")
            });
        }
    }
    let sql = "INSERT INTO event_matches (id, event_type, part, workspace_id, first_sequence,
            last_sequence, webhook_ids)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    tx.insert_each(sql, rows, Affects::Nothing).await
}

/// The limit of webhooks in one row.
const WEBHOOKS_PER_ROW: usize = 64;

/// The number of groups from which webhooks are not filtered by group.
const GROUP_FILTER_LIMIT: usize = 200;

/// Returns the webhooks that may match one of the events, by id.
async fn candidates(
    tx: &WriteTx<'_>,
    workspaces: &[WorkspaceId],
    events: &[NumberedEvent<'_>],
) -> Result<Vec<CandidateWebhook>> {
    let occurrences = || events.iter().map(|event| &event.occurrence);
    let types = EventTypes::new(occurrences().flat_map(|one| one.types().iter().copied()));
    let paths = occurrences().flat_map(|one| [one.path_before(), one.path_after()]).flatten();
    let groups: BTreeSet<ContentGroupId> = paths.flat_map(GroupPath::groups).copied().collect();
    let mut params = Vec::new();
    let of_workspaces = in_list("h.workspace_id", workspaces.iter().copied(), &mut params);
    let of_types = webhooks::has_one_of(types.as_slice().iter().copied());
    // A group has no effect on the other events.
    let are_of_groups = types.as_slice().iter().all(|event| event.is_of_groups());
    let on_groups = if !are_of_groups || groups.len() > GROUP_FILTER_LIMIT {
        String::new()
    } else {
        let listed = in_list("h.content_group_id", groups.iter().copied(), &mut params);
        let listed = listed.trim_start_matches(" AND ");
        format!(" AND (h.content_group_id IS NULL OR {listed})")
    };
    let sql = format!(
        "SELECT h.workspace_id, h.id, h.events, h.view, h.content_group_id,
            COALESCE(h.disabled_reason, '') = 'group_deleted'
         FROM webhooks h
         WHERE {of_types}{of_workspaces}{on_groups}"
    );
    let read = |row: &Row<'_>| {
        Ok(
            read_row!(row, 0 => CandidateWebhook { workspace, id, events, view, group, group_deleted }),
        )
    };
    let mut found = tx.query(&sql, &params, read).await?;
    found.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(found)
}
