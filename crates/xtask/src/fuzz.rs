//! Fuzz targets, run by libFuzzer: the `fuzz` part of the reliability suite.
//!
//! The stable toolchain builds them, as any compiler can emit the branch coverage that a fuzzer
//! needs. They look for panics, wrong results and long run times. They don't look for memory
//! errors, as the project's own code has no `unsafe`.

use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{arguments::Size, cargo, child, paths, signals::Signals};

/// The number of runs of each target.
const SHORT_RUNS: u64 = 30_000;
const LONG_RUNS: u64 = 10_000_000;

/// The longest input in bytes.
const INPUT_LENGTH_LIMIT: u32 = 4_096;

/// The targets that every run builds.
const TARGETS: [&str; 6] = ["html", "markdown", "json", "front_matter", "identifiers", "search"];

/// The targets of long runs only: they need the whole server, whose build with coverage takes ten
/// times as long as the runs. Unit tests of the server check mutated inputs of all but the last.
const SERVER_TARGETS: [&str; 5] = ["query", "schema", "body", "fields", "signatures"];

/// Compiler flags that emit the branch coverage for libFuzzer.
const COVERAGE_FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=4";

/// Returns the directory of inputs that made a target fail.
pub(crate) fn artifacts() -> PathBuf {
    paths::directory("fuzz").join("artifacts")
}

/// Builds and runs all targets. Returns true if none failed.
pub(crate) fn run(
    size: Size,
    signals: &Signals,
    mut figure: impl FnMut(String, String, String),
) -> Result<bool> {
    let Some(programs) = build(size, signals)? else { return Ok(false) };
    let (runs, server_targets) = match size {
        Size::Short => (SHORT_RUNS, [].as_slice()),
        Size::Long => (LONG_RUNS, SERVER_TARGETS.as_slice()),
    };
    fs::create_dir_all(artifacts()).context("cannot create the directory for inputs")?;
    let mut all_hold = true;
    for &target in TARGETS.iter().chain(server_targets) {
        let corpus = paths::directory("fuzz").join("corpus").join(target);
        fs::create_dir_all(&corpus).context("cannot create the directory for inputs")?;
        let seed = std::process::id();
        let log = paths::directory("fuzz").join(format!("{target}.log"));
        let file =
            fs::File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = Command::new(programs.join(target));
        command.arg(format!("-runs={runs}")).arg(format!("-seed={seed}"));
        command
            .arg(format!("-max_len={INPUT_LENGTH_LIMIT}"))
            .args(["-timeout=20", "-rss_limit_mb=1024"]);
        command.arg(format!("-artifact_prefix={}/{target}-", artifacts().display())).arg(&corpus);
        command.stdout(Stdio::null()).stderr(file);
        eprint!("{target} … ");
        std::io::stderr().flush().context("cannot write to standard error")?;
        let holds = child::run(&mut command, signals)?.success();
        if signals.received().is_some() {
            return Ok(false);
        }
        let found =
            if holds { "0 faults".to_owned() } else { format!("A FAULT: {}", log.display()) };
        let found = format!("{found} in {runs} runs, seed {seed}");
        eprintln!("{found}");
        figure(target.to_owned(), found, "0".to_owned());
        all_hold &= holds;
    }
    Ok(all_hold)
}

/// Returns the directory of the programs, or `None` if the build failed.
fn build(size: Size, signals: &Signals) -> Result<Option<PathBuf>> {
    if Command::new("c++").arg("--version").output().is_err() {
        bail!("libFuzzer needs a C++ compiler: apt-get install g++");
    }
    // With an explicit target triple, build scripts and macros are not instrumented.
    let triple = host_triple()?;
    let directory = cargo::target_directory().join("fuzz");
    let mut command = cargo::command("build");
    command.args(["--locked", "--manifest-path", "fuzz/Cargo.toml", "--target", &triple]);
    let profile = match size {
        Size::Short => "short",
        Size::Long => {
            command.args(["--features", "server"]);
            "release"
        }
    };
    command.args(["--profile", profile]);
    command.arg("--target-dir").arg(&directory).env("RUSTFLAGS", COVERAGE_FLAGS);
    let status = child::run(&mut command, signals)?;
    Ok(status.success().then(|| directory.join(triple).join(profile)))
}

/// Returns the target triple of this machine.
fn host_triple() -> Result<String> {
    let told = child::output(Command::new("rustc").arg("-vV"))?;
    let line = told.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("rustc -vV prints no host")?.to_owned())
}
