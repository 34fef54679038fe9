//! The feed of a workspace: its events as seen in the scope of a token.

use std::borrow::Cow;

use galley_api_types::event_envelope::{EventJson, without_emails};
use galley_domain::event::{EventScope, EventType};
use galley_domain::permission::Resource;
use galley_domain::publication::ContentView;
use galley_domain::{ContentGroupId, Credential, Permission, Timestamp, WorkspaceId};
use galley_storage::Tx;
use galley_storage::authentication::{self, Authentication};
use galley_storage::events::{self, EventWithPaths};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::caller::Caller;
use crate::error::Error;
use crate::operations::webhook_access::{may_see, may_see_all_events};
use crate::rejection::{Reason, Rejection};
use crate::scope::EMAIL_PERMISSION;
use crate::service::Service;

/// The permissions to read the resources of events. The feed requires one of them.
pub const READ_PERMISSIONS: &[Permission] = &[
    Permission::read(Resource::ContentPieces),
    Permission::read(Resource::ContentGroups),
    Permission::read(Resource::WorkspaceMemberships),
    Permission::read(Resource::Tags),
    Permission::read(Resource::Variants),
    Permission::read(Resource::Assets),
];

/// The limit on events that are scanned for one response, as a limited token may see few of them.
const SCANNED_EVENTS_MAX: i64 = 2_000;

/// The limit on bytes of events in one read. Each read queries the sizes of the remaining events
/// first.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// An event as the token sees it.
#[derive(Debug)]
pub struct VisibleEvent {
    /// The sequence.
    pub sequence: i64,
    /// The type in the scope of the token.
    pub event_type: EventType,
    /// The envelope as JSON.
    pub json: Box<RawValue>,
}

/// A part of the feed, with the scan position after it.
#[derive(Debug)]
pub struct FeedPage {
    /// The events.
    pub seen: Vec<VisibleEvent>,
    /// The sequence up to which events were scanned.
    pub looked_up_to: i64,
    /// True if there may be events after `looked_up_to`.
    pub more: bool,
}

/// Returns the position after which a stream begins: `after` or, without it, the position before
/// the oldest stored event.
pub async fn start_sequence(caller: &Caller, after: Option<i64>) -> Result<i64, Error> {
    let own = caller.clone();
    let read = async move |tx: &Tx<'_>| start_sequence_in(tx, own.token(), after).await;
    caller.read_current("events.begin", read).await
}

/// Returns the sequence of the newest event, or 0 if there was none.
pub async fn position(caller: &Caller) -> Result<i64, Error> {
    let workspace = caller.workspace();
    let read = async move |tx: &Tx<'_>| Ok(events::bounds(tx, workspace).await?.1);
    caller.read_current("events.position", read).await
}

/// Lists at most `max` events after a position, within a limit of bytes.
pub async fn list(
    caller: &Caller,
    after: Option<i64>,
    max: usize,
    bytes: usize,
) -> Result<FeedPage, Error> {
    let own = caller.clone();
    let read = async move |tx: &Tx<'_>| {
        let after = start_sequence_in(tx, own.token(), after).await?;
        self::read(tx, own.token(), after, max, bytes).await
    };
    caller.read_current("events.list", read).await
}

/// Reads further events of a stream, and its token again. Returns `None` if the token is no longer
/// valid.
pub async fn follow(
    service: &Service,
    reader: &Authentication,
    after: i64,
    max: usize,
    bytes: usize,
) -> Result<Option<(Authentication, FeedPage)>, Error> {
    let (workspace, credential) = (reader.workspace, reader.credential);
    let environment = service.environment().clone();
    let read = async move |tx: &Tx<'_>| {
        let mut reader = find_reader(tx, workspace, credential, environment.now()).await?;
        loop {
            let Some(current) = reader else { return Ok(None) };
            let page = self::read(tx, &current, after, max, bytes).await?;
            if page.looked_up_to == after {
                return Ok::<_, Error>(Some((current, page)));
            }
            // On PostgreSQL each statement sees the latest commits, and the token may have expired
            // meanwhile. So the rights may have changed before one of the events.
            reader = find_reader(tx, workspace, credential, environment.now()).await?;
            if reader.as_ref() == Some(&current) {
                return Ok(Some((current, page)));
            }
        }
    };
    service.database().read("events.stream", read).await
}

/// Returns the token of a stream as it is now, if it may still read events.
async fn find_reader(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    credential: Credential,
    now: Timestamp,
) -> Result<Option<Authentication>, Error> {
    let found = authentication::find(tx, workspace, credential).await?;
    let reader = found.filter(|reader| {
        reader.expires_at.is_none_or(|end| end > now)
            && reader.permissions.allows_one_of(READ_PERMISSIONS)
    });
    Ok(reader.map(|reader| Authentication { last_used_at: None, ..reader }))
}

/// Returns the position after which to read: `after` or, without it, the position before the oldest
/// stored event.
///
/// Rejects a position after which events are already deleted, and a position beyond the newest
/// event.
async fn start_sequence_in(
    tx: &Tx<'_>,
    reader: &Authentication,
    after: Option<i64>,
) -> Result<i64, Error> {
    let (first, last) = events::bounds(tx, reader.workspace).await?;
    let before_first = first.unwrap_or(last + 1) - 1;
    match after {
        None => Ok(before_first),
        Some(after) if after < before_first => {
            let detail = format!("the oldest stored event has the sequence {}", before_first + 1);
            Err(Rejection::new(Reason::EventsForgotten, &detail).into())
        }
        Some(after) if after > last => Err(Rejection::after_beyond_newest(last).into()),
        Some(after) => Ok(after),
    }
}

/// Reads at most `max` events that the reader may see. Stops before their JSON list exceeds
/// `bytes`, except for a single larger event.
async fn read(
    tx: &Tx<'_>,
    reader: &Authentication,
    after: i64,
    max: usize,
    bytes: usize,
) -> Result<FeedPage, Error> {
    // A reader that sees all events needs those of the page, and one more that shows if more
    // follow.
    let wanted = i64::try_from(max).unwrap_or(i64::MAX).saturating_add(1);
    // The database leaves out the events of the published view only, which are the fewer ones.
    let sees_all = reader.view == ContentView::Current && may_see_all_events(reader);
    let limit = if sees_all { wanted } else { SCANNED_EVENTS_MAX };
    let mut part = FeedPage { seen: Vec::new(), looked_up_to: after, more: false };
    let (mut left, mut seen_bytes) = (limit, "[]".len());
    loop {
        let from = part.looked_up_to;
        let (found, was_much) =
            events::list_with_paths(tx, reader.workspace, reader.view, from, left, PAGE_BYTES_MAX)
                .await?;
        left -= i64::try_from(found.len()).unwrap_or(i64::MAX);
        part.more = was_much || left == 0;
        for placed in found {
            // A full page ends at its last visible event, so its end reveals nothing about hidden
            // events.
            let seen = visible_event(reader, &placed);
            let size = seen.as_ref().map_or(0, |seen| seen.json.get().len() + ",".len());
            let is_too_much = size > 0 && !part.seen.is_empty() && seen_bytes + size > bytes;
            if part.seen.len() == max || is_too_much {
                part.more = true;
                return Ok(part);
            }
            part.looked_up_to = placed.event.sequence;
            seen_bytes += size;
            part.seen.extend(seen);
        }
        if !was_much || left == 0 {
            return Ok(part);
        }
    }
}

/// Returns the event as the reader sees it, or `None` if the reader may not see it.
fn visible_event(reader: &Authentication, placed: &EventWithPaths) -> Option<VisibleEvent> {
    let groups = reader.content_groups.as_deref();
    let window = groups.map_or(EventScope::Workspace, EventScope::Groups);
    let event_type = placed.occurrence.as_seen_in(window)?;
    let is_of_view = (placed.view == reader.view || !placed.occurrence.is_of_piece())
        && (reader.view == ContentView::Current || !event_type.is_of_current_view());
    if !is_of_view || !may_see(reader, event_type) {
        return None;
    }
    let left = event_type == EventType::ContentPieceRemoved;
    let data = placed.data_before.as_deref().filter(|_| left).unwrap_or(&placed.event.data);
    let of_group = event_type.resource() == Resource::ContentGroups;
    let trimmed = groups.filter(|_| of_group).and_then(|groups| without_groups_above(data, groups));
    let data = trimmed.as_deref().unwrap_or(data);
    let data = if reader.permissions.allows(EMAIL_PERMISSION) {
        Cow::Borrowed(data)
    } else {
        without_emails(event_type, data)
    };
    let data: &RawValue = serde_json::from_str(&data).ok()?;
    let envelope = EventJson {
        event_type: event_type.as_str(),
        timestamp: placed.event.created_at,
        sequence: placed.event.sequence,
        workspace_id: reader.workspace,
        webhook_id: None,
        data,
        test: false,
    };
    let json = serde_json::value::to_raw_value(&envelope).ok()?;
    Some(VisibleEvent { sequence: placed.event.sequence, event_type, json })
}

/// Returns a group's JSON without the ancestors that a token limited to `groups` can't see.
fn without_groups_above(data: &str, groups: &[ContentGroupId]) -> Option<String> {
    let mut group: Value = serde_json::from_str(data).ok()?;
    let ancestors = group["ancestors"].as_array_mut()?;
    let is_seen = |id: &Value| {
        let id = id.as_str().and_then(|id| id.parse().ok());
        id.is_some_and(|id: ContentGroupId| groups.contains(&id))
    };
    let first = ancestors.iter().position(is_seen).unwrap_or(ancestors.len());
    ancestors.drain(..first);
    Some(group.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_feed_accepts_the_permission_of_every_event() {
        for event in EventType::ALL {
            assert!(READ_PERMISSIONS.contains(&event.permission()), "{}", event.as_str());
        }
    }
}
