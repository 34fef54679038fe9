//! A check over all these tests: no response and no log line contains a secret.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::{LazyLock, Mutex, MutexGuard, Once, PoisonError};

use serde_json::Value;
use tracing::Level;

/// Shorter secrets may occur by chance.
const LENGTH_MIN: usize = 8;

static SECRETS: LazyLock<Mutex<Secrets>> = LazyLock::new(Default::default);

/// Secrets that may occur in responses, but not in the log.
static NOT_IN_LOG: LazyLock<Mutex<Secrets>> = LazyLock::new(Default::default);

/// A set of secrets that finds any of them in one pass, as there are many secrets and many texts.
struct Secrets {
    /// The secrets, indexed by their last two bytes as a number.
    by_end: Vec<BTreeSet<String>>,
}

impl Default for Secrets {
    fn default() -> Self {
        Self { by_end: vec![BTreeSet::new(); 1 << 16] }
    }
}

impl Secrets {
    fn insert(&mut self, secret: &str) {
        let end = secret.as_bytes().last_chunk().expect("a secret has more than a letter");
        self.by_end[Self::place(*end)].insert(secret.to_owned());
    }

    fn place(end: [u8; 2]) -> usize {
        usize::from(u16::from_be_bytes(end))
    }

    fn found_in(&self, text: &[u8]) -> Option<&str> {
        let mut end = 2;
        // All responses and log lines are searched, and iterators are slow without optimisation.
        while end <= text.len() {
            let secrets = &self.by_end[Self::place([text[end - 2], text[end - 1]])];
            if !secrets.is_empty() {
                let ended = secrets.iter().find(|one| text[..end].ends_with(one.as_bytes()));
                if let Some(found) = ended {
                    return Some(found);
                }
            }
            end += 1;
        }
        None
    }
}

fn lock(secrets: &Mutex<Secrets>) -> MutexGuard<'_, Secrets> {
    secrets.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records the secret in a request's body, if there is one.
pub(crate) fn record_secret(body: &[u8]) {
    install_log_check();
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let Some(secret) = body["secret"].as_str() else { return };
    let is_one_letter = secret.chars().collect::<BTreeSet<_>>().len() == 1;
    if secret.len() >= LENGTH_MIN && !is_one_letter {
        lock(&SECRETS).insert(secret);
    }
}

/// Records a secret that a client may see, but the log must not contain.
pub(crate) fn record_secret_for_log(secret: &str) {
    install_log_check();
    lock(&NOT_IN_LOG).insert(secret);
}

/// Asserts that `text` contains no recorded secret.
pub(crate) fn assert_absent(text: &[u8], place: &str) {
    let secrets = lock(&SECRETS);
    assert_eq!(
        secrets.found_in(text),
        None,
        "a secret in {place}: {}",
        String::from_utf8_lossy(text)
    );
}

fn install_log_check() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing_subscriber::fmt()
            .with_max_level(Level::DEBUG)
            .with_ansi(false)
            .with_writer(|| LogLine(Vec::new()))
            .init();
    });
}

/// A line of the log.
struct LogLine(Vec<u8>);

impl Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogLine {
    fn drop(&mut self) {
        for secrets in [&SECRETS, &NOT_IN_LOG] {
            if let Some(found) = lock(secrets).found_in(&self.0) {
                // A panic would only end the current task, and the test would pass.
                let text = String::from_utf8_lossy(&self.0);
                eprintln!("the secret {found} stands in the log: {text}");
                std::process::abort();
            }
        }
    }
}

#[test]
fn a_secret_is_found_anywhere_in_a_text() {
    let mut secrets = Secrets::default();
    secrets.insert("whsec_first");
    secrets.insert("whsec_other");
    for text in ["whsec_first", "a whsec_first", "whsec_first b", "whsec_firswhsec_first"] {
        assert_eq!(secrets.found_in(text.as_bytes()), Some("whsec_first"), "{text}");
    }
    for text in ["", "t", "whsec_firs", "hsec_first", "whsec_First"] {
        assert_eq!(secrets.found_in(text.as_bytes()), None, "{text}");
    }
}
