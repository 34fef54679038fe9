//! The stripped program, its symbols, and the files that it writes about itself.

use std::{
    env, fs,
    path::Path,
    process::{Command, ExitStatus},
};

use anyhow::{Context, Result};

use super::release::Release;
use crate::{cargo, child, signals::Signals};

/// Builds the program. Returns the exit status of the build.
pub(super) fn build(release: &Release, signals: &Signals) -> Result<ExitStatus> {
    let mut build = cargo::command("build");
    build.args(["--locked", "--profile", "dist", "--package", "galley"]);
    build.env("CARGO_INCREMENTAL", "0").env("GALLEY_CONSOLE", "required");
    build.env("SOURCE_DATE_EPOCH", &release.time);
    // Back traces need names and lines, which are kept apart from the program.
    build.env("CARGO_PROFILE_DIST_DEBUG", "line-tables-only");
    build.env("CARGO_PROFILE_DIST_STRIP", "none");
    let home = env::var("CARGO_HOME").or_else(|_| env::var("HOME").map(|home| home + "/.cargo"));
    let home = home.context("neither CARGO_HOME nor HOME is set")?;
    let target = std::path::absolute(cargo::target_directory())?;
    // The last matching prefix is replaced.
    let paths = [
        (release.root.display().to_string(), "/galley"),
        (target.display().to_string(), "/target"),
        (home, "/cargo"),
    ];
    let flags = |flag: &str| {
        let flags = paths.iter().map(|(from, to)| format!("{flag}{from}={to}"));
        flags.collect::<Vec<_>>().join(" ")
    };
    build.env("RUSTFLAGS", flags("--remap-path-prefix="));
    build.env("CFLAGS", flags("-ffile-prefix-map="));
    child::run(&mut build, signals)
}

/// Writes the stripped program, and what it writes about itself, into the stage.
pub(super) fn stage(release: &Release) -> Result<()> {
    split_symbols(release, &cargo::target_directory().join("dist/galley"))?;
    describe(release)
}

/// Moves the symbols of the program to a file beside the packages. Debuggers find it by its name.
fn split_symbols(release: &Release, unstripped: &Path) -> Result<()> {
    let symbols = release.out.join("galley.debug");
    let program = release.stage.join("galley");
    let mut keep = Command::new("objcopy");
    keep.args(["--only-keep-debug", "--compress-debug-sections"]).arg(unstripped).arg(&symbols);
    child::output(&mut keep)?;
    let mut strip = Command::new("objcopy");
    strip.arg("--strip-all").arg("--add-gnu-debuglink=galley.debug").arg(unstripped).arg(&program);
    child::output(strip.current_dir(&release.out))?;
    let name = format!("{}-{}.debug", release.name(), release.target);
    Ok(fs::rename(&symbols, release.out.join(name))?)
}

/// Writes completions, manual pages and the commented settings file.
fn describe(release: &Release) -> Result<()> {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(release.stage.join("galley"));
        child::output(command.args(arguments).current_dir(&release.stage))
    };
    let completions = release.stage.join("completions");
    fs::create_dir_all(&completions)?;
    for (shell, name) in [("bash", "galley"), ("zsh", "_galley"), ("fish", "galley.fish")] {
        fs::write(completions.join(name), run(&["completion", shell])?)?;
    }
    run(&["manpage", "--directory", "man"])?;
    fs::write(release.stage.join("galley.toml"), run(&["config", "--template"])?)?;
    Ok(())
}
