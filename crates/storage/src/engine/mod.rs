//! Transactions over SQLite and PostgreSQL.

pub(crate) mod candidates;
pub(crate) mod change_tracking;
pub(crate) mod commit_signal;
pub(crate) mod database;
pub(crate) mod error;
pub(crate) mod heartbeat;
pub(crate) mod migrate;
pub(crate) mod options;
pub(crate) mod postgres;
pub(crate) mod progress;
pub(crate) mod row;
pub(crate) mod sql_list;
pub(crate) mod sqlite;
pub(crate) mod statement_log;
pub(crate) mod transaction;
pub(crate) mod unique_key;
pub(crate) mod value;
pub(crate) mod write_pressure;
