//! A bundle: a workspace as a folder of JSON files, with its ids, for a repository or another
//! store.
//!
//! It contains the data that people entered: content in groups, with tags and variants, members
//! with their roles, and webhooks without their secrets. It doesn't contain tokens, secrets, events
//! and deliveries: only backups do.

mod assets;
mod audit;
mod encode;
mod export;
mod files;
mod format;
pub(crate) mod manifest;
mod restore;
mod revisions;
mod sanitize;
mod trash;
mod workspace_manifest;

pub(crate) use export::export;
pub(crate) use manifest::is_bundle;
pub(crate) use restore::restore;
