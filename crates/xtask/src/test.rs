//! `cargo xtask test`: the tests of the whole workspace, on SQLite and on PostgreSQL.
//!
//! The tests skip themselves if the environment does not name PostgreSQL, the mail server or
//! another program that they need. This command provides all of them, and reports at the end the
//! skipped parts with reasons.

use std::{
    env,
    ffi::{OsStr, OsString},
    num::NonZeroUsize,
    path::PathBuf,
    process::{Command, ExitCode, ExitStatus},
    thread,
};

use anyhow::{Result, anyhow, bail};

use crate::{
    arguments::TestArguments,
    cargo, child,
    node::PACKAGES,
    postgres::{self, Place, Provision},
    programs::PROGRAMS,
    python::ENVIRONMENTS,
    signals::Signals,
    step::Steps,
};

/// Builds and runs the tests, and returns their exit code.
pub(crate) fn run(arguments: &TestArguments) -> Result<ExitCode> {
    let signals = Signals::listen()?;
    let mut steps = Steps::default();
    let status = run_steps(arguments, &signals, &mut steps);
    steps.summarize();
    Ok(child::exit_code(status?))
}

/// The variable with the number of tests that run at once. It's the test harness's own.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// Builds first, as a compiler error needs no server.
fn run_steps(
    arguments: &TestArguments,
    signals: &Signals,
    steps: &mut Steps,
) -> Result<ExitStatus> {
    if let Some(mut build) = build_command(&arguments.cargo_arguments) {
        let status = steps.run("Build of the tests", || child::run(&mut build, signals))?;
        if !status.success() {
            return Ok(status);
        }
    }
    let mut tests = test_command(&arguments.cargo_arguments);
    // Panics name their line. Backtraces of asynchronous tests hide the messages in long logs.
    if env::var_os("RUST_BACKTRACE").is_none_or(|value| value == "1") {
        tests.env("RUST_BACKTRACE", "0");
    }
    let (variables, provision) = provide(arguments, Place::Memory, steps)?;
    for (name, value) in variables {
        match value {
            Some(value) => tests.env(name, value),
            None => tests.env_remove(name),
        };
    }
    if env::var_os(TEST_THREADS).is_none() {
        // Some tests wait for timeouts and for browsers. One more thread than processors uses that
        // time: the server's tests take four fifths of the time.
        tests.env(TEST_THREADS, (processors() + 1).to_string());
    }
    let status = steps.run("Tests", || child::run(&mut tests, signals))?;
    if matches!(provision, Provision::Started(_)) {
        steps.run("PostgreSQL: stop", || drop(provision));
    }
    Ok(status)
}

/// Returns the number of processors that this program may use.
pub(crate) fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Environment variables to set, or to remove.
pub(crate) type Variables = Vec<(&'static str, Option<OsString>)>;

/// Starts the services that the tests need, and returns the variables that name them. PostgreSQL
/// runs until the returned [`Provision`] is dropped.
pub(crate) fn provide(
    arguments: &TestArguments,
    place: Place,
    steps: &mut Steps,
) -> Result<(Variables, Provision)> {
    let provision = provide_postgres(arguments, place, steps)?;
    let mut variables = provision.variables();
    let mut add = |name: &str, variable, provide: &dyn Fn() -> Result<PathBuf>| match steps
        .run(&format!("{name}: set up"), provide)
    {
        Ok(path) => variables.push((variable, Some(path.into()))),
        Err(reason) => steps.skip(&format!("Tests with {name}"), &format!("{reason:#}")),
    };
    for environment in &ENVIRONMENTS {
        add(environment.name, environment.variable, &|| environment.provide());
    }
    for packages in &PACKAGES {
        add(packages.name, packages.variable, &|| packages.provide());
    }
    for program in &PROGRAMS {
        add(program.name, program.variable, &|| program.provide());
    }
    Ok((variables, provision))
}

/// Sets up the browser and the scripts of the console. Returns each with its variable.
pub(crate) fn provide_browser(
    steps: &mut Steps,
) -> Vec<(&'static str, &'static str, Result<PathBuf>)> {
    let packages = PACKAGES.iter().filter(|one| one.variable == "GALLEY_TEST_BROWSER");
    let programs = PROGRAMS.iter().filter(|one| one.variable == "GALLEY_TEST_CHROMIUM");
    let mut provided = Vec::new();
    for one in packages {
        let path = steps.run(&format!("{}: set up", one.name), || one.provide());
        provided.push((one.name, one.variable, path));
    }
    for one in programs {
        let path = steps.run(&format!("{}: set up", one.name), || one.provide());
        provided.push((one.name, one.variable, path));
    }
    provided
}

fn provide_postgres(
    arguments: &TestArguments,
    place: Place,
    steps: &mut Steps,
) -> Result<Provision> {
    const PART: &str = "PostgreSQL tests";
    if arguments.no_postgres {
        let reason = "--no-postgres was given";
        steps.skip(PART, reason);
        return Ok(Provision::Missing(anyhow!(reason)));
    }
    let provision = steps.run("PostgreSQL: start", || postgres::provide(&[], place));
    if let Provision::Missing(reason) = &provision {
        if arguments.require_postgres {
            bail!("--require-postgres was given, but PostgreSQL is not available: {reason:#}");
        }
        steps.skip(PART, &format!("{reason:#}"));
    }
    Ok(provision)
}

/// Returns the command that only builds, or `None` if the arguments already control the build.
fn build_command(cargo_arguments: &[OsString]) -> Option<Command> {
    let for_cargo = cargo_arguments.split(|argument| argument == "--").next().unwrap_or_default();
    // Cargo rejects a repeated `--no-run`. It also rejects `--no-run` with `--doc`, whose tests are
    // built while they run.
    if for_cargo.iter().any(|argument| argument == "--no-run" || argument == "--doc") {
        return None;
    }
    let mut command = test_command(for_cargo);
    command.arg("--no-run");
    Some(command)
}

fn test_command(cargo_arguments: &[OsString]) -> Command {
    let mut command = cargo::command("test");
    command.args(["--profile", "ci"]);
    if !names_a_package(cargo_arguments) {
        command.arg("--workspace");
    }
    command.args(cargo_arguments);
    command
}

/// Returns true if the arguments select packages, which `--workspace` would override.
fn names_a_package(cargo_arguments: &[OsString]) -> bool {
    let for_cargo = cargo_arguments.iter().take_while(|argument| *argument != "--");
    for_cargo.filter_map(|argument| OsStr::to_str(argument)).any(|argument| {
        argument.starts_with("-p") || argument == "--package" || argument.starts_with("--package=")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments_of(command: &Command) -> Vec<String> {
        command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect()
    }

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn without_arguments_the_whole_workspace_is_tested() {
        let expected = ["test", "--profile", "ci", "--workspace"];
        assert_eq!(arguments_of(&test_command(&[])), expected);
    }

    #[test]
    fn a_chosen_package_replaces_the_workspace() {
        for line in ["-p galley-domain", "--package galley-domain", "--package=galley-domain"] {
            assert!(!arguments_of(&test_command(&words(line))).contains(&"--workspace".into()));
        }
        assert!(arguments_of(&test_command(&words("-- -p"))).contains(&"--workspace".into()));
    }

    #[test]
    fn doc_tests_and_no_run_have_no_build_step() {
        assert!(build_command(&words("--doc")).is_none());
        assert!(build_command(&words("--package galley-domain --no-run")).is_none());
    }

    #[test]
    fn test_arguments_are_not_passed_to_the_build() {
        let expected = ["test", "--profile", "ci", "--workspace", "slug", "--no-run"];
        let build = build_command(&words("slug -- --nocapture"));
        assert_eq!(build.as_ref().map(arguments_of).unwrap_or_default(), expected);
    }
}
