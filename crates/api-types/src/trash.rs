//! The JSON representation of the trash.

use galley_domain::trash::{TrashEntry, TrashedId};
use galley_domain::{ContentGroupId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use crate::actor::ActorBody;
use crate::request::body;
use crate::schemas;

/// A deleted content piece, or a deleted content group with everything in it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TrashEntry)]
#[serde(rename_all = "camelCase")]
pub struct TrashEntryBody<'a> {
    #[schema(value_type = schemas::TrashedId)]
    id: TrashedId,
    #[serde(rename = "type")]
    kind: TrashEntryType,
    /// The title of the piece, or the name of the group.
    #[schema(example = "Spring issue")]
    title: &'a str,
    /// The group that contained it. It may not exist any more. Null for a group at the top level.
    #[schema(value_type = Option<schemas::ContentGroupId>)]
    content_group_id: Option<ContentGroupId>,
    #[schema(value_type = schemas::Time)]
    deleted_at: Timestamp,
    deleted_by: ActorBody<'a>,
    /// The number of pieces in the entry.
    #[schema(example = 12)]
    pieces: i64,
}

/// The kind of a deleted resource.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum TrashEntryType {
    ContentPiece,
    ContentGroup,
}

impl<'a> TrashEntryBody<'a> {
    /// Creates the representation of an entry.
    pub fn new(entry: &'a TrashEntry, deleted_by: ActorBody<'a>) -> Self {
        Self {
            id: entry.id,
            kind: match entry.id {
                TrashedId::Piece(_) => TrashEntryType::ContentPiece,
                TrashedId::Group(_) => TrashEntryType::ContentGroup,
            },
            title: &entry.title,
            content_group_id: entry.content_group_id,
            deleted_at: entry.deleted_at,
            deleted_by,
            pieces: entry.pieces,
        }
    }
}

body! {
    /// The entry of the trash to restore.
    new TrashEntryToRestore of TrashedId {
        /// The group to restore it into. Null for its former group, which must then exist.
        content_group_id: optional ContentGroupId,
    }
}
