//! `/content-pieces/sources`: what importers note of pieces.

pub(crate) mod list;
mod schema;
pub(crate) mod update;
