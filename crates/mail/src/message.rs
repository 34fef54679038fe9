//! A mail as it is sent: MIME with a text and an HTML form of the same.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::{Address, Message};

use crate::{InvalidSetting, NotSent};

/// Who mails come from.
#[derive(Debug, Clone)]
pub struct Sender(Mailbox);

impl Sender {
    /// `Galley <galley@example.org>`, or the address alone.
    pub fn parse(text: &str) -> Result<Self, InvalidSetting> {
        let mailbox = text.parse::<Mailbox>().ok().filter(|_| !text.contains(['\r', '\n']));
        mailbox.map(Self).ok_or_else(|| {
            let message = format!("{text:?} is no address such as Galley <galley@example.org>");
            InvalidSetting(message)
        })
    }

    /// The domain of the address.
    pub(crate) fn domain(&self) -> &str {
        self.0.email.domain()
    }
}

/// A mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// The same at each attempt, so that who gets it twice can see that.
    pub id: String,
    /// The address that it goes to.
    pub to: String,
    /// What it is about.
    pub subject: String,
    /// What it says.
    pub text: String,
    /// The same as HTML.
    pub html: String,
    /// When it was written, in milliseconds since 1970.
    pub written_at_ms: i64,
}

impl Mail {
    /// The mail in MIME.
    pub(crate) fn to_message(&self, from: &Sender) -> Result<Message, NotSent> {
        let refused = |what: &str| NotSent::Refused(format!("the mail can't be written: {what}"));
        let to: Address = self.to.parse().map_err(|_| refused("its address"))?;
        let written = Duration::from_millis(u64::try_from(self.written_at_ms).unwrap_or_default());
        let date: SystemTime = UNIX_EPOCH + written;
        // RFC 3834: nobody's holidays are to answer it.
        let automatic = HeaderValue::new(
            HeaderName::new_from_ascii_str("Auto-Submitted"),
            "auto-generated".to_owned(),
        );
        Message::builder()
            .from(from.0.clone())
            .to(Mailbox::new(None, to))
            .subject(&self.subject)
            .date(date)
            .message_id(Some(format!("<{}@{}>", self.id, from.domain())))
            .raw_header(automatic)
            .multipart(MultiPart::alternative_plain_html(self.text.clone(), self.html.clone()))
            .map_err(|error| refused(&error.to_string()))
    }
}
