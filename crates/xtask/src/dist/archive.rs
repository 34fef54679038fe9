//! The archive for all Linux systems of the target.

use std::fs;

use anyhow::Result;

use super::release::{Release, copy};
use crate::child;

/// Writes the archive with the program, its documentation, and the files of `deploy/`.
pub(super) fn write(release: &Release) -> Result<()> {
    let name = format!("{}-{}", release.name(), release.target);
    let folder = release.out.join(&name);
    copy(&release.stage, &folder)?;
    for one in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "openapi.json"] {
        copy(&release.root.join(one), &folder.join(one))?;
    }
    for one in ["docs", "deploy"] {
        copy(&release.root.join(one), &folder.join(one))?;
    }
    let mut tar = release.tar();
    tar.args(["--owner=0", "--group=0", "--create", "--use-compress-program=gzip -9n"]);
    tar.arg("--file").arg(format!("{name}.tar.gz")).arg(&name);
    child::output(tar.current_dir(&release.out))?;
    Ok(fs::remove_dir_all(folder)?)
}
