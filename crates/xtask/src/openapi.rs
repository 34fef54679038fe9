//! `cargo xtask openapi`: keeps the committed `openapi.json` in step with the code.

use std::{
    fs,
    path::PathBuf,
    process::{ExitCode, Stdio},
};

use anyhow::{Context, Result, bail, ensure};

use crate::cargo;

/// Writes the OpenAPI document to its file.
pub(crate) fn write() -> Result<ExitCode> {
    let path = path();
    fs::write(&path, generate()?).with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("wrote {}", path.display());
    Ok(ExitCode::SUCCESS)
}

/// Fails if the committed file differs from the generated document.
pub(crate) fn check() -> Result<ExitCode> {
    const REMEDY: &str = "run `cargo xtask openapi` and commit the file";
    let path = path();
    let committed = fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}: {REMEDY}", path.display()))?;
    if let Some(difference) = first_difference(&committed, &generate()?) {
        bail!("{} differs from the code: {REMEDY}\n{difference}", path.display());
    }
    eprintln!("{} matches the code", path.display());
    Ok(ExitCode::SUCCESS)
}

fn path() -> PathBuf {
    cargo::workspace_root().join("openapi.json")
}

fn generate() -> Result<String> {
    let mut command = cargo::command("run");
    command.args(["--quiet", "--package", "galley", "--profile", "ci", "--", "openapi"]);
    let output = command.stderr(Stdio::inherit()).output().context("cargo cannot be started")?;
    ensure!(output.status.success(), "`galley openapi` failed with {}", output.status);
    ensure!(!output.stdout.is_empty(), "`galley openapi` wrote nothing");
    String::from_utf8(output.stdout).context("`galley openapi` wrote something that is not UTF-8")
}

/// Returns the first line that differs, as committed and as generated.
fn first_difference(committed: &str, generated: &str) -> Option<String> {
    if committed == generated {
        return None;
    }
    let mut lines = (1..).zip(committed.lines().zip(generated.lines()));
    let difference = match lines.find(|(_, (committed, generated))| committed != generated) {
        Some((number, (committed, generated))) => {
            format!("line {number}\n  committed: {committed}\n  generated: {generated}")
        }
        None => "one of them ends before the other".to_owned(),
    };
    Some(difference)
}

#[cfg(test)]
mod tests {
    use super::first_difference;

    #[test]
    fn the_first_different_line_is_reported() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        let difference = first_difference("a\nb\n", "a\nc\n");
        assert!(difference.is_some_and(|text| text.starts_with("line 2\n")));
        assert!(first_difference("a\n", "a\nb\n").is_some());
        assert!(first_difference("a", "a\n").is_some());
    }
}
