//! A role in JSON.

use galley_domain::role::{BaseType, Role};
use galley_domain::{PermissionSet, RoleId};
use serde::Serialize;
use utoipa::ToSchema;

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
    /// What it allows. To write includes to read.
    #[schema(value_type = Vec<schemas::Permission>)]
    permissions: Vec<String>,
    /// `admin`: it holds every permission, and stays as it is. `viewer`: it reads what a workspace shows.
    #[schema(value_type = Option<schemas::BaseType>)]
    base_type: Option<&'static str>,
}

impl<'a> From<&'a Role> for RoleBody<'a> {
    fn from(role: &'a Role) -> Self {
        Self {
            id: role.id,
            name: role.name.as_str(),
            description: role.description.as_ref().map(galley_domain::text::ShortText::as_str),
            permissions: permissions(role.permissions),
            base_type: role.base_type.map(BaseType::as_str),
        }
    }
}

/// The permissions that describe a set.
pub fn permissions(set: PermissionSet) -> Vec<String> {
    set.iter().map(|permission| permission.to_string()).collect()
}
