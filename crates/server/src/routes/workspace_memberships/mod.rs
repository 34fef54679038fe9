//! `/workspace-memberships`.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod list_members;
pub(crate) mod list_workspaces;
pub(crate) mod update;
