//! The default limits of the service. Settings replace them.

/// The size limit of a request's headers, in bytes.
pub const HEADER_SIZE: usize = 16 * 1024;

/// The size limit of a request's body, in bytes.
pub const BODY_SIZE: usize = 8 * 1024 * 1024;

/// The size limit of a piece's HTML content, in bytes.
pub const CONTENT_SIZE: usize = 2 * 1024 * 1024;

/// The size limit of an asset, in bytes.
pub const ASSET_SIZE: u64 = 1024 * 1024 * 1024;

/// The size limit of a response, in bytes.
pub const RESPONSE_SIZE: usize = 64 * 1024 * 1024;

/// Returns the size of the response cache, in MiB: a tenth of the memory of the machine or
/// container, from 64 to 1,024.
pub fn response_cache_mib() -> u32 {
    let tenth = galley_runtime::memory_limit() / 10 / (1024 * 1024);
    u32::try_from(tenth).unwrap_or(u32::MAX).clamp(64, 1_024)
}

/// The timeout for receiving the headers, or the body, of a request, in seconds.
pub const RECEIVE_TIMEOUT_SECONDS: u64 = 30;

/// The invites that a workspace may send per hour.
pub const INVITES_PER_HOUR: u32 = 100;
