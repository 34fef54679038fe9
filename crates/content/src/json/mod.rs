//! The JSON of a tree: `write` makes it, `read` checks and takes it back.

mod read;
mod write;

pub(crate) use read::read;
pub(crate) use write::{write, write_within};
