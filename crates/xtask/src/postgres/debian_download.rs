//! Debian's PostgreSQL server, unpacked into the target directory.
//!
//! The programs find their data relative to themselves, and their libraries by `LD_LIBRARY_PATH`.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use super::{binaries::Binaries, versions::newest_first};
use crate::{cargo, debian};

/// Returns the programs that an earlier call has unpacked.
pub(super) fn unpacked() -> Option<Binaries> {
    let root = directory();
    let programs = newest_first(root.join("usr/lib/postgresql"), "", "bin");
    Some(Binaries::unpacked(programs.into_iter().next()?, debian::libraries(&root)))
}

/// Downloads and unpacks the server's package and all its libraries except the C library.
pub(super) fn download() -> Result<()> {
    debian::unpack("postgresql", &directory(), packages_to_fetch)
}

fn directory() -> PathBuf {
    cargo::target_directory().join("postgres-debian")
}

/// Selects the server and the libraries from apt-get's simulation.
fn packages_to_fetch(simulation: &str) -> Result<Vec<&str>> {
    let names = debian::packages_of(simulation);
    ensure!(names.iter().any(|name| is_server(name)), "apt-get finds no PostgreSQL server package");
    Ok(names.into_iter().filter(|name| is_server(name) || is_needed_library(name)).collect())
}

fn is_server(package: &str) -> bool {
    let version = package.strip_prefix("postgresql-");
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_needed_library(package: &str) -> bool {
    // LLVM is the largest library by far. It compiles queries, which the server's settings turn
    // off.
    let unwanted = ["libllvm", "libperl"];
    debian::is_needed_library(package)
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
    fn only_the_server_and_its_libraries_are_fetched() {
        assert_eq!(packages_to_fetch(SIMULATION).unwrap(), ["libpq5", "postgresql-15"]);
    }

    #[test]
    fn a_simulation_without_a_server_is_an_error() {
        assert!(packages_to_fetch("Inst libpq5 (15.10 Debian:12.9/stable [amd64])\n").is_err());
    }
}
