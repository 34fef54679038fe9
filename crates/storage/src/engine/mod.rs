//! Transactions over SQLite and PostgreSQL.

pub(crate) mod candidates;
pub(crate) mod change_tracking;
pub(crate) mod database;
pub(crate) mod database_writes;
pub(crate) mod domain_types;
pub(crate) mod erased;
pub(crate) mod error;
pub(crate) mod full_text;
pub(crate) mod group_commit;
pub(crate) mod group_state;
pub(crate) mod heartbeat;
pub(crate) mod inspection;
pub(crate) mod migrate;
pub(crate) mod migration_sql;
pub(crate) mod migrations;
pub(crate) mod new_event;
pub(crate) mod options;
pub(crate) mod poll_once;
pub(crate) mod postgres;
pub(crate) mod progress;
pub(crate) mod row;
pub(crate) mod sql_list;
pub(crate) mod sqlite;
pub(crate) mod statement_log;
pub(crate) mod trace;
pub(crate) mod transaction;
pub(crate) mod transaction_changes;
pub(crate) mod unique_key;
pub(crate) mod value;
pub(crate) mod write_pressure;
pub(crate) mod write_transaction;

// Files of this folder name the file that has an item: otherwise they would import one another.
pub(crate) use candidates::{Candidates, lock_candidates};
pub(crate) use change_tracking::{Affects, Generation};
pub(crate) use error::{Cause, Error, Failure, Result};
pub(crate) use full_text::FullTextEngine;
pub(crate) use heartbeat::DeadSession;
pub(crate) use new_event::AppendedEvent;
pub use new_event::NewEvent;
pub(crate) use options::{DatabaseUrl, Options, ProcessRole};
pub(crate) use progress::Progress;
pub(crate) use row::{OwnedRow, Row, read_row};
pub(crate) use sql_list::{in_list, in_list_or_all};
pub(crate) use transaction::Tx;
pub(crate) use value::{Value, params, row};
pub(crate) use write_transaction::WriteTx;
