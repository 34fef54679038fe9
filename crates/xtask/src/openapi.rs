//! `cargo xtask openapi`: writes `openapi.json` from the code. The tests compare the two.

use std::{
    fs,
    process::{ExitCode, Stdio},
};

use anyhow::{Context, Result, ensure};

use crate::cargo;

/// Writes the OpenAPI document to its file.
pub(crate) fn write() -> Result<ExitCode> {
    let path = cargo::workspace_root().join("openapi.json");
    fs::write(&path, generate()?).with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("wrote {}", path.display());
    Ok(ExitCode::SUCCESS)
}

fn generate() -> Result<String> {
    let mut command = cargo::command("run");
    command.args(["--quiet", "--package", "galley", "--profile", "ci", "--", "openapi"]);
    let output = command.stderr(Stdio::inherit()).output().context("cargo cannot be started")?;
    ensure!(output.status.success(), "`galley openapi` failed with {}", output.status);
    ensure!(!output.stdout.is_empty(), "`galley openapi` wrote nothing");
    String::from_utf8(output.stdout).context("`galley openapi` wrote something that is not UTF-8")
}
