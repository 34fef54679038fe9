//! The service over real HTTP on a real port, on both databases.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_wrap,
    clippy::cloned_ref_to_slice_refs,
    clippy::too_many_lines,
    clippy::items_after_statements,
    clippy::assigning_clones,
    clippy::case_sensitive_file_extension_comparisons,
    clippy::maybe_infinite_iter,
    clippy::format_collect,
    clippy::cast_possible_truncation,
    reason = "a test ends where something is not as it expects, and tells one story"
)]

mod actors;
mod addresses;
mod asset_uploads;
mod assets;
mod audit;
mod bad_input;
mod batch;
mod bounds;
mod concurrency;
mod conditional;
mod console;
mod content_groups;
mod content_pieces;
mod custom_data_schemas;
mod deliveries;
mod docs;
mod dry_run;
mod email_privacy;
mod escalation;
mod event_feed;
mod event_tickets;
mod idempotency;
mod import_sources;
mod imports;
mod invites;
mod matrix;
mod members;
mod model;
mod nodes;
mod openapi;
mod openid_connect;
mod ordering;
mod pagination;
mod profile_and_workspace;
mod publishing;
mod query_count;
mod recorded_responses;
mod reference_cache;
mod request_pipeline;
mod request_smuggling;
mod response_cache;
mod response_validation;
mod revisions;
mod roles;
mod round_trip;
mod search;
mod secrets;
mod service;
mod sessions;
mod sign_in;
mod specified_interface;
mod tags;
mod text_requests;
mod timing;
mod tokens;
mod traffic;
mod trash;
mod unique_slugs;
mod unknown_parameters;
mod variants;
mod webhooks;
