//! As whom PostgreSQL runs: its programs refuse root, so root lends them another user's rights.

use std::{
    ffi::OsStr,
    os::unix::{self, process::CommandExt},
    path::Path,
    process::Command,
};

use anyhow::{Context, Result};
use rustix::process::geteuid;

use crate::child;

/// The user as whom PostgreSQL's programs run.
pub(super) struct Account {
    /// Set when we are root and must run them as somebody else.
    lowered: Option<User>,
    uid: u32,
}

struct User {
    name: &'static str,
    uid: u32,
    gid: u32,
}

impl Account {
    /// Chooses ourselves, or when we are root the user `postgres`, or else `nobody`.
    pub(super) fn choose() -> Result<Self> {
        let own = geteuid();
        if !own.is_root() {
            return Ok(Self { lowered: None, uid: own.as_raw() });
        }
        let user = User::find("postgres").or_else(|| User::find("nobody")).context(
            "PostgreSQL refuses to run as root, and neither of the users `postgres` and `nobody` \
             exists; run this command as another user",
        )?;
        Ok(Self { uid: user.uid, lowered: Some(user) })
    }

    /// Returns the owner of the files that PostgreSQL works with.
    pub(super) fn uid(&self) -> u32 {
        self.uid
    }

    /// Returns the user's name when it is not ourselves.
    pub(super) fn name(&self) -> Option<&'static str> {
        self.lowered.as_ref().map(|user| user.name)
    }

    /// Returns a command that runs with this account's rights and nothing of ours.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        if let Some(user) = &self.lowered {
            // The standard library drops the supplementary groups along with root.
            command.uid(user.uid).gid(user.gid);
        }
        command
    }

    /// The words of a shell before a command that is to run with this account's rights.
    pub(super) fn shell_prefix(&self) -> String {
        let lowered = self.lowered.as_ref();
        lowered.map_or_else(String::new, |User { uid, gid, .. }| {
            format!("setpriv --reuid={uid} --regid={gid} --clear-groups ")
        })
    }

    /// Makes the account the owner of a file or directory.
    pub(super) fn take_over(&self, path: &Path) -> Result<()> {
        let Some(user) = &self.lowered else { return Ok(()) };
        unix::fs::chown(path, Some(user.uid), Some(user.gid))
            .with_context(|| format!("cannot give {} to the user {}", path.display(), user.name))
    }
}

impl User {
    fn find(name: &'static str) -> Option<Self> {
        let ask = |option: &str| -> Option<u32> {
            child::output(Command::new("id").args([option, name])).ok()?.trim().parse().ok()
        };
        Some(Self { name, uid: ask("-u")?, gid: ask("-g")? })
    }
}
