//! `/workspace-memberships`.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod list_members;
pub(crate) mod list_workspaces;
mod schema;
pub(crate) mod update;
