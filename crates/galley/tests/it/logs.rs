//! Log lines: clients can't forge them, nor insert characters that change their display.

use galley_testing::{Behaviour, Receiver, TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::program::{KEY, Program, galley, init_token, piece};

/// Requests that try to inject text into the log.
const INJECTING_REQUESTS: [&[u8]; 9] = [
    b"GET /\xc2\x9b31mred HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET /\xe2\x80\xaenwod-edispu HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET /a\xe2\x80\xa8b HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET /%0d%0a{\"level\":\"ERROR\"} HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET /\x1b]0;title\x07 HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET /x HTTP/1.1\r\nhost: x\r\nx-request-id: a\\\",\"level\":\"ERROR\r\n\r\n",
    b"GET /x HTTP/1.1\r\nhost: x\r\ntraceparent: 00-\",\"a\":\"-b-01\r\n\r\n",
    b"MADE-UP\"} /x HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET /x HTTP/1.1\nhost: x\n\n{\"level\":\"ERROR\"}\n\n",
];

/// Returns true if a character changes the display of a line.
fn changes_display(c: char) -> bool {
    c.is_control()
        || ('\u{200b}'..='\u{200f}').contains(&c)
        || ('\u{2028}'..='\u{202e}').contains(&c)
        || ('\u{2060}'..='\u{206f}').contains(&c)
}

#[on_both_engines]
async fn lines_name_failing_webhooks_rejected_tokens_and_callers(store: TestStore) {
    let receiver = Receiver::start(Behaviour::Status(500)).await;
    let mut command = galley(&store);
    command.env("GALLEY_INIT_TOKEN", init_token()).env("GALLEY_ACCESS_LOG", "on");
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    let mut program = Program::start(command);
    let group = program.group().await;
    let webhook = json!({"url": receiver.url, "name": "w", "event": "contentGroupAdded"});
    let made = program.request(Method::POST, "/webhooks").json(&webhook).send().await.unwrap();
    let webhook = made.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
    for name in ["a", "b", "c"] {
        let body = json!({"name": name, "ancestor": group});
        assert_eq!(
            program
                .request(Method::POST, "/content-groups")
                .json(&body)
                .send()
                .await
                .unwrap()
                .status(),
            201
        );
    }
    receiver.wait_for(2).await;
    let other = galley_domain::access_token::AccessToken::from_random([9; 32]);
    for _ in 0..5 {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client.get(format!("{}/tags/list", program.url)).bearer_auth(other.reveal());
        assert_eq!(request.send().await.unwrap().status(), 401);
    }
    let ticket = program.request(Method::POST, "/events/ticket").send().await.unwrap();
    let ticket = ticket.json::<Value>().await.unwrap()["ticket"].as_str().unwrap().to_owned();
    for expected in [200, 401] {
        let url = format!(
            "{}/events?ticket={ticket}{}",
            program.url,
            if expected == 200 { "" } else { "x" }
        );
        let request = reqwest::Client::builder().no_proxy().build().unwrap().get(url);
        let response = request.header("accept", "text/event-stream").send().await.unwrap();
        assert_eq!(response.status(), expected);
    }
    // Two requests are served from the database, and two from the cache.
    for _ in 0..4 {
        program.get("/tags/list").await;
    }
    program.terminate();
    let log = program.rest_of_log();
    let entries: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |message: &str| -> Vec<&Value> {
        entries.iter().filter(|entry| entry["fields"]["message"] == message).collect()
    };
    let failing = of("a webhook's receiver did not accept a delivery");
    assert_eq!(failing.len(), 1, "{log}");
    assert_eq!(
        (&failing[0]["level"], &failing[0]["fields"]["webhook"], &failing[0]["fields"]["status"]),
        (&json!("INFO"), &json!(webhook), &json!(500))
    );
    let rejected = of("rejected an access token");
    assert_eq!(rejected.len(), 1, "{log}");
    assert_eq!(
        (&rejected[0]["level"], &rejected[0]["fields"]["client"]),
        (&json!("INFO"), &json!("127.0.0.1"))
    );
    assert!(!log.contains(other.reveal()) && !log.contains(&ticket));
    let lists: Vec<_> = of("request completed")
        .into_iter()
        .filter(|entry| entry["fields"]["route"] == "/tags/list")
        .collect();
    assert_eq!(lists.len(), 9, "{log}");
    for entry in lists.iter().filter(|entry| entry["fields"]["status"] == 200) {
        let span = &entry["span"];
        assert!(span["credential"].as_str().is_some_and(|id| id.starts_with("tok_")), "{entry}");
        assert!(span["user"].as_str().is_some_and(|id| id.starts_with("usr_")), "{entry}");
        assert_eq!(span["client"], "127.0.0.1", "{entry}");
        assert!(entry["fields"]["bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{entry}");
    }
}

#[test]
fn requests_are_logged_only_in_an_access_log() {
    let store = TestStore::sqlite();
    for (value, level, count) in
        [("off", "debug", 0), ("on", "debug", 1), ("on", "galley=info,warn", 1)]
    {
        let mut command = galley(&store);
        command.env("GALLEY_INIT_TOKEN", init_token()).env("GALLEY_LOG", level);
        command.env("GALLEY_ACCESS_LOG", value).args(["serve", "--listen", "127.0.0.1:0"]);
        let mut program = Program::start(command);
        let url = format!("{}/healthz?secret=1", program.url);
        let client = reqwest::Client::builder().no_proxy().user_agent("tests/1").build().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        assert!(runtime.block_on(client.get(url).send()).unwrap().status().is_success());
        program.terminate();
        let log = program.rest_of_log();
        let lines: Vec<Value> =
            log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let requests: Vec<_> =
            lines.iter().filter(|line| line["fields"]["message"] == "request completed").collect();
        assert_eq!(requests.len(), count, "{log}");
        for line in requests {
            assert_eq!(line["target"], "galley::access");
            assert_eq!(
                (&line["fields"]["path"], &line["fields"]["status"]),
                (&json!("/healthz"), &json!(200))
            );
            assert_eq!(line["span"]["user_agent"], "tests/1");
            assert_eq!(line["span"]["client"], "127.0.0.1");
            assert!(line["span"]["id"].is_string() && line.get("spans").is_none(), "{line}");
            assert!(!line.to_string().contains("secret"), "{line}");
        }
    }
}

#[on_both_engines]
async fn clients_cannot_inject_log_lines(store: TestStore) {
    let mut command = galley(&store);
    command
        .env("GALLEY_INIT_TOKEN", init_token())
        .env("GALLEY_ACCESS_LOG", "on")
        .env("GALLEY_LOG", "debug");
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    let mut program = Program::start(command);
    for request in INJECTING_REQUESTS {
        let mut stream =
            TcpStream::connect(program.url.trim_start_matches("http://")).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = [0; 64];
        let _ = stream.read(&mut answer).await;
    }
    // Client text in stored, rejected, and sent data.
    let group = program.group().await;
    for words in ["\u{9b}31m", "\u{202e}", "a\nb", "\",\"level\":\"ERROR"] {
        let body = piece(&group, "slug", words);
        for (path, mut body) in [
            ("/content-pieces", body),
            (
                "/webhooks",
                json!({"url": format!("https://{words}.invalid/"), "event": "memberAdded"}),
            ),
            (
                "/workspace-memberships",
                json!({"email": format!("{words}@example.org"), "roleId": "x"}),
            ),
            ("/variants", json!({"key": words, "label": words})),
        ] {
            body["title"] = json!(words);
            body["name"] = json!(words);
            program.request(Method::POST, path).json(&body).send().await.unwrap();
        }
    }
    program.terminate();
    let log = program.rest_of_log();
    let mut answered = 0;
    for line in log.lines() {
        let entry: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        assert_ne!(entry["level"], "ERROR", "{line}");
        assert!(!line.contains(changes_display), "{line:?}");
        assert!(!line.contains(&init_token()) && !line.contains(KEY), "{line}");
        answered += usize::from(entry["fields"]["message"] == "request completed");
    }
    assert!(answered > INJECTING_REQUESTS.len(), "{log}");
}
