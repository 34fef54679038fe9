//! An event that a transaction appends.

use galley_domain::event::ResourceChange;
use galley_domain::publication::ContentView;
use galley_domain::{ContentPieceId, EventId, Timestamp, WorkspaceId};

/// An event to insert.
#[derive(Debug, Clone)]
pub struct NewEvent {
    /// The id.
    pub id: EventId,
    /// The type and the groups of the event.
    pub occurrence: ResourceChange,
    /// The view in which a change of a piece is seen. Other changes are seen in both.
    pub view: ContentView,
    /// The resource as JSON, after the change or before its deletion.
    pub data: String,
    /// The resource before a move from one group to another.
    pub data_before: Option<String>,
    /// The piece whose custom data `data` omits, and its version. Readers receive the custom data
    /// as long as the piece has this version: a later one may be in another group.
    pub custom_data_of: Option<(ContentPieceId, i64)>,
}

/// An event that is inserted at the end of its transaction.
#[derive(Debug)]
pub(crate) struct AppendedEvent {
    pub(crate) workspace: WorkspaceId,
    pub(crate) event: NewEvent,
    pub(crate) created_at: Timestamp,
}

impl AppendedEvent {
    /// Returns its approximate size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.event.data.len() + self.event.data_before.as_ref().map_or(0, String::len)
    }
}
