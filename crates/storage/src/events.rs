//! The record of what happened: one row for each change of a resource, in its transaction.

use galley_domain::content_group::GroupPath;
use galley_domain::event::{EventType, Occurrence, Window};
use galley_domain::{EventId, Timestamp, WorkspaceId};

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
    let rows: Vec<Vec<Value<'_>>> = events
        .iter()
        .zip(last - count + 1..)
        .map(|(event, sequence)| parameters(workspace, event, sequence, now))
        .collect();
    tx.execute_each(
        "INSERT INTO events (workspace_id, sequence, id, type, created_at_ms, path_before,
            path_after, data, data_before)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        &rows,
    )
    .await
}

fn parameters(
    workspace: WorkspaceId,
    event: &NewEvent,
    sequence: i64,
    now: Timestamp,
) -> Vec<Value<'_>> {
    let seen = event.occurrence.seen_through(Window::Workspace);
    let event_type = seen.map(EventType::as_str).expect("the workspace sees every event");
    let path = |path: Option<&GroupPath>| path.map(|path| comma_separated(path.groups()));
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
