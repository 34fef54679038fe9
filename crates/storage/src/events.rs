//! The record of what happened: one row for each change of a resource, in its transaction.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use galley_domain::content_group::GroupPath;
use galley_domain::event::{EventType, Occurrence, Window};
use galley_domain::{ContentGroupId, EventId, Timestamp, WorkspaceId};

use crate::content_groups;
use crate::content_pieces::comma_separated;
use crate::error::Result;
use crate::tx::{Tx, WriteTx};
use crate::value::{Value, params};

/// An event to keep.
#[derive(Debug, Clone)]
pub struct NewEvent {
    /// Which one.
    pub id: EventId,
    /// What happened, and where.
    pub occurrence: Occurrence,
    /// The resource as JSON, just after the change, or just before its removal.
    pub data: String,
    /// How it was before, where it moved from one group to another.
    pub data_before: Option<String>,
}

/// An event as the whole workspace sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number: the workspace's events are counted in the order of their commits.
    pub sequence: i64,
    /// Which one.
    pub id: EventId,
    /// Its type.
    pub event_type: String,
    /// When it happened.
    pub created_at: Timestamp,
    /// The resource as JSON.
    pub data: String,
}

/// Numbers and keeps events, in their order.
///
/// To be called last in a transaction: from here on every other change of the workspace waits for
/// the number.
pub async fn append(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    events: &[NewEvent],
    now: Timestamp,
) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let count = i64::try_from(events.len()).expect("fewer events than numbers");
    let last = tx
        .get(
            "UPDATE workspace_sequences SET last_sequence = last_sequence + ?2
             WHERE workspace_id = ?1 RETURNING last_sequence",
            params![workspace, count],
            |row| row.int(0),
        )
        .await?;
    let moved = moved_groups(tx, workspace, events).await?;
    let rows: Vec<Vec<Value<'_>>> = events
        .iter()
        .zip(last - count + 1..)
        .map(|(event, sequence)| parameters(workspace, event, &moved, sequence, now))
        .collect();
    tx.execute_each(
        "INSERT INTO events (workspace_id, sequence, id, type, created_at_ms, path_before,
            path_after, data, data_before)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        &rows,
    )
    .await
}

/// Where the groups of pieces are by now. A group may have been moved after the piece's path was
/// read, and its event have a lower number; from here on no other has.
async fn moved_groups(
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
    // What is deleted in this transaction was where it was.
    found.retain(|_, path| !path.groups().is_empty());
    Ok(found)
}

fn parameters<'e>(
    workspace: WorkspaceId,
    event: &'e NewEvent,
    moved: &HashMap<ContentGroupId, GroupPath>,
    sequence: i64,
    now: Timestamp,
) -> Vec<Value<'e>> {
    let seen = event.occurrence.seen_through(Window::Workspace);
    let event_type = seen.map(EventType::as_str).expect("the workspace sees every event");
    let is_of_piece = event.occurrence.is_of_piece();
    let path = |path: Option<&GroupPath>| {
        let path = path?;
        let last = path.groups().last().filter(|_| is_of_piece);
        let now = last.and_then(|group| moved.get(group)).unwrap_or(path);
        Some(comma_separated(now.groups()))
    };
    params![
        workspace,
        sequence,
        event.id,
        event_type,
        now,
        path(event.occurrence.path_before()),
        path(event.occurrence.path_after()),
        &event.data,
        event.data_before.as_deref()
    ]
    .to_vec()
}

/// Lists the events after the one with number `after`, the oldest first.
pub async fn list(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    after: i64,
    limit: i64,
) -> Result<Vec<Event>> {
    tx.query(
        "SELECT sequence, id, type, created_at_ms, data FROM events
         WHERE workspace_id = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3",
        params![workspace, after, limit],
        |row| {
            Ok(Event {
                sequence: row.int(0)?,
                id: row.parse(1)?,
                event_type: row.text(2)?.to_owned(),
                created_at: row.time(3)?,
                data: row.text(4)?.to_owned(),
            })
        },
    )
    .await
}
