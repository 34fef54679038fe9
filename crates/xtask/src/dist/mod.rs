//! `cargo xtask dist`: the files of a release, in `target/distribution`.
//!
//! The program has no paths of this machine, and all times are that of the last commit, so that two
//! builds of a commit are equal.

mod archive;
mod image;
mod package;
mod program;
mod release;
mod supply_chain;

use std::{
    fs,
    process::{Command, ExitCode},
};

use anyhow::Result;

use self::release::Release;
use crate::{child, signals::Signals, step::Steps};

/// Builds the files of a release.
pub(crate) fn run(no_build: bool) -> Result<ExitCode> {
    let signals = Signals::listen()?;
    let mut steps = Steps::default();
    let release = Release::new()?;
    if !no_build {
        let built = steps.run("Program", || program::build(&release, &signals))?;
        if !built.success() {
            return Ok(child::exit_code(built));
        }
    }
    program::stage(&release)?;
    steps.run("Licences and bill of materials", || supply_chain::write(&release))?;
    steps.run("Archive", || archive::write(&release))?;
    steps.run("Debian package", || package::write(&release))?;
    steps.run("Container image", || image::write(&release))?;
    let sums = child::output(
        Command::new("sh")
            .args(["-c", "exec sha256sum galley*"])
            .env("LC_ALL", "C")
            .current_dir(&release.out),
    )?;
    fs::write(release.out.join("SHA256SUMS"), &sums)?;
    steps.summarize();
    for name in sums.lines().filter_map(|line| line.split_whitespace().nth(1)) {
        let size = fs::metadata(release.out.join(name))?.len();
        println!("{:>8.1} MB  {}", mega(size), release.out.join(name).display());
    }
    println!("{:>8.1} MB  the program", mega(fs::metadata(release.stage.join("galley"))?.len()));
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::cast_precision_loss, reason = "sizes are shown with one digit")]
fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
