//! Delivery of mails to the outbox and to a real mail server, with failures on either side.
//!
//! The mail server is aiosmtpd, in the Python that `GALLEY_TEST_PYTHON` names; `cargo xtask test`
//! installs it.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use galley_storage::DatabaseUrl;
use galley_testing::{TestStore, on_both_engines};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::program::{Program, client, data_dir, execute, free_port, galley, init_token};
use crate::sign_in::SignInBrowser;

/// A mail server that stops when it is dropped.
pub(crate) struct MailServer {
    child: Child,
    mails: Receiver<Value>,
    pub(crate) port: u16,
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl MailServer {
    /// Starts a mail server on a free port, if Python is available. With a certificate file of an
    /// authority, the server requires TLS and a password.
    fn start(ca_file: Option<&Path>) -> Option<Self> {
        // Another test may bind the port first.
        (0..5).find_map(|_| Self::start_on(free_port(), ca_file, false))
    }

    fn start_on(port: u16, ca_file: Option<&Path>, implicit: bool) -> Option<Self> {
        let Ok(python) = std::env::var("GALLEY_TEST_PYTHON") else {
            eprintln!(
                "SKIPPED: a mail server: GALLEY_TEST_PYTHON is not set (cargo xtask test sets it)"
            );
            return None;
        };
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/smtp_server.py");
        let mut child = Command::new(python)
            .arg(script)
            .arg(port.to_string())
            .args(ca_file)
            .args(implicit.then_some("implicit"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        if lines.next().and_then(Result::ok).as_deref() != Some("ready") {
            child.wait().unwrap();
            return None;
        }
        let (tell, mails) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = tell.send(serde_json::from_str(&line).unwrap());
            }
        });
        Some(Self { child, mails, port })
    }

    /// Starts the test's mail server. Returns `None` without Python.
    pub(crate) fn of_test() -> Option<Self> {
        let server = Self::start(None);
        assert!(server.is_some() || std::env::var("GALLEY_TEST_PYTHON").is_err());
        server
    }

    /// Returns the next mail.
    fn next(&self) -> Value {
        self.mails.recv_timeout(Duration::from_mins(1)).expect("a mail comes")
    }

    /// Returns the received mails that no test has read.
    fn others(&self) -> Vec<Value> {
        self.mails.try_iter().collect()
    }
}

/// Starts a server that sends mails through the mail server on `smtp_port`.
fn serve(store: &TestStore, smtp_port: u16) -> Program {
    let mut command = galley(store);
    command
        .env("GALLEY_INIT_TOKEN", init_token())
        .env("GALLEY_SMTP_URL", format!("smtp://127.0.0.1:{smtp_port}"))
        .env("GALLEY_MAIL_FROM", "Galley <galley@example.org>")
        .args(["serve", "--listen", "127.0.0.1:0"]);
    Program::start(command)
}

/// Sends an invite for a Viewer.
pub(crate) async fn invite(program: &Program, email: &str, name: &str) {
    let roles: Value = program.get("/roles/list").await;
    let viewer = roles.as_array().unwrap().iter().find(|role| role["name"] == "Viewer").unwrap();
    let body = json!({"email": email, "name": name, "roleId": viewer["id"]});
    let made = program.request(Method::POST, "/workspace-memberships").json(&body).send().await;
    assert_eq!(made.unwrap().status(), StatusCode::CREATED);
}

/// Waits for `count` mails in the outbox, and returns them.
pub(crate) async fn in_outbox(store: &TestStore, count: usize) -> Vec<String> {
    let outbox = data_dir(store).join("outbox");
    let started = Instant::now();
    loop {
        let files =
            std::fs::read_dir(&outbox).into_iter().flatten().map(|file| file.unwrap().path());
        let files = files.filter(|path| path.extension().is_some_and(|kind| kind == "eml"));
        let mails: Vec<String> = files.map(|file| std::fs::read_to_string(file).unwrap()).collect();
        if mails.len() == count {
            return mails;
        }
        assert!(started.elapsed() < Duration::from_mins(1), "not all mails came");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the link in a mail whose text has MIME line breaks.
pub(crate) fn link(mail: &str) -> String {
    let whole = mail.replace("=\r\n", "").replace("=3D", "=");
    let start = whole.find("http://127.0.0.1").expect("a link");
    whole[start..].split_whitespace().next().unwrap().to_owned()
}

/// Waits until the queue has no mail to send or retry.
async fn wait_for_empty_queue(store: &TestStore) {
    let started = Instant::now();
    while count_mails(store).await > 0 {
        assert!(started.elapsed() < Duration::from_mins(1), "mails stay in the queue");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn count_mails(store: &TestStore) -> i64 {
    let sql = "SELECT count(*) FROM mails";
    match &store.url {
        DatabaseUrl::Sqlite(_) => {
            let path = data_dir(store).join("galley.db");
            let connection = rusqlite::Connection::open(path).unwrap();
            connection.query_row(sql, [], |row| row.get(0)).unwrap()
        }
        DatabaseUrl::Postgres(url) => client(url).await.query_one(sql, &[]).await.unwrap().get(0),
    }
}

/// Opens the link and accepts the invite.
async fn accept(program: &Program, link: &str) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    // The server's port may have changed.
    let (_, code) = link.split_once("/invite?code=").unwrap();
    let url = &program.url;
    let page = client.get(format!("{url}/invite?code={code}")).send().await.unwrap();
    assert_eq!(page.status(), StatusCode::OK, "{link}");
    assert!(page.text().await.unwrap().contains("Accept the invite"));
    let body = json!({"code": code, "username": "ann", "fullName": "Ann"});
    let accepted = client.post(format!("{url}/invites/accept")).json(&body).send().await.unwrap();
    assert_eq!(accepted.status(), StatusCode::OK);
    let token = accepted.json::<Value>().await.unwrap()["token"].as_str().unwrap().to_owned();
    let own = client.get(format!("{url}/profile")).bearer_auth(token).send().await.unwrap();
    assert_eq!(own.json::<Value>().await.unwrap()["email"], "ann@example.org");
}

#[on_both_engines]
async fn every_mail_is_sent_despite_kills(store: TestStore) {
    let Some(server) = MailServer::of_test() else { return };
    let smtp_port = server.port;
    let mut program = serve(&store, smtp_port);
    for round in 0..5 {
        for number in 0..4 {
            invite(&program, &format!("m{round}-{number}@example.org"), "M").await;
        }
        // The kill comes at a different time in each round.
        tokio::time::sleep(Duration::from_millis(round * 3)).await;
        program.kill();
        // Mails that were being sent are due only when their lease has expired.
        execute(&store, "UPDATE mails SET due_at_ms = 0").await;
        program = serve(&store, smtp_port);
    }
    wait_for_empty_queue(&store).await;
    // The mail server reports its mails through a pipe.
    let mut came: Vec<String> = Vec::new();
    let mut different = HashSet::new();
    while different.len() < 20 {
        let to = server.next()["to"][0].as_str().unwrap().to_owned();
        different.insert(to.clone());
        came.push(to);
    }
    let others = server.others().len();
    let twice = came.len() + others - different.len();
    // At most four mails are being sent at each kill.
    assert!(twice <= 5 * 4, "{twice} came twice, more than were being sent");
}

#[on_both_engines]
async fn without_a_mail_server_mails_are_written_to_files(store: TestStore) {
    let mut program = Program::serve(&store, 0);
    invite(&program, "ann@example.org", "\u{c4}nn <b>").await;
    // The kill may come at any stage of sending.
    program.kill();
    let program = Program::serve(&store, 0);
    let outbox = data_dir(&store).join("outbox");
    let started = Instant::now();
    let mail = loop {
        // A mail that was leased at the kill is due only after a while.
        assert!(started.elapsed() < Duration::from_mins(1), "no mail came");
        let files =
            std::fs::read_dir(&outbox).into_iter().flatten().map(|file| file.unwrap().path());
        let files: Vec<_> =
            files.filter(|path| path.extension().is_some_and(|it| it == "eml")).collect();
        if let [file] = files.as_slice() {
            break std::fs::read_to_string(file).unwrap();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    for part in [
        "From: Galley <galley@localhost>",
        "To: ann@example.org",
        "MIME-Version: 1.0",
        "multipart/alternative",
        "text/plain; charset=utf-8",
        "text/html; charset=utf-8",
        "Auto-Submitted: auto-generated",
        "Message-ID: <mail_",
        "&#60;b&#62;",
    ] {
        assert!(mail.contains(part), "{part}: {mail}");
    }
    accept(&program, &link(&mail)).await;
}

#[on_both_engines]
async fn each_mail_is_sent_once_after_a_mail_server_outage(store: TestStore) {
    let Some(server) = MailServer::of_test() else { return };
    let smtp_port = server.port;
    let program = serve(&store, smtp_port);
    invite(&program, "ann@example.org", "Ann").await;
    let mail = server.next();
    assert_eq!(mail["to"], json!(["ann@example.org"]));
    assert_eq!(mail["from"], "galley@example.org");
    accept(&program, &link(mail["content"].as_str().unwrap())).await;
    drop(server);
    for number in 0..5 {
        invite(&program, &format!("away-{number}@example.org"), "Away").await;
    }
    program.wait_for_log("will be retried").await;
    let server = MailServer::start_on(smtp_port, None, false).unwrap();
    let mut came: Vec<Value> = (0..5).map(|_| server.next()["to"][0].clone()).collect();
    came.sort_by_key(Value::to_string);
    let expected: Vec<Value> =
        (0..5).map(|number| json!(format!("away-{number}@example.org"))).collect();
    assert_eq!(came, expected);
    wait_for_empty_queue(&store).await;
    assert_eq!(server.others(), Vec::<Value>::new(), "each once");
}

#[on_both_engines]
async fn two_programs_on_one_database_send_each_mail_once(store: TestStore) {
    if matches!(store.url, DatabaseUrl::Sqlite(_)) {
        // Only one server can use an SQLite file.
        return;
    }
    let Some(server) = MailServer::of_test() else { return };
    let programs = [serve(&store, server.port), serve(&store, server.port)];
    for number in 0..30 {
        invite(&programs[number % 2], &format!("m{number}@example.org"), "M").await;
    }
    wait_for_empty_queue(&store).await;
    let came: Vec<String> =
        (0..30).map(|_| server.next()["to"][0].as_str().unwrap().to_owned()).collect();
    assert_eq!(came.iter().collect::<HashSet<_>>().len(), 30, "{came:?}");
    assert_eq!(server.others(), Vec::<Value>::new(), "each once");
}

#[on_both_engines]
async fn admins_are_mailed_about_a_disabled_webhook(store: TestStore) {
    let Some(server) = MailServer::of_test() else { return };
    let receiver = galley_testing::Receiver::start(galley_testing::Behaviour::Status(410)).await;
    let mut command = galley(&store);
    command
        .env("GALLEY_INIT_TOKEN", init_token())
        .env("GALLEY_WEBHOOKS_ALLOW", "127.0.0.0/8")
        .env("GALLEY_SMTP_URL", format!("smtp://127.0.0.1:{}", server.port))
        .env("GALLEY_MAIL_FROM", "galley@example.org")
        .args(["serve", "--listen", "127.0.0.1:0"]);
    let program = Program::start(command);
    let body = json!({"url": receiver.url, "name": "Site <b>\u{e9}</b>", "event": "memberInvited"});
    let made = program.request(Method::POST, "/webhooks").json(&body).send().await.unwrap();
    assert_eq!(made.status(), StatusCode::CREATED);
    invite(&program, "ann@example.org", "Ann").await;
    let mut mails = [server.next(), server.next()];
    mails.sort_by_key(|mail| mail["to"].to_string());
    assert_eq!(mails[1]["to"], json!(["owner@localhost"]));
    let mail = mails[1]["content"].as_str().unwrap().replace("=\r\n", "");
    for part in ["Subject: ", "The webhook Site <b>=C3=A9</b>", "was disabled", "&#60;b&#62;"] {
        assert!(mail.contains(part), "{part}: {mail}");
    }
    let webhooks = program.get("/webhooks/list").await;
    assert_eq!(webhooks[0]["enabled"], false, "{webhooks}");
}

#[on_both_engines]
async fn mail_passwords_are_sent_only_over_tls(store: TestStore) {
    let authority = store.directory().join("authority.pem");
    let Some(server) = MailServer::start(Some(&authority)) else { return };
    let smtp_port = server.port;
    let with_mail = |url: &str| {
        let mut command = galley(&store);
        command.env("GALLEY_INIT_TOKEN", init_token()).env("SSL_CERT_FILE", &authority);
        command.env("GALLEY_SMTP_URL", url).env("GALLEY_MAIL_FROM", "galley@example.org");
        command
    };
    let url = |login: &str, host: &str| format!("smtp://{login}@{host}:{smtp_port}");
    let right = url("user:pass%20word", "localhost");
    let mut command = with_mail(&right);
    let program = Program::start({
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        command
    });
    invite(&program, "ann@example.org", "Ann").await;
    let mail = server.next();
    assert_eq!((&mail["encrypted"], &mail["authenticated"]), (&json!(true), &json!(true)));
    accept(&program, &link(mail["content"].as_str().unwrap())).await;
    for (url, is_fine, why) in [
        (right.clone(), true, ""),
        (url("user:wrong", "localhost"), false, "535"),
        // The certificate is for another host name.
        (url("user:pass%20word", "127.0.0.1"), false, "certificate"),
        (format!("{right}?tls=none"), false, "No compatible authentication"),
        // The server requires a login before the sender's address.
        (format!("smtp://localhost:{smtp_port}"), false, "530"),
    ] {
        let output = with_mail(&url).args(["--listen", "127.0.0.1:0", "doctor"]).output().unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        let line = told.lines().find(|line| line.contains("mail:")).unwrap();
        assert_eq!(line.starts_with("ok"), is_fine, "{url}: {line}");
        assert!(line.contains(why), "{url}: {line}");
        assert!(!told.contains("pass"), "{told}");
    }
}

#[on_both_engines]
async fn smtps_uses_implicit_tls(store: TestStore) {
    let authority = store.directory().join("authority.pem");
    let started = (0..5).find_map(|_| MailServer::start_on(free_port(), Some(&authority), true));
    let Some(server) = started else { return };
    let with_mail = |login: &str| {
        let mut command = galley(&store);
        let url = format!("smtps://{login}@localhost:{}", server.port);
        command.env("GALLEY_INIT_TOKEN", init_token()).env("SSL_CERT_FILE", &authority);
        command.env("GALLEY_SMTP_URL", url).env("GALLEY_MAIL_FROM", "galley@example.org");
        command
    };
    // A wrong password is a temporary failure: the mail stays in the queue.
    let mut command = with_mail("user:wrong");
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    let mut program = Program::start(command);
    invite(&program, "ann@example.org", "Ann").await;
    program.wait_for_log("will be retried").await;
    program.terminate();
    execute(&store, "UPDATE mails SET due_at_ms = 0").await;
    let mut command = with_mail("user:pass%20word");
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    let program = Program::start(command);
    let mail = server.next();
    // The server speaks only TLS.
    assert_eq!(mail["authenticated"], json!(true));
    accept(&program, &link(mail["content"].as_str().unwrap())).await;
}

#[on_both_engines]
async fn an_endless_mail_server_response_is_aborted(store: TestStore) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let smtp_port = listener.local_addr().unwrap().port();
    let talked = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = 0_usize;
        // The response continues as long as the client reads it.
        while std::io::Write::write_all(&mut stream, &[b'2'; 4096]).is_ok() {
            bytes += 4096;
        }
        bytes
    });
    let mut check = galley(&store);
    check.env("GALLEY_SMTP_URL", format!("smtp://127.0.0.1:{smtp_port}"));
    check.env("GALLEY_MAIL_FROM", "galley@example.org").args(["--listen", "127.0.0.1:0", "doctor"]);
    let told = String::from_utf8(check.output().unwrap().stdout).unwrap();
    assert!(told.contains("the server's response is too long"), "{told}");
    assert!(talked.join().unwrap() < 16 * 1024 * 1024);
}

#[on_both_engines]
async fn mail_server_replies_are_sanitized(store: TestStore) {
    let Some(server) = MailServer::of_test() else { return };
    let mut program = serve(&store, server.port);
    for address in ["quoted@example.org", "policy@example.org", "ann@b\u{fc}cher.example"] {
        invite(&program, address, "Somebody").await;
    }
    assert_eq!(server.next()["to"], json!(["ann@xn--bcher-kva.example"]));
    let started = Instant::now();
    let listed = loop {
        let output = galley(&store).args(["member", "list"]).output().unwrap();
        let listed = String::from_utf8(output.stdout).unwrap();
        if listed.contains("was abandoned") && listed.contains("will be retried") {
            break listed;
        }
        assert!(started.elapsed() < Duration::from_mins(1), "{listed}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let line =
        |address: &str| listed.lines().find(|line| line.contains(address)).unwrap().to_owned();
    assert!(line("quoted@").contains("not wanted: http://127.0.0.1"), "{listed}");
    // A rejection by policy is temporary.
    assert!(line("policy@").contains("will be retried"), "{listed}");
    assert!(!listed.contains('\u{1b}'), "{listed:?}");
    program.terminate();
    let log = program.rest_of_log();
    assert!(log.contains("not wanted"), "{log}");
    for text in [listed, log] {
        let after = text.split("invite?code=").nth(1).unwrap();
        let after: String = after.chars().take_while(|c| !c.is_whitespace()).collect();
        assert!(after.starts_with("3D\u{2026}"), "{after}");
    }
}

#[on_both_engines]
async fn rejected_addresses_are_reported_to_operators(store: TestStore) {
    let Some(server) = MailServer::of_test() else { return };
    let smtp_port = server.port;
    let program = serve(&store, smtp_port);
    for address in ["refused@example.org", "later@example.org", "ann@example.org"] {
        invite(&program, address, "Somebody").await;
    }
    assert_eq!(server.next()["to"], json!(["ann@example.org"]));
    let started = Instant::now();
    loop {
        let output = galley(&store).args(["member", "list"]).output().unwrap();
        let listed = String::from_utf8(output.stdout).unwrap();
        let line =
            |address: &str| listed.lines().find(|line| line.contains(address)).unwrap().to_owned();
        let (refused, later) = (line("refused@"), line("later@"));
        if refused.contains("was abandoned") && later.contains("will be retried") {
            assert!(refused.contains("5.1.1 nobody of this name"), "{refused}");
            assert!(later.contains("4.3.0 not now"), "{later}");
            assert!(!line("ann@").contains("mail"), "{listed}");
            break;
        }
        assert!(started.elapsed() < Duration::from_mins(1), "{listed}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut check = galley(&store);
    check.env("GALLEY_SMTP_URL", format!("smtp://127.0.0.1:{smtp_port}"));
    check.env("GALLEY_MAIL_FROM", "galley@example.org").args(["--listen", "127.0.0.1:0", "doctor"]);
    let found = |command: &mut Command| {
        let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
        output.lines().find(|line| line.contains("mail:")).unwrap().to_owned()
    };
    assert!(found(&mut check).starts_with("ok"), "{}", found(&mut check));
    drop(server);
    assert!(found(&mut check).starts_with("FAIL"), "{}", found(&mut check));
}

#[on_both_engines]
async fn a_mail_signs_in_by_its_link_or_by_its_code(store: TestStore) {
    let Some(server) = MailServer::of_test() else { return };
    let program = serve(&store, server.port);
    for by_code in [false, true] {
        let mut browser = SignInBrowser::new(&program);
        let asked = browser.post("/sign-in", &[("email", "owner@localhost")]).await;
        assert_eq!(asked.status(), StatusCode::ACCEPTED);
        let mail = server.next();
        assert_eq!(mail["to"], json!(["owner@localhost"]));
        let content = mail["content"].as_str().unwrap();
        assert!(content.contains("Subject: Sign in to Galley"), "{content}");
        let link = link(content);
        let signed_in = if by_code {
            let (_, code) = content.split_once("this code there: ").unwrap();
            browser.post("/sign-in/code", &[("code", &code[..9])]).await
        } else {
            let (_, code) = link.split_once("/sign-in/link?code=").unwrap();
            browser.post("/sign-in/link", &[("code", code)]).await
        };
        assert_eq!(signed_in.status(), StatusCode::SEE_OTHER, "{content}");
        assert_eq!(browser.profile().await["email"], "owner@localhost");
    }
}
