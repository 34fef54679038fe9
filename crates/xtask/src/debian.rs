//! Unpacks packages of Debian's into the target directory: no rights needed, nothing installed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::child;

/// Downloads and unpacks what `pick` takes of the packages that apt-get says it would install for `package`.
pub(crate) fn unpack(package: &str, directory: &Path, pick: impl Pick) -> Result<()> {
    eprintln!("unpacking Debian's package {package} into {}", directory.display());
    // Half of it would be taken for the whole by the next call: it gets its name when it is
    // complete.
    let partial = directory.with_extension("partial");
    let _ = fs::remove_dir_all(&partial);
    let outcome = unpack_into(&partial.join("root"), &partial, package, &pick);
    let outcome = outcome.and_then(|()| {
        let _ = fs::remove_dir_all(directory);
        fs::rename(partial.join("root"), directory)
            .context("cannot move the unpacked packages to their place")
    });
    let _ = fs::remove_dir_all(&partial);
    outcome
}

/// Picks names of packages from what a simulation prints.
pub(crate) trait Pick: Fn(&str) -> Result<Vec<&str>> {}

impl<F: Fn(&str) -> Result<Vec<&str>>> Pick for F {}

/// The packages that a simulation says would be installed.
pub(crate) fn packages_of(simulation: &str) -> Vec<&str> {
    let lines = simulation.lines().filter_map(|line| line.strip_prefix("Inst "));
    lines.filter_map(|line| line.split_whitespace().next()).collect()
}

/// Whether a package is a library that has to come along: the C library belongs to the system's own loader and must not
/// be mixed with another one.
pub(crate) fn is_needed_library(package: &str) -> bool {
    package.starts_with("lib")
        && !["libc6", "libc-bin"].iter().any(|prefix| package.starts_with(prefix))
}

/// Returns the directories of libraries in what was unpacked.
pub(crate) fn libraries(root: &Path) -> Vec<PathBuf> {
    let parents = ["usr/lib", "lib"].map(|parent| root.join(parent));
    parents.iter().flat_map(|parent| architecture_directories(parent)).collect()
}

/// Returns the directories of libraries, which are named like `x86_64-linux-gnu`.
fn architecture_directories(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let names = entries.filter(|entry| entry.file_name().to_string_lossy().contains("-linux-"));
    names.map(|entry| entry.path()).collect()
}

/// Unpacks into one directory, with another one to work in.
fn unpack_into(root: &Path, work: &Path, package: &str, pick: &impl Pick) -> Result<()> {
    fs::create_dir_all(root).with_context(|| format!("cannot create {}", root.display()))?;
    Apt::with_system_lists(work)?.unpack(root, package, pick).or_else(|error| {
        // The lists are missing, as in a new container, or name versions that are gone.
        eprintln!("with the system's own lists of packages: {error:#}");
        Apt::with_new_lists(work)?.unpack(root, package, pick)
    })
}

/// Debian's package tools, used by somebody who may not install anything.
struct Apt {
    /// Where packages are downloaded to.
    directory: PathBuf,
    /// A list of installed packages of our own, which is empty: what is installed, or half
    /// installed, on this machine must not matter, and libraries of one release always fit each
    /// other.
    status: PathBuf,
    /// Lists of available packages of our own, in place of the system's.
    lists: Option<PathBuf>,
}

impl Apt {
    fn with_system_lists(directory: &Path) -> Result<Self> {
        let status = directory.join("status");
        fs::write(&status, "").with_context(|| format!("cannot write {}", status.display()))?;
        Ok(Self { directory: directory.to_path_buf(), status, lists: None })
    }

    fn with_new_lists(directory: &Path) -> Result<Self> {
        let lists = directory.join("apt");
        for inner in ["state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(lists.join(inner)).context("cannot create apt's directories")?;
        }
        let apt = Self { lists: Some(lists), ..Self::with_system_lists(directory)? };
        child::output(&mut apt.command("update"))?;
        Ok(apt)
    }

    fn unpack(&self, root: &Path, package: &str, pick: &impl Pick) -> Result<()> {
        let simulation = ["--simulate", "--no-install-recommends", package];
        let simulation = child::output(self.command("install").args(simulation))?;
        let packages = pick(&simulation)?;
        child::output(self.command("download").args(packages))?;
        for package in fs::read_dir(&self.directory)?.flatten().map(|entry| entry.path()) {
            if package.extension().is_some_and(|extension| extension == "deb") {
                child::output(Command::new("dpkg").arg("-x").arg(package).arg(root))?;
            }
        }
        Ok(())
    }

    fn command(&self, subcommand: &str) -> Command {
        let mut command = Command::new("apt-get");
        command.arg(subcommand).current_dir(&self.directory).env("LC_ALL", "C");
        let mut set = |name: &str, path: &Path| {
            command.arg("-o").arg(format!("{name}={}", path.display()));
        };
        set("Dir::State::status", &self.status);
        if let Some(lists) = &self.lists {
            set("Dir::State", &lists.join("state"));
            set("Dir::Cache", &lists.join("cache"));
        }
        command
    }
}
