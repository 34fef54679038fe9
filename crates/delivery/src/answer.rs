//! What is read of an answer, and what is kept of it.

use std::time::Duration;

use galley_domain::webhook::WebhookSecret;
use http::HeaderMap;
use http::header::RETRY_AFTER;
use http_body_util::BodyExt;
use hyper::body::Incoming;

/// How much of an answer is read.
const READ_MAX: usize = 16 * 1024;

/// How much of it is kept, in bytes.
const KEPT_MAX: usize = 4 * 1024;

/// What stands for a secret.
const MASK: &str = "***";

/// Reads a body into `read`, as far as it is read at all; says whether that was all of it.
pub(crate) async fn read_into(mut body: Incoming, read: &mut Vec<u8>) -> bool {
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        let Some(data) = frame.data_ref() else { continue };
        let room = READ_MAX - read.len();
        read.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() >= room {
            return false;
        }
    }
    true
}

/// The beginning of an answer as text, without the secret.
pub(crate) fn kept(read: &[u8], secret: Option<&WebhookSecret>) -> String {
    let mut text = String::from_utf8_lossy(read).into_owned();
    if let Some(secret) = secret {
        for form in forms(secret) {
            text = text.replace(&form, MASK);
        }
    }
    text.truncate(text.floor_char_boundary(KEPT_MAX));
    text
}

/// The ways in which a receiver would write the secret.
fn forms(secret: &WebhookSecret) -> Vec<String> {
    let text = secret.reveal();
    let encoded = text.strip_prefix("whsec_").map(ToOwned::to_owned);
    let quoted = serde_json::to_string(text).unwrap_or_default();
    let quoted = quoted.trim_matches('"').to_owned();
    let mut forms: Vec<String> = [Some(text.to_owned()), Some(quoted), encoded]
        .into_iter()
        .flatten()
        .filter(|form| !form.is_empty())
        .collect();
    // The longest first, as one may hold another.
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms
}

/// How long the receiver asks to be left alone: in seconds, or until a date. A number too large to be
/// one is very long.
pub(crate) fn retry_after(headers: &HeaderMap, now: i64) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let until = httpdate::parse_http_date(text).ok()?;
    let since_epoch = until.duration_since(std::time::UNIX_EPOCH).ok()?;
    let now = Duration::from_secs(u64::try_from(now).unwrap_or_default());
    Some(since_epoch.saturating_sub(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_in_each_form() {
        let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let answer = b"a whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw b MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        assert_eq!(kept(answer, Some(&secret)), "a *** b ***");
        let secret = WebhookSecret::parse("a\"b\\c").unwrap();
        assert_eq!(kept(br#"{"s":"a\"b\\c"} a"b\c"#, Some(&secret)), r#"{"s":"***"} ***"#);
        let mut long = vec![b'x'; KEPT_MAX - 2];
        long.extend_from_slice(b"a\"b\\cyyy");
        assert_eq!(kept(&long, Some(&secret)).len(), KEPT_MAX);
        assert!(!kept(&long, Some(&secret)).contains('a'));
    }

    #[test]
    fn a_receiver_says_when_in_seconds_or_as_a_date() {
        let asked = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            retry_after(&headers, 784_111_777)
        };
        assert_eq!(asked("120"), Some(Duration::from_mins(2)));
        assert_eq!(asked("99999999999999999999999999"), Some(Duration::from_secs(u64::MAX)));
        assert_eq!(asked("Sun, 06 Nov 1994 08:50:37 GMT"), Some(Duration::from_mins(1)));
        assert_eq!(asked("Sun, 06 Nov 1994 08:48:37 GMT"), Some(Duration::ZERO));
        for odd in ["", "-1", "soon", "1.5", "Sun, 99 Nov 1994"] {
            assert_eq!(asked(odd), None, "{odd:?}");
        }
    }
}
