//! The whole store at once: read as it was at one moment, copied, kept as a file.

mod copy;
mod digest;
mod file_backup;
mod new_store;
mod snapshot;
mod tables;

pub use copy::{TableSummary, copy};
pub use file_backup::{FileSummary, back_up, restore, verify};
pub use new_store::NewStore;
pub use snapshot::Snapshot;
