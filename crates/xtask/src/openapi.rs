//! `cargo xtask openapi`: writes `openapi.json` from the code, by the test that compares the two.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::{cargo, child, signals::Signals};

const TEST: &str = "openapi::the_committed_file_matches_the_code";

/// Writes the OpenAPI document to its file.
pub(crate) fn write() -> Result<ExitCode> {
    let signals = Signals::listen()?;
    let programs = match cargo::test_programs("ci", &signals)? {
        Ok(programs) => programs,
        Err(status) => return Ok(child::exit_code(status)),
    };
    let mut test = programs.get("server").context("crates/server has no tests")?.command();
    test.args(["--quiet", "--exact", TEST]).env("GALLEY_WRITE_OPENAPI", "1");
    Ok(child::exit_code(child::run(&mut test, &signals)?))
}
