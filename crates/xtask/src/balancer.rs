//! HAProxy, the balancer of the tests.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{cargo, child, debian};

/// What the tests find it by.
pub(crate) const HAPROXY_VARIABLE: &str = "GALLEY_TEST_HAPROXY";

/// Returns the one that is named already, or that is installed, or unpacks Debian's beside what Cargo builds.
pub(crate) fn provide() -> Result<PathBuf> {
    if let Some(program) = std::env::var_os(HAPROXY_VARIABLE) {
        return Ok(program.into());
    }
    let directory = cargo::target_directory().join("haproxy-debian");
    let unpacked = directory.join("haproxy");
    let installed = ["haproxy", "/usr/sbin/haproxy"].map(PathBuf::from);
    if let Some(program) = installed.into_iter().chain([unpacked.clone()]).find(|one| works(one)) {
        return Ok(program);
    }
    debian::unpack("haproxy", &directory, packages_to_fetch)?;
    let libraries = std::env::join_paths(debian::libraries(&directory))?;
    let (libraries, program) = (libraries.display(), directory.join("usr/sbin/haproxy"));
    let script = format!(
        "#!/bin/sh\nexport LD_LIBRARY_PATH='{libraries}'\nexec '{}' \"$@\"\n",
        program.display()
    );
    fs::write(&unpacked, script)
        .and_then(|()| fs::set_permissions(&unpacked, fs::Permissions::from_mode(0o755)))
        .with_context(|| format!("cannot write {}", unpacked.display()))?;
    ensure!(works(&unpacked), "Debian's HAProxy was unpacked but does not run");
    Ok(unpacked)
}

fn works(program: &Path) -> bool {
    child::output(Command::new(program).arg("-v")).is_ok()
}

fn packages_to_fetch(simulation: &str) -> Result<Vec<&str>> {
    let names = debian::packages_of(simulation);
    ensure!(names.contains(&"haproxy"), "apt-get knows no package of HAProxy");
    let is_wanted = |name: &&str| *name == "haproxy" || debian::is_needed_library(name);
    Ok(names.into_iter().filter(is_wanted).collect())
}
