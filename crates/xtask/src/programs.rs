//! Programs that tests need beside PostgreSQL. These are proxies, Prometheus, strace, which
//! traces system calls and injects faults into them, the shell of an older SQLite, and a browser.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, ensure};

use crate::{cargo, child, debian};

/// A program of a Debian package of the same name.
pub(crate) struct DebianProgram {
    pub(crate) name: &'static str,
    /// The program's directory within the package.
    directory: &'static str,
    /// The environment variable that names the program for the tests.
    pub(crate) variable: &'static str,
    version_flag: &'static str,
    /// Further packages that it needs, besides libraries.
    packages: &'static [&'static str],
}

pub(crate) const PROGRAMS: [DebianProgram; 7] = [
    program("haproxy", "usr/sbin", "GALLEY_TEST_HAPROXY", "-v"),
    program("pgbouncer", "usr/sbin", "GALLEY_TEST_PGBOUNCER", "-V"),
    program("nginx", "usr/sbin", "GALLEY_TEST_NGINX", "-v"),
    program("strace", "usr/bin", "GALLEY_TEST_STRACE", "-V"),
    program("prometheus", "usr/bin", "GALLEY_TEST_PROMETHEUS", "--version"),
    program("sqlite3", "usr/bin", "GALLEY_TEST_SQLITE3", "--version"),
    // The package's script in `usr/bin` expects it to be installed.
    DebianProgram {
        packages: &["chromium-common", "fonts-dejavu-core"],
        ..program("chromium", "usr/lib/chromium", "GALLEY_TEST_CHROMIUM", "--version")
    },
];

const fn program(
    name: &'static str,
    directory: &'static str,
    variable: &'static str,
    version_flag: &'static str,
) -> DebianProgram {
    DebianProgram { name, directory, variable, version_flag, packages: &[] }
}

impl DebianProgram {
    /// Returns the program that the variable names, or the installed one, or unpacks Debian's
    /// package into the target directory.
    pub(crate) fn provide(&self) -> Result<PathBuf> {
        if let Some(program) = env::var_os(self.variable) {
            return Ok(program.into());
        }
        let name = self.name;
        let installed = Path::new("/").join(self.directory).join(name);
        let directory = cargo::target_directory().join(format!("{name}-debian"));
        let unpacked = directory.join(name);
        let candidates = [PathBuf::from(name), installed, unpacked.clone()];
        if let Some(program) = candidates.into_iter().find(|one| self.works(one)) {
            return Ok(program);
        }
        debian::unpack(name, &directory, |simulation| self.packages_to_fetch(simulation))?;
        let libraries = env::join_paths(debian::libraries(&directory))?;
        let (libraries, program) = (libraries.display(), directory.join(self.directory).join(name));
        let fonts = directory.join("usr/share/fonts");
        let settings = directory.join("fonts.conf");
        let dirs = ["/usr/share/fonts".as_ref(), fonts.as_path()]
            .map(|path: &Path| format!("<dir>{}</dir>", path.display()))
            .concat();
        std::fs::write(&settings, format!("<fontconfig>{dirs}</fontconfig>\n"))?;
        let script = format!(
            "#!/bin/sh\nexport LD_LIBRARY_PATH='{libraries}'\n\
             export FONTCONFIG_FILE='{}'\nexec '{}' \"$@\"\n",
            settings.display(),
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
        ensure!(names.contains(&self.name), "apt-get finds no package {}", self.name);
        let is_wanted = |name: &&str| {
            *name == self.name || self.packages.contains(name) || debian::is_needed_library(name)
        };
        Ok(names.into_iter().filter(is_wanted).collect())
    }
}
