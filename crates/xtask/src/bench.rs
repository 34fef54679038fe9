//! `cargo xtask bench`: Galley's performance beside yardsticks, measured within the same minutes.
//!
//! Builds the program with its release settings (profile `dist`) and [`galley-bench`], which
//! measures it. Then starts the measurement, with a throw-away PostgreSQL if one is available.
//!
//! [`galley-bench`]: ../../galley_bench/index.html

use std::{
    ffi::OsString,
    process::{Command, ExitCode},
};

use anyhow::{Result, bail};

use crate::{
    cargo, child,
    postgres::{self, Place, Provision},
    programs,
    signals::Signals,
    step::Steps,
    test,
};

/// PostgreSQL's cache: a machine of 4 GB has as much by the usual rule, a quarter of the memory.
const SHARED_BUFFERS: &str = "shared_buffers=1GB";

/// Builds both programs, measures, and returns the exit code of the measurement.
pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    for (program, package) in [("wrk", "wrk"), ("taskset", "util-linux")] {
        if Command::new(program).arg("-v").output().is_err() {
            bail!("{program} is needed to measure: apt-get install {package}");
        }
    }
    let signals = Signals::listen()?;
    let mut steps = Steps::default();
    for (package, profile) in [("galley", "dist"), ("galley-bench", "release")] {
        let mut build = cargo::command("build");
        build.args(["--locked", "--profile", profile, "--package", package]);
        let status =
            steps.run(&format!("Build of {package}"), || child::run(&mut build, &signals))?;
        if !status.success() {
            return Ok(child::exit_code(status));
        }
    }
    let target = cargo::target_directory();
    let mut measure = Command::new(target.join("release/galley-bench"));
    measure.arg("run").arg("--galley").arg(target.join("dist/galley"));
    measure.arg("--stores").arg(target.join("bench")).args(arguments);
    let provision = postgres::provide(&[SHARED_BUFFERS], Place::Disk);
    if let Provision::Missing(reason) = &provision {
        steps.skip("PostgreSQL", &format!("{reason:#}"));
    }
    if let Some(url) = provision.url() {
        measure.args(["--postgres", url]);
    }
    let wants = |section: &str| arguments.is_empty() || arguments.iter().any(|one| one == section);
    if let Some(nginx) = programs::PROGRAMS.iter().find(|one| one.name == "nginx")
        && wants("assets")
    {
        match nginx.provide() {
            Ok(path) => _ = measure.env(nginx.variable, path),
            Err(reason) => steps.skip("nginx", &format!("{reason:#}")),
        }
    }
    if wants("console") {
        for (name, variable, path) in test::provide_browser(&mut steps) {
            match path {
                Ok(path) => _ = measure.env(variable, path),
                Err(reason) => steps.skip(name, &format!("{reason:#}")),
            }
        }
    }
    let status = steps.run("Measuring", || child::run(&mut measure, &signals))?;
    Ok(child::exit_code(status))
}
