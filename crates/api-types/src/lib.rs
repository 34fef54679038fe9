//! The JSON that clients and webhooks see, with its OpenAPI schemas.

#![allow(missing_docs, reason = "doc comments of fields are texts of the OpenAPI document")]

pub mod actor;
pub mod asset;
pub mod audit;
pub mod content;
pub mod content_group;
pub mod content_piece;
pub mod conversion_warning;
pub mod delivery;
pub mod dry_run;
pub mod event_envelope;
pub mod import;
pub mod import_source;
pub mod problem;
pub mod publication;
pub mod request;
pub mod revision;
pub mod revision_diff;
pub mod role;
pub mod sample_events;
pub mod schemas;
pub mod search;
pub mod session;
pub mod setting;
pub mod tag;
pub mod token;
pub mod trash;
pub mod variant;
pub mod webhook;
pub mod workspace_member;
