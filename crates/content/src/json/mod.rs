//! The JSON of a tree: `write` serialises, `read` parses and validates.

mod read;
mod write;

pub use read::{have_same_text, json_depth};
pub(crate) use read::{read, read_strict};
pub(crate) use write::{JsonWriter, write, write_within};
