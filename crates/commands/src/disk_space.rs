//! The free space of disks.

use std::io;
use std::path::Path;

use rustix::fs::statvfs;

/// Returns the bytes that this user can still write to the disk with this path.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let found = statvfs(path)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}
