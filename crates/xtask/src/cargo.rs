//! How Cargo is run from here, and where the workspace and its target directory are.

use std::{
    collections::HashMap,
    env,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{child, signals::Signals};

/// Returns a Cargo command in the workspace's root, as a developer's own shell would run it.
pub(crate) fn command(subcommand: &str) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.arg(subcommand).current_dir(workspace_root());
    // `cargo run` describes this package in the environment. Some build scripts (ring's is one) ask
    // to be run again when these change, so that this command and a plain `cargo test` would take
    // turns in rebuilding each other's dependencies.
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(describes_this_package) {
            command.env_remove(name);
        }
    }
    command
}

/// Returns the directory of the workspace's `Cargo.toml`.
pub(crate) fn workspace_root() -> PathBuf {
    // The variable is Cargo's and right even when the tree was moved after this was compiled.
    let package =
        env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let package = Path::new(&package);
    package.ancestors().nth(2).unwrap_or(package).to_path_buf()
}

/// Returns the directory that Cargo builds into, which is ours to keep fetched things in.
pub(crate) fn target_directory() -> PathBuf {
    let chosen = env::var_os("CARGO_TARGET_DIR").filter(|path| !path.is_empty());
    workspace_root().join(chosen.unwrap_or_else(|| "target".into()))
}

/// A crate's integration tests, built.
pub(crate) struct TestProgram {
    program: PathBuf,
    package: PathBuf,
}

impl TestProgram {
    /// Returns a command that runs it as Cargo would.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.package).env("CARGO_MANIFEST_DIR", &self.package);
        command
    }
}

/// Builds the tests of the whole workspace, as `cargo xtask test` does, so that nothing is built twice; returns the
/// integration tests by their crate's folder, or how the build failed.
pub(crate) fn test_programs(
    profile: &str,
    signals: &Signals,
) -> Result<Result<HashMap<String, TestProgram>, ExitStatus>> {
    let mut build = command("test");
    build.args(["--locked", "--no-run", "--workspace", "--profile", profile]);
    let status = child::run(&mut build, signals)?;
    if !status.success() {
        return Ok(Err(status));
    }
    // Nothing is left to be built, so this tells only where everything is.
    let told = child::output(build.args(["--quiet", "--message-format", "json"]))?;
    let messages = told.lines().map(serde_json::from_str::<Value>);
    let mut programs = HashMap::new();
    for message in messages {
        let message = message.context("Cargo speaks another language")?;
        if let Some((name, program)) = test_program(&message) {
            programs.insert(name, program);
        }
    }
    Ok(Ok(programs))
}

/// The crate's folder and the program, where this is about integration tests.
fn test_program(message: &Value) -> Option<(String, TestProgram)> {
    let is_it = message["target"]["kind"][0] == "test" && message["target"]["name"] == "it";
    let program = message["executable"].as_str().filter(|_| is_it)?.into();
    let package = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    let name = package.file_name()?.to_str()?.to_owned();
    Some((name, TestProgram { program, package }))
}

fn describes_this_package(variable: &str) -> bool {
    variable == "CARGO_BIN_NAME"
        || variable == "CARGO_PRIMARY_PACKAGE"
        || variable.starts_with("CARGO_MANIFEST_")
        || variable.starts_with("CARGO_PKG_")
}

#[cfg(test)]
mod tests {
    use super::describes_this_package;

    #[test]
    fn only_what_describes_the_package_is_kept_from_cargo() {
        assert!(describes_this_package("CARGO_PKG_VERSION"));
        assert!(describes_this_package("CARGO_MANIFEST_DIR"));
        assert!(!describes_this_package("CARGO_HOME"));
        assert!(!describes_this_package("CARGO_TARGET_DIR"));
    }
}
