//! Deliveries pass the published verifiers of Standard Webhooks.
//!
//! The Rust verifier runs in this test. `GALLEY_TEST_VERIFIER` is the command of another verifier.
//! It reads one message per line and prints `taken` or `refused` for each: see `tests/verifiers`.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use galley_delivery::DeliveryRequest;
use galley_domain::webhook::WebhookSecret;
use galley_testing::{Behaviour, Receiver};
use http::{HeaderMap, HeaderName};
use serde_json::{Value, json};
use standardwebhooks::Webhook;

use crate::sending::{request as message_to, sender};

/// Returns the command's result for each message.
fn verified_by(command: &str, messages: &[Value]) -> Vec<String> {
    let mut parts = command.split_whitespace();
    let mut process = Command::new(parts.next().unwrap())
        .args(parts)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    for message in messages {
        writeln!(stdin, "{message}").unwrap();
    }
    drop(stdin);
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "{command}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn published_verifiers_accept_the_signatures() {
    let receiver = Receiver::start(Behaviour::Status(200)).await;
    let bodies = ["", "{}", "{\"a\": \"\u{e4}\u{1f600}\"}", "not JSON\n", &"x".repeat(100_000)];
    let secrets = [
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDbm+5UNE2oQ2z7VXo9w/9Ao1pEvYUnzkv",
        "a secret of one's own, \u{e4}\u{f6}\u{fc}",
    ];
    #[expect(
        clippy::disallowed_methods,
        reason = "the verifier takes the system's, and refuses what is old"
    )]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let timestamp = i64::try_from(now.as_secs()).unwrap();
    let (mut messages, mut expected) = (Vec::new(), Vec::new());
    let mut sent = 0;
    for secret in secrets {
        let verifier = match secret.strip_prefix("whsec_") {
            Some(_) => Webhook::new(secret).unwrap(),
            None => Webhook::from_bytes(secret.as_bytes().to_vec()).unwrap(),
        };
        for body in bodies {
            let attempt = sender()
                .attempt(&DeliveryRequest {
                    id: format!("evt_{sent}"),
                    timestamp,
                    body: Bytes::copy_from_slice(body.as_bytes()),
                    secrets: vec![WebhookSecret::parse(secret.to_owned()).unwrap()],
                    ..message_to(&receiver.url)
                })
                .await;
            assert_eq!(attempt.status, Some(200));
            sent += 1;
            let request = receiver.wait_for(sent).await.remove(sent - 1);
            let (mut headers, mut fields) = (HeaderMap::new(), json!({}));
            for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
                fields[name] = json!(request.field(name));
                let value = request.field(name).parse().unwrap();
                headers.insert(HeaderName::from_static(name), value);
            }
            assert!(verifier.verify(&request.body, &headers).is_ok(), "{secret} {body}");
            assert!(verifier.verify(b"another", &headers).is_err());
            for (body, verdict) in [(body, "taken"), ("another", "refused")] {
                messages.push(json!({"secret": secret, "headers": fields, "body": body}));
                expected.push(verdict);
            }
        }
    }
    if let Ok(command) = std::env::var("GALLEY_TEST_VERIFIER") {
        assert_eq!(verified_by(&command, &messages), expected);
    }
}
