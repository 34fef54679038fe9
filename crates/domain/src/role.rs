//! Roles: named sets of permissions, and the built-in roles of every workspace.

use crate::id::RoleId;
use crate::named_enum;
use crate::permission::{Permission, PermissionSet, Resource};
use crate::text::{ShortText, line_of_text};

line_of_text! {
    /// A role's name: 1 to 255 characters without control characters, unique in its workspace.
    RoleName(1..=255)
}

/// A role of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// The identifier.
    pub id: RoleId,
    /// The name.
    pub name: RoleName,
    /// A description for people.
    pub description: Option<ShortText>,
    /// The permissions that it grants.
    pub permissions: PermissionSet,
    /// The base type, if it has one.
    pub base_type: Option<BaseType>,
    /// The version, incremented by every change.
    pub version: i64,
}

impl Role {
    /// Returns true if it is the admin role, which has every permission and can't be changed.
    pub fn is_admin(&self) -> bool {
        self.base_type == Some(BaseType::Admin)
    }

    /// Returns true if it grants all permissions of another role.
    pub fn includes(&self, other: &Self) -> bool {
        self.is_admin() || (!other.is_admin() && self.permissions.includes(other.permissions))
    }
}

named_enum! {
    /// The base type of a role that can't be changed or deleted, or that clients may rely on.
    pub enum BaseType {
        /// A role with every permission, which can be neither changed nor deleted.
        Admin = "admin",
        /// A role that reads the content and settings of a workspace.
        Viewer = "viewer",
    }
}

/// A role that every workspace has from its creation.
#[derive(Debug, Clone, Copy)]
pub struct BuiltinRole {
    /// The name, unique in the workspace.
    pub name: &'static str,
    /// A description for people.
    pub description: &'static str,
    /// The base type, if it has one.
    pub base_type: Option<BaseType>,
    /// The permissions that it grants.
    pub permissions: PermissionSet,
}

/// Returns the built-in roles: Admin, Editor and Viewer, in this order.
pub fn builtin_roles() -> [BuiltinRole; 3] {
    use Resource::{
        Assets, ContentGroups, ContentPieces, Profile, Publishing, Roles, Tags, Variants,
        Workspace, WorkspaceMemberships,
    };
    let editor = [ContentPieces, Publishing, Tags, Assets, Profile]
        .map(Permission::write)
        .into_iter()
        .chain(
            [ContentGroups, Variants, WorkspaceMemberships, Roles, Workspace].map(Permission::read),
        );
    let viewer = [
        ContentPieces,
        ContentGroups,
        Tags,
        Variants,
        Assets,
        Roles,
        WorkspaceMemberships,
        Workspace,
    ]
    .map(Permission::read)
    .into_iter()
    .chain([Permission::write(Profile)]);
    [
        BuiltinRole {
            name: "Admin",
            description: "May do everything in the workspace.",
            base_type: Some(BaseType::Admin),
            permissions: PermissionSet::ALL,
        },
        BuiltinRole {
            name: "Editor",
            description: "Writes content pieces and tags.",
            base_type: None,
            permissions: editor.collect(),
        },
        BuiltinRole {
            name: "Viewer",
            description: "Reads content and who works on it.",
            base_type: Some(BaseType::Viewer),
            permissions: viewer.collect(),
        },
    ]
}
