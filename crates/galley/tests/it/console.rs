//! The web console in a real Chromium.

use std::path::PathBuf;
use std::process::Command;

use galley_testing::{TestStore, on_both_engines};

use crate::program::{Program, galley, init_token, run, stdout};

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

/// Runs a script against a program, with links with which the owner signs in.
async fn run_script(store: &TestStore, program: &Program, script: &str, links: usize) {
    let Some(folder) = scripts(program).await else { return };
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
    let output = run(node.env("GALLEY_LINKS", serde_json::to_string(&links).unwrap()));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{errors}", stdout(&output));
}

#[on_both_engines]
async fn a_post_from_the_first_visit_to_its_deletion_as_writers_see_it(store: TestStore) {
    let program = Program::serve(&store, 0);
    run_script(&store, &program, "story.mjs", 2).await;
}

#[on_both_engines]
async fn the_keyboard_alone_writes_publishes_and_deletes(store: TestStore) {
    let program = Program::serve(&store, 0);
    run_script(&store, &program, "keyboard.mjs", 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_scripts_stay_within_their_sizes() {
    let store = TestStore::sqlite();
    let program = Program::serve(&store, 0);
    run_script(&store, &program, "size.mjs", 1).await;
}

#[on_both_engines]
async fn an_owner_administers_a_workspace(store: TestStore) {
    let program = Program::serve(&store, 0);
    run_script(&store, &program, "administration.mjs", 2).await;
}

#[on_both_engines]
async fn typed_text_survives_rejections_and_lost_connections(store: TestStore) {
    let program = Program::serve(&store, 0);
    run_script(&store, &program, "losses.mjs", 1).await;
}
