//! What is sent is what the published verifier of the standard takes.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use galley_delivery::Request;
use galley_domain::webhook::WebhookSecret;
use galley_testing::{Behaviour, Receiver};
use http::{HeaderMap, HeaderName};
use standardwebhooks::Webhook;

use crate::sending::{request as message_to, sender};

#[tokio::test]
async fn the_published_verifier_takes_it() {
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
    let mut sent = 0;
    for secret in secrets {
        let verifier = match secret.strip_prefix("whsec_") {
            Some(_) => Webhook::new(secret).unwrap(),
            None => Webhook::from_bytes(secret.as_bytes().to_vec()).unwrap(),
        };
        for body in bodies {
            let attempt = sender()
                .attempt(&Request {
                    id: format!("evt_{sent}"),
                    timestamp,
                    body: Bytes::copy_from_slice(body.as_bytes()),
                    secret: Some(WebhookSecret::parse(secret.to_owned()).unwrap()),
                    ..message_to(&receiver.url)
                })
                .await;
            assert_eq!(attempt.status, Some(200));
            sent += 1;
            let request = receiver.wait_for(sent).await.remove(sent - 1);
            let mut headers = HeaderMap::new();
            for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
                let value = request.field(name).parse().unwrap();
                headers.insert(HeaderName::from_static(name), value);
            }
            assert!(verifier.verify(&request.body, &headers).is_ok(), "{secret} {body}");
            assert!(verifier.verify(b"another", &headers).is_err());
        }
    }
}
