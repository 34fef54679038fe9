//! Commands for operators: keys, members and workspaces.

use galley_storage::DatabaseUrl;
use galley_testing::{TestStore, on_both_engines};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::program::{
    KEY, Program, client, data_dir, execute, free_port, galley, init_token, run, stderr, stdout,
};

const OTHER_KEY: &str = "//79/Pv6+fj39vX08/Lx8O/u7ezr6uno5+bl5OPi4eA=";

/// Sends a GET with `token`.
async fn get(program: &Program, token: &str, path: &str) -> (StatusCode, Value) {
    let client = Client::builder().no_proxy().build().unwrap();
    let request = client.get(format!("{}{path}", program.url)).bearer_auth(token);
    let response = request.send().await.unwrap();
    (response.status(), response.json().await.unwrap())
}

#[on_both_engines]
async fn a_different_key_is_rejected_and_the_original_works(store: TestStore) {
    let mut program = Program::serve(&store, free_port());
    let body = json!({"url": "https://hooks.invalid/", "name": "w", "event": "memberAdded", "secret": "s"});
    let made = program.request(Method::POST, "/webhooks").json(&body).send().await.unwrap();
    assert_eq!(made.status(), 201);
    assert!(program.terminate().success());
    for (command, status) in [(vec!["serve", "--listen", "127.0.0.1:0"], 1), (vec!["doctor"], 2)] {
        let refused = run(galley(&store).env("GALLEY_KEY", OTHER_KEY).args(&command));
        assert_eq!(refused.status.code(), Some(status), "{refused:?}");
        let says = stdout(&refused) + &stderr(&refused);
        assert!(says.contains("differs from the key that encrypted the database"), "{says}");
    }
    for malformed in ["short", "not base 64 at all, whatever its length may be"] {
        let refused = run(galley(&store).env("GALLEY_KEY", malformed).arg("serve"));
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(stderr(&refused).contains("GALLEY_KEY"), "{refused:?}");
    }
    assert!(run(galley(&store).arg("doctor")).status.success());
    let mut again = Program::serve(&store, free_port());
    assert_eq!(again.get("/webhooks/list").await[0]["name"], "w");
    assert!(again.terminate().success());
}

#[on_both_engines]
async fn doctor_does_not_register_a_key(store: TestStore) {
    assert!(run(galley(&store).arg("init")).status.success());
    execute(&store, "DELETE FROM key_check").await;
    let checked = run(galley(&store).env("GALLEY_KEY", OTHER_KEY).arg("doctor"));
    assert!(checked.status.success(), "{checked:?}");
    let mut program = Program::serve(&store, free_port());
    assert!(program.terminate().success());
    let refused = run(galley(&store).env("GALLEY_KEY", OTHER_KEY).arg("serve"));
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
}

#[on_both_engines]
async fn members_are_added_and_listed(store: TestStore) {
    let program = Program::serve(&store, free_port());
    let add = |arguments: &[&str]| run(galley(&store).args(["member", "add"]).args(arguments));
    let added = add(&["--email", "ann@example.org", "--name", "Ann Example", "--role", "viewer"]);
    assert!(added.status.success(), "{added:?}");
    let id = stdout(&added).trim().to_owned();
    let listed = stdout(&run(galley(&store).args(["member", "list"])));
    let line = listed.lines().find(|line| line.starts_with(&id)).unwrap();
    assert!(line.contains("Ann Example <ann@example.org>") && line.ends_with("Viewer"), "{line}");
    let members = program.get("/workspace-memberships/list-members").await;
    assert_eq!(members[1]["id"], json!(id));
    assert_eq!(members[1]["profile"]["username"], "ann");
    let made = run(galley(&store).args(["token", "create", "--email", "ann@example.org"]));
    let token = stdout(&made).trim().to_owned();
    let (_, profile) = get(&program, &token, "/profile").await;
    assert_eq!(profile["fullName"], "Ann Example");
    assert_eq!(get(&program, &token, "/webhooks/list").await.0, 403);
    for (arguments, says) in [
        (vec!["--email", "ANN@example.org"], "member"),
        (vec!["--email", "bob@example.org", "--role", "Boss"], "Admin, Editor, Viewer"),
        (vec!["--email", "bob"], "--email"),
        (
            vec!["--email", "bob@example.org", "--workspace", "ws_x"],
            "the workspace ws_x does not exist",
        ),
    ] {
        let refused = add(&arguments);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(stderr(&refused).contains(says), "{refused:?}");
    }
    // If two names differ only by case, the exact match is used.
    let body = json!({"name": "admin", "permissions": []});
    let role = program.request(Method::POST, "/roles").json(&body).send().await.unwrap();
    let role: Value = role.json().await.unwrap();
    let added = add(&["--email", "cat@example.org", "--role", "admin"]);
    assert!(added.status.success(), "{added:?}");
    let members = program.get("/workspace-memberships/list-members").await;
    assert_eq!(members[2]["roleId"], role["id"]);
    assert_eq!(add(&["--email", "dog@example.org", "--role", "ADMIN"]).status.code(), Some(1));
}

#[on_both_engines]
async fn settings_are_served_as_config_prints_them(store: TestStore) {
    let port = free_port();
    let program = Program::serve(&store, port);
    let (status, settings) = get(&program, &init_token(), "/settings").await;
    assert_eq!(status, 200, "{settings}");
    // The same as for the program.
    let mut config = galley(&store);
    config.args(["config", "--listen", &format!("127.0.0.1:{port}")]);
    let printed = stdout(&run(config.env("GALLEY_INVITES_PER_HOUR", "1000000")));
    let lines: Vec<_> = printed.lines().skip(1).collect();
    let settings = settings.as_array().unwrap();
    assert_eq!(settings.len(), lines.len(), "{printed}");
    for (setting, line) in settings.iter().zip(&lines) {
        let [name, value, source] = ["name", "value", "source"].map(|field| &setting[field]);
        let source =
            if source == "command" { "variable or flag" } else { source.as_str().unwrap() };
        let (shown, shown_source) = line.rsplit_once("# ").unwrap();
        let (shown_name, shown_value) = shown.split_once("  ").unwrap();
        assert_eq!(name, shown_name);
        assert_eq!(value, shown_value.trim(), "{line}");
        assert_eq!(source, shown_source, "{line}");
    }
    let secrets = [init_token(), KEY.to_owned()];
    let texts = serde_json::to_string(settings).unwrap();
    assert!(!secrets.iter().any(|secret| texts.contains(secret)), "{texts}");
}

#[on_both_engines]
async fn workspaces_are_created_listed_and_updated(store: TestStore) {
    let program = Program::serve(&store, free_port());
    let create = |email: &str| {
        let arguments = ["workspace", "create", "--name", "Second", "--email", email, "--json"];
        run(galley(&store).args(arguments))
    };
    let made = create("owner@localhost");
    assert!(made.status.success(), "{made:?}");
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let (id, token) = (made["workspaceId"].as_str().unwrap(), made["token"].as_str().unwrap());
    let listed = stdout(&run(galley(&store).args(["workspace", "list"])));
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(listed.contains(&format!("{id}  Second")), "{listed}");
    // The same owner has both workspaces.
    let both = program.get("/workspace-memberships/list-workspaces").await;
    assert_eq!(both.as_array().unwrap().len(), 2, "{both}");
    assert!(run(galley(&store).arg("doctor")).status.success());
    let unnamed = run(galley(&store).args(["workspace", "set", "--name", "x"]));
    assert!(stderr(&unnamed).contains("--workspace"), "{unnamed:?}");
    let set = |arguments: &[&str]| {
        run(galley(&store).args(["workspace", "set", "--workspace", id]).args(arguments))
    };
    let done = set(&[
        "--name",
        "Renamed",
        "--customer-id",
        "cus_1",
        "--subscription-plan",
        "team",
        "--subscription-data",
        "{\"seats\": 3}",
        "--subscription-expires-at",
        "2027-01-01",
    ]);
    assert!(done.status.success(), "{done:?}");
    assert!(set(&["--subscription-plan", "", "--subscription-status", "active"]).status.success());
    let (_, shown) = get(&program, token, "/workspace").await;
    for (field, value) in [
        ("name", json!("Renamed")),
        ("customerId", json!("cus_1")),
        ("subscriptionPlan", Value::Null),
        ("subscriptionStatus", json!("active")),
        ("subscriptionData", json!("{\"seats\": 3}")),
        ("subscriptionExpiresAt", json!("2027-01-01T00:00:00.000Z")),
    ] {
        assert_eq!(shown[field], value, "{field}");
    }
    for wrong in
        [["--subscription-data", "{"], ["--subscription-expires-at", "soon"], ["--name", ""]]
    {
        let refused = set(&wrong);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(stderr(&refused).contains(wrong[0]), "{refused:?}");
    }
    assert_eq!(get(&program, token, "/workspace").await.1, shown);
    let (status, _) = get(
        &program,
        &init_token(),
        &format!("/content-groups?id={}", made["contentGroupId"].as_str().unwrap()),
    )
    .await;
    assert_eq!(status, 404);
}

#[test]
fn on_sqlite_a_key_file_is_created_and_required() {
    let store = TestStore::sqlite();
    let mut program = Program::serve(&store, free_port());
    assert!(program.terminate().success());
    let file = data_dir(&store).join("galley.key");
    let key = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let refused = run(galley(&store).arg("serve"));
    assert!(stderr(&refused).contains("restore it"), "{refused:?}");
    assert!(!file.exists(), "another one would not open what is there");
    // The variable replaces the file.
    let checked = run(galley(&store).env("GALLEY_KEY", key.trim()).arg("doctor"));
    assert!(checked.status.success(), "{checked:?}");
    std::fs::write(&file, "garbage").unwrap();
    assert!(stderr(&run(galley(&store).arg("serve"))).contains("can't be used"));
    std::fs::write(&file, &key).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let open = stdout(&run(galley(&store).arg("doctor")));
        assert!(open.contains("chmod 600"), "{open}");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    assert!(run(galley(&store).arg("doctor")).status.success());
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let store = TestStore::sqlite();
    assert!(run(galley(&store).arg("init")).status.success());
    let mut command = galley(&store);
    let mut child = command
        .args(["workspace", "list"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn with_postgresql_a_key_is_required_before_tables_are_created() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(store) = runtime.block_on(TestStore::empty_postgres()) else { return };
    let DatabaseUrl::Postgres(url) = &store.url else { panic!("{store:?}") };
    for command in ["serve", "init"] {
        let refused = run(galley(&store).env_remove("GALLEY_KEY").arg(command));
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(stderr(&refused).contains("requires the setting GALLEY_KEY"), "{refused:?}");
    }
    let tables = runtime.block_on(async {
        let client = client(url).await;
        let sql = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'";
        client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0)
    });
    assert_eq!(tables, 0);
    assert!(run(galley(&store).env("GALLEY_KEY", KEY).arg("init")).status.success());
}
