//! The store: the only crate that contains SQL.
//!
//! A [`Database`] is a SQLite file or a PostgreSQL database. Its [`Database::read`] and
//! [`Database::write`] run a named closure in a transaction. The closure uses the few methods of
//! [`Tx`] and [`WriteTx`] that both engines have. The modules of [`tables`] and of
//! [`delivery_queue`] are plain functions over these. Each function takes the workspace first, and
//! reads and writes only its rows.
//!
//! The meaning of values is decided in `galley-domain`, and permissions in `galley-application`.

mod backup;
pub mod delivery_queue;
mod engine;
pub mod tables;

pub use backup::{
    FileSummary, Snapshot, StagedStore, TableSummary, back_up, copy, reject_existing_file,
    remove_asset_file, restore, verify,
};
pub use engine::change_tracking::{Affects, DataVersion, Generation, LastModified};
pub use engine::database::Database;
pub use engine::database_writes::BackgroundShare;
pub use engine::error::{Cause, Error, Failure, Result};
pub use engine::full_text::FullTextEngine;
pub use engine::inspection::{Inspection, check_standby};
pub use engine::migrations::PendingMigration;
pub use engine::options::{DatabaseUrl, Options, ProcessRole};
pub use engine::postgres::write_groups::WriteKey;
pub use engine::progress::Progress;
pub use engine::row::{Column, Row};
pub use engine::sqlite::StagedFile;
pub use engine::statement_log::{ChangeStatement, StatementLog};
pub use engine::trace::TRACE_TARGET;
pub use engine::transaction::Tx;
pub use engine::unique_key::UniqueKey;
pub use engine::value::Value;
pub use engine::write_transaction::WriteTx;
pub use tables::*;
