//! Roles: named sets of permissions, and those that every workspace starts with.

use crate::id::RoleId;
use crate::permission::{Permission, PermissionSet, Resource};
use crate::text::{Invalid, ShortText, line_of_text};

line_of_text! {
    /// A role's name: 1 to 255 characters without control characters, unique in its workspace.
    RoleName(1..=255)
}

/// A role of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// Which one.
    pub id: RoleId,
    /// Its name.
    pub name: RoleName,
    /// One sentence for people.
    pub description: Option<ShortText>,
    /// What it allows.
    pub permissions: PermissionSet,
    /// What it is at its base, if anything.
    pub base_type: Option<BaseType>,
    /// Raised by every change.
    pub version: i64,
}

impl Role {
    /// Whether it holds every permission and stays as it is.
    pub fn is_admin(&self) -> bool {
        self.base_type == Some(BaseType::Admin)
    }

    /// Whether it holds all that another one does.
    pub fn includes(&self, other: &Self) -> bool {
        self.is_admin() || (!other.is_admin() && self.permissions.includes(other.permissions))
    }
}

/// What a role that cannot be changed or deleted, or that clients may rely on, is at its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseType {
    /// Holds every permission; it can be neither changed nor deleted.
    Admin,
    /// Reads what a workspace shows.
    Viewer,
}

impl BaseType {
    /// Its name in the interface and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Viewer => "viewer",
        }
    }
}

impl std::str::FromStr for BaseType {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text {
            "admin" => Ok(Self::Admin),
            "viewer" => Ok(Self::Viewer),
            _ => Err(Invalid::new("invalid_enum_value", "must be admin or viewer")),
        }
    }
}

/// A role that every workspace starts with.
#[derive(Debug, Clone, Copy)]
pub struct BuiltinRole {
    /// Its name, unique in the workspace.
    pub name: &'static str,
    /// One sentence for people.
    pub description: &'static str,
    /// What it is at its base, if anything.
    pub base_type: Option<BaseType>,
    /// What it allows.
    pub permissions: PermissionSet,
}

/// Admin, Editor and Viewer, in this order.
pub fn builtin_roles() -> [BuiltinRole; 3] {
    use Resource::{
        ContentGroups, ContentPieces, Profile, Roles, Tags, Variants, Workspace,
        WorkspaceMemberships,
    };
    let editor = [ContentPieces, Tags, Profile].map(Permission::write).into_iter().chain(
        [ContentGroups, Variants, WorkspaceMemberships, Roles, Workspace].map(Permission::read),
    );
    let viewer =
        [ContentPieces, ContentGroups, Tags, Variants, Roles, WorkspaceMemberships, Workspace]
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
