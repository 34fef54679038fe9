//! The user that runs PostgreSQL. Its programs refuse to run as root, so root runs them as another
//! user.

use std::{
    ffi::OsStr,
    os::unix::{self, process::CommandExt},
    path::Path,
    process::Command,
};

use anyhow::{Context, Result};
use rustix::process::geteuid;

use crate::child;

/// The user that runs PostgreSQL's programs.
pub(super) struct Account {
    /// The other user, set if the current user is root.
    other_user: Option<SystemUser>,
    uid: u32,
}

struct SystemUser {
    name: &'static str,
    uid: u32,
    gid: u32,
}

impl Account {
    /// Chooses the current user or, for root, an unprivileged user of the system.
    pub(super) fn choose() -> Result<Self> {
        let own = geteuid();
        if !own.is_root() {
            return Ok(Self { other_user: None, uid: own.as_raw() });
        }
        let user = SystemUser::find("postgres").or_else(|| SystemUser::find("nobody")).context(
            "PostgreSQL does not run as root, and neither of the users `postgres` and `nobody` \
             exists; run this command as another user",
        )?;
        Ok(Self { uid: user.uid, other_user: Some(user) })
    }

    /// Returns the owner of the files that PostgreSQL works with.
    pub(super) fn uid(&self) -> u32 {
        self.uid
    }

    /// Returns the user's name if it is not the current user.
    pub(super) fn name(&self) -> Option<&'static str> {
        self.other_user.as_ref().map(|user| user.name)
    }

    /// Returns a command that runs with this account's rights only.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        if let Some(user) = &self.other_user {
            // The standard library drops root's supplementary groups as well.
            command.uid(user.uid).gid(user.gid);
        }
        command
    }

    /// Returns the shell words that run the following command with this account's rights.
    pub(super) fn shell_prefix(&self) -> String {
        let lowered = self.other_user.as_ref();
        lowered.map_or_else(String::new, |SystemUser { uid, gid, .. }| {
            format!("setpriv --reuid={uid} --regid={gid} --clear-groups ")
        })
    }

    /// Makes the account the owner of a file or directory.
    pub(super) fn change_owner(&self, path: &Path) -> Result<()> {
        let Some(user) = &self.other_user else { return Ok(()) };
        unix::fs::chown(path, Some(user.uid), Some(user.gid))
            .with_context(|| format!("cannot give {} to the user {}", path.display(), user.name))
    }
}

impl SystemUser {
    fn find(name: &'static str) -> Option<Self> {
        let ask = |option: &str| -> Option<u32> {
            child::output(Command::new("id").args([option, name])).ok()?.trim().parse().ok()
        };
        Some(Self { name, uid: ask("-u")?, gid: ask("-g")? })
    }
}
