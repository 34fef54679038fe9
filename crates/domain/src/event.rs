//! What happened, and what of it somebody sees who watches a part of the workspace.
//!
//! A change of one resource is one event. Its type depends on the window through which it is
//! seen: a piece moved from one group to another was removed for whoever watches the first, added
//! for whoever watches the second, and updated for the workspace.

use crate::content_group::GroupPath;
use crate::id::ContentGroupId;
use crate::permission::{Permission, Resource};
use crate::text::Invalid;

macro_rules! event_types {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// The type of an event, as clients know it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum EventType {$($(#[$doc])* $name,)*}

        impl EventType {
            /// Every type.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its name in the interface.
            pub const fn as_str(self) -> &'static str {
                match self {$(Self::$name => $text,)*}
            }
        }

        impl std::str::FromStr for EventType {
            type Err = Invalid;

            fn from_str(text: &str) -> Result<Self, Invalid> {
                let known = Self::ALL.iter().find(|known| known.as_str() == text);
                known.copied().ok_or_else(|| {
                    let names: Vec<_> = Self::ALL.iter().map(|known| known.as_str()).collect();
                    let message = format!("must be one of {}", names.join(", "));
                    Invalid::new("invalid_enum_value", message)
                })
            }
        }
    };
}

event_types! {
    /// A piece was changed within the window.
    ContentPieceUpdated = "contentPieceUpdated",
    /// A piece was made in, or moved into, the window.
    ContentPieceAdded = "contentPieceAdded",
    /// A piece was deleted from, or moved out of, the window.
    ContentPieceRemoved = "contentPieceRemoved",
    /// A group was made.
    ContentGroupAdded = "contentGroupAdded",
    /// A group was deleted.
    ContentGroupRemoved = "contentGroupRemoved",
    /// A group was moved under another parent.
    ContentGroupMoved = "contentGroupMoved",
    /// An invite was made.
    MemberInvited = "memberInvited",
    /// An invite was accepted, or a member added by the operator.
    MemberAdded = "memberAdded",
    /// A member or an invite was removed.
    MemberRemoved = "memberRemoved",
}

impl EventType {
    /// What such an event is about.
    pub const fn resource(self) -> Resource {
        match self {
            Self::ContentPieceUpdated | Self::ContentPieceAdded | Self::ContentPieceRemoved => {
                Resource::ContentPieces
            }
            Self::ContentGroupAdded | Self::ContentGroupRemoved | Self::ContentGroupMoved => {
                Resource::ContentGroups
            }
            Self::MemberInvited | Self::MemberAdded | Self::MemberRemoved => {
                Resource::WorkspaceMemberships
            }
        }
    }

    /// What somebody must be allowed to see who is told of it.
    pub const fn permission(self) -> Permission {
        Permission::read(self.resource())
    }
}

/// The part of a workspace that somebody watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window<'g> {
    /// All of it.
    Workspace,
    /// Some groups and all groups under them.
    Groups(&'g [ContentGroupId]),
}

impl Window<'_> {
    fn holds(self, path: &GroupPath) -> bool {
        match self {
            Self::Workspace => true,
            Self::Groups(groups) => groups.iter().any(|&group| path.contains(group)),
        }
    }
}

/// A change of one resource. A path is that of the groups which hold a piece, or of a group
/// including itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Occurrence {
    /// A piece is there now, in the last group of the path.
    PieceAdded(GroupPath),
    /// A piece changed in itself or moved.
    PieceUpdated {
        /// Where it was.
        before: GroupPath,
        /// Where it is.
        after: GroupPath,
    },
    /// A piece is gone.
    PieceRemoved(GroupPath),
    /// A group is there now.
    GroupAdded(GroupPath),
    /// A group has another parent now.
    GroupMoved {
        /// Where it was.
        before: GroupPath,
        /// Where it is.
        after: GroupPath,
    },
    /// A group is gone.
    GroupRemoved(GroupPath),
    /// An invite was made.
    MemberInvited,
    /// A member is there now.
    MemberAdded,
    /// A member or an invite is gone.
    MemberRemoved,
}

impl Occurrence {
    /// What `window` sees of it.
    pub fn seen_through(&self, window: Window<'_>) -> Option<EventType> {
        use EventType as T;
        let seen = |path, event_type| window.holds(path).then_some(event_type);
        match self {
            Self::PieceAdded(path) => seen(path, T::ContentPieceAdded),
            Self::PieceRemoved(path) => seen(path, T::ContentPieceRemoved),
            Self::PieceUpdated { before, after } => {
                match (window.holds(before), window.holds(after)) {
                    (true, true) => Some(T::ContentPieceUpdated),
                    (false, true) => Some(T::ContentPieceAdded),
                    (true, false) => Some(T::ContentPieceRemoved),
                    (false, false) => None,
                }
            }
            Self::GroupAdded(path) => seen(path, T::ContentGroupAdded),
            Self::GroupRemoved(path) => seen(path, T::ContentGroupRemoved),
            Self::GroupMoved { before, after } => {
                (window.holds(before) || window.holds(after)).then_some(T::ContentGroupMoved)
            }
            // Members are of the workspace, whatever part of it somebody watches.
            Self::MemberInvited => Some(T::MemberInvited),
            Self::MemberAdded => Some(T::MemberAdded),
            Self::MemberRemoved => Some(T::MemberRemoved),
        }
    }

    /// Where the resource was, if it was there.
    pub fn path_before(&self) -> Option<&GroupPath> {
        match self {
            Self::PieceAdded(_)
            | Self::GroupAdded(_)
            | Self::MemberInvited
            | Self::MemberAdded
            | Self::MemberRemoved => None,
            Self::PieceUpdated { before: path, .. }
            | Self::GroupMoved { before: path, .. }
            | Self::PieceRemoved(path)
            | Self::GroupRemoved(path) => Some(path),
        }
    }

    /// The same with the paths that `path` gives for those it has.
    #[must_use]
    pub fn relocated(self, path: impl Fn(GroupPath) -> GroupPath) -> Self {
        match self {
            Self::PieceAdded(at) => Self::PieceAdded(path(at)),
            Self::PieceUpdated { before, after } => {
                Self::PieceUpdated { before: path(before), after: path(after) }
            }
            Self::PieceRemoved(at) => Self::PieceRemoved(path(at)),
            Self::GroupAdded(at) => Self::GroupAdded(path(at)),
            Self::GroupMoved { before, after } => {
                Self::GroupMoved { before: path(before), after: path(after) }
            }
            Self::GroupRemoved(at) => Self::GroupRemoved(path(at)),
            Self::MemberInvited | Self::MemberAdded | Self::MemberRemoved => self,
        }
    }

    /// What happened by an event of this type, as the workspace sees it, between these places. Without
    /// the places that it needs it is nothing.
    pub fn of(
        event: EventType,
        before: Option<GroupPath>,
        after: Option<GroupPath>,
    ) -> Option<Self> {
        Some(match event {
            EventType::ContentPieceAdded => Self::PieceAdded(after?),
            EventType::ContentPieceUpdated => Self::PieceUpdated { before: before?, after: after? },
            EventType::ContentPieceRemoved => Self::PieceRemoved(before?),
            EventType::ContentGroupAdded => Self::GroupAdded(after?),
            EventType::ContentGroupMoved => Self::GroupMoved { before: before?, after: after? },
            EventType::ContentGroupRemoved => Self::GroupRemoved(before?),
            EventType::MemberInvited => Self::MemberInvited,
            EventType::MemberAdded => Self::MemberAdded,
            EventType::MemberRemoved => Self::MemberRemoved,
        })
    }

    /// Every type of event that somebody may see in it.
    pub fn types(&self) -> &'static [EventType] {
        use EventType as T;
        match self {
            Self::PieceAdded(_) => &[T::ContentPieceAdded],
            Self::PieceUpdated { before, after } if before == after => &[T::ContentPieceUpdated],
            Self::PieceUpdated { .. } => {
                &[T::ContentPieceUpdated, T::ContentPieceAdded, T::ContentPieceRemoved]
            }
            Self::PieceRemoved(_) => &[T::ContentPieceRemoved],
            Self::GroupAdded(_) => &[T::ContentGroupAdded],
            Self::GroupMoved { .. } => &[T::ContentGroupMoved],
            Self::GroupRemoved(_) => &[T::ContentGroupRemoved],
            Self::MemberInvited => &[T::MemberInvited],
            Self::MemberAdded => &[T::MemberAdded],
            Self::MemberRemoved => &[T::MemberRemoved],
        }
    }

    /// Whether it is of a piece.
    pub fn is_of_piece(&self) -> bool {
        matches!(self, Self::PieceAdded(_) | Self::PieceUpdated { .. } | Self::PieceRemoved(_))
    }

    /// Where the resource is, if it is there.
    pub fn path_after(&self) -> Option<&GroupPath> {
        match self {
            Self::PieceRemoved(_)
            | Self::GroupRemoved(_)
            | Self::MemberInvited
            | Self::MemberAdded
            | Self::MemberRemoved => None,
            Self::PieceUpdated { after: path, .. }
            | Self::GroupMoved { after: path, .. }
            | Self::PieceAdded(path)
            | Self::GroupAdded(path) => Some(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(ids: &[u128]) -> GroupPath {
        GroupPath::new(ids.iter().map(|&id| ContentGroupId::new(id)).collect())
    }

    #[test]
    fn a_moved_piece_is_seen_as_the_window_sees_it() {
        let moved = Occurrence::PieceUpdated { before: path(&[1, 2]), after: path(&[1, 3]) };
        assert_eq!(moved.seen_through(Window::Workspace), Some(EventType::ContentPieceUpdated));
        let groups = |ids: &[u128]| {
            let groups: Vec<_> = ids.iter().map(|&id| ContentGroupId::new(id)).collect();
            moved.seen_through(Window::Groups(&groups))
        };
        assert_eq!(groups(&[1]), Some(EventType::ContentPieceUpdated));
        assert_eq!(groups(&[2]), Some(EventType::ContentPieceRemoved));
        assert_eq!(groups(&[3]), Some(EventType::ContentPieceAdded));
        assert_eq!(groups(&[2, 3]), Some(EventType::ContentPieceUpdated));
        assert_eq!(groups(&[4]), None);
    }

    #[test]
    fn a_moved_group_is_seen_where_it_left_and_where_it_came() {
        let moved = Occurrence::GroupMoved { before: path(&[1, 9]), after: path(&[2, 9]) };
        for (window, sees) in [(1, true), (2, true), (9, true), (3, false)] {
            let seen = moved.seen_through(Window::Groups(&[ContentGroupId::new(window)]));
            assert_eq!(seen.is_some(), sees, "{window}");
        }
    }
}
