//! Checks of the machine: the data directory, the disk, and limits of the operating system.

use std::path::{Path, PathBuf};

use galley_storage::DatabaseUrl;
use indicatif::HumanBytes;
#[cfg(target_os = "linux")]
use rustix::fs::statfs;
use rustix::fs::{Access, access, statvfs};
use rustix::process::{Resource, getrlimit};

use super::finding::Finding;
use crate::private_files;
use crate::settings::Settings;

/// The free space below which the disk is a failure, in bytes: a write-ahead log needs it.
const FREE_LIMIT: u64 = 256 << 20;

/// The free space below which the disk is a warning, in bytes.
const FREE_WARNING: u64 = 1 << 30;

/// The number of open files that a server with its default limits needs.
const OPEN_FILES: u64 = 1_024;

/// The types of file systems that are shared over a network, from Linux's `magic.h`. Their locks
/// and memory maps don't protect a SQLite database.
#[cfg(target_os = "linux")]
const NETWORK_FILE_SYSTEMS: [(u32, &str); 4] =
    [(0x6969, "NFS"), (0x517b, "SMB"), (0xff53_4d42, "CIFS"), (0xfe53_4d42, "SMB 2")];

/// Checks that the data directory, if it exists, is a directory that only its owner can access.
pub(crate) fn data_dir(path: &Path) -> Result<String, String> {
    let shown = path.display();
    match std::fs::metadata(path) {
        Err(_) => Ok(format!("{shown} does not exist yet; the first start creates it")),
        Ok(found) if !found.is_dir() => Err(format!("{shown} is not a directory: move it away")),
        Ok(_) if private_files::is_open_to_others(path) => {
            Err(format!("{shown} is open to other users: chmod 700 {shown}"))
        }
        Ok(_) if access(path, Access::WRITE_OK | Access::EXEC_OK).is_err() => Err(format!(
            "{shown} can't be written to by this user: run as the service's user, or chown it"
        )),
        Ok(_) => Ok(shown.to_string()),
    }
}

/// Checks the free space where the data directory is, or will be. The database has `bytes` bytes.
pub(super) fn disk(settings: &Settings, bytes: Option<u64>) -> Finding {
    let place = existing_ancestor(&settings.data_dir);
    let shown = place.display();
    let is_sqlite = matches!(settings.database(), Ok(DatabaseUrl::Sqlite(_)));
    if is_sqlite && let Some(name) = network_file_system(&place) {
        return Finding::failure(format!(
            "{shown} is on a network file system ({name}), on which SQLite may be damaged: move the \
             data directory to a local disk"
        ));
    }
    let found = match statvfs(&place) {
        Ok(found) => found,
        Err(error) => return Finding::warning(format!("{shown}: {error}")),
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    // An upgrade makes a copy of a SQLite database beside it.
    let needed = if is_sqlite { bytes.unwrap_or(0) } else { 0 };
    let state = format!("{} free in {shown}", HumanBytes(free));
    if free < FREE_LIMIT {
        return Finding::failure(format!(
            "{state}: writes fail soon; free space or enlarge the disk"
        ));
    }
    if found.f_files > 0 && found.f_favail < found.f_files / 50 {
        return Finding::warning(format!("{shown} has few free inodes: delete small files"));
    }
    if free < FREE_WARNING.max(needed) {
        return Finding::warning(format!(
            "{state}, and the database has {}: an upgrade backs it up beside itself; free space or \
             enlarge the disk",
            HumanBytes(bytes.unwrap_or(0))
        ));
    }
    Finding::ok(state)
}

/// Returns the path itself, or its nearest ancestor that exists.
pub(super) fn existing_ancestor(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/")).to_owned()
}

/// Returns the name of a network file system.
#[cfg(target_os = "linux")]
fn network_file_system(path: &Path) -> Option<&'static str> {
    let found = statfs(path).ok()?;
    // The type of the field differs between platforms; the magic numbers have 32 bits.
    let kind = u32::try_from(found.f_type & 0xffff_ffff).ok()?;
    NETWORK_FILE_SYSTEMS.iter().find(|(magic, _)| *magic == kind).map(|(_, name)| *name)
}

#[cfg(not(target_os = "linux"))]
fn network_file_system(_: &Path) -> Option<&'static str> {
    None
}

/// Checks the limit of open files of this process, which a server started here would have.
pub(super) fn open_files() -> Finding {
    match getrlimit(Resource::Nofile).maximum {
        Some(limit) if limit < OPEN_FILES => Finding::warning(format!(
            "the limit is {limit}, so few clients can connect: raise it to {OPEN_FILES} or more \
             (LimitNOFILE of systemd, ulimit -n)"
        )),
        Some(limit) => Finding::ok(format!("up to {limit}")),
        None => Finding::ok("unlimited"),
    }
}
