//! Debian packages, unpacked into the target directory. This needs no privileges and installs
//! nothing.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::child;

/// Downloads and unpacks the packages that `pick` selects from apt-get's simulated installation of
/// `package`.
pub(crate) fn unpack(package: &str, directory: &Path, pick: impl PackageSelector) -> Result<()> {
    eprintln!("unpacking Debian's package {package} into {}", directory.display());
    // A partial directory would look complete to the next call, so it is renamed only when
    // complete.
    let partial = directory.with_extension("partial");
    let _ = fs::remove_dir_all(&partial);
    let outcome = unpack_into(&partial.join("root"), &partial, package, &pick);
    let outcome = outcome.and_then(|()| {
        let _ = fs::remove_dir_all(directory);
        fs::rename(partial.join("root"), directory)
            .context("cannot move the unpacked packages to their directory")
    });
    let _ = fs::remove_dir_all(&partial);
    outcome
}

/// A function that selects package names from the output of a simulation.
pub(crate) trait PackageSelector: Fn(&str) -> Result<Vec<&str>> {}

impl<F: Fn(&str) -> Result<Vec<&str>>> PackageSelector for F {}

/// Returns the packages that a simulation would install.
pub(crate) fn packages_of(simulation: &str) -> Vec<&str> {
    let lines = simulation.lines().filter_map(|line| line.strip_prefix("Inst "));
    lines.filter_map(|line| line.split_whitespace().next()).collect()
}

/// Returns true if a package is a library to unpack. The C library is left out: it belongs to the
/// system's loader and must not be mixed with another one.
pub(crate) fn is_needed_library(package: &str) -> bool {
    package.starts_with("lib")
        && !["libc6", "libc-bin"].iter().any(|prefix| package.starts_with(prefix))
}

/// Returns the library directories of the unpacked packages.
pub(crate) fn libraries(root: &Path) -> Vec<PathBuf> {
    let parents = ["usr/lib", "lib"].map(|parent| root.join(parent));
    parents.iter().flat_map(|parent| architecture_directories(parent)).collect()
}

/// Returns the library directories, which have names such as `x86_64-linux-gnu`.
fn architecture_directories(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let names = entries.filter(|entry| entry.file_name().to_string_lossy().contains("-linux-"));
    names.map(|entry| entry.path()).collect()
}

/// Unpacks into `root`, with `work` as the working directory.
fn unpack_into(root: &Path, work: &Path, package: &str, pick: &impl PackageSelector) -> Result<()> {
    fs::create_dir_all(root).with_context(|| format!("cannot create {}", root.display()))?;
    Apt::with_system_lists(work)?.unpack(root, package, pick).or_else(|error| {
        // The lists are missing, as in a new container, or name versions that no longer exist.
        eprintln!("using the system's package lists: {error:#}");
        Apt::with_new_lists(work)?.unpack(root, package, pick)
    })
}

/// Debian's package tools, run without the right to install.
struct Apt {
    /// The directory for downloaded packages.
    directory: PathBuf,
    /// A separate, empty list of installed packages. Packages installed on this machine must not
    /// matter, and libraries of one release always fit each other.
    status: PathBuf,
    /// Separate lists of available packages, in place of the system's.
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

    fn unpack(&self, root: &Path, package: &str, pick: &impl PackageSelector) -> Result<()> {
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
