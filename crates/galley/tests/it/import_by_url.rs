//! `galley import --url`: the same import through a running server.

use std::path::Path;
use std::process::{Command, Stdio};

use galley_testing::{Behaviour, Receiver, TestStore, on_both_engines};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::import::{corpus, summary};
use crate::program::{Program, free_port, galley, init_token, run, stderr, write};

/// Returns a command that imports `folder` without access to the database.
fn import(program: &Program, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_galley"));
    command
        .current_dir("/")
        .args(["import", "--url", &program.url, "--token", &init_token()])
        .arg(folder);
    command
}

fn names(pieces: &[Value]) -> Vec<String> {
    pieces.iter().map(|piece| piece["filename"].as_str().unwrap().to_owned()).collect()
}

/// Returns the behaviour of a response with this body.
fn answer(status: u16, body: &str) -> Behaviour {
    let length = body.len();
    Behaviour::Raw(
        format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_responses_do_no_harm() {
    let store = TestStore::sqlite();
    let folder = store.directory().join("blog");
    write(&folder.join("a.md"), "Text\n");
    // A token sent to this receiver would leak to a third party.
    let canary = Receiver::start(Behaviour::Status(200)).await;
    let group = json!({"id": "cg_01k00000000000000000000000", "name": "\u{1b}]0;title\u{7}"});
    let endless = Value::Array(vec![group; 1_000]).to_string();
    for (behaviour, words) in [
        (Behaviour::EndlessBody, "does not respond like a Galley server"),
        (Behaviour::EndlessHead, "can't be reached"),
        (answer(200, &endless), "does not respond like a Galley server"),
        (answer(200, &"[".repeat(1_000_000)), "does not respond like a Galley server"),
        (answer(200, "[]"), "the workspace has none"),
        (answer(400, r#"{"detail": "\u001b[31mred \u202eback\nline"}"#), "red"),
        (
            answer(400, r#"{"detail": "a", "issues": [{"path": ["\u001b[2J"], "message": "b"}]}"#),
            "[2J b",
        ),
        (Behaviour::Head(302, format!("location: {}", canary.url)), "it responded with 302"),
        (Behaviour::Head(307, format!("location: {}", canary.url)), "it responded with 307"),
        (Behaviour::Head(401, format!("location: {}", canary.url)), "it responded with 401"),
    ] {
        let server = Receiver::start(behaviour.clone()).await;
        let mut command = galley(&store);
        command.args(["import", "--url", &server.url, "--token", &init_token(), "--group", "Blog"]);
        command.env("http_proxy", &canary.url).env("HTTP_PROXY", &canary.url).arg(&folder);
        let output = tokio::task::spawn_blocking(move || run(&mut command)).await.unwrap();
        assert_eq!(output.status.code(), Some(1), "{behaviour:?}: {output:?}");
        let said = stderr(&output);
        assert!(said.contains(words), "{behaviour:?}: {said}");
        let odd = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!said.contains(odd) && !said.contains(&init_token()), "{said:?}");
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
        assert_eq!(canary.connections(), 0, "{behaviour:?}");
    }
}

/// Reads a request with its body.
async fn whole_request(stream: &mut TcpStream) -> String {
    let mut request = String::new();
    loop {
        let mut bytes = vec![0; 64 * 1024];
        let count = stream.read(&mut bytes).await.unwrap();
        request.push_str(&String::from_utf8_lossy(&bytes[..count]));
        let Some((head, body)) = request.split_once("\r\n\r\n") else { continue };
        let length =
            |line: &str| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok();
        if body.len() >= head.lines().find_map(length).unwrap_or(0) {
            return request;
        }
        assert!(count > 0, "it ends too early: {request}");
    }
}

/// Starts a server with one empty group, which gives this response to requests that create pieces.
/// Returns its address.
async fn answering_writes_by(head: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let request = whole_request(&mut stream).await;
            let (head, body) = match request.split(['?', ' ']).nth(1) {
                Some("/content-groups/list") => {
                    ("200 x", r#"[{"id": "cg_01k00000000000000000000000", "name": "Blog"}]"#)
                }
                Some("/content-pieces/batch") => (head, body),
                _ => ("200 x", "[]"),
            };
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    format!("http://{address}")
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_responses_to_writes_end_the_import() {
    let store = TestStore::sqlite();
    let folder = store.directory().join("blog");
    write(&folder.join("a.md"), "Text\n");
    write(&folder.join("b.md"), "Text\n");
    for (head, body, words) in [
        ("201 x", r#"{"pieces": []}"#, "does not respond like a Galley server"),
        (
            "201 x",
            r#"{"pieces": [{"id": "cp_01k00000000000000000000000"}]}"#,
            "does not respond like",
        ),
        ("503 x\r\nretry-after: 100000", r#"{"detail": "come again"}"#, "come again"),
        ("429 x\r\nretry-after: 61", r#"{"detail": "come again"}"#, "come again"),
    ] {
        let url = answering_writes_by(head, body).await;
        let mut command = galley(&store);
        command.args(["import", "--url", &url, "--token", &init_token(), "--group", "Blog"]);
        command.arg(&folder);
        let output = tokio::task::spawn_blocking(move || run(&mut command)).await.unwrap();
        assert_eq!(output.status.code(), Some(1), "{head}: {output:?}");
        assert!(stderr(&output).contains(words), "{head}: {output:?}");
    }
}

/// Writes enough posts for several batches, with folders, languages, tags and authors.
fn write_posts(folder: &Path, count: usize) {
    for number in 0..count {
        let (year, topic) = (2000 + number % 3, number % 7);
        let front = format!(
            "title: \"T {number} \u{1f980}\"\ndate: {year}-05-06T07:08:09Z\ntags: [a, t{topic}]\nauthor: Owner\nmood: {topic}\n\
             description: \"<b>{number}</b> & more\"\ncover: {{image: /c/{number}.png, alt: C, width: 3px}}"
        );
        let text = format!(
            "---\n{front}\n---\n# Heading {number}\n\nText *with* `code`, a [link](/x?a=1&b=2).\n\n1. one\n2. two\n"
        );
        write(&folder.join(format!("{year}/{number:04}.md")), text);
        if number % 10 == 0 {
            write(
                &folder.join(format!("{year}/{number:04}.de.md")),
                format!("---\ntitle: D {number}\n---\nDeutsch\n"),
            );
        }
    }
}

#[on_both_engines]
async fn imports_by_url_and_directly_have_the_same_result(store: TestStore) {
    let folder = store.directory().join("blog");
    write_posts(&folder, 180);
    write(&folder.join("2000/bad.md"), "---\ntitle: [\n---\n");
    let program = Program::serve(&store, free_port());
    let flags = ["--groups", "--variants", "en,de", "--tag", "all"];
    let first = run(import(&program, &folder).args(flags));
    assert_eq!(
        summary(&first),
        "180 imported, 18 updated, 0 unchanged, 0 with conflicts, 1 with problems",
        "{first:?}"
    );
    assert_eq!(first.status.code(), Some(1));
    let pieces = program.pieces("").await;
    for year in ["2000/", "2001/", "2002/"] {
        let names: Vec<_> =
            names(&pieces).into_iter().filter(|name| name.starts_with(year)).collect();
        assert!(names.is_sorted(), "in the order of their names: {names:?}");
        assert_eq!(names.len(), 60);
    }
    let longest = pieces.iter().map(|piece| piece["order"].as_str().unwrap().len()).max().unwrap();
    assert!(longest < 24, "{longest}");
    let before = program.position().await;
    let again = run(import(&program, &folder).args(flags));
    assert_eq!(
        summary(&again),
        "0 imported, 0 updated, 198 unchanged, 0 with conflicts, 1 with problems"
    );
    let direct = run(galley(&store).arg("import").arg(&folder).args(flags));
    assert_eq!(
        summary(&direct),
        "0 imported, 0 updated, 198 unchanged, 0 with conflicts, 1 with problems"
    );
    assert_eq!(program.position().await, before, "nothing was changed");
    write(&folder.join("2001/0001.md"), "---\ntitle: Other\n---\nOther\n");
    let dry = run(import(&program, &folder).args(flags).arg("--dry-run"));
    assert_eq!(
        summary(&dry),
        "0 would be imported, 1 updated, 197 unchanged, 0 with conflicts, 1 with problems"
    );
    let changed = run(import(&program, &folder).args(flags));
    assert_eq!(
        summary(&changed),
        "0 imported, 1 updated, 197 unchanged, 0 with conflicts, 1 with problems"
    );
    assert_eq!(program.get("/tags/list").await.as_array().unwrap().len(), 9, "each made once");
}

#[on_both_engines]
async fn a_real_blog_is_imported_by_url(store: TestStore) {
    let Some(posts) = corpus() else { return };
    let program = Program::serve(&store, free_port());
    let first = run(&mut import(&program, &posts));
    assert_eq!(
        summary(&first),
        "112 imported, 0 updated, 0 unchanged, 0 with conflicts, 0 with problems",
        "{first:?}"
    );
    let before = program.position().await;
    let direct = run(galley(&store).arg("import").arg(&posts));
    assert_eq!(
        summary(&direct),
        "0 imported, 0 updated, 112 unchanged, 0 with conflicts, 0 with problems"
    );
    assert_eq!(program.position().await, before, "the same trees, tags, dates and slugs");
}

#[on_both_engines]
async fn an_import_retries_while_the_server_restarts(store: TestStore) {
    const PIECES: usize = 800;
    let folder = store.directory().join("blog");
    for number in 0..PIECES {
        write(&folder.join(format!("{number:04}.md")), format!("# T {number}\n"));
    }
    let port = free_port();
    let mut program = Program::serve(&store, port);
    let mut child =
        import(&program, &folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for round in 1..=3 {
        let before = program.position().await;
        while program.position().await == before {
            assert!(child.try_wait().unwrap().is_none(), "{round}: it ended by itself");
        }
        program.kill();
        program = Program::serve(&store, port);
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        summary(&output),
        format!("{PIECES} imported, 0 updated, 0 unchanged, 0 with conflicts, 0 with problems"),
        "{output:?}"
    );
    let names = names(&program.pieces("").await);
    assert_eq!(names.len(), PIECES, "each once");
    assert!(names.is_sorted(), "in order");
}

#[on_both_engines]
async fn errors_of_no_single_piece_are_reported_once(store: TestStore) {
    let folder = store.directory().join("blog");
    for number in 0..40 {
        write(&folder.join(format!("{number}.md")), "Text\n");
    }
    let program = Program::serve(&store, free_port());
    let with = |url: &str, token: &str| {
        let mut command = galley(&store);
        run(command.args(["import", "--url", url, "--token", token]).arg(&folder))
    };
    let wrong_token = with(&program.url, "galley_x");
    assert_eq!(wrong_token.status.code(), Some(1));
    assert_eq!(stderr(&wrong_token).lines().count(), 1, "{wrong_token:?}");
    assert!(!stderr(&wrong_token).contains("galley_x"), "{wrong_token:?}");
    let nobody = with(&format!("http://127.0.0.1:{}", free_port()), &init_token());
    assert!(stderr(&nobody).contains("can't be reached"), "{nobody:?}");
    for bad in ["ftp://x", "http://u:p@127.0.0.1", "galley"] {
        let refused = with(bad, &init_token());
        assert!(
            stderr(&refused).contains("--url") && !stderr(&refused).contains(":p@"),
            "{refused:?}"
        );
    }
    let read_only = run(galley(&store).args([
        "token",
        "create",
        "--permission",
        "contentPieces:read",
        "--permission",
        "contentGroups:read",
        "--permission",
        "members:read",
    ]));
    let read_only = String::from_utf8(read_only.stdout).unwrap();
    let refused = with(&program.url, read_only.trim());
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).lines().count() <= 2, "{refused:?}");
    assert_eq!(program.pieces("").await, Vec::<Value>::new());
}
