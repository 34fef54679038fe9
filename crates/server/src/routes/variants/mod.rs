//! `/variants`.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
mod schema;
pub(crate) mod update;

/// The path of the resource.
pub(crate) const PATH: &str = "/variants";
