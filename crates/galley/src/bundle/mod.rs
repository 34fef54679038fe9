//! A bundle: a workspace as a folder of JSON files, with its ids, for a repository or another store.
//!
//! It has what people made: content in groups, with tags and variants, and who works on it, with their roles; webhooks without their
//! secrets. Not in it are tokens, secrets, events and deliveries: these are in a backup.

mod export;
mod format;
pub(crate) mod manifest;
mod restore;

pub(crate) use export::export;
pub(crate) use manifest::is_bundle;
pub(crate) use restore::restore;
