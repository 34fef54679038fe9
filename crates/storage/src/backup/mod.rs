//! Backups: snapshots of the whole store, copies to another store, and files.

mod copy;
mod digest;
mod file_backup;
mod snapshot;
mod staged_store;
mod tables;

pub use copy::{TableSummary, copy};
pub use file_backup::{
    FileSummary, back_up, reject_existing_file, remove_asset_file, restore, verify,
};
pub use snapshot::Snapshot;
pub use staged_store::StagedStore;
