//! The SQL of each resource: plain functions over a transaction, with the workspace as first
//! parameter.

mod asset_references;
pub mod asset_uploads;
pub mod asset_usage;
pub mod assets;
pub mod audit;
pub mod authentication;
pub mod content_groups;
pub mod content_piece_filters;
pub mod content_piece_list;
pub mod content_piece_references;
pub mod content_piece_revisions;
pub mod content_piece_variants;
pub mod content_pieces;
pub mod custom_data_schemas;
pub mod event_append;
pub mod event_tickets;
pub mod events;
pub mod idempotency;
pub mod import_sources;
pub mod installation;
pub mod invites;
pub mod mails;
pub mod members;
pub mod order_key_spread;
pub mod ordering;
mod paging;
mod piece_tables;
pub mod preview_tokens;
pub mod published_pieces;
pub mod rejected_credentials;
mod revision_undo;
pub mod roles;
pub mod search_hits;
pub mod search_indexes;
pub mod sessions;
pub mod sign_ins;
pub mod tags;
pub mod tokens;
pub mod trash;
pub mod unique_slugs;
pub mod users;
pub mod variants;
pub mod webhooks;
pub mod workspaces;

pub use paging::IdPage;
