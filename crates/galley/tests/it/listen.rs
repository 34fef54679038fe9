//! `galley listen`: callbacks of the program's own webhooks, received and verified.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::json;

use crate::program::{Program, free_port, galley};

#[on_both_engines]
async fn callbacks_are_shown_and_verified(store: TestStore) {
    let program = Program::serve(&store, free_port());
    let port = free_port().to_string();
    let mut listener = galley(&store)
        .args(["listen", "--port", &port])
        .env("GALLEY_LISTEN_SECRET", "mine")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(listener.stderr.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.contains(&port), "{ready}");
    let mut shown = BufReader::new(listener.stdout.take().unwrap()).lines();
    for (name, secret, verdict) in [
        ("right", Some("mine"), "signature ok"),
        ("wrong", Some("another"), "WRONG SIGNATURE"),
        ("none", None, "not signed"),
    ] {
        let mut body = json!({"url": format!("http://127.0.0.1:{port}/"), "name": name,
            "event": "contentGroupAdded", "secret": secret});
        if secret.is_none() {
            body.as_object_mut().unwrap().remove("secret");
        }
        let made = program.request(Method::POST, "/webhooks").json(&body).send().await.unwrap();
        let webhook: serde_json::Value = made.json().await.unwrap();
        let group = json!({"name": name});
        program.request(Method::POST, "/content-groups").json(&group).send().await.unwrap();
        let line = shown
            .find(|line| line.as_ref().unwrap().contains("contentGroupAdded"))
            .unwrap()
            .unwrap();
        assert!(line.contains(verdict) && line.contains("evt_"), "{line}");
        let named = shown.any(|line| line.unwrap().contains(&format!("\"name\": \"{name}\"")));
        assert!(named, "the body is shown");
        let path = format!("/webhooks?id={}", webhook["id"].as_str().unwrap());
        program.request(Method::DELETE, &path).send().await.unwrap();
    }
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for body in
        ["\u{1b}[31m\u{9b}31m no JSON", "{\"type\": \"\u{202e}x\", \"data\": \"\u{9b}31m\"}"]
    {
        let url = format!("http://127.0.0.1:{port}/");
        client.post(url).body(body).send().await.unwrap();
        let mut lines = shown.by_ref().map(Result::unwrap);
        let head = lines.find(|line| line.contains("not signed")).unwrap();
        let all = head + &lines.take_while(|line| !line.is_empty()).collect::<String>();
        assert!(!all.contains(|c: char| c.is_control() || c == '\u{202e}'), "{all:?}");
    }
    listener.kill().unwrap();
    listener.wait().unwrap();
}
