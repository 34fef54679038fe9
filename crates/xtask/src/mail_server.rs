//! A Python with aiosmtpd, the mail server of the tests.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{cargo, child};

/// What the tests find the Python by.
pub(crate) const PYTHON_VARIABLE: &str = "GALLEY_TEST_PYTHON";

const PACKAGES: [&str; 2] = ["aiosmtpd==1.4.6", "trustme==1.2.1"];

/// Returns the Python that is named already, or makes an environment for one beside what Cargo builds.
pub(crate) fn provide() -> Result<PathBuf> {
    if let Some(python) = std::env::var_os(PYTHON_VARIABLE) {
        return Ok(python.into());
    }
    let directory = cargo::target_directory().join("mail-server");
    let python = directory.join("bin/python");
    if works(&python) {
        return Ok(python);
    }
    child::output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&directory))
        .context("no environment for Python can be made (on Debian: python3-venv)")?;
    child::output(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(PACKAGES))
        .with_context(|| format!("{} can't be installed", PACKAGES.join(" and ")))?;
    Ok(python)
}

fn works(python: &Path) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", "import aiosmtpd, trustme"]);
    child::output(&mut command).is_ok()
}
