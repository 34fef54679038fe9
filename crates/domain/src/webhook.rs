//! Webhooks: the URL that events are sent to, the subscribed events, and the secret that signs
//! them.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::event::{EventType, EventTypes};
use crate::id::{ContentGroupId, WebhookId};
use crate::named_enum;
use crate::publication::ContentView;
use crate::text::{Invalid, ShortText, check_http_url, checked_text, line_of_text};
use crate::time::Timestamp;

line_of_text! {
    /// A webhook's name: 1 to 255 characters without control characters.
    WebhookName(1..=255)
}

checked_text! {
    /// An absolute http or https URL, to 2,048 characters, without user and password.
    WebhookUrl, |text| {
        check_http_url(text, "must not contain a user or password: the secret signs requests")
    }
}

/// The range of bytes that the base 64 of a `whsec_` secret encodes.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 16..=64;

const KEY_PREFIX: &str = "whsec_";

/// The secret that signs a webhook's requests: 1 to 255 bytes, or `whsec_` and the base 64 of 16 to
/// 64. `Debug` omits it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(String);

impl WebhookSecret {
    /// Parses `text`, and rejects it if it breaks the rules of this type.
    pub fn parse(text: impl Into<String>) -> Result<Self, Invalid> {
        let text = text.into();
        crate::text::check_no_nul(&text)?;
        if text.is_empty() {
            return Err(Invalid::new("too_short", "must not be empty"));
        }
        if text.len() > 255 {
            return Err(Invalid::too_long(255, "bytes"));
        }
        let secret = Self(text);
        if secret.0.starts_with(KEY_PREFIX)
            && !secret.encoded().is_some_and(|key| KEY_BYTES.contains(&key.len()))
        {
            let message = "must contain 16 to 64 bytes in base64 after whsec_";
            return Err(Invalid::new("invalid_secret", message));
        }
        Ok(secret)
    }

    /// Returns the text as it was given.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the signing key: the secret's bytes, or the bytes that its base 64 encodes.
    pub fn key(&self) -> Vec<u8> {
        self.encoded().unwrap_or_else(|| self.0.as_bytes().to_vec())
    }

    fn encoded(&self) -> Option<Vec<u8>> {
        STANDARD.decode(self.0.strip_prefix(KEY_PREFIX)?).ok()
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("WebhookSecret(…)")
    }
}

/// A webhook, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The identifier.
    pub id: WebhookId,
    /// The URL that events are sent to.
    pub url: WebhookUrl,
    /// True if events are sent without the e-mail addresses of members.
    pub hides_emails: bool,
    /// The name for people.
    pub name: WebhookName,
    /// A description for people.
    pub description: Option<ShortText>,
    /// The first event that a client named: one of `events`.
    pub event: EventType,
    /// The events that are sent.
    pub events: EventTypes,
    /// The group that limits the scope, with all groups under it.
    pub content_group_id: Option<ContentGroupId>,
    /// The view whose events are sent.
    pub view: ContentView,
    /// The extension whose token created it.
    pub extension: Option<String>,
    /// True if events are sent.
    pub enabled: bool,
    /// The reason why it is disabled.
    pub disabled_reason: Option<DisabledReason>,
    /// The time since which all attempts have failed.
    pub failing_since: Option<Timestamp>,
    /// The number of deliveries that were deleted while it was disabled, due to their limit or
    /// their age.
    pub dropped: i64,
    /// Raised by every change.
    pub version: i64,
}

named_enum! {
    /// The reason why a webhook is disabled.
    pub enum DisabledReason {
        /// A client disabled it.
        Requested = "requested",
        /// The group that limits its scope was deleted.
        GroupDeleted = "group_deleted",
        /// The receiver responded with 410 Gone.
        Gone = "gone",
        /// All attempts have failed for five days.
        Failing = "failing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_http_and_hold_no_password() {
        for good in [
            "https://example.org",
            "http://127.0.0.1:9/x?y=1",
            "https://[::1]/",
            "HTTPS://EXAMPLE.org/a",
        ] {
            assert!(WebhookUrl::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "/hook",
            "example.org",
            "ftp://example.org",
            "https://",
            "http://u:p@example.org",
            "http://u@example.org",
            "file:///etc/passwd",
            " https://example.org",
            "https://exa mple.org",
            "https://example.org/\n",
        ] {
            assert!(WebhookUrl::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_key_of_a_secret_is_its_bytes_or_its_decoded_base64() {
        assert_eq!(WebhookSecret::parse("s3").unwrap().key(), b"s3");
        let secret = WebhookSecret::parse("whsec_MDEyMzQ1Njc4OWFiY2RlZg==").unwrap();
        assert_eq!(secret.key(), b"0123456789abcdef");
        assert!(!format!("{secret:?}").contains("MDEy"));
        for bad in ["", "whsec_", "whsec_MDEy", "whsec_?", &"x".repeat(256), "a\0b"] {
            assert!(WebhookSecret::parse(bad).is_err(), "{bad}");
        }
    }
}
