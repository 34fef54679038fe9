//! The endpoints, by resource.

pub(crate) mod assets;
pub(crate) mod audit;
pub(crate) mod console;
pub(crate) mod content_groups;
pub(crate) mod content_pieces;
pub(crate) mod docs;
pub(crate) mod events;
pub(crate) mod home;
pub(crate) mod imports;
pub(crate) mod invites;
mod prelude;
pub(crate) mod problems;
pub(crate) mod profile;
pub(crate) mod roles;
pub(crate) mod service;
pub(crate) mod sessions;
pub(crate) mod settings;
pub(crate) mod sign_in;
pub(crate) mod tags;
pub(crate) mod tokens;
pub(crate) mod variants;
pub(crate) mod webhook_deliveries;
pub(crate) mod webhooks;
pub(crate) mod workspace;
pub(crate) mod workspace_memberships;
