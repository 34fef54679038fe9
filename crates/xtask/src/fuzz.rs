//! Programs that are fed with what libFuzzer makes up: the `fuzz` part of the reliability suite.
//!
//! They are built with the stable toolchain: what a fuzzer needs to know of a program, which of its branches were taken, any
//! compiler can be asked for. They look for panics, wrong results and time, not for wrong memory: there is no `unsafe` in
//! the project's own code.

use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{arguments::Size, cargo, child, paths, signals::Signals};

/// How often each program is run.
const SHORT_RUNS: u64 = 100_000;
const LONG_RUNS: u64 = 10_000_000;

/// The most bytes of an input.
const LENGTH_MAX: u32 = 4_096;

/// The programs.
const TARGETS: [&str; 9] = [
    "html",
    "markdown",
    "json",
    "front_matter",
    "identifiers",
    "query",
    "body",
    "fields",
    "signatures",
];

/// Has the compiler count which branches are taken, for libFuzzer to see.
const COUNTED: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=4";

/// Where inputs are kept that break something.
pub(crate) fn artifacts() -> PathBuf {
    paths::directory("fuzz").join("artifacts")
}

/// Builds and runs all of them; says whether all held.
pub(crate) fn run(
    size: Size,
    signals: &Signals,
    mut figure: impl FnMut(String, String, String),
) -> Result<bool> {
    let Some(programs) = build(size, signals)? else { return Ok(false) };
    let runs = match size {
        Size::Short => SHORT_RUNS,
        Size::Long => LONG_RUNS,
    };
    fs::create_dir_all(artifacts()).context("no place for inputs can be made")?;
    let mut all_hold = true;
    for target in TARGETS {
        let corpus = paths::directory("fuzz").join("corpus").join(target);
        fs::create_dir_all(&corpus).context("no place for inputs can be made")?;
        let seed = std::process::id();
        let log = paths::directory("fuzz").join(format!("{target}.log"));
        let file =
            fs::File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = Command::new(programs.join(target));
        command.arg(format!("-runs={runs}")).arg(format!("-seed={seed}"));
        command.arg(format!("-max_len={LENGTH_MAX}")).args(["-timeout=20", "-rss_limit_mb=1024"]);
        command.arg(format!("-artifact_prefix={}/{target}-", artifacts().display())).arg(&corpus);
        command.stdout(Stdio::null()).stderr(file);
        eprint!("{target} … ");
        std::io::stderr().flush().context("nobody listens")?;
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

/// Returns where the programs are, unless they can't be built.
fn build(size: Size, signals: &Signals) -> Result<Option<PathBuf>> {
    if Command::new("c++").arg("--version").output().is_err() {
        bail!("libFuzzer needs a C++ compiler: apt-get install g++");
    }
    // With the name of a target, build scripts and macros are not counted.
    let triple = host()?;
    let directory = cargo::target_directory().join("fuzz");
    let profile = match size {
        Size::Short => "short",
        Size::Long => "release",
    };
    let mut command = cargo::command("build");
    command.args([
        "--locked",
        "--profile",
        profile,
        "--manifest-path",
        "fuzz/Cargo.toml",
        "--target",
        &triple,
    ]);
    command.arg("--target-dir").arg(&directory).env("RUSTFLAGS", COUNTED);
    let status = child::run(&mut command, signals)?;
    Ok(status.success().then(|| directory.join(triple).join(profile)))
}

/// The machine that this is compiled on and for.
fn host() -> Result<String> {
    let told = child::output(Command::new("rustc").arg("-vV"))?;
    let line = told.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("rustc does not say what it compiles for")?.to_owned())
}
