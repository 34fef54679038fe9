//! npm packages that tests need, installed into the target directory.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{cargo, child};

/// A folder of scripts with a `package.json` and its lock file, copied to the target directory and
/// installed there.
pub(crate) struct NpmPackages {
    pub(crate) name: &'static str,
    /// The environment variable that names the installed copy for the tests.
    pub(crate) variable: &'static str,
    /// The copy's folder in the target directory.
    directory: &'static str,
    /// The folder of scripts, relative to the workspace's root.
    source: &'static str,
}

pub(crate) const PACKAGES: [NpmPackages; 4] = [
    NpmPackages {
        name: "TipTap and Markdown in Node",
        variable: "GALLEY_TEST_CONTENT_REFERENCE",
        directory: "node-content-reference",
        source: "crates/content/tests/reference",
    },
    NpmPackages {
        name: "API clients in Node",
        variable: "GALLEY_TEST_API_CLIENTS",
        directory: "node-api-clients",
        source: "crates/galley/tests/clients",
    },
    NpmPackages {
        name: "Identity provider in Node",
        variable: "GALLEY_TEST_IDENTITY_PROVIDER",
        directory: "node-identity-provider",
        source: "crates/server/tests/identity-provider",
    },
    NpmPackages {
        name: "Playwright in Node",
        variable: "GALLEY_TEST_BROWSER",
        directory: "node-console-tests",
        source: "console/tests",
    },
];

impl NpmPackages {
    /// Returns the folder that the variable names already. Otherwise copies the scripts and
    /// installs their packages.
    pub(crate) fn provide(&self) -> Result<PathBuf> {
        if let Some(folder) = std::env::var_os(self.variable) {
            return Ok(folder.into());
        }
        let directory = cargo::target_directory().join(self.directory);
        let directory =
            std::path::absolute(&directory).context("the target directory is unknown")?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(self.source);
        fs::create_dir_all(&directory)?;
        copy_files(&source, &directory)?;
        // The lock file is copied only after a complete installation.
        let lock = fs::read(source.join("package-lock.json"))?;
        let installed = directory.join("installed.json");
        if fs::read(&installed).is_ok_and(|before| before == lock) {
            return Ok(directory);
        }
        let node = child::output(Command::new("node").arg("--version"))
            .context("Node.js (20.19 or newer) is not installed")?;
        ensure!(!node.is_empty(), "node prints no version");
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&directory);
        child::output(&mut npm).context("npm ci failed")?;
        fs::write(installed, lock)?;
        Ok(directory)
    }
}

/// Copies the files of a folder, without its subfolders.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
