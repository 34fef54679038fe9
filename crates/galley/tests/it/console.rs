//! The web console in a real Chromium.
//!
//! The story, the keyboard and the autosaves run on both engines. The other scripts cover pages,
//! which reach the database by the API only, and run on SQLite.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use galley_testing::reliability_suite::{report_figure, size};
use galley_testing::{TestStore, on_both_engines, run_on_sqlite};
use serde_json::Value;

use crate::program::{Program, data_dir, free_port, galley, init_token, run, stdout};

/// Returns the folder of the scripts, or `None` where a browser or the console is missing.
async fn scripts(program: &Program) -> Option<PathBuf> {
    let names = ["GALLEY_TEST_BROWSER", "GALLEY_TEST_CHROMIUM"];
    let [folder, _] = names.map(|name| {
        let value = std::env::var_os(name);
        if value.is_none() {
            eprintln!("SKIPPED: {name} is not set");
        }
        value
    });
    std::env::var_os("GALLEY_TEST_CHROMIUM")?;
    let page = reqwest::get(&program.url).await.unwrap().text().await.unwrap();
    if !page.contains("id=\"app\"") {
        eprintln!("SKIPPED: the program was built without GALLEY_CONSOLE=build");
        return None;
    }
    folder.map(PathBuf::from)
}

/// Returns the command of a script, with links with which the owner signs in.
async fn script(
    store: &TestStore,
    program: &Program,
    script: &str,
    links: usize,
) -> Option<Command> {
    let folder = scripts(program).await?;
    let print_link = || {
        let mut command = galley(store);
        command.args(["sign-in", "--email", "owner@localhost", "--public-url", &program.url]);
        let printed = run(&mut command);
        assert!(printed.status.success(), "{printed:?}");
        stdout(&printed).trim().to_owned()
    };
    let links: Vec<_> = (0..links).map(|_| print_link()).collect();
    let mut node = Command::new("node");
    node.arg(script).current_dir(folder);
    node.env("GALLEY_URL", &program.url).env("GALLEY_TOKEN", init_token());
    node.env("GALLEY_OUTBOX", data_dir(store).join("outbox"));
    node.env("GALLEY_LINKS", serde_json::to_string(&links).unwrap());
    Some(node)
}

/// Runs a script against a program.
async fn run_script(store: &TestStore, program: &Program, name: &str, links: usize) {
    let Some(mut node) = script(store, program, name, links).await else { return };
    let output = run(&mut node);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{errors}", stdout(&output));
}

fn run_script_on_sqlite(name: &str, links: usize) {
    run_on_sqlite(async |store| {
        let program = Program::serve(&store, 0);
        run_script(&store, &program, name, links).await;
    });
}

#[on_both_engines]
async fn a_post_from_the_first_visit_to_its_deletion_as_writers_see_it(store: TestStore) {
    let program = Program::serve(&store, 0);
    run_script(&store, &program, "story.mjs", 2).await;
}

#[test]
fn the_keyboard_alone_writes_publishes_and_deletes() {
    run_script_on_sqlite("keyboard.mjs", 1);
}

#[test]
fn the_scripts_stay_within_their_sizes() {
    run_script_on_sqlite("size.mjs", 1);
}

#[test]
fn an_owner_administers_a_workspace() {
    run_script_on_sqlite("administration.mjs", 2);
}

#[test]
fn typed_text_survives_rejections_and_lost_connections() {
    run_script_on_sqlite("losses.mjs", 1);
}

#[test]
fn lists_are_filtered_sorted_and_changed_as_a_whole() {
    run_script_on_sqlite("lists.mjs", 1);
}

#[test]
fn pieces_are_searched_in_the_console() {
    run_script_on_sqlite("search.mjs", 2);
}

#[test]
fn the_api_reference_searches_has_samples_and_sends_requests() {
    run_script_on_sqlite("reference.mjs", 0);
}

#[test]
fn images_and_files_are_uploaded_described_replaced_and_deleted() {
    run_script_on_sqlite("images.mjs", 1);
}

#[test]
fn uploads_of_large_files_continue_in_the_console() {
    run_script_on_sqlite("large_files.mjs", 1);
}

#[test]
fn scripts_in_files_do_not_run_at_their_addresses() {
    run_script_on_sqlite("files.mjs", 0);
}

#[test]
fn a_published_client_continues_uploads() {
    run_script_on_sqlite("uploads.mjs", 0);
}

#[test]
fn roles_variants_and_custom_fields_are_edited_and_changes_are_listed() {
    run_script_on_sqlite("models.mjs", 2);
}

#[test]
fn a_role_shows_its_actions_and_no_others() {
    run_script_on_sqlite("roles.mjs", 0);
}

#[on_both_engines]
async fn saved_words_survive_kills_cuts_crashes_and_second_tabs(store: TestStore) {
    let rounds = size(2, 2, 50);
    let port = free_port();
    let mut program = Program::serve(&store, port);
    let Some(mut node) = script(&store, &program, "autosaves.mjs", 1).await else { return };
    node.env("GALLEY_ROUNDS", rounds.to_string());
    let mut child = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut answers = child.stdin.take().unwrap();
    let mut figures = Value::Null;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if line == "restart kill" {
            program.kill();
            program = Program::serve(&store, port);
            writeln!(answers, "started").unwrap();
        } else if let Some(found) = line.strip_prefix("figures ") {
            figures = serde_json::from_str(found).unwrap();
        }
    }
    assert!(child.wait().unwrap().success());
    for name in ["kills", "cuts", "tabs"] {
        assert_eq!(figures[name], rounds, "{figures}");
    }
    let engine = store.engine();
    report_figure(
        &format!("{engine}: words typed in the console under kills, cuts, crashes and second tabs"),
        format!("{figures}: 0 saved words lost, all others offered again"),
        "0 lost",
    );
}

#[test]
fn dropped_files_are_compared_imported_and_imported_again() {
    run_script_on_sqlite("imports.mjs", 1);
}
