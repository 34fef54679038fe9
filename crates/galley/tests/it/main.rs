//! Tests of the binary: its commands, and its behaviour when it is killed.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_wrap,
    clippy::cloned_ref_to_slice_refs,
    clippy::too_many_lines,
    clippy::items_after_statements,
    clippy::assigning_clones,
    clippy::case_sensitive_file_extension_comparisons,
    clippy::maybe_infinite_iter,
    reason = "a test ends where something is not as it expects, and tells one story"
)]

mod alerts;
mod asset_files;
mod asset_uploads;
mod assets_under_kills;
mod backup;
mod bundle;
mod clients;
mod commands;
mod console;
mod contract;
mod damaged_files;
mod disclosure;
mod doctor;
mod export;
mod failing_disk;
mod first_start;
mod full_disk;
mod guides;
mod hostile_schemas;
mod import;
mod import_by_url;
mod installation;
mod invites;
mod kills;
mod listen;
mod load;
mod logs;
mod mails;
mod nginx;
mod nodes;
mod old_sqlite;
mod operators;
mod outages;
mod power_loss;
mod program;
mod reimport;
mod replicas;
mod schedules_under_kills;
mod search;
mod sign_in;
mod takeover;
mod traces;
mod upgrade;
