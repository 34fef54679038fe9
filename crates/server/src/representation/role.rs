//! A role in JSON.

use galley_domain::role::{BaseType, Role};
use galley_domain::{PermissionSet, RoleId};
use serde::Serialize;

/// A role.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RoleBody<'a> {
    id: RoleId,
    name: &'a str,
    description: Option<&'a str>,
    permissions: Vec<String>,
    base_type: Option<&'static str>,
}

impl<'a> From<&'a Role> for RoleBody<'a> {
    fn from(role: &'a Role) -> Self {
        Self {
            id: role.id,
            name: role.name.as_str(),
            description: role.description.as_ref().map(|text| text.as_str()),
            permissions: permissions(role.permissions),
            base_type: role.base_type.map(BaseType::as_str),
        }
    }
}

/// The permissions that describe a set.
pub(crate) fn permissions(set: PermissionSet) -> Vec<String> {
    set.iter().map(|permission| permission.to_string()).collect()
}
