//! The version, target and folders of a release.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{cargo, child};

/// A release in the making.
pub(super) struct Release {
    pub(super) version: String,
    /// The target triple of this machine.
    pub(super) target: String,
    /// The time of the last commit, in Unix seconds.
    pub(super) time: String,
    pub(super) root: PathBuf,
    /// The folder of the finished files.
    pub(super) out: PathBuf,
    /// The files that all packages contain: the program, notices, completions and manual pages.
    pub(super) stage: PathBuf,
}

impl Release {
    /// Empties the folder of the release.
    pub(super) fn new() -> Result<Self> {
        let root = cargo::workspace_root();
        let out = std::path::absolute(cargo::target_directory().join("distribution"))?;
        if out.exists() {
            fs::remove_dir_all(&out).context("the earlier files cannot be removed")?;
        }
        let stage = out.join("stage");
        fs::create_dir_all(&stage)?;
        let metadata = child::output(cargo::command("metadata").args([
            "--no-deps",
            "--format-version=1",
            "--locked",
        ]))?;
        let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
        let packages = metadata["packages"].as_array().context("Cargo lists no packages")?;
        let galley = packages.iter().find(|package| package["name"] == "galley");
        let version = galley.and_then(|galley| galley["version"].as_str());
        let rustc = child::output(Command::new("rustc").arg("-vV"))?;
        let target = rustc.lines().find_map(|line| line.strip_prefix("host: "));
        let time = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(time) => time,
            Err(_) => {
                let mut log = Command::new("git");
                child::output(log.args(["log", "-1", "--format=%ct"]).current_dir(&root))?
            }
        };
        Ok(Self {
            version: version.context("there is no package galley")?.to_owned(),
            target: target.context("rustc names no host")?.to_owned(),
            time: time.trim().to_owned(),
            root,
            out,
            stage,
        })
    }

    /// Returns the name of a file that all targets have.
    pub(super) fn name(&self) -> String {
        format!("galley-{}", self.version)
    }

    /// Returns the name of Debian and of container images for the architecture.
    pub(super) fn architecture(&self) -> &str {
        match self.target.split('-').next() {
            Some("x86_64") => "amd64",
            Some("aarch64") => "arm64",
            other => other.unwrap_or_default(),
        }
    }

    /// Returns a tar command whose result depends on the files alone.
    pub(super) fn tar(&self) -> Command {
        let mut tar = Command::new("tar");
        tar.args(["--sort=name", "--format=gnu", "--numeric-owner", "--mode=u+rw,go-w,a+rX"]);
        tar.arg(format!("--mtime=@{}", self.time));
        tar
    }
}

/// Copies a file, or a folder with all files.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    fs::copy(from, to).with_context(|| format!("{} cannot be copied", from.display()))?;
    Ok(())
}
