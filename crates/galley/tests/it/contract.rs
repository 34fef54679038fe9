//! Contract tests: Schemathesis generates requests of all kinds from the OpenAPI document, and each
//! response must match it.
//!
//! `tests/contract` has additional rules and data for the generator that the document can't
//! express.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use galley_testing::reliability_suite::{report_figure, size};
use galley_testing::{TestStore, on_both_engines, report_skipped};
use reqwest::Method;

use crate::program::{Program, data_dir, galley, init_token};

/// One run of the generator: its phases, the number of requests for each operation, the seconds for
/// which it repeats, and the operations.
struct GeneratorRun {
    phases: &'static str,
    examples: u32,
    seconds: Option<u32>,
    filter: &'static [&'static str],
}

const fn go(phases: &'static str, examples: u32, seconds: Option<u32>) -> GeneratorRun {
    GeneratorRun { phases, examples, seconds, filter: &[] }
}

const ALONE: &str = "examples,coverage,fuzzing";

/// Single requests without those that cover every constraint of the document, which take minutes.
const SAMPLED: &str = "examples,fuzzing";

/// The requests that cover every constraint, for about half of them.
const fn coverage(filter: &'static [&'static str]) -> GeneratorRun {
    GeneratorRun { phases: "coverage", examples: 1, seconds: None, filter }
}

const PIECES: &[&str] = &["--include-path", "/content-pieces"];
const ALL_OTHERS: &[&str] = &["--exclude-path", "/content-pieces"];

/// Sequences of requests that use the resources of earlier ones.
const LINKED: &str = "stateful";

#[on_both_engines]
async fn generated_requests_get_responses_that_match_the_openapi_document(store: TestStore) {
    let Some(schemathesis) = std::env::var_os("GALLEY_TEST_SCHEMATHESIS").map(PathBuf::from) else {
        return report_skipped(
            "Schemathesis: GALLEY_TEST_SCHEMATHESIS is not set (cargo xtask test sets it)",
        );
    };
    let program = serve(&store);
    let goes = size(
        vec![go(SAMPLED, 1, None)],
        // Constraints are checked before the database is used, so each is covered on one engine.
        vec![
            coverage(if store.engine() == "SQLite" { PIECES } else { ALL_OTHERS }),
            go(SAMPLED, 5, None),
            go(LINKED, 10, Some(20)),
        ],
        vec![go(ALONE, 1_700, None), go(LINKED, 100, Some(300))],
    );
    let seed = seed();
    let mut cases = 0;
    for go in &goes {
        cases += run(&schemathesis, &program, &data_dir(&store), go, seed);
    }
    // The requests have revoked neither the token nor any other access.
    let profile = program.request(Method::GET, "/profile").send().await.unwrap();
    assert!(profile.status().is_success(), "{profile:?}");
    let found = format!("{cases} requests, seed {seed}: 0 answered otherwise, 0 by 5xx");
    let condition = format!("{}: requests generated from the OpenAPI document", store.engine());
    report_figure(&condition, found, "0");
}

/// Starts a server that writes mails to files and allows any number of invites.
fn serve(store: &TestStore) -> Program {
    let mut command = galley(store);
    command.env("GALLEY_INIT_TOKEN", init_token()).env("GALLEY_INVITES_PER_HOUR", "0");
    // With this name, no request mistakes the machine's own addresses for the service's.
    command.env("GALLEY_PUBLIC_URL", "http://galley.invalid").env("GALLEY_LOG", "error");
    command.args(["serve", "--log", "error,galley=info", "--listen", "127.0.0.1:0"]);
    Program::start(command)
}

fn seed() -> u32 {
    let given = std::env::var("GALLEY_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(std::process::id)
}

/// Returns the number of requests. Panics with the report of failures.
fn run(schemathesis: &Path, program: &Program, data: &Path, go: &GeneratorRun, seed: u32) -> u64 {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contract");
    let mut command = Command::new(schemathesis);
    command.arg("--config-file").arg(folder.join("schemathesis.toml")).arg("run");
    command.arg(format!("{}/openapi.json", program.url)).args(["--checks", "all", "--no-color"]);
    command.args(["--output-truncate", "false", "--output-sanitize", "false"]);
    command.args(["--phases", go.phases, "--max-examples", &go.examples.to_string()]);
    command.args(["--seed", &seed.to_string()]).args(go.filter);
    if let Some(seconds) = go.seconds {
        command.args(["--max-time", &seconds.to_string()]);
    }
    command.env("GALLEY_URL", &program.url).env("GALLEY_TOKEN", &program.token);
    command.env("GALLEY_OUTBOX", data.join("outbox")).env("PYTHONPATH", &folder);
    command.env("SCHEMATHESIS_HOOKS", "hooks").env("PYTHONHASHSEED", "0");
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("NO_PROXY", "*");
    let output = command.current_dir(data).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "seed {seed}, {}:\n{said}\n{complained}", go.phases);
    let count = |line: &str| line.trim().split_once(" generated")?.0.parse().ok();
    said.lines().find_map(count).unwrap_or_else(|| panic!("{said}"))
}
