//! Generated clients for the OpenAPI document: programs that use them compile and run.

use std::path::PathBuf;
use std::process::Command;

use galley_testing::TestStore;
use serde_json::{Value, json};

use crate::program::{Program, free_port, galley, init_token, run};

/// Runs a tool that npm installed.
fn tool(folder: &PathBuf, name: &str, arguments: &[&str]) {
    let program = folder.join("node_modules/.bin").join(name);
    let output = run(Command::new(program).args(arguments).current_dir(folder));
    assert!(output.status.success(), "{name}: {output:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_on_generated_clients_compile_under_strict_and_run() {
    let Some(folder) = std::env::var_os("GALLEY_TEST_API_CLIENTS").map(PathBuf::from) else {
        eprintln!("SKIPPED: GALLEY_TEST_API_CLIENTS is not set");
        return;
    };
    let store = TestStore::sqlite();
    let document = run(galley(&store).arg("openapi"));
    std::fs::write(folder.join("openapi.json"), &document.stdout).unwrap();
    for folder in ["generated", "compiled"].map(|name| folder.join(name)) {
        let _ = std::fs::remove_dir_all(folder);
    }
    tool(&folder, "openapi-typescript", &["openapi.json", "--output", "generated/schema.ts"]);
    let hey_api = ["--input", "openapi.json", "--output", "generated/hey-api", "--silent"];
    tool(&folder, "openapi-ts", &hey_api);
    tool(&folder, "tsc", &["--project", "."]);
    let types = std::fs::read_to_string(folder.join("generated/schema.ts")).unwrap();
    let empty = types.lines().filter(|line| line.contains("Record<string, never>"));
    let empty: Vec<_> = empty.filter(|line| !line.starts_with("export type")).collect();
    assert!(empty.is_empty(), "objects that may hold nothing: {empty:?}");

    let program = Program::serve(&store, free_port());
    let mut node = Command::new("node");
    node.arg("compiled/openapi-fetch.js").current_dir(&folder);
    let output = run(node.env("GALLEY_URL", &program.url).env("GALLEY_TOKEN", init_token()));
    assert!(output.status.success(), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let outline = json!([
        "2 Two",
        "link /x",
        "highlight plain",
        "code rust",
        "list from 3",
        "row of 2",
        "image /a.png"
    ]);
    assert_eq!(found["found"], outline);
    assert_eq!(found["titles"], json!(["Typed"]));
    assert_eq!(found["reason"], "validation");
    assert_eq!(found["customData"], "{\"pinned\":true,\"weights\":[1,2]}");
}
