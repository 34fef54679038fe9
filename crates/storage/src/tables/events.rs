//! Events: one row for each change of a resource, inserted in its transaction.

use galley_domain::event::{EventType, ResourceChange};
use galley_domain::publication::ContentView;
use galley_domain::{EventId, Timestamp, WorkspaceId};

use crate::engine::{Affects, Error, Result, Row, Tx, WriteTx, params, read_row};

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

/// The number of the last event, which is never deleted. If an older program did delete it, the
/// number is in `workspace_sequences s`. `workspace` is a parameter or a column.
pub(crate) fn last_sequence(workspace: &str) -> String {
    format!(
        "COALESCE((SELECT e.sequence FROM events e
            WHERE e.workspace_id = {workspace} ORDER BY e.sequence DESC LIMIT 1), s.last_sequence)"
    )
}

/// An event with the data that determine its visibility and its type in each scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventWithPaths {
    /// The event as seen in the scope of the workspace.
    pub event: Event,
    /// The type and the groups of the event.
    pub occurrence: ResourceChange,
    /// The view in which a change of a piece is seen.
    pub view: ContentView,
    /// The resource before a move from one group to another.
    pub data_before: Option<String>,
}

/// The limit up to which a page is read whatever its size; the size of the default page.
const UNSIZED_PAGE_LIMIT: i64 = 32;

/// Lists events after a sequence number, with their groups. A longer page ends once its total size
/// reaches `bytes`. Also returns true if events may have been left out. For the current view, the
/// events of the published one are left out.
pub async fn list_with_paths(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    view: ContentView,
    after: i64,
    limit: i64,
    bytes: usize,
) -> Result<(Vec<EventWithPaths>, bool)> {
    let of_view = match view {
        ContentView::Current => " AND NOT e.is_published",
        ContentView::Published => "",
    };
    let sized = async {
        let sql = format!(
            "SELECT e.sequence, CAST(octet_length(e.data) + COALESCE(octet_length(e.data_before), 0)
                + COALESCE(octet_length({CUSTOM_DATA}), 0) AS BIGINT)
             FROM events e WHERE e.workspace_id = ?1 AND e.sequence > ?2{of_view}
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
            e.path_after, e.data_before, e.is_published
         FROM events e WHERE e.workspace_id = ?1 AND e.sequence > ?2 AND e.sequence <= ?4{of_view}
         ORDER BY e.sequence LIMIT ?3"
    );
    let found = tx
        .query(&sql, params![workspace, after, limit, last], |row| {
            let event = read(row)?;
            let occurrence = read_change(row.get(2)?, row, 6)?;
            let view = view_of(row.get(9)?);
            Ok(EventWithPaths { event, occurrence, view, data_before: row.get(8)? })
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
            (SELECT sequence FROM events WHERE workspace_id = ?1 ORDER BY sequence LIMIT 1),
            {}
         FROM workspace_sequences s WHERE s.workspace_id = ?1",
        last_sequence("?1")
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

macro_rules! custom_data_in {
    ($pieces:literal, $custom_data:literal) => {
        concat!(
            "(SELECT x.custom_data FROM ",
            $custom_data,
            " x JOIN ",
            $pieces,
            " p ON p.workspace_id = x.workspace_id AND p.id = x.content_piece_id
              WHERE x.workspace_id = ?1 AND x.content_piece_id = e.custom_data_of
                AND p.version = e.custom_data_version)"
        )
    };
}

/// The custom data that `data` of the event `e` omits. The statement's first parameter is the
/// workspace.
pub(crate) const CUSTOM_DATA: &str = concat!(
    "CASE WHEN e.custom_data_of IS NULL THEN NULL WHEN e.is_published THEN ",
    custom_data_in!("published_pieces", "published_piece_custom_data"),
    " ELSE ",
    custom_data_in!("content_pieces", "content_piece_custom_data"),
    " END"
);

/// Returns the view of an event.
fn view_of(is_published: bool) -> ContentView {
    if is_published { ContentView::Published } else { ContentView::Current }
}

/// Inserts the custom data that an event's data omits.
///
/// In JSON text, a member's name in unescaped quotes can't be part of a string. So the first
/// occurrence is the member itself.
pub(crate) fn with_custom_data(data: &str, custom_data: Option<&str>) -> String {
    let Some(custom_data) = custom_data else { return data.to_owned() };
    let value = serde_json::Value::from(custom_data);
    data.replacen("\"customData\":null", &format!("\"customData\":{value}"), 1)
}
