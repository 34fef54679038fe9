//! Permissions of roles and tokens, in one vocabulary: `<resource>:read` and `<resource>:write`.
//!
//! Write includes read. A request has the intersection of its token's permissions and its user's
//! role.

use std::fmt;
use std::str::FromStr;

use crate::named_enum;

named_enum! {
    /// The resource of a permission. Permissions are listed in this order.
    pub enum Resource {
        /// Content pieces and their variants' overrides.
        ContentPieces = "contentPieces",
        /// Content groups.
        ContentGroups = "contentGroups",
        /// Tags.
        Tags = "tags",
        /// Variants.
        Variants = "variants",
        /// Assets.
        Assets = "assets",
        /// Roles.
        Roles = "roles",
        /// Members and invites.
        WorkspaceMemberships = "workspaceMemberships",
        /// The workspace itself.
        Workspace = "workspace",
        /// Webhooks, deliveries and the event feed.
        Webhooks = "webhooks",
        /// Access tokens.
        Tokens = "tokens",
        /// The token's own user.
        Profile = "profile",
        /// The removal of pieces, groups and revisions for good.
        Trash = "trash",
        /// The publication of pieces.
        Publishing = "publishing",
        /// The audit log.
        Audit = "audit",
    }
}

/// The right to read, or to read and write, one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Permission {
    /// The resource.
    pub resource: Resource,
    /// True if it allows changes as well.
    pub write: bool,
}

impl Permission {
    /// Returns the right to read `resource`.
    pub const fn read(resource: Resource) -> Self {
        Self { resource, write: false }
    }

    /// Returns the right to read and write `resource`.
    pub const fn write(resource: Resource) -> Self {
        Self { resource, write: true }
    }

    /// Returns its own bit and those of the permissions that it includes.
    const fn bits(self) -> u32 {
        let read = 1 << (self.resource as u32 * 2);
        if self.write { read | (read << 1) } else { read }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.resource.as_str(), if self.write { "write" } else { "read" })
    }
}

/// The permission to remove pieces, groups and revisions for good.
pub const PERMANENT_PERMISSION: Permission = Permission::write(Resource::Trash);

/// The permission to publish and unpublish pieces.
pub const PUBLISHING_PERMISSION: Permission = Permission::write(Resource::Publishing);

/// The error for a text that names no permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a permission")]
pub struct UnknownPermission;

impl FromStr for Permission {
    type Err = UnknownPermission;

    fn from_str(text: &str) -> Result<Self, UnknownPermission> {
        let (what, access) = text.split_once(':').ok_or(UnknownPermission)?;
        let resource = what.parse().map_err(|_| UnknownPermission)?;
        let write = match access {
            "read" => false,
            "write" => true,
            _ => return Err(UnknownPermission),
        };
        Ok(Self { resource, write })
    }
}

/// A set of permissions in which write includes read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PermissionSet(u32);

impl PermissionSet {
    /// All permissions.
    pub const ALL: Self = Self((1 << (Resource::ALL.len() * 2)) - 1);

    /// Returns the permission in the set that a token of the published view can't have, if any. It
    /// changes no content, and sees neither the trash, publications nor the audit log.
    pub fn beyond_published_view(self) -> Option<Permission> {
        self.iter().find(|permission| match permission.resource {
            Resource::ContentPieces
            | Resource::ContentGroups
            | Resource::Tags
            | Resource::Variants
            | Resource::Assets => permission.write,
            Resource::Trash | Resource::Publishing | Resource::Audit => true,
            _ => false,
        })
    }

    /// Returns true if `permission` is in the set.
    pub const fn allows(self, permission: Permission) -> bool {
        self.0 & permission.bits() == permission.bits()
    }

    /// Returns true if one of `permissions` is in the set, or if there are none.
    pub fn allows_one_of(self, permissions: &[Permission]) -> bool {
        permissions.is_empty() || permissions.iter().any(|&permission| self.allows(permission))
    }

    /// Returns the intersection of both sets.
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns true if this set contains all permissions of `other`.
    pub const fn includes(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the permissions that describe the set, without those that another one includes.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Resource::ALL.iter().filter_map(move |&resource| {
            [Permission::write(resource), Permission::read(resource)]
                .into_iter()
                .find(|&permission| self.allows(permission))
        })
    }
}

impl FromIterator<Permission> for PermissionSet {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        Self(permissions.into_iter().fold(0, |bits, permission| bits | permission.bits()))
    }
}

/// Writes the stored form: the describing permissions, separated by spaces.
impl fmt::Display for PermissionSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, permission) in self.iter().enumerate() {
            if index > 0 {
                out.write_str(" ")?;
            }
            permission.fmt(out)?;
        }
        Ok(())
    }
}

impl FromStr for PermissionSet {
    type Err = UnknownPermission;

    fn from_str(text: &str) -> Result<Self, UnknownPermission> {
        text.split_ascii_whitespace().map(str::parse::<Permission>).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_includes_read_and_nothing_else() {
        let set: PermissionSet = [Permission::write(Resource::Tags)].into_iter().collect();
        assert!(set.allows(Permission::read(Resource::Tags)));
        assert!(!set.allows(Permission::read(Resource::ContentPieces)));
        let read: PermissionSet = [Permission::read(Resource::Tags)].into_iter().collect();
        assert!(!read.allows(Permission::write(Resource::Tags)));
        assert!(set.includes(read) && !read.includes(set));
        assert_eq!(set.intersection(read), read);
    }

    #[test]
    fn permission_sets_survive_a_round_trip_through_text() {
        assert_eq!(PermissionSet::ALL.to_string().parse(), Ok(PermissionSet::ALL));
        assert_eq!(PermissionSet::default().to_string(), "");
        assert_eq!("".parse(), Ok(PermissionSet::default()));
        assert_eq!(
            "tags:write profile:read".parse::<PermissionSet>().unwrap().to_string(),
            "tags:write profile:read"
        );
        for text in ["tags", "tags:", "tags:delete", "Tags:read", "users:read"] {
            assert_eq!(text.parse::<Permission>(), Err(UnknownPermission), "{text}");
        }
    }
}
