//! The first start, up to the first content.

use std::process::Command;

use galley_testing::{TestStore, on_both_engines};
use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::program::{
    Program, data_dir, free_port, galley, init_token, piece, run, stderr, stdout, under,
};

#[on_both_engines(empty)]
async fn the_first_start_creates_a_usable_workspace(store: TestStore) {
    let mut command = galley(&store);
    command.args(["--listen", "127.0.0.1:0"]);
    let mut program = Program::start(command);
    let file = data_dir(&store).join("first-token.txt");
    let token = std::fs::read_to_string(&file).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode =
            |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        assert_eq!(mode(&data_dir(&store)), 0o700);
    }
    let client = Client::builder().no_proxy().build().unwrap();
    let send = async |method, path: &str, body: Option<Value>| {
        let request = client.request(method, format!("{}{path}", program.url));
        let request = request.bearer_auth(token.trim());
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        request.send().await.unwrap().json::<Value>().await.unwrap()
    };
    let groups = send(Method::GET, "/content-groups/list", None).await;
    assert_eq!(groups[0]["name"], "Posts");
    let body = piece(groups[0]["id"].as_str().unwrap(), "hello", "<p>Hello</p>");
    let made = send(Method::POST, "/content-pieces", Some(body)).await;
    let list = send(Method::GET, "/content-pieces/list", None).await;
    assert_eq!(list[0]["id"], made["id"]);
    assert!(program.terminate().success());

    let mut again = Program::serve(&store, free_port());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), token, "a second start makes nothing");
    let response = client
        .get(format!("{}/content-pieces/list", again.url))
        .bearer_auth(token.trim())
        .send()
        .await
        .unwrap();
    assert_eq!(response.json::<Value>().await.unwrap()[0]["slug"], "hello");
    assert!(again.terminate().success());
}

#[on_both_engines(empty)]
async fn the_first_start_prints_only_a_welcome(store: TestStore) {
    let mut command = galley(&store);
    command.args(["--listen", "127.0.0.1:0"]);
    let mut timeout = Command::new("timeout");
    timeout.args(["--signal=TERM", "4"]);
    let output = run(&mut under(timeout, &command));
    let said = stdout(&output);
    assert!(said.contains("The API's reference: http://127.0.0.1:"), "{output:?}");
    assert!(said.contains("/docs\n") && !said.contains("schema"), "{said}");
    assert!(!stderr(&output).contains("schema changed"), "{output:?}");
}

#[on_both_engines(empty)]
async fn concurrent_first_starts_create_one_workspace(store: TestStore) {
    // On SQLite only one server can use the file, but several commands can run at once.
    let starts: Vec<_> = (0..4)
        .map(|_| {
            let mut command = galley(&store);
            std::thread::spawn(move || run(command.args(["init", "--json"])))
        })
        .collect();
    let outputs: Vec<_> = starts.into_iter().map(|start| start.join().unwrap()).collect();
    let made = outputs.iter().filter(|output| output.status.success()).count();
    assert_eq!(made, 1, "{outputs:?}");
    for output in outputs.iter().filter(|output| !output.status.success()) {
        assert!(stderr(output).contains("has a workspace already"), "{output:?}");
    }
}

#[on_both_engines]
async fn files_of_the_first_start_are_private(store: TestStore) {
    use std::os::unix::fs::PermissionsExt;
    let data = data_dir(&store);
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
    // For example, the token of an earlier database.
    std::fs::write(data.join("first-token.txt"), "old").unwrap();
    let mut command = galley(&store);
    command.args(["--listen", "127.0.0.1:0"]);
    let mut program = Program::start(command);
    assert!(program.terminate().success());
    let token = std::fs::read_to_string(data.join("first-token.txt")).unwrap();
    assert!(token.starts_with("galley_"), "{token}");
    for entry in std::fs::read_dir(&data).unwrap() {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        let mode = metadata.permissions().mode() & 0o777;
        let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{}", entry.path().display());
    }
}

#[on_both_engines]
async fn later_files_are_private(store: TestStore) {
    use std::os::unix::fs::PermissionsExt;
    // Runs a command with a umask that removes no permissions.
    let freely = |command: &Command| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "umask 0; exec \"$0\" \"$@\""]);
        under(shell, command)
    };
    let mut command = galley(&store);
    command.env("GALLEY_INIT_TOKEN", init_token()).args(["serve", "--listen", "127.0.0.1:0"]);
    let mut program = Program::start(freely(&command));
    let group = program.group().await;
    let role = crate::kills::role(&program).await;
    for (path, body) in [
        ("/content-pieces", piece(&group, "one", "<p>one</p>")),
        ("/workspace-memberships", json!({"email": "a@example.org", "name": "A", "roleId": role})),
    ] {
        let made = program.request(Method::POST, path).json(&body).send().await.unwrap();
        assert_eq!(made.status(), 201);
    }
    crate::mails::in_outbox(&store, 1).await;
    let out = store.directory().join("out");
    std::fs::create_dir(&out).unwrap();
    let ran = |arguments: &[&str]| {
        let mut command = galley(&store);
        command.current_dir(&out).args(arguments);
        let output = run(&mut freely(&command));
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    };
    ran(&["backup", "store.backup"]);
    ran(&["export", "bundle", "--format", "json"]);
    // A backup of either engine is a SQLite file.
    let other = out.join("other");
    let mut command = galley(&store);
    command.env("GALLEY_DATA_DIR", &other).env_remove("GALLEY_DATABASE_URL");
    command.arg("restore").arg(out.join("store.backup"));
    let output = run(&mut freely(&command));
    assert!(output.status.success(), "{}", stderr(&output));

    let (mut files, mut folders) = (0, vec![data_dir(&store), out]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let mode = path.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
            if path.is_dir() {
                folders.push(path);
            } else {
                files += 1;
            }
        }
    }
    assert!(files > 8, "{files} files");
    program.terminate();
}

#[on_both_engines]
async fn a_given_first_token_is_used_and_never_logged(store: TestStore) {
    let mut program = Program::serve(&store, free_port());
    program.group().await;
    assert!(!data_dir(&store).join("first-token.txt").exists());
    assert!(program.terminate().success());
    assert!(!program.rest_of_log().contains(&init_token()));
}

#[on_both_engines]
async fn a_draining_server_reports_not_ready_and_keeps_serving(store: TestStore) {
    let mut command = galley(&store);
    command.env("GALLEY_INIT_TOKEN", init_token()).env("GALLEY_SHUTDOWN_DELAY", "5");
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    let mut program = Program::start(command);
    let ask = async |path: &str| program.request(Method::GET, path).send().await;
    let before = ask("/readyz").await.unwrap();
    assert_eq!((before.status().as_u16(), before.headers().get("connection")), (200, None));
    program.send_stop_signal();
    let leaving = loop {
        let answer = ask("/readyz").await.unwrap();
        if answer.status() != 200 {
            break answer;
        }
    };
    assert_eq!(leaving.status(), 503);
    assert_eq!(leaving.json::<Value>().await.unwrap()["reason"], "not_ready");
    // Each request needs a new connection, as the server closes each one after its response.
    for _ in 0..2 {
        let answer = ask("/content-groups/list").await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["connection"], "close");
    }
    assert!(program.terminate().success());
    assert!(program.request(Method::GET, "/readyz").send().await.is_err());
}

#[on_both_engines]
async fn a_stop_finishes_the_running_requests(store: TestStore) {
    let mut program = Program::serve(&store, free_port());
    let group = program.group().await;
    let requests: Vec<_> = (0..20)
        .map(|number| {
            let content = format!("<p>{}</p>", "word ".repeat(40_000));
            let body = piece(&group, &format!("p{number}"), &content);
            tokio::spawn(program.request(Method::POST, "/content-pieces").json(&body).send())
        })
        .collect();
    tokio::time::sleep(std::time::Duration::from_millis(60)).await;
    assert!(program.terminate().success());
    let mut answered = Vec::new();
    for request in requests {
        if let Ok(response) = request.await.unwrap() {
            assert_eq!(response.status(), 201);
            let id = response.json::<Value>().await.unwrap()["id"].clone();
            answered.push(id);
        }
    }
    assert!(!answered.is_empty(), "some were running");
    let again = Program::serve(&store, free_port());
    let kept: Vec<Value> =
        again.pieces("").await.into_iter().map(|piece| piece["id"].clone()).collect();
    for id in answered {
        assert!(kept.contains(&id), "{id} was answered and is not there");
    }
    assert_eq!(again.get("/healthz").await, json!({"status": "ok"}));
}

#[tokio::test]
async fn metrics_are_served_on_their_own_address_only() {
    let store = galley_testing::TestStore::sqlite();
    let metrics = format!("127.0.0.1:{}", free_port());
    let mut command = galley(&store);
    command.args(["--listen", "127.0.0.1:0", "--metrics-addr", &metrics]);
    command.env("GALLEY_INIT_TOKEN", init_token());
    let program = Program::start(command);
    program.group().await;
    program.request(Method::GET, "/tags?id=x").send().await.unwrap();
    let client = Client::builder().no_proxy().build().unwrap();
    let text = client.get(format!("http://{metrics}/metrics")).send().await.unwrap();
    let text = text.text().await.unwrap();
    let counted = text.lines().any(|line| {
        line.starts_with("galley_http_requests_total")
            && line.contains("route=\"/content-groups/list\"")
            && line.contains("status=\"200\"")
    });
    assert!(counted, "{text}");
    let problems = text
        .lines()
        .any(|line| line.contains("route=\"/tags\"") && line.contains("status=\"404\""));
    assert!(problems, "{text}");
    let elsewhere = program.request(Method::GET, "/metrics").send().await.unwrap();
    assert_eq!(elsewhere.status(), 404);
}
