//! The receiver's response: reading a bounded part of its body, masking the secret, and
//! `Retry-After`.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use galley_domain::webhook::WebhookSecret;
use http::HeaderMap;
use http::header::RETRY_AFTER;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use url::form_urlencoded::byte_serialize;

/// The limit on bytes read of a response body.
const READ_MAX: usize = 16 * 1024;

/// The limit on bytes stored of a response body.
const STORED_MAX: usize = 4 * 1024;

/// The text that replaces a secret.
const MASK: &str = "***";

/// Reads a body into `read`, up to the limit. Returns true if the body ended before the limit.
pub(crate) async fn read_into(mut body: Incoming, read: &mut Vec<u8>) -> bool {
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        let Some(data) = frame.data_ref() else { continue };
        let remaining = READ_MAX - read.len();
        read.extend_from_slice(&data[..data.len().min(remaining)]);
        if data.len() >= remaining {
            return false;
        }
    }
    true
}

/// Returns the beginning of a response body as text, with the secrets masked.
pub(crate) fn masked_text(read: &[u8], secrets: &[WebhookSecret]) -> String {
    let mut text = String::from_utf8_lossy(read).into_owned();
    for secret in secrets.iter().filter(|_| !read.is_empty()) {
        let forms = secret_encodings(secret);
        for form in &forms {
            text = text.replace(form, MASK);
        }
        // The part that was read may end in the middle of the secret.
        let prefix_start = forms.iter().filter_map(|form| secret_prefix_start(&text, form)).min();
        if let Some(begun) = prefix_start {
            text.truncate(begun);
            text.push_str(MASK);
        }
    }
    text.truncate(text.floor_char_boundary(STORED_MAX));
    text
}

/// The shortest beginning of a secret that is masked at the end of a response.
const MASKED_PREFIX_MIN: usize = 4;

/// Returns the position at which `text` ends in a beginning of `form`.
fn secret_prefix_start(text: &str, form: &str) -> Option<usize> {
    let lengths =
        (MASKED_PREFIX_MIN..form.len()).rev().filter(|&length| form.is_char_boundary(length));
    lengths
        .map(|length| &form[..length])
        .find(|part| text.ends_with(part))
        .map(|part| text.len() - part.len())
}

/// Returns the encodings in which a receiver may echo the secret.
fn secret_encodings(secret: &WebhookSecret) -> Vec<String> {
    let (text, key) = (secret.reveal(), secret.key());
    let hex = key.iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    let mut plain = vec![
        text.to_owned(),
        text.strip_prefix("whsec_").unwrap_or_default().to_owned(),
        STANDARD_NO_PAD.encode(&key),
        URL_SAFE_NO_PAD.encode(&key),
        hex.to_uppercase(),
        hex,
    ];
    plain.extend(String::from_utf8(key).ok());
    let mut forms = Vec::new();
    for one in plain {
        if one.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            // No encoding changes alphanumeric ASCII.
            forms.push(one);
            continue;
        }
        let quoted = serde_json::to_string(&one).unwrap_or_default();
        let quoted = quoted.trim_matches('"').to_owned();
        forms.push(escape_to_ascii(&quoted, |unit| format!("\\u{unit:04x}")));
        forms.push(escape_to_ascii(&quoted, |unit| format!("\\u{unit:04X}")));
        let url: String = byte_serialize(one.as_bytes()).collect();
        forms.extend([url.replace("%2B", "%2b").replace("%2F", "%2f").replace("%3D", "%3d"), url]);
        forms.push(
            one.replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;")
                .replace('"', "&quot;"),
        );
        forms.extend([quoted.replace('/', "\\/"), quoted, one]);
    }
    forms.retain(|form| form.len() >= MASKED_PREFIX_MIN || form == text);
    // Longest first, as one form may contain another.
    forms.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    forms.dedup();
    forms
}

/// Returns the JSON string escaped to ASCII, with the characters escaped that are special in HTML.
/// Several JSON libraries write strings like this.
fn escape_to_ascii(text: &str, hexadecimal: fn(u16) -> String) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        if c.is_ascii() && !matches!(c, '+' | '&' | '<' | '>' | '\'') {
            out.push(c);
        } else {
            out.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| hexadecimal(*unit)));
        }
        out
    })
}

/// Returns the delay that the `Retry-After` header requests, as seconds or as a date.
///
/// A number of seconds beyond the range of `u64` is the longest delay.
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
        assert_eq!(masked_text(answer, std::slice::from_ref(&secret)), "a *** b ***");
        let secret = WebhookSecret::parse("a\"b\\c").unwrap();
        assert_eq!(
            masked_text(br#"{"s":"a\"b\\c"} a"b\c"#, std::slice::from_ref(&secret)),
            r#"{"s":"***"} ***"#
        );
        let secret = WebhookSecret::parse("p\u{e4}ss+w/rd&<1>").unwrap();
        for written in [
            r"p\u00e4ss\u002bw/rd\u0026\u003c1\u003e",
            r"p\u00E4ss\u002Bw/rd\u0026\u003C1\u003E",
            "p%C3%A4ss%2Bw%2Frd%26%3C1%3E",
            "p\u{e4}ss+w/rd&amp;&lt;1&gt;",
            r"p\u{e4}ss+w\/rd&<1>",
            "cMOkc3Mrdy9yZCY8MT4",
            "70c3a473732b772f726426 3c313e",
        ] {
            let written = written.replace("\\u{e4}", "\u{e4}").replace(' ', "");
            assert_eq!(
                masked_text(format!("a {written} b").as_bytes(), std::slice::from_ref(&secret)),
                "a *** b",
                "{written}"
            );
        }
        assert_eq!(
            masked_text("a p\u{e4}ss+w".as_bytes(), std::slice::from_ref(&secret)),
            "a ***",
            "it ends in between"
        );
        let secret = WebhookSecret::parse("a\"b\\c").unwrap();
        let mut long = vec![b'x'; STORED_MAX - 2];
        long.extend_from_slice(b"a\"b\\cyyy");
        assert_eq!(masked_text(&long, std::slice::from_ref(&secret)).len(), STORED_MAX);
        assert!(!masked_text(&long, std::slice::from_ref(&secret)).contains('a'));
    }

    #[test]
    fn retry_after_is_parsed_as_seconds_or_as_a_date() {
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
