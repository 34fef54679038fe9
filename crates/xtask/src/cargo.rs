//! Cargo commands, and the paths of the workspace and its target directory.

use std::{
    collections::HashMap,
    env,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{child, signals::Signals};

/// Returns a Cargo command in the workspace's root, with the environment of a developer's own
/// shell.
pub(crate) fn command(subcommand: &str) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.arg(subcommand).current_dir(workspace_root());
    // The tests use the console. A machine without Node.js builds without it, and skips them.
    command.env("GALLEY_CONSOLE", "build");
    // `cargo run` sets variables that describe this package. Some build scripts (ring's is one)
    // rerun when these change. Then this command and a plain `cargo test` would rebuild each
    // other's dependencies in turns.
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(describes_this_package) {
            command.env_remove(name);
        }
    }
    command
}

/// Returns the directory of the workspace's `Cargo.toml`.
pub(crate) fn workspace_root() -> PathBuf {
    // Cargo sets this variable, and it is right even if the tree was moved after this was compiled.
    let package =
        env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let package = Path::new(&package);
    package.ancestors().nth(2).unwrap_or(package).to_path_buf()
}

/// Returns the directory that Cargo builds into. Fetched programs are kept there, too.
pub(crate) fn target_directory() -> PathBuf {
    let chosen = env::var_os("CARGO_TARGET_DIR").filter(|path| !path.is_empty());
    workspace_root().join(chosen.unwrap_or_else(|| "target".into()))
}

/// Builds a program of crates.io beside the project's own artifacts, unless it is there. Returns
/// the folder of the programs.
pub(crate) fn install(name: &str, version: &str, arguments: &[&str]) -> Result<PathBuf> {
    let tools = target_directory().join("ci-tools");
    let mut install = command("install");
    install.args(["--locked", "--version", version, name]).args(arguments);
    install.arg("--root").arg(&tools).arg("--target-dir").arg(tools.join("build"));
    child::output(&mut install)?;
    Ok(tools.join("bin"))
}

/// The program of a crate's integration tests.
pub(crate) struct TestProgram {
    program: PathBuf,
    package: PathBuf,
}

impl TestProgram {
    /// Returns a command that runs the tests as Cargo would.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.package).env("CARGO_MANIFEST_DIR", &self.package);
        command
    }
}

/// Builds the tests of the whole workspace with the same arguments as `cargo xtask test`, so that
/// nothing is built twice. Returns the integration tests by their crate's folder, or the exit
/// status of the failed build.
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
    // Everything is built already, so this only returns the paths.
    let told = child::output(build.args(["--quiet", "--message-format", "json"]))?;
    let messages = told.lines().map(serde_json::from_str::<Value>);
    let mut programs = HashMap::new();
    for message in messages {
        let message = message.context("Cargo's message can't be parsed")?;
        if let Some((name, program)) = test_program(&message) {
            programs.insert(name, program);
        }
    }
    Ok(Ok(programs))
}

/// Returns the crate's folder and the program, if the message describes integration tests.
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
    fn only_variables_of_this_package_are_removed() {
        assert!(describes_this_package("CARGO_PKG_VERSION"));
        assert!(describes_this_package("CARGO_MANIFEST_DIR"));
        assert!(!describes_this_package("CARGO_HOME"));
        assert!(!describes_this_package("CARGO_TARGET_DIR"));
    }
}
