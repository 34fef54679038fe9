//! Over the whole suite: what was given as a secret comes back in no answer, and stands in no line of the log.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};

use serde_json::Value;
use tracing::Level;

/// Shorter ones may stand somewhere by chance.
const LENGTH_MIN: usize = 8;

static SECRETS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// What may stand in answers, but in no line of the log.
static NOT_IN_LOG: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Remembers the secret in a request's body, if there is one.
pub(crate) fn remember(body: &[u8]) {
    watch_the_log();
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let Some(secret) = body["secret"].as_str() else { return };
    let is_one_letter = secret.chars().collect::<BTreeSet<_>>().len() == 1;
    if secret.len() >= LENGTH_MIN && !is_one_letter {
        let mut secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
        secrets.insert(secret.to_owned());
    }
}

/// Remembers what a client is shown and the log is not.
pub(crate) fn remember_for_log(secret: &str) {
    watch_the_log();
    let mut secrets = NOT_IN_LOG.lock().unwrap_or_else(PoisonError::into_inner);
    secrets.insert(secret.to_owned());
}

/// Asserts that none of them stands in `text`.
pub(crate) fn assert_absent(text: &[u8], place: &str) {
    let text = String::from_utf8_lossy(text);
    let secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = secrets.iter().find(|secret| text.contains(secret.as_str()));
    assert_eq!(found, None, "a secret in {place}: {text}");
}

fn watch_the_log() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing_subscriber::fmt()
            .with_max_level(Level::DEBUG)
            .with_ansi(false)
            .with_writer(|| Log(Vec::new()))
            .init();
    });
}

/// A line of the log.
struct Log(Vec<u8>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(&self.0);
        for secrets in [&SECRETS, &NOT_IN_LOG] {
            let secrets = secrets.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(found) = secrets.iter().find(|secret| text.contains(secret.as_str())) {
                // A panic would end some task that nobody waits for.
                eprintln!("the secret {found} stands in the log: {text}");
                std::process::abort();
            }
        }
    }
}
