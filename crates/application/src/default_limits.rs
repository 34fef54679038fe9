//! The default limits of the service. Settings replace them.

/// The size limit of a request's headers, in bytes.
pub const HEADER_SIZE: usize = 16 * 1024;

/// The size limit of a request's body, in bytes.
pub const BODY_SIZE: usize = 8 * 1024 * 1024;

/// The size limit of a piece's HTML content, in bytes.
pub const CONTENT_SIZE: usize = 2 * 1024 * 1024;

/// The size limit of a response, in bytes.
pub const RESPONSE_SIZE: usize = 64 * 1024 * 1024;

/// The size of the response cache, in MiB.
pub const RESPONSE_CACHE_MIB: u32 = 64;

/// The timeout for receiving the headers, or the body, of a request, in seconds.
pub const RECEIVE_TIMEOUT_SECONDS: u64 = 30;

/// The invites that a workspace may send per hour.
pub const INVITES_PER_HOUR: u32 = 100;
