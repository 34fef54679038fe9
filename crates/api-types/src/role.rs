//! The JSON representation of a role.

use galley_domain::role::{BaseType, Role, RoleName};
use galley_domain::text::ShortText;
use galley_domain::{PermissionSet, RoleId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::request::bodies;
use crate::schemas;

/// A role.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Role)]
pub struct RoleBody<'a> {
    #[schema(value_type = schemas::RoleId)]
    id: RoleId,
    #[schema(example = "Author")]
    name: &'a str,
    #[schema(example = "Writes pieces.")]
    description: Option<&'a str>,
    /// The permissions. A write permission includes the read permission.
    #[schema(value_type = Vec<schemas::Permission>)]
    permissions: Vec<String>,
    /// `admin`: the role has every permission and can't be changed. `viewer`: the role can read the
    /// content and settings of a workspace.
    #[schema(value_type = Option<schemas::BaseType>)]
    base_type: Option<&'static str>,
}

impl<'a> From<&'a Role> for RoleBody<'a> {
    fn from(role: &'a Role) -> Self {
        Self {
            id: role.id,
            name: role.name.as_str(),
            description: role.description.as_ref().map(ShortText::as_str),
            permissions: permissions(role.permissions),
            base_type: role.base_type.map(BaseType::as_str),
        }
    }
}

/// Returns the names of the permissions in a set, without those that another one includes.
pub fn permissions(set: PermissionSet) -> Vec<String> {
    set.iter().map(|permission| permission.to_string()).collect()
}

bodies! {
    /// A new role.
    NewRole,
    /// A change of a role.
    RoleChange of RoleId {
        /// The name, without control characters. It is unique in the workspace.
        name: required RoleName = "Author",
        /// A short description.
        description: optional ShortText = "Writes pieces.",
        /// The permissions. A write permission includes the read permission.
        permissions: required PermissionSet,
    }
}
