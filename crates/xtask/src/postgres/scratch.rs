//! The directory of one throw-away server, in memory or in the system's directory for temporary
//! files.
//!
//! Each directory has a lock file beside it, which its command locks. The kernel releases the lock
//! when the command ends for any reason. So a directory with a free lock is a leftover, and its
//! server, if it still runs, has no users.

use std::{
    env,
    fs::{self, DirBuilder, File},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    process,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};

use super::{binaries::Binaries, privileges::Account};
use crate::child;

const NAME_PREFIX: &str = "galley-postgres-";

/// The file system in memory, and the free bytes that it needs. The whole suite left 2 GB.
const MEMORY: &str = "/dev/shm";
#[cfg(target_os = "linux")]
const MEMORY_NEEDED: u64 = 7 << 30;

/// The place of a directory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In memory, if there is enough and `TMPDIR` names no other place. Tests take two thirds of
    /// the time: PostgreSQL syncs the files of all databases whenever a test removes its own.
    Memory,
    /// In the system's directory for temporary files.
    Disk,
}

impl Place {
    fn path(self) -> PathBuf {
        if self == Self::Disk || env::var_os("TMPDIR").is_some() {
            return env::temp_dir();
        }
        if is_memory_usable() { MEMORY.into() } else { env::temp_dir() }
    }
}

/// Returns true if the file system in memory has enough space. Some containers forbid programs
/// there, and the directory has scripts.
#[cfg(target_os = "linux")]
fn is_memory_usable() -> bool {
    rustix::fs::statvfs(MEMORY).is_ok_and(|found| {
        found.f_bavail * found.f_frsize >= MEMORY_NEEDED
            && !found.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC)
    })
}

#[cfg(not(target_os = "linux"))]
fn is_memory_usable() -> bool {
    false
}

/// A directory that is removed when this is dropped.
pub(super) struct Scratch {
    path: PathBuf,
    /// Locked until this is dropped, and removed last.
    _lock: File,
}

impl Scratch {
    /// Creates a directory that belongs to the account and that other users cannot list.
    #[expect(clippy::disallowed_methods, reason = "a name that no other run has, not the time")]
    pub(super) fn create(account: &Account, place: Place) -> Result<Self> {
        let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_nanos();
        let name = format!("{NAME_PREFIX}{}-{nanoseconds:09}", process::id());
        let path = place.path().join(name);
        // The lock is taken before the directory exists, as the clean-up looks for directories.
        let lock_path = lock_path(&path);
        let lock = File::create_new(&lock_path)
            .with_context(|| format!("cannot create {}", lock_path.display()))?;
        lock.lock().with_context(|| format!("cannot lock {}", lock_path.display()))?;
        let scratch = Self { path, _lock: lock };
        let path = &scratch.path;
        DirBuilder::new()
            .mode(0o711)
            .create(path)
            .with_context(|| format!("cannot create {}", path.display()))?;
        account.change_owner(path)?;
        if let Some(temporary) = scratch.temporary() {
            fs::create_dir(&temporary)
                .with_context(|| format!("cannot create {}", temporary.display()))?;
        }
        Ok(scratch)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory of the server's database, which initdb creates.
    pub(super) fn data(&self) -> PathBuf {
        data(&self.path)
    }

    /// Returns the directory for temporary files of tests, if it is in memory.
    pub(super) fn temporary(&self) -> Option<PathBuf> {
        self.path.starts_with(MEMORY).then(|| self.path.join("tmp"))
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path.join("server.log")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Stops the servers and removes the directories of killed commands.
pub(super) fn remove_left_over(binaries: &Binaries, account: &Account) {
    let places = [env::temp_dir(), PathBuf::from(MEMORY)];
    for entry in places.iter().filter_map(|place| fs::read_dir(place).ok()).flatten().flatten() {
        let named_by_us = entry.file_name().to_string_lossy().starts_with(NAME_PREFIX);
        // Symbolic links are not followed, as every user may create one here.
        let belongs_to_us = named_by_us
            && entry.metadata().is_ok_and(|data| data.is_dir() && data.uid() == account.uid());
        if belongs_to_us {
            remove_when_left_over(&entry.path(), binaries, account);
        }
    }
}

fn remove_when_left_over(path: &Path, binaries: &Binaries, account: &Account) {
    let lock = File::open(lock_path(path));
    if lock.is_ok_and(|lock| lock.try_lock().is_err()) {
        return;
    }
    eprintln!("removing {}, which a killed command left behind", path.display());
    // This runs with the account's rights only. The account could have written any process id into
    // the file from which pg_ctl reads it.
    let pg_ctl = |action: &[&str]| {
        let mut command = binaries.command("pg_ctl", account);
        command.args(action).arg("-D").arg(data(path)).current_dir("/");
        child::output(&mut command)
    };
    let _ = pg_ctl(&["stop", "-m", "immediate", "-t", "20"]);
    match pg_ctl(&["status"]) {
        Ok(_) => eprintln!("its server does not stop: {}", path.display()),
        Err(_) => remove(path),
    }
}

fn data(scratch: &Path) -> PathBuf {
    scratch.join("data")
}

fn lock_path(scratch: &Path) -> PathBuf {
    scratch.with_extension("lock")
}

fn remove(path: &Path) {
    if path.exists()
        && let Err(error) = fs::remove_dir_all(path)
    {
        eprintln!("cannot remove {}: {error}", path.display());
        return;
    }
    let _ = fs::remove_file(lock_path(path));
}
