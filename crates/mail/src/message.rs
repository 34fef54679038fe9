//! The MIME message of a mail, with its content as plain text and as HTML.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lettre::address::Envelope;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::{Address, Message};

use crate::error::{InvalidMailSetting, SendError};

/// The address in the `From` header of mails.
#[derive(Debug, Clone)]
pub struct FromAddress(Mailbox);

impl FromAddress {
    /// Parses `Galley <galley@example.org>`, or the address alone.
    pub fn parse(text: &str) -> Result<Self, InvalidMailSetting> {
        let mailbox = text.parse::<Mailbox>().ok().filter(|_| !text.contains(['\r', '\n']));
        mailbox.map(Self).ok_or_else(|| {
            let message = format!("{text:?} is not an address such as Galley <galley@example.org>");
            InvalidMailSetting(message)
        })
    }

    /// Returns the address.
    pub(crate) fn address(&self) -> &Address {
        &self.0.email
    }

    /// Returns the domain of the address.
    pub(crate) fn domain(&self) -> &str {
        self.0.email.domain()
    }
}

/// A mail to one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// The identifier, which is the same at each attempt, so that a recipient can recognise a
    /// duplicate.
    pub id: String,
    /// The recipient's address.
    pub to: String,
    /// The subject.
    pub subject: String,
    /// The body as plain text.
    pub text: String,
    /// The body as HTML, with the same content.
    pub html: String,
    /// The time when the mail was written, in milliseconds since 1970.
    pub written_at_ms: i64,
}

impl Mail {
    /// Returns the mail as a MIME message, or rejects it if it can't be one.
    pub(crate) fn to_message(&self, from: &FromAddress) -> Result<Message, SendError> {
        let rejected =
            |what: &str| SendError::Rejected(format!("the mail can't be written: {what}"));
        let to: Address = self.to.parse().map_err(|_| rejected("its address"))?;
        // The envelope is set here, as parsing it from the header would lose a quoted local part.
        let envelope = Envelope::new(Some(from.0.email.clone()), vec![to.clone()]);
        let envelope = envelope.map_err(|error| rejected(&error.to_string()))?;
        let written = Duration::from_millis(u64::try_from(self.written_at_ms).unwrap_or_default());
        let date: SystemTime = UNIX_EPOCH + written;
        // RFC 3834: prevents automatic replies, such as out-of-office messages.
        let automatic = HeaderValue::new(
            HeaderName::new_from_ascii_str("Auto-Submitted"),
            "auto-generated".to_owned(),
        );
        Message::builder()
            .envelope(envelope)
            .from(from.0.clone())
            .to(Mailbox::new(None, to))
            .raw_header(subject(&self.subject))
            .date(date)
            .message_id(Some(format!("<{}@{}>", self.id, from.domain())))
            .raw_header(automatic)
            .multipart(MultiPart::alternative_plain_html(self.text.clone(), self.html.clone()))
            .map_err(|error| rejected(&error.to_string()))
    }
}

/// Returns the `Subject` header. A subject that contains `=?` is encoded, as mail programs would
/// otherwise decode it (RFC 2047).
fn subject(text: &str) -> HeaderValue {
    let name = HeaderName::new_from_ascii_str("Subject");
    if !text.contains("=?") {
        return HeaderValue::new(name, text.to_owned());
    }
    // Each encoded word holds whole characters and is at most 75 characters long.
    let mut words = vec![String::new()];
    for c in text.chars() {
        let last = words.last().map_or(0, String::len);
        if last + c.len_utf8() > 45 {
            words.push(String::new());
        }
        words.last_mut().expect("there is one").push(c);
    }
    let words = words.iter().map(|word| format!("=?utf-8?b?{}?=", STANDARD.encode(word)));
    let encoded = words.collect::<Vec<_>>().join("\r\n ");
    HeaderValue::dangerous_new_pre_encoded(name, text.to_owned(), encoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(to: &str) -> Mail {
        Mail {
            id: "mail_1".to_owned(),
            to: to.to_owned(),
            subject: "\u{c4} subject\r\nBcc: all@example.org".to_owned(),
            text: "text\n.\n\u{1f600}".to_owned(),
            html: "<p>text</p>".to_owned(),
            written_at_ms: 1_763_631_000_000,
        }
    }

    #[test]
    fn valid_addresses_are_written_unchanged_and_others_rejected() {
        let from = FromAddress::parse("Galley <galley@example.org>").unwrap();
        for address in [
            "ann@example.org",
            "\"a b\"@example.org",
            "\"a@b,c\"@example.org",
            "\"<script>\"@example.org",
            "o'neil+x@example.org",
            "\u{e4}@ex\u{e4}mple.org",
        ] {
            let message = mail(address).to_message(&from).unwrap();
            assert_eq!(message.envelope().to()[0].to_string(), address);
            assert_eq!(message.envelope().to().len(), 1);
            let text = String::from_utf8(message.formatted()).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines.iter().any(|line| line.starts_with("To: ")), "{text}");
            assert!(!lines.iter().any(|line| line.starts_with("Bcc")), "{text}");
            assert!(lines.contains(&"Date: Thu, 20 Nov 2025 09:30:00 +0000"), "{text}");
            assert!(lines.contains(&"Message-ID: <mail_1@example.org>"), "{text}");
        }
        // A subject that looks encoded is encoded again, so that it decodes to the original text.
        let odd = Mail {
            subject: format!("=?utf-8?q?hi?= {}", "\u{e9}".repeat(60)),
            ..mail("a@example.org")
        };
        let text = String::from_utf8(odd.to_message(&from).unwrap().formatted()).unwrap();
        let lines: Vec<_> =
            text.split("\r\n").skip_while(|line| !line.starts_with("Subject: ")).collect();
        let mut words = vec![lines[0].strip_prefix("Subject: ").unwrap()];
        words.extend(lines[1..].iter().map_while(|line| line.strip_prefix(' ')));
        let decoded = words.iter().flat_map(|word| {
            let inner = word.strip_prefix("=?utf-8?b?").unwrap().strip_suffix("?=").unwrap();
            assert!(word.len() <= 75, "{word}");
            STANDARD.decode(inner).unwrap()
        });
        assert_eq!(String::from_utf8(decoded.collect()).unwrap(), odd.subject);
        for address in ["", "a@b@c", "a@example.org\r\nBcc: b@example.org"] {
            assert!(
                matches!(mail(address).to_message(&from), Err(SendError::Rejected(_))),
                "{address:?}"
            );
        }
    }
}
