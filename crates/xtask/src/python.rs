//! Python environments that tests need.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{cargo, child};

/// A virtual environment with packages of the Python Package Index.
pub(crate) struct PythonEnvironment {
    pub(crate) name: &'static str,
    /// The environment variable that names the environment's program for the tests.
    pub(crate) variable: &'static str,
    /// The environment's folder in the target directory.
    directory: &'static str,
    program: &'static str,
    /// The packages, all pinned to a version.
    requirements: &'static str,
}

pub(crate) const ENVIRONMENTS: [PythonEnvironment; 2] = [
    PythonEnvironment {
        name: "Mail server",
        variable: "GALLEY_TEST_PYTHON",
        directory: "mail-server",
        program: "bin/python",
        requirements: "aiosmtpd==1.4.6\ntrustme==1.2.1\n",
    },
    PythonEnvironment {
        name: "Schemathesis",
        variable: "GALLEY_TEST_SCHEMATHESIS",
        directory: "schemathesis",
        program: "bin/schemathesis",
        requirements: include_str!("../../galley/tests/contract/requirements.txt"),
    },
];

impl PythonEnvironment {
    /// Returns the program that the variable names already, or creates the environment.
    pub(crate) fn provide(&self) -> Result<PathBuf> {
        if let Some(program) = std::env::var_os(self.variable) {
            return Ok(program.into());
        }
        let directory = cargo::target_directory().join(self.directory);
        let directory =
            std::path::absolute(&directory).context("the target directory is unknown")?;
        let program = directory.join(self.program);
        // The requirements are recorded only after a complete installation.
        let installed = directory.join("installed.txt");
        if std::fs::read_to_string(&installed).is_ok_and(|text| text == self.requirements)
            && child::output(Command::new(&program).arg("--version")).is_ok()
        {
            return Ok(program);
        }
        child::output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&directory))
            .context("cannot create a Python environment (on Debian: python3-venv)")?;
        self.install(&directory)
            .with_context(|| format!("{} can't be installed by pip", self.name))?;
        std::fs::write(installed, self.requirements).context("cannot write the requirements")?;
        Ok(program)
    }

    fn install(&self, directory: &Path) -> Result<()> {
        let wanted = directory.join("requirements.txt");
        std::fs::write(&wanted, self.requirements).context("cannot write the requirements")?;
        let mut pip = Command::new(directory.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&wanted);
        child::output(&mut pip).map(drop)
    }
}
