//! How Cargo is run from here, and where the workspace and its target directory are.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

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
