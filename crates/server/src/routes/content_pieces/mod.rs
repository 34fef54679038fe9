//! `/content-pieces`.

pub(crate) mod create;
pub(crate) mod create_several;
pub(crate) mod delete;
mod format;
pub(crate) mod get;
mod groups;
mod input;
pub(crate) mod list;
mod schema;
pub(crate) mod sources;
pub(crate) mod update;

/// The path of the resource.
pub(crate) const PATH: &str = "/content-pieces";
