//! PostgreSQL's server programs in one directory, and commands that run them.

use std::{
    env,
    ffi::OsString,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use super::privileges::Account;
use crate::child;

/// The required programs. A directory without one of them is skipped.
const PROGRAMS: [&str; 3] = ["initdb", "postgres", "pg_ctl"];

/// A directory with PostgreSQL's server programs.
pub(super) struct Binaries {
    directory: PathBuf,
    /// The directories of the programs' libraries, if the programs were unpacked instead of
    /// installed.
    library_directories: Vec<PathBuf>,
}

impl Binaries {
    /// Creates the set from a directory of installed programs.
    pub(super) fn installed(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), library_directories: Vec::new() }
    }

    /// Creates the set from a directory of unpacked programs, and the directories of their
    /// libraries.
    pub(super) fn unpacked(directory: PathBuf, library_directories: Vec<PathBuf>) -> Self {
        Self { directory, library_directories }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns true if all programs exist.
    pub(super) fn exist(&self) -> bool {
        PROGRAMS.iter().all(|program| self.directory.join(program).is_file())
    }

    /// Runs each program as the account, and returns the server's version.
    ///
    /// This detects a home directory that the account cannot enter, and missing libraries.
    pub(super) fn version(&self, account: &Account) -> Result<String> {
        for program in ["initdb", "pg_ctl"] {
            child::output(self.command(program, account).arg("--version").current_dir("/"))?;
        }
        let mut command = self.command("postgres", account);
        let version = child::output(command.arg("--version").current_dir("/"))?;
        Ok(version.trim().to_owned())
    }

    /// Returns a command for one of the programs, without the user's own PostgreSQL settings.
    pub(super) fn command(&self, program: &str, account: &Account) -> Command {
        let mut command = account.command(self.directory.join(program));
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("PG")) {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C");
        if !self.library_directories.is_empty() {
            command.env("LD_LIBRARY_PATH", self.library_path());
        }
        command
    }

    /// Writes a script into `directory` that runs one of the programs as the account. Tests that
    /// start their own servers run these scripts.
    pub(super) fn write_script(
        &self,
        program: &str,
        account: &Account,
        directory: &Path,
    ) -> Result<()> {
        let mut script = "#!/bin/sh\nexport LC_ALL=C\n".to_owned();
        if !self.library_directories.is_empty() {
            let _ = writeln!(script, "export LD_LIBRARY_PATH='{}'", self.library_path().display());
        }
        let program_path = self.directory.join(program);
        let prefix = account.shell_prefix();
        let _ = writeln!(script, "exec {prefix}'{}' \"$@\"", program_path.display());
        child::write_script(&directory.join(program), &script)
    }

    fn library_path(&self) -> OsString {
        let inherited = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let inherited = env::split_paths(&inherited).filter(|path| !path.as_os_str().is_empty());
        let paths = self.library_directories.iter().cloned().chain(inherited);
        // A path with a colon cannot be passed to the loader at all. The loader then reports the
        // missing library.
        env::join_paths(paths).unwrap_or_default()
    }
}
