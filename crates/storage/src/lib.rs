//! The store: the only crate with SQL in it.
//!
//! A [`Database`] is a SQLite file or a PostgreSQL database. Its [`Database::read`] and
//! [`Database::write`] run a named closure in a transaction, over the few calls of [`Tx`] and
//! [`WriteTx`] that both engines answer alike; the modules named after resources are plain
//! functions over these. Every one of them takes the workspace first, and reaches nothing outside
//! of it.
//!
//! What a value means and which change is allowed is not decided here (`galley-domain`,
//! `galley-server`).

mod database;
mod error;
mod migrate;
mod moment;
mod postgres;
mod pressure;
mod priority;
mod row;
mod sqlite;
mod statement_log;
mod tx;
mod unique_key;
mod value;
mod waiters;
mod whole;

pub mod content_groups;
pub mod content_piece_list;
pub mod content_piece_variants;
pub mod content_pieces;
pub mod deliveries;
pub mod events;
pub mod idempotency;
pub mod import_sources;
pub mod installation;
pub mod invites;
pub mod mails;
pub mod members;
pub mod ordering;
pub mod roles;
pub mod tags;
pub mod tokens;
pub mod users;
pub mod variants;
pub mod webhooks;
pub mod workspaces;

pub use database::{Database, DatabaseUrl, Options, Role};
pub use error::{Error, Failure, Result};
pub use moment::{Generation, LastChange, Moment};
pub use priority::stand_back;
pub use row::Row;
pub use statement_log::{ChangeStatement, StatementLog};
pub use tx::{Tx, WriteTx};
pub use unique_key::UniqueKey;
pub use value::Value;
pub use waiters::{Limits as WaitLimits, Waiters};
pub use whole::{
    FileSummary, NewStore, Progress, Snapshot, TableSummary, back_up, copy, restore, verify,
};
