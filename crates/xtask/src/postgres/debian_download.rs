//! Unpacks Debian's PostgreSQL server into the target directory: no rights needed, nothing
//! installed.
//!
//! The programs find their data relative to themselves, and their libraries by `LD_LIBRARY_PATH`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::{binaries::Binaries, find};
use crate::{cargo, child};

/// Returns the programs that an earlier call has unpacked.
pub(super) fn unpacked() -> Option<Binaries> {
    let root = directory();
    let programs = find::newest_first(root.join("usr/lib/postgresql"), "", "bin");
    let libraries = ["usr/lib", "lib"].map(|parent| root.join(parent));
    let libraries = libraries.iter().flat_map(|parent| architecture_directories(parent)).collect();
    Some(Binaries::unpacked(programs.into_iter().next()?, libraries))
}

/// Downloads and unpacks the server's package, and those of all its libraries but the C library.
pub(super) fn download() -> Result<()> {
    eprintln!("unpacking Debian's PostgreSQL packages into {}", directory().display());
    // Half of it would be taken for the whole by the next call: it gets its name when it is
    // complete.
    let partial = directory().with_extension("partial");
    let _ = fs::remove_dir_all(&partial);
    let outcome = unpack_into(&partial.join("root"), &partial);
    let outcome = outcome.and_then(|()| {
        let _ = fs::remove_dir_all(directory());
        fs::rename(partial.join("root"), directory())
            .context("cannot move the unpacked packages to their place")
    });
    let _ = fs::remove_dir_all(&partial);
    outcome
}

/// Unpacks into one directory, with another one to work in.
fn unpack_into(root: &Path, work: &Path) -> Result<()> {
    fs::create_dir_all(root).with_context(|| format!("cannot create {}", root.display()))?;
    Apt::with_system_lists(work)?.unpack(root).or_else(|error| {
        // The lists are missing, as in a new container, or name versions that are gone.
        eprintln!("with the system's own lists of packages: {error:#}");
        Apt::with_new_lists(work)?.unpack(root)
    })
}

fn directory() -> PathBuf {
    cargo::target_directory().join("postgres-debian")
}

/// Returns the directories of libraries, which are named like `x86_64-linux-gnu`.
fn architecture_directories(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let names = entries.filter(|entry| entry.file_name().to_string_lossy().contains("-linux-"));
    names.map(|entry| entry.path()).collect()
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

    fn unpack(&self, root: &Path) -> Result<()> {
        let simulation = ["--simulate", "--no-install-recommends", "postgresql"];
        let simulation = child::output(self.command("install").args(simulation))?;
        let packages = packages_to_fetch(&simulation)?;
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

/// Picks the server and the libraries from what apt-get says that it would install.
fn packages_to_fetch(simulation: &str) -> Result<Vec<&str>> {
    let lines = simulation.lines().filter_map(|line| line.strip_prefix("Inst "));
    let names: Vec<&str> = lines.filter_map(|line| line.split_whitespace().next()).collect();
    ensure!(names.iter().any(|name| is_server(name)), "apt-get knows no PostgreSQL server package");
    Ok(names.into_iter().filter(|name| is_server(name) || is_needed_library(name)).collect())
}

fn is_server(package: &str) -> bool {
    let version = package.strip_prefix("postgresql-");
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_needed_library(package: &str) -> bool {
    // The C library belongs to the system's own loader and must not be mixed with another one. LLVM
    // is for compiling queries, which the server is told not to do, and is the largest of all.
    let unwanted = ["libc6", "libc-bin", "libllvm", "libperl"];
    package.starts_with("lib")
        && !package.ends_with("-perl")
        && !unwanted.iter().any(|prefix| package.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIMULATION: &str = "\
Reading package lists...
The following NEW packages will be installed:
  libllvm14 libpq5 perl postgresql postgresql-15 postgresql-client-15
Inst libc6 [2.36-9] (2.36-9+deb12u9 Debian:12.9/stable [amd64])
Inst libjson-perl (4.10000-1 Debian:12.9/stable [all])
Inst libpq5 (15.10-0+deb12u1 Debian:12.9/stable [amd64])
Inst libllvm14 (1:14.0.6-12 Debian:12.9/stable [amd64])
Inst postgresql-client-15 (15.10-0+deb12u1 Debian:12.9/stable [amd64])
Inst postgresql-15 (15.10-0+deb12u1 Debian:12.9/stable [amd64])
Inst postgresql (15+248 Debian:12.9/stable [all])
Conf libpq5 (15.10-0+deb12u1 Debian:12.9/stable [amd64])
";

    #[test]
    fn the_server_and_the_libraries_are_fetched_and_nothing_else() {
        assert_eq!(packages_to_fetch(SIMULATION).unwrap(), ["libpq5", "postgresql-15"]);
    }

    #[test]
    fn a_simulation_without_a_server_is_an_error() {
        assert!(packages_to_fetch("Inst libpq5 (15.10 Debian:12.9/stable [amd64])\n").is_err());
    }
}
