//! `/content-pieces/sources`: the import sources of pieces.

pub(crate) mod list;
mod schema;
pub(crate) mod update;
