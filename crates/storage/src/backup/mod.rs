//! Backups: snapshots of the whole store, copies to another store, and files.

mod copy;
mod digest;
mod file_backup;
mod new_store;
mod snapshot;
mod tables;

pub use copy::{TableSummary, copy};
pub use file_backup::{FileSummary, back_up, restore, verify};
pub use new_store::StagedStore;
pub use snapshot::Snapshot;
