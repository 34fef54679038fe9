//! The service through its real edge: HTTP on a real port, on both databases.

mod bad_input;
mod content_groups;
mod content_pieces;
mod edge;
mod ordering;
mod query_count;
mod service;
mod tags;
mod walks;
