//! The store on both engines.

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

mod change_tracking;
mod conformance;
mod data_versions;
mod deliveries;
mod grouped_writes;
mod opening;
mod ordering;
mod people;
mod plans;
mod portability;
mod sign_in;
mod simulation;
mod sqlite_faults;
mod sqlite_files;
mod store;
mod transactions;
