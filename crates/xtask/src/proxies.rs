//! HAProxy and PgBouncer, which stand between the parts in tests.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, ensure};

use crate::{cargo, child, debian};

/// A program of a Debian package of the same name.
pub(crate) struct Proxy {
    pub(crate) name: &'static str,
    /// What the tests find it by.
    pub(crate) variable: &'static str,
    version_flag: &'static str,
}

pub(crate) const PROXIES: [Proxy; 2] = [
    Proxy { name: "haproxy", variable: "GALLEY_TEST_HAPROXY", version_flag: "-v" },
    Proxy { name: "pgbouncer", variable: "GALLEY_TEST_PGBOUNCER", version_flag: "-V" },
];

impl Proxy {
    /// Returns the one that is named already, or that is installed, or unpacks Debian's beside what Cargo builds.
    pub(crate) fn provide(&self) -> Result<PathBuf> {
        if let Some(program) = env::var_os(self.variable) {
            return Ok(program.into());
        }
        let name = self.name;
        let installed = Path::new("/usr/sbin").join(name);
        let directory = cargo::target_directory().join(format!("{name}-debian"));
        let unpacked = directory.join(name);
        let candidates = [PathBuf::from(name), installed, unpacked.clone()];
        if let Some(program) = candidates.into_iter().find(|one| self.works(one)) {
            return Ok(program);
        }
        debian::unpack(name, &directory, |simulation| self.packages_to_fetch(simulation))?;
        let libraries = env::join_paths(debian::libraries(&directory))?;
        let (libraries, program) = (libraries.display(), directory.join("usr/sbin").join(name));
        let script = format!(
            "#!/bin/sh\nexport LD_LIBRARY_PATH='{libraries}'\nexec '{}' \"$@\"\n",
            program.display()
        );
        child::write_script(&unpacked, &script)?;
        ensure!(self.works(&unpacked), "Debian's {name} was unpacked but does not run");
        Ok(unpacked)
    }

    fn works(&self, program: &Path) -> bool {
        child::output(Command::new(program).arg(self.version_flag)).is_ok()
    }

    fn packages_to_fetch<'s>(&self, simulation: &'s str) -> Result<Vec<&'s str>> {
        let names = debian::packages_of(simulation);
        ensure!(names.contains(&self.name), "apt-get knows no package {}", self.name);
        let is_wanted = |name: &&str| *name == self.name || debian::is_needed_library(name);
        Ok(names.into_iter().filter(is_wanted).collect())
    }
}
