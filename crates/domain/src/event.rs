//! Changes of resources as events, as seen in the scope of a subscription.
//!
//! A change of one resource is one event. Its type depends on the scope. A move of a piece between
//! two groups is a removal in the first, an addition in the second, and an update in the workspace.

use crate::content_group::GroupPath;
use crate::id::ContentGroupId;
use crate::named_enum;
use crate::permission::{Permission, Resource};

named_enum! {
    /// The type of an event in the API.
    pub enum EventType {
        /// A piece was changed within the scope.
        ContentPieceUpdated = "contentPieceUpdated",
        /// A piece was created in, or moved into, the scope.
        ContentPieceAdded = "contentPieceAdded",
        /// A piece was deleted from, or moved out of, the scope.
        ContentPieceRemoved = "contentPieceRemoved",
        /// A revision of a piece was published.
        ContentPiecePublished = "contentPiecePublished",
        /// A piece was unpublished.
        ContentPieceUnpublished = "contentPieceUnpublished",
        /// A group was created.
        ContentGroupAdded = "contentGroupAdded",
        /// A group was deleted.
        ContentGroupRemoved = "contentGroupRemoved",
        /// A group was moved under another parent.
        ContentGroupMoved = "contentGroupMoved",
        /// A group's own fields were changed.
        ContentGroupChanged = "contentGroupChanged",
        /// An invite was created.
        MemberInvited = "memberInvited",
        /// An invite was accepted, or the operator added a member.
        MemberAdded = "memberAdded",
        /// A member or an invite was removed.
        MemberRemoved = "memberRemoved",
        /// A tag was created, changed or deleted.
        TagChanged = "tagChanged",
        /// A variant was created, changed or deleted.
        VariantChanged = "variantChanged",
        /// An asset was uploaded.
        AssetAdded = "assetAdded",
        /// An asset was deleted.
        AssetRemoved = "assetRemoved",
    }
}

impl EventType {
    /// Returns the resource of such an event.
    pub const fn resource(self) -> Resource {
        match self {
            Self::ContentPieceUpdated
            | Self::ContentPieceAdded
            | Self::ContentPieceRemoved
            | Self::ContentPiecePublished
            | Self::ContentPieceUnpublished => Resource::ContentPieces,
            Self::ContentGroupAdded
            | Self::ContentGroupRemoved
            | Self::ContentGroupMoved
            | Self::ContentGroupChanged => Resource::ContentGroups,
            Self::MemberInvited | Self::MemberAdded | Self::MemberRemoved => {
                Resource::WorkspaceMemberships
            }
            Self::TagChanged => Resource::Tags,
            Self::VariantChanged => Resource::Variants,
            Self::AssetAdded | Self::AssetRemoved => Resource::Assets,
        }
    }

    /// Returns true if a member changed.
    pub const fn is_of_members(self) -> bool {
        matches!(self.resource(), Resource::WorkspaceMemberships)
    }

    /// Returns true if a scope of groups limits such events.
    pub const fn is_of_groups(self) -> bool {
        matches!(
            self.resource(),
            Resource::ContentPieces | Resource::ContentGroups | Resource::Assets
        )
    }

    /// Returns true if the published view has no such event: it has others about publications, and
    /// shows an asset only while a published piece refers to it.
    pub const fn is_of_current_view(self) -> bool {
        matches!(
            self,
            Self::ContentPiecePublished
                | Self::ContentPieceUnpublished
                | Self::AssetAdded
                | Self::AssetRemoved
        )
    }

    /// Returns the permission that a subscriber needs to receive such an event.
    pub const fn permission(self) -> Permission {
        Permission::read(self.resource())
    }
}

/// The events of a webhook: one, and further ones. Each is contained once, in the order of their
/// declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTypes(Vec<EventType>);

impl EventTypes {
    /// Creates the set of these events.
    pub fn new(events: impl IntoIterator<Item = EventType>) -> Self {
        let given: Vec<EventType> = events.into_iter().collect();
        Self(EventType::ALL.iter().copied().filter(|event| given.contains(event)).collect())
    }

    /// Returns the events.
    pub fn as_slice(&self) -> &[EventType] {
        &self.0
    }

    /// Returns true if the set contains `event`.
    pub fn contains(&self, event: EventType) -> bool {
        self.0.contains(&event)
    }

    /// Returns true if the set has an event of this resource.
    pub fn has(&self, resource: Resource) -> bool {
        self.0.iter().any(|event| event.resource() == resource)
    }
}

/// The scope of a subscription: a part of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventScope<'g> {
    /// The whole workspace.
    Workspace,
    /// Some groups with all groups under them.
    Groups(&'g [ContentGroupId]),
}

impl EventScope<'_> {
    fn includes(self, path: &GroupPath) -> bool {
        match self {
            Self::Workspace => true,
            Self::Groups(groups) => groups.iter().any(|&group| path.contains(group)),
        }
    }

    /// Returns true if the scope includes a resource that may belong to no group.
    fn includes_any(self, path: Option<&GroupPath>) -> bool {
        match path {
            Some(path) => self.includes(path),
            None => matches!(self, Self::Workspace),
        }
    }
}

/// A change of one resource. The path of a piece lists the groups that contain it, and the path of
/// a group includes the group itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceChange {
    /// A piece was created in the last group of the path.
    PieceAdded(GroupPath),
    /// A piece was changed or moved.
    PieceUpdated {
        /// The path before the change.
        before: GroupPath,
        /// The path after the change.
        after: GroupPath,
    },
    /// A piece was deleted.
    PieceRemoved(GroupPath),
    /// A revision of a piece was published.
    PiecePublished(GroupPath),
    /// A piece was unpublished.
    PieceUnpublished(GroupPath),
    /// A group was created.
    GroupAdded(GroupPath),
    /// A group was moved under another parent.
    GroupMoved {
        /// The path before the move.
        before: GroupPath,
        /// The path after the move.
        after: GroupPath,
    },
    /// A group was deleted.
    GroupRemoved(GroupPath),
    /// A group's own fields were changed.
    GroupChanged(GroupPath),
    /// An invite was created.
    MemberInvited,
    /// A member was added.
    MemberAdded,
    /// A member or an invite was removed.
    MemberRemoved,
    /// A tag was created, changed or deleted.
    TagChanged,
    /// A variant was created, changed or deleted.
    VariantChanged,
    /// An asset was uploaded. The path is that of its group; one without a group is seen in the
    /// whole workspace only.
    AssetAdded(Option<GroupPath>),
    /// An asset was deleted.
    AssetRemoved(Option<GroupPath>),
}

impl ResourceChange {
    /// Returns the type of the event as seen in `scope`, or `None` if it is outside of it.
    pub fn as_seen_in(&self, scope: EventScope<'_>) -> Option<EventType> {
        use EventType as T;
        let seen = |path, event_type| scope.includes(path).then_some(event_type);
        match self {
            Self::PieceAdded(path) => seen(path, T::ContentPieceAdded),
            Self::PieceRemoved(path) => seen(path, T::ContentPieceRemoved),
            Self::PiecePublished(path) => seen(path, T::ContentPiecePublished),
            Self::PieceUnpublished(path) => seen(path, T::ContentPieceUnpublished),
            Self::PieceUpdated { before, after } => {
                match (scope.includes(before), scope.includes(after)) {
                    (true, true) => Some(T::ContentPieceUpdated),
                    (false, true) => Some(T::ContentPieceAdded),
                    (true, false) => Some(T::ContentPieceRemoved),
                    (false, false) => None,
                }
            }
            Self::GroupAdded(path) => seen(path, T::ContentGroupAdded),
            Self::GroupRemoved(path) => seen(path, T::ContentGroupRemoved),
            Self::GroupMoved { before, after } => {
                (scope.includes(before) || scope.includes(after)).then_some(T::ContentGroupMoved)
            }
            Self::GroupChanged(path) => seen(path, T::ContentGroupChanged),
            // These resources belong to the workspace, so every scope includes them.
            Self::MemberInvited => Some(T::MemberInvited),
            Self::MemberAdded => Some(T::MemberAdded),
            Self::MemberRemoved => Some(T::MemberRemoved),
            Self::TagChanged => Some(T::TagChanged),
            Self::VariantChanged => Some(T::VariantChanged),
            Self::AssetAdded(path) => scope.includes_any(path.as_ref()).then_some(T::AssetAdded),
            Self::AssetRemoved(path) => {
                scope.includes_any(path.as_ref()).then_some(T::AssetRemoved)
            }
        }
    }

    /// Returns the path before the change, unless the resource was created by it.
    pub fn path_before(&self) -> Option<&GroupPath> {
        match self {
            Self::PieceAdded(_)
            | Self::GroupAdded(_)
            | Self::MemberInvited
            | Self::MemberAdded
            | Self::MemberRemoved
            | Self::TagChanged
            | Self::VariantChanged
            | Self::AssetAdded(_) => None,
            Self::AssetRemoved(path) => path.as_ref(),
            Self::PieceUpdated { before: path, .. }
            | Self::GroupMoved { before: path, .. }
            | Self::GroupChanged(path)
            | Self::PieceRemoved(path)
            | Self::PiecePublished(path)
            | Self::PieceUnpublished(path)
            | Self::GroupRemoved(path) => Some(path),
        }
    }

    /// Returns the change with each of its paths replaced by `path`.
    #[must_use]
    pub fn map_paths(self, path: impl Fn(GroupPath) -> GroupPath) -> Self {
        match self {
            Self::PieceAdded(at) => Self::PieceAdded(path(at)),
            Self::PieceUpdated { before, after } => {
                Self::PieceUpdated { before: path(before), after: path(after) }
            }
            Self::PieceRemoved(at) => Self::PieceRemoved(path(at)),
            Self::PiecePublished(at) => Self::PiecePublished(path(at)),
            Self::PieceUnpublished(at) => Self::PieceUnpublished(path(at)),
            Self::GroupAdded(at) => Self::GroupAdded(path(at)),
            Self::GroupMoved { before, after } => {
                Self::GroupMoved { before: path(before), after: path(after) }
            }
            Self::GroupRemoved(at) => Self::GroupRemoved(path(at)),
            Self::GroupChanged(at) => Self::GroupChanged(path(at)),
            Self::AssetAdded(at) => Self::AssetAdded(at.map(path)),
            Self::AssetRemoved(at) => Self::AssetRemoved(at.map(path)),
            Self::MemberInvited
            | Self::MemberAdded
            | Self::MemberRemoved
            | Self::TagChanged
            | Self::VariantChanged => self,
        }
    }

    /// Returns the change that an event of this type, as seen in the workspace, made between these
    /// paths. Returns `None` if a required path is missing.
    pub fn from_event(
        event: EventType,
        before: Option<GroupPath>,
        after: Option<GroupPath>,
    ) -> Option<Self> {
        Some(match event {
            EventType::ContentPieceAdded => Self::PieceAdded(after?),
            EventType::ContentPieceUpdated => Self::PieceUpdated { before: before?, after: after? },
            EventType::ContentPieceRemoved => Self::PieceRemoved(before?),
            EventType::ContentPiecePublished => Self::PiecePublished(after?),
            EventType::ContentPieceUnpublished => Self::PieceUnpublished(after?),
            EventType::ContentGroupAdded => Self::GroupAdded(after?),
            EventType::ContentGroupMoved => Self::GroupMoved { before: before?, after: after? },
            EventType::ContentGroupRemoved => Self::GroupRemoved(before?),
            EventType::ContentGroupChanged => Self::GroupChanged(after?),
            EventType::MemberInvited => Self::MemberInvited,
            EventType::MemberAdded => Self::MemberAdded,
            EventType::MemberRemoved => Self::MemberRemoved,
            EventType::TagChanged => Self::TagChanged,
            EventType::VariantChanged => Self::VariantChanged,
            EventType::AssetAdded => Self::AssetAdded(after),
            EventType::AssetRemoved => Self::AssetRemoved(before),
        })
    }

    /// Returns every type that this change can have, depending on the scope.
    pub fn types(&self) -> &'static [EventType] {
        use EventType as T;
        match self {
            Self::PieceAdded(_) => &[T::ContentPieceAdded],
            Self::PieceUpdated { before, after } if before == after => &[T::ContentPieceUpdated],
            Self::PieceUpdated { .. } => {
                &[T::ContentPieceUpdated, T::ContentPieceAdded, T::ContentPieceRemoved]
            }
            Self::PieceRemoved(_) => &[T::ContentPieceRemoved],
            Self::PiecePublished(_) => &[T::ContentPiecePublished],
            Self::PieceUnpublished(_) => &[T::ContentPieceUnpublished],
            Self::GroupAdded(_) => &[T::ContentGroupAdded],
            Self::GroupMoved { .. } => &[T::ContentGroupMoved],
            Self::GroupRemoved(_) => &[T::ContentGroupRemoved],
            Self::GroupChanged(_) => &[T::ContentGroupChanged],
            Self::MemberInvited => &[T::MemberInvited],
            Self::MemberAdded => &[T::MemberAdded],
            Self::MemberRemoved => &[T::MemberRemoved],
            Self::TagChanged => &[T::TagChanged],
            Self::VariantChanged => &[T::VariantChanged],
            Self::AssetAdded(_) => &[T::AssetAdded],
            Self::AssetRemoved(_) => &[T::AssetRemoved],
        }
    }

    /// Returns true if a piece changed.
    pub fn is_of_piece(&self) -> bool {
        matches!(
            self,
            Self::PieceAdded(_)
                | Self::PieceUpdated { .. }
                | Self::PieceRemoved(_)
                | Self::PiecePublished(_)
                | Self::PieceUnpublished(_)
        )
    }

    /// Returns the path after the change, unless the resource was deleted by it.
    pub fn path_after(&self) -> Option<&GroupPath> {
        match self {
            Self::PieceRemoved(_)
            | Self::GroupRemoved(_)
            | Self::MemberInvited
            | Self::MemberAdded
            | Self::MemberRemoved
            | Self::TagChanged
            | Self::VariantChanged
            | Self::AssetRemoved(_) => None,
            Self::AssetAdded(path) => path.as_ref(),
            Self::PieceUpdated { after: path, .. }
            | Self::GroupMoved { after: path, .. }
            | Self::GroupChanged(path)
            | Self::PieceAdded(path)
            | Self::PiecePublished(path)
            | Self::PieceUnpublished(path)
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
    fn the_event_of_a_moved_piece_depends_on_the_scope() {
        let moved = ResourceChange::PieceUpdated { before: path(&[1, 2]), after: path(&[1, 3]) };
        assert_eq!(moved.as_seen_in(EventScope::Workspace), Some(EventType::ContentPieceUpdated));
        let groups = |ids: &[u128]| {
            let groups: Vec<_> = ids.iter().map(|&id| ContentGroupId::new(id)).collect();
            moved.as_seen_in(EventScope::Groups(&groups))
        };
        assert_eq!(groups(&[1]), Some(EventType::ContentPieceUpdated));
        assert_eq!(groups(&[2]), Some(EventType::ContentPieceRemoved));
        assert_eq!(groups(&[3]), Some(EventType::ContentPieceAdded));
        assert_eq!(groups(&[2, 3]), Some(EventType::ContentPieceUpdated));
        assert_eq!(groups(&[4]), None);
    }

    #[test]
    fn a_moved_group_is_seen_in_its_old_and_its_new_scope() {
        let moved = ResourceChange::GroupMoved { before: path(&[1, 9]), after: path(&[2, 9]) };
        for (scope, sees) in [(1, true), (2, true), (9, true), (3, false)] {
            let seen = moved.as_seen_in(EventScope::Groups(&[ContentGroupId::new(scope)]));
            assert_eq!(seen.is_some(), sees, "{scope}");
        }
    }
}
