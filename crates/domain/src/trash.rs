//! The trash: deleted pieces and groups until they are restored or removed for good.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::actor::Actor;
use crate::id::{ContentGroupId, ContentPieceId, MalformedId};
use crate::time::Timestamp;

/// The days for which deleted pieces and groups are kept by default.
pub const RETENTION_DAYS: u32 = 30;

/// The kind of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The deleted piece or group can be restored from the trash.
    ToTrash,
    /// It is removed for good, with its revisions.
    Permanent,
}

impl Deletion {
    /// Returns the usual kind, if deleted pieces are kept for `retention_days`.
    pub fn with_retention(retention_days: u32) -> Self {
        if retention_days == 0 { Self::Permanent } else { Self::ToTrash }
    }
}

/// Identifies an entry of the trash: by the deleted piece or group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrashedId {
    /// A piece that was deleted alone.
    Piece(ContentPieceId),
    /// A group that was deleted with everything in it.
    Group(ContentGroupId),
}

impl fmt::Display for TrashedId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Piece(id) => id.fmt(out),
            Self::Group(id) => id.fmt(out),
        }
    }
}

impl FromStr for TrashedId {
    type Err = MalformedId;

    fn from_str(text: &str) -> Result<Self, MalformedId> {
        text.parse().map(Self::Piece).or_else(|_| text.parse().map(Self::Group))
    }
}

impl Serialize for TrashedId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// An entry of the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrashEntry {
    /// The deleted piece or group.
    pub id: TrashedId,
    /// The group that contained it; `None` for a group at the top level.
    pub content_group_id: Option<ContentGroupId>,
    /// The title of the piece or the name of the group.
    pub title: String,
    /// The time of the deletion.
    pub deleted_at: Timestamp,
    /// The author of the deletion.
    pub deleted_by: Actor,
    /// The number of pieces in it.
    pub pieces: i64,
}

impl TrashEntry {
    /// Returns the position of the entry in the list.
    pub fn position(&self) -> TrashPosition {
        TrashPosition { deleted_at: self.deleted_at, id: self.id }
    }
}

/// The position of an entry in the list of the trash, latest first. It stays valid after the entry
/// was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrashPosition {
    /// The time of the deletion.
    pub deleted_at: Timestamp,
    /// The entry.
    pub id: TrashedId,
}

impl fmt::Display for TrashPosition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.deleted_at.ms(), self.id)
    }
}

impl FromStr for TrashPosition {
    type Err = MalformedId;

    fn from_str(text: &str) -> Result<Self, MalformedId> {
        let (ms, id) = text.split_once('.').ok_or(MalformedId)?;
        let ms = ms.parse().map_err(|_| MalformedId)?;
        Ok(Self { deleted_at: Timestamp::from_ms(ms), id: id.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_survive_a_round_trip_through_text() {
        for id in
            [TrashedId::Piece(ContentPieceId::new(7)), TrashedId::Group(ContentGroupId::new(8))]
        {
            let position = TrashPosition { deleted_at: Timestamp::from_ms(12), id };
            assert_eq!(position.to_string().parse(), Ok(position));
        }
        for text in ["", "12", "12.", "x.cp_0", "12.tag_00000000000000000000000007"] {
            assert_eq!(text.parse::<TrashPosition>(), Err(MalformedId), "{text}");
        }
    }
}
