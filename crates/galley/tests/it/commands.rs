//! The commands: their output, their changes, and their exit statuses.

use galley_testing::{TestStore, on_both_engines};
use serde_json::{Value, json};

use crate::program::{Program, data_dir, free_port, galley, run, stderr, stdout, write};

#[test]
fn help_lists_command_options_before_settings() {
    let store = TestStore::sqlite();
    for command in [
        &["import"][..],
        &["export"],
        &["backup"],
        &["token", "create"],
        &["group", "move"],
        &["serve"],
        &[],
    ] {
        let help = |flag: &str| {
            let output = run(galley(&store).args(command).arg(flag));
            assert!(output.status.success(), "{output:?}");
            stdout(&output)
        };
        let (short, long) = (help("-h"), help("--help"));
        assert!(!short.contains("--data-dir <DIR>"), "{command:?}: {short}");
        let (own, settings) = long.split_once("Settings:\n").unwrap_or_else(|| panic!("{long}"));
        assert!(!own.contains("--data-dir <DIR>") && own.contains("--help"), "{command:?}: {own}");
        assert!(settings.contains("--data-dir <DIR>"), "{command:?}: {settings}");
        assert!(!settings.contains("--workspace"), "{command:?}: {settings}");
    }
}

#[on_both_engines]
async fn init_prints_ids_and_a_token_that_works(store: TestStore) {
    let arguments = ["init", "--json", "--workspace", "Ours", "--email", "ann@example.org"];
    let output = run(galley(&store).args(arguments));
    assert!(output.status.success(), "{output:?}");
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut keys: Vec<_> = made.as_object().unwrap().keys().cloned().collect();
    keys.sort();
    assert_eq!(keys, ["contentGroupId", "memberId", "roles", "token", "userId", "workspaceId"]);
    assert!(made["roles"]["viewer"].as_str().unwrap().starts_with("role_"));
    let again = run(galley(&store).arg("init"));
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("galley token create"), "{again:?}");
    let program = Program::serve(&store, free_port());
    let url = format!("{}/content-groups/list", program.url);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let token = made["token"].as_str().unwrap();
    let groups: Value =
        client.get(url).bearer_auth(token).send().await.unwrap().json().await.unwrap();
    assert_eq!(groups[0]["id"], made["contentGroupId"]);
}

#[on_both_engines]
async fn tokens_are_created_listed_and_revoked_while_a_server_runs(store: TestStore) {
    let program = Program::serve(&store, free_port());
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let status = async |token: &str, path: &str| {
        let url = format!("{}{path}", program.url);
        client.get(url).bearer_auth(token).send().await.unwrap().status().as_u16()
    };
    let arguments =
        ["token", "create", "--name", "ci", "--permission", "tags:read", "--expires-in-days", "1"];
    let made = run(galley(&store).args(arguments));
    assert!(made.status.success(), "{made:?}");
    let token = stdout(&made).trim().to_owned();
    assert_eq!(status(&token, "/tags/list").await, 200);
    assert_eq!(status(&token, "/content-pieces/list").await, 403);
    let listed = stdout(&run(galley(&store).args(["token", "list"])));
    assert!(listed.contains("ci") && listed.contains("tags:read"), "{listed}");
    assert!(!listed.contains(&token));
    let line = listed.lines().find(|line| line.contains("  ci")).unwrap();
    let id = line.split(' ').next().unwrap();
    assert!(run(galley(&store).args(["token", "revoke", id])).status.success());
    assert_eq!(status(&token, "/tags/list").await, 401);
    let again = run(galley(&store).args(["token", "revoke", id]));
    assert_eq!(again.status.code(), Some(1));
    let wrong = run(galley(&store).args(["token", "create", "--permission", "tags:delete"]));
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    for wrong in [
        vec!["token", "create", "--group", "cg_00000000000000000000000000"],
        vec!["token", "create", "--workspace", "ws_none"],
        vec!["token", "revoke", "x"],
    ] {
        let output = run(galley(&store).args(&wrong));
        assert_eq!(output.status.code(), Some(1), "{wrong:?}");
        assert_eq!(stderr(&output).lines().count(), 1, "one line says why: {output:?}");
    }
}

#[on_both_engines]
async fn the_audit_log_is_printed_for_people_and_for_programs(store: TestStore) {
    let program = Program::serve(&store, free_port());
    let tag = program.request(reqwest::Method::POST, "/tags").json(&json!({"label": "News"}));
    let tag: Value = tag.send().await.unwrap().json().await.unwrap();
    let made = run(galley(&store).args(["token", "create", "--name", "ci"]));
    assert!(made.status.success(), "{made:?}");
    let printed = stdout(&run(galley(&store).arg("audit")));
    let lines: Vec<_> = printed.lines().collect();
    let words = |line: usize| lines[line].split_whitespace().skip(1).collect::<Vec<_>>();
    assert_eq!((words(0)[0], words(0)[2..].join(" ")), ("token.create", "by system".to_owned()));
    assert_eq!(words(1)[..2], ["tag.create", tag["id"].as_str().unwrap()]);
    assert!(lines[1].ends_with("from 127.0.0.1"), "{}", lines[1]);
    assert_eq!(lines.len(), 4, "the workspace and its token: {printed}");
    let exported = stdout(&run(galley(&store).args(["audit", "--json"])));
    let entries: Vec<Value> =
        exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(json!(entries), program.get("/audit").await);
    let until = entries[1]["at"].as_str().unwrap();
    let period = ["audit", "--json", "--since", until];
    assert_eq!(stdout(&run(galley(&store).args(period))).lines().count(), 2);
    let period = ["audit", "--json", "--until", until];
    assert_eq!(stdout(&run(galley(&store).args(period))).lines().count(), 2);
    let wrong = run(galley(&store).args(["audit", "--since", "yesterday"]));
    assert_eq!((wrong.status.code(), stderr(&wrong).lines().count()), (Some(1), 1), "{wrong:?}");
    let rejected = run(galley(&store).args(["audit", "--rejected-credentials"]));
    assert_eq!((rejected.status.success(), stdout(&rejected)), (true, String::new()));
    let unknown = program.client.get(format!("{}/tags/list", program.url));
    let unknown = unknown.bearer_auth(crate::program::init_token().replace('a', "b"));
    assert_eq!(unknown.send().await.unwrap().status(), 401);
    let is_stored = async {
        loop {
            let arguments = ["audit", "--rejected-credentials", "--json"];
            let stored = stdout(&run(galley(&store).args(arguments)));
            if !stored.is_empty() {
                break serde_json::from_str::<Value>(&stored).unwrap();
            }
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    };
    let stored = tokio::time::timeout(std::time::Duration::from_mins(1), is_stored).await.unwrap();
    assert_eq!((&stored["remoteAddress"], &stored["requests"]), (&json!("127.0.0.1"), &json!(1)));
}

#[test]
fn flags_override_variables_and_variables_override_the_file() {
    let store = TestStore::sqlite();
    write(&store.directory().join("galley.toml"), "listen = \"127.0.0.1:1001\"\nlog = \"warn\"\n");
    let config = |command: &mut std::process::Command| stdout(&run(command));
    let listen = |text: String| {
        text.lines().find(|line| line.starts_with("listen")).map(ToOwned::to_owned).unwrap()
    };
    let from_file = listen(config(galley(&store).arg("config")));
    assert!(from_file.contains("127.0.0.1:1001") && from_file.ends_with("file"), "{from_file}");
    let mut with_variable = galley(&store);
    with_variable.env("GALLEY_LISTEN", "127.0.0.1:1002");
    assert!(listen(config(with_variable.arg("config"))).contains("127.0.0.1:1002"));
    for name in ["KEY", "PUBLIC_URL", "DATABASE_URL", "RATE_LIMIT"] {
        with_variable.env(format!("GALLEY_{name}"), "");
    }
    let unset = config(&mut with_variable);
    assert!(unset.contains("galley.key in the data directory"), "{unset}");
    with_variable.args(["--listen", "127.0.0.1:1003"]);
    assert!(listen(config(&mut with_variable)).contains("127.0.0.1:1003"));
}

#[test]
fn the_openapi_document_needs_neither_settings_nor_a_database() {
    let store = TestStore::sqlite();
    let mut command = galley(&store);
    command.env("GALLEY_DATABASE_URL", "mysql://x");
    let output = run(command.args(["--config", "none.toml", "openapi"]));
    assert!(output.status.success(), "{output:?}");
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["info"]["version"], env!("CARGO_PKG_VERSION"));
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../openapi.json");
    assert!(stdout(&output) == std::fs::read_to_string(committed).unwrap());
    assert!(!data_dir(&store).exists());
}

#[test]
fn the_database_password_is_not_printed() {
    let store = TestStore::sqlite();
    let mut command = galley(&store);
    command.env("GALLEY_DATABASE_URL", "postgres://galley:s3cret@127.0.0.1:1/galley");
    for arguments in [["config"], ["doctor"], ["serve"], ["--help"]] {
        let output = run(command.args(arguments));
        assert!(!stdout(&output).contains("s3cret"), "{output:?}");
        assert!(!stderr(&output).contains("s3cret"), "{output:?}");
    }
}

#[test]
fn errors_are_one_line_with_the_right_exit_status() {
    let store = TestStore::sqlite();
    write(&store.directory().join("bad.toml"), "listen = \"127.0.0.1:1\"\n\nlisten-on = 3\n");
    write(&store.directory().join("number.toml"), "rate-limit = \"x\"\n");
    write(&store.directory().join("not-a-directory"), "");
    for (arguments, status, says) in [
        (vec!["--config", "bad.toml", "config"], 1, "bad.toml:3"),
        (vec!["--config", "number.toml", "config"], 1, "number.toml: invalid value 'x'"),
        (vec!["--config", "none.toml", "config"], 1, "none.toml"),
        (vec!["--database-url", "mysql://x", "serve"], 1, "postgres://"),
        (vec!["--data-dir", "not-a-directory/x", "serve"], 1, "not-a-directory"),
        (vec!["import", "nowhere"], 1, "nowhere"),
        (vec!["--cors-origins", "https://a.example,*", "config"], 1, "\"*\" is not an origin"),
        (vec!["--log", "=,=", "serve"], 1, "log filter"),
        (vec!["--public-url", "galley.example", "config"], 1, "public-url"),
        (vec!["--body-size-limit", "0", "config"], 1, "body-size-limit"),
        (
            vec!["--response-size-limit", "1000", "config"],
            1,
            "response-size-limit must be at least 33554432",
        ),
        (vec!["token", "list"], 1, "galley init"),
        (vec!["workspace", "list"], 1, "galley init"),
        (vec!["member", "list"], 1, "galley init"),
        (vec!["init", "--workspace", ""], 1, "--workspace"),
        (vec!["init", "--email", "ann"], 1, "--email"),
        (vec!["--listen", "localhost:80"], 2, "127.0.0.1:8080"),
        (vec!["frobnicate"], 2, "frobnicate"),
        (vec!["import"], 2, "DIR|FILE"),
    ] {
        let output = run(galley(&store).args(&arguments));
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {output:?}");
        assert!(!data_dir(&store).join("galley.db").exists(), "{arguments:?} made a database");
        assert!(stderr(&output).contains(says), "{arguments:?}: {output:?}");
        if status == 1 {
            assert_eq!(stderr(&output).lines().count(), 1, "{arguments:?}: {output:?}");
        }
    }
}

#[test]
fn a_second_server_on_one_file_is_rejected() {
    let store = TestStore::sqlite();
    let _first = Program::serve(&store, free_port());
    let second = run(galley(&store).args(["serve", "--listen", "127.0.0.1:0"]));
    assert_eq!(second.status.code(), Some(1));
    assert!(stderr(&second).contains("serves"), "{second:?}");
    assert!(data_dir(&store).join("galley.db").exists());
}
