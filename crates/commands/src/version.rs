//! The version of the program.

/// The version in the schema's record, on the command line and in the log.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
