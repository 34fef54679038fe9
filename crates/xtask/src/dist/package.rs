//! The package for Debian and Ubuntu, by cargo-deb.

use std::{fs, process::Command};

use anyhow::{Context, Result, ensure};

use super::release::{Release, copy};
use crate::{cargo, child};

const CARGO_DEB_VERSION: &str = "3.8.0";

/// The default of the setting in the template, and its value in the package.
const DATA_DIR: [&str; 2] = ["#data-dir = \"galley-data\"", "data-dir = \"/var/lib/galley\""];

/// Writes the package. Its parts are in `deploy/debian` and `deploy/`, and in the stage.
pub(super) fn write(release: &Release) -> Result<()> {
    let folder = release.out.join("debian");
    copy(&release.stage, &folder)?;
    copy(&release.root.join("deploy"), &folder.join("deploy"))?;
    for one in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&release.root.join(one), &folder.join(one))?;
    }
    let settings = fs::read_to_string(folder.join("galley.toml"))?;
    ensure!(settings.contains(DATA_DIR[0]), "the settings have no data-dir");
    fs::write(folder.join("galley.toml"), settings.replace(DATA_DIR[0], DATA_DIR[1]))?;
    // cargo-deb reads a manifest. This one has no code, so that all files come from this folder.
    let metadata = fs::read_to_string(release.root.join("deploy/debian/package.toml"))?;
    let manifest = format!(
        "[package]\nname = \"galley\"\nversion = \"{}\"\nedition = \"2024\"\n\
         license = \"MIT OR Apache-2.0\"\n\
         description = \"Service for content workspaces, with an API and a web console\"\n\n\
         [workspace]\n\n{metadata}",
        release.version
    );
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::create_dir_all(folder.join("src"))?;
    fs::write(folder.join("src/main.rs"), "fn main() {}\n")?;
    let tools = cargo::install("cargo-deb", CARGO_DEB_VERSION, &["--debug"])?;
    let mut build = Command::new(tools.join("cargo-deb"));
    build.args(["--no-build", "--no-strip", "--output"]).arg(&release.out);
    build.env("SOURCE_DATE_EPOCH", &release.time);
    child::output(build.current_dir(&folder)).context("cargo-deb")?;
    Ok(fs::remove_dir_all(folder)?)
}
