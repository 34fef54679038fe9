//! `/variants`.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod update;

/// The path of the resource.
pub(crate) const PATH: &str = "/variants";
