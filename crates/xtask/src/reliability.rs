//! `cargo xtask reliability`: the reliability suite, with a table of its results.
//!
//! The suite consists of ordinary tests that do more here. `GALLEY_RELIABILITY` sets their extent,
//! and each figure that they report becomes a row of the table. A short run is for every change, a
//! long one for a release.

use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, PipeReader, Write},
    path::Path,
    process::{Command, ExitCode},
    thread,
    time::Instant,
};

use anyhow::{Context, Result, bail};

use crate::{
    arguments::{ReliabilityArguments, Size, TestArguments},
    cargo::{self, TestProgram},
    child, fuzz,
    postgres::Place,
    signals::Signals,
    step::Steps,
    test::{self, Variables},
};

/// The number of lines of a failed part's output that are shown.
const SHOWN_LINES: usize = 80;

/// A part of the suite.
struct SuitePart {
    name: &'static str,
    /// A description of the tested condition.
    says: &'static str,
    /// The folders of crates, each with the names, or parts of names, of its tests.
    tests: &'static [(&'static str, &'static [&'static str])],
    /// True if the tests do more in a short run than in `cargo xtask test`. A short run leaves out
    /// the other parts.
    extends_short_run: bool,
}

const PARTS: &[SuitePart] = &[
    SuitePart {
        name: "kills",
        says: "repeated kills under load",
        tests: &[(
            "galley",
            &[
                "kills::",
                "schedules_under_kills::",
                "assets_under_kills::",
                "takeover::",
                "invites::",
                "an_interrupted_restore_continues",
            ],
        )],
        extends_short_run: true,
    },
    SuitePart {
        name: "files",
        says: "other programs that open, change or remove the files of SQLite",
        tests: &[("galley", &["old_sqlite::"]), ("storage", &["sqlite_files::"])],
        extends_short_run: true,
    },
    SuitePart {
        name: "power-loss",
        says: "all states that a power loss may leave",
        tests: &[("galley", &["power_loss::"])],
        extends_short_run: true,
    },
    SuitePart {
        name: "disk",
        says: "full, failing and slow disks",
        tests: &[("galley", &["full_disk::", "failing_disk::"])],
        extends_short_run: false,
    },
    SuitePart {
        name: "database",
        says: "PostgreSQL restarted, failed over, cut off; servers replaced and killed",
        tests: &[("galley", &["outages::", "nodes::", "replicas::"])],
        extends_short_run: false,
    },
    SuitePart {
        name: "upgrade",
        says: "stores of every released schema",
        tests: &[("galley", &["upgrade::"])],
        extends_short_run: true,
    },
    SuitePart {
        name: "deliveries",
        says: "deliveries under a simulated clock, and by several concurrent programs",
        tests: &[("storage", &["simulation::", "deliveries::"])],
        extends_short_run: true,
    },
    SuitePart {
        name: "load",
        says: "overload, and thousands of idle clients",
        tests: &[("galley", &["load::", "asset_uploads::"])],
        extends_short_run: true,
    },
    SuitePart {
        name: "attack",
        says: "every role against every route, and malformed or malicious input",
        tests: &[
            (
                "server",
                &[
                    "matrix::",
                    "timing::",
                    "escalation::",
                    "addresses::",
                    "request_pipeline::",
                    "request_smuggling::",
                    "bad_input::",
                    "bounds::",
                ],
            ),
            ("delivery", &["sending::"]),
            (
                "galley",
                &[
                    "disclosure::",
                    "logs::",
                    "nginx::",
                    "first_start::",
                    "listen::",
                    "hostile_responses",
                    "hostile_schemas::",
                    "damaged_files::",
                ],
            ),
        ],
        extends_short_run: false,
    },
    SuitePart {
        name: "console",
        says: "autosaves under kills, network cuts, crashes of the page, and second tabs",
        tests: &[("galley", &["console::saved_words"])],
        extends_short_run: false,
    },
    SuitePart {
        name: "clients",
        says: "creates of the client under kills, and builds of a blog of a thousand pieces",
        tests: &[(
            "galley",
            &["clients::creates_of_the_client", "clients::a_second_build_of_the_blog"],
        )],
        extends_short_run: true,
    },
    SuitePart {
        name: "contract",
        says: "requests generated from the OpenAPI document",
        tests: &[("galley", &["contract::"])],
        extends_short_run: true,
    },
    SuitePart {
        name: "model",
        says: "random requests compared with a model",
        tests: &[("server", &["model::"])],
        extends_short_run: true,
    },
];

/// The part that is not made of tests: the fuzz targets.
const FUZZ: &str = "fuzz";

/// A row of the table.
struct Figure {
    part: &'static str,
    what: String,
    found: String,
    required: String,
}

/// Runs the requested parts, and returns the exit code.
pub(crate) fn run(arguments: &ReliabilityArguments) -> Result<ExitCode> {
    let (parts, with_fuzz) = select_parts(arguments)?;
    let signals = Signals::listen()?;
    let mut steps = Steps::default();
    let (profile, place) = match arguments.size {
        Size::Short => ("ci", Place::Memory),
        Size::Long => ("release", Place::Disk),
    };
    let mut programs = HashMap::new();
    if !parts.is_empty() {
        let built = steps
            .run("Build of the reliability suite", || cargo::test_programs(profile, &signals))?;
        match built {
            Ok(built) => programs = built,
            Err(status) => return Ok(child::exit_code(status)),
        }
    }
    let needed =
        TestArguments { no_postgres: false, require_postgres: true, cargo_arguments: Vec::new() };
    // The fuzz targets need neither PostgreSQL nor other programs.
    let provided =
        if parts.is_empty() { None } else { Some(test::provide(&needed, place, &mut steps)?) };
    let (variables, provision) = provided.unzip();
    let variables = variables.unwrap_or_default();
    let logs = cargo::target_directory().join("reliability");
    fs::create_dir_all(&logs).with_context(|| format!("cannot create {}", logs.display()))?;
    let (mut figures, mut failed) = (Vec::new(), Vec::new());
    for (place, part) in parts.iter().enumerate() {
        let title = format!("{} of {}: {}, {}", place + 1, parts.len(), part.name, part.says);
        let log = logs.join(format!("{}.log", part.name));
        let run =
            || run_part(part, &log, arguments.size, &programs, &variables, &signals, &mut figures);
        let holds = steps.run(&title, run)?;
        if !holds {
            failed.push((part.name, log));
        }
        if signals.received().is_some() {
            break;
        }
    }
    drop(provision);
    if with_fuzz && signals.received().is_none() {
        let holds = steps.run("fuzz, inputs generated by a fuzzer", || {
            fuzz::run(arguments.size, &signals, |what, found, required| {
                figures.push(Figure { part: FUZZ, what, found, required });
            })
        })?;
        if !holds {
            failed.push((FUZZ, fuzz::artifacts()));
        }
    }
    steps.summarize();
    show(&figures, &logs.join("figures.md"))?;
    for (part, log) in &failed {
        // The end of the output is beside the end of the run, as some logs of CI keep no more.
        let output = fs::read(log).unwrap_or_default();
        let end = child::last_lines(&String::from_utf8_lossy(&output), SHOWN_LINES);
        eprintln!("{end}\nFAILED: {part}; its output is in {}", log.display());
    }
    let is_whole = failed.is_empty() && signals.received().is_none();
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the requested parts, and true if fuzzing is one of them.
fn select_parts(arguments: &ReliabilityArguments) -> Result<(Vec<&'static SuitePart>, bool)> {
    let known = || PARTS.iter().map(|part| part.name).chain([FUZZ]);
    if let Some(other) = arguments.parts.iter().find(|name| !known().any(|one| one == *name)) {
        let known = known().collect::<Vec<_>>().join(", ");
        bail!("the part {other:?} does not exist: the parts are {known}");
    }
    let is_wanted =
        |name: &str| arguments.parts.is_empty() || arguments.parts.iter().any(|one| one == name);
    // Parts requested by name run in any case.
    let is_worth_it = |part: &&SuitePart| match arguments.size {
        Size::Long => true,
        Size::Short => part.extends_short_run || !arguments.parts.is_empty(),
    };
    let parts = PARTS.iter().filter(|part| is_wanted(part.name)).filter(is_worth_it);
    Ok((parts.collect(), is_wanted(FUZZ)))
}

/// Runs the tests of a part. Returns true if they pass.
fn run_part(
    part: &SuitePart,
    log: &Path,
    size: Size,
    programs: &HashMap<String, TestProgram>,
    variables: &Variables,
    signals: &Signals,
    figures: &mut Vec<Figure>,
) -> Result<bool> {
    let file = fs::File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut all_hold = true;
    for (folder, tests) in part.tests {
        let program = programs.get(*folder);
        let program = program.with_context(|| format!("crates/{folder} has no tests"))?;
        reject_unknown_filters(tests, program)?;
        let mut command = test_command(tests, program, size, variables);
        let file = file.try_clone().context("cannot duplicate the handle of the log")?;
        all_hold &= watch(&mut command, part.name, file, signals, figures)?;
        if signals.received().is_some() {
            break;
        }
    }
    Ok(all_hold)
}

/// Rejects a filter that no test matches, as its tests would be omitted without notice.
fn reject_unknown_filters(tests: &[&str], program: &TestProgram) -> Result<()> {
    let output = program.command().args(["--list", "--format", "terse"]).output();
    let listed = output.context("cannot list the tests")?.stdout;
    let listed = String::from_utf8_lossy(&listed);
    match tests.iter().find(|filter| !listed.contains(**filter)) {
        Some(filter) => bail!("no test matches {filter:?}"),
        None => Ok(()),
    }
}

/// Returns a command for tests of a crate. In a long run each has the whole machine, as it measures
/// latencies.
fn test_command(
    tests: &[&str],
    program: &TestProgram,
    size: Size,
    variables: &Variables,
) -> Command {
    let mut command = program.command();
    command.arg("--quiet").args(tests);
    let threads = match size {
        Size::Short => test::processors(),
        Size::Long => 1,
    };
    command.args(["--include-ignored", "--nocapture", "--test-threads"]).arg(threads.to_string());
    command.env("GALLEY_RELIABILITY", size.name()).env("RUST_BACKTRACE", "0");
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// Runs tests of a part, logs their output, and shows their figures at once. Returns true if they
/// pass.
fn watch(
    command: &mut Command,
    part: &'static str,
    log: fs::File,
    signals: &Signals,
    figures: &mut Vec<Figure>,
) -> Result<bool> {
    let (reader, writer) = std::io::pipe().context("cannot create a pipe")?;
    command.stdout(writer.try_clone().context("cannot create a pipe")?).stderr(writer);
    let reads = thread::spawn(move || read(part, reader, log));
    let status = child::run(command, signals);
    // The pipe ends when its last writer is closed, and the command holds two.
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let (found, skipped) = reads.join().expect("the reader does not panic");
    figures.extend(found);
    let holds = status?.success();
    for one in &skipped {
        eprintln!("not tested: {one}");
    }
    Ok(holds && skipped.is_empty())
}

/// Copies lines to the log. Returns the figures and the skipped tests.
fn read(part: &'static str, from: PipeReader, mut log: fs::File) -> (Vec<Figure>, Vec<String>) {
    let (mut figures, mut skipped) = (Vec::new(), Vec::new());
    let started = Instant::now();
    for line in BufReader::new(from).lines().map_while(std::result::Result::ok) {
        // A failed write is ignored, as the gap in the log shows it.
        let _ = writeln!(log, "{line}");
        if let Some(reason) = line.strip_prefix("SKIPPED: ") {
            skipped.push(reason.to_owned());
        }
        if let Some(figure) = line.strip_prefix("FIGURE\t") {
            let mut columns = figure.split('\t').map(str::to_owned);
            let mut next = || columns.next().unwrap_or_default();
            let figure = Figure { part, what: next(), found: next(), required: next() };
            let seconds = started.elapsed().as_secs();
            eprintln!("{seconds:>6} s  {}: {} ({})", figure.what, figure.found, figure.required);
            figures.push(figure);
        }
    }
    (figures, skipped)
}

/// Prints the table, and writes it as Markdown to a file.
fn show(figures: &[Figure], file: &Path) -> Result<()> {
    let mut table = String::from("| part | condition | found | required |\n|---|---|---|---|\n");
    for Figure { part, what, found, required } in figures {
        table.push_str(&format!("| {part} | {what} | {found} | {required} |\n"));
    }
    println!("\n{table}");
    fs::write(file, table).with_context(|| format!("cannot write {}", file.display()))
}
