//! Limits that the writer and the checkpointer share.

/// The size of the write-ahead log, in bytes, from which it restarts. On a restart, writers
/// truncate it to this size.
pub(super) const LOG_LIMIT: u64 = 64 * 1024 * 1024;

/// The niceness of the writer and the checkpointer. On a busy processor reads run first, as a write
/// waits for its commit in any case. The two still get a tenth of the time of a request-serving
/// thread.
pub(super) const NICENESS: i32 = 10;
