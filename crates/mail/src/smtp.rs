//! The SMTP client for a mail server that a URL describes.

use std::time::Duration;
use std::{fmt, io};

use lettre::Message;
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter};
use percent_encoding::percent_decode_str;
use url::{Host, Url};

use crate::error::{InvalidMailSetting, SendError};
use crate::message::{FromAddress, Mail as WrittenMail};
use crate::stream;

/// The timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The timeout for an attempt to send.
const SEND_TIMEOUT: Duration = Duration::from_secs(90);

/// The timeout for a check of the server, whose caller waits for the result.
const CHECK_TIMEOUT: Duration = Duration::from_secs(20);

/// The limit on characters of a server's message in an error.
const ERROR_CHARS_MAX: usize = 300;

/// The encryption of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encryption {
    /// TLS from the start.
    Implicit,
    /// STARTTLS. An attempt fails if the server lacks it.
    Required,
    /// STARTTLS if the server supports it.
    Opportunistic,
    /// No encryption.
    None,
}

/// An SMTP client for one mail server.
pub struct Smtp {
    host: String,
    port: u16,
    encryption: Encryption,
    credentials: Option<Credentials>,
    hello: ClientId,
    from: FromAddress,
}

/// Omits the password.
impl fmt::Debug for Smtp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encryption = match self.encryption {
            Encryption::Implicit => "TLS",
            Encryption::Required => "STARTTLS",
            Encryption::Opportunistic => "STARTTLS if the server supports it",
            Encryption::None => "not encrypted",
        };
        write!(out, "{}:{}, {encryption}", self.host, self.port)
    }
}

impl Smtp {
    /// Parses the URL of a mail server: `smtps://user:password@host:465`, or `smtp://…:587`, which
    /// uses STARTTLS.
    ///
    /// With a password, `smtp` requires STARTTLS; otherwise it uses STARTTLS if the server supports
    /// it. `?tls=required`, `opportunistic` or `none` overrides this.
    pub fn parse(text: &str, from: FromAddress) -> Result<Self, InvalidMailSetting> {
        // The text may contain a password, so errors don't quote it.
        let invalid = |what: &str| InvalidMailSetting(what.to_owned());
        let url = Url::parse(text).map_err(|_| {
            invalid("it is not a URL such as smtps://user:password@mail.example.org")
        })?;
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return Err(invalid("it has no host")),
        };
        let credentials = match url.password() {
            Some(password) => Some(Credentials::new(decoded(url.username())?, decoded(password)?)),
            None => None,
        };
        if credentials.is_none() && !url.username().is_empty() {
            return Err(invalid("it has a user without a password"));
        }
        if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
            return Err(invalid("it must contain only a host, a port and ?tls="));
        }
        let (mut tls, mut unknown) = (None, false);
        for (name, value) in url.query_pairs() {
            match &*name {
                "tls" => tls = Some(value.into_owned()),
                _ => unknown = true,
            }
        }
        if unknown {
            return Err(invalid("its only valid parameter is tls"));
        }
        let encryption = match (url.scheme(), tls.as_deref()) {
            ("smtps", None) => Encryption::Implicit,
            ("smtp", None) if credentials.is_some() => Encryption::Required,
            ("smtp", None | Some("opportunistic")) => Encryption::Opportunistic,
            ("smtp", Some("required")) => Encryption::Required,
            ("smtp", Some("none")) => Encryption::None,
            ("smtp", Some(_)) => {
                return Err(invalid("tls must be one of required, opportunistic and none"));
            }
            ("smtps", Some(_)) => return Err(invalid("smtps:// does not accept ?tls=")),
            _ => return Err(invalid("it must start with smtp:// or smtps://")),
        };
        let usual = match encryption {
            Encryption::Implicit => 465,
            _ if credentials.is_some() => 587,
            _ => 25,
        };
        let hello = ClientId::Domain(from.domain().to_owned());
        let port = url.port().unwrap_or(usual);
        Ok(Self { host, port, encryption, credentials, hello, from })
    }

    /// Checks the server: connects, encrypts, logs in and sends the `MAIL FROM` command, but no
    /// mail.
    pub async fn check(&self) -> Result<(), SendError> {
        with_timeout(CHECK_TIMEOUT, async {
            let mut connection = self.connect().await?;
            let from = Mail::new(Some(self.from.address().clone()), Vec::new());
            connection
                .command(from)
                .await
                .map_err(|error| SendError::Failed(error_text(&error)))?;
            let _ = connection.quit().await;
            Ok(())
        })
        .await
    }

    /// Makes one attempt to send the mail.
    pub(crate) async fn send(&self, mail: &WrittenMail) -> Result<(), SendError> {
        let message = mail.to_message(&self.from)?;
        with_timeout(SEND_TIMEOUT, async {
            let mut connection = self.connect().await?;
            transmit(&mut connection, &message).await?;
            // The server has accepted the mail, so the result of `QUIT` doesn't matter.
            let _ = connection.quit().await;
            Ok(())
        })
        .await
    }

    /// Connects, encrypts and logs in. Errors here are no rejections of the mail.
    async fn connect(&self) -> Result<AsyncSmtpConnection, SendError> {
        let failed = |error: SmtpError| SendError::Failed(error_text(&error));
        let from_start = self.encryption == Encryption::Implicit;
        let stream = stream::connect(&self.host, self.port, from_start);
        let stream = tokio::time::timeout(CONNECT_TIMEOUT, stream)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(|error| SendError::Failed(printable(&format!("no connection: {error}"))))?;
        let mut connection = AsyncSmtpConnection::connect_with_transport(stream, &self.hello)
            .await
            .map_err(failed)?;
        let starts_tls = match self.encryption {
            Encryption::Required => true,
            Encryption::Opportunistic => connection.can_starttls(),
            Encryption::Implicit | Encryption::None => false,
        };
        if starts_tls {
            if !connection.can_starttls() {
                return Err(SendError::Failed("the server does not support STARTTLS".to_owned()));
            }
            let tls = TlsParameters::new(self.host.clone()).map_err(failed)?;
            connection.starttls(tls, &self.hello).await.map_err(failed)?;
        }
        if let Some(credentials) = &self.credentials {
            connection.auth(DEFAULT_MECHANISMS, credentials).await.map_err(failed)?;
        }
        Ok(connection)
    }
}

/// Decodes the percent-encoding of a part of the URL.
fn decoded(part: &str) -> Result<String, InvalidMailSetting> {
    let escapes = part.split('%').skip(1);
    let is_escape = |text: &str| {
        text.get(..2).is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    let text = percent_decode_str(part).decode_utf8();
    match text {
        Ok(text) if escapes.into_iter().all(is_escape) => Ok(text.into_owned()),
        _ => Err(InvalidMailSetting(
            "the percent-encoding of its user or password is not valid".to_owned(),
        )),
    }
}

/// Transmits a mail to the server.
///
/// A permanent error about an address or the content rejects the mail. Any other error, such as
/// missing authentication, may be temporary.
async fn transmit(
    connection: &mut AsyncSmtpConnection,
    message: &Message,
) -> Result<(), SendError> {
    let envelope = message.envelope();
    let mut parameters = Vec::new();
    let addresses = envelope.to().iter().chain(envelope.from());
    if !addresses.into_iter().all(|address| AsRef::<str>::as_ref(address).is_ascii()) {
        if !connection.server_info().supports_feature(Extension::SmtpUtfEight) {
            return Err(SendError::Rejected(
                "the mail server does not support non-ASCII characters before the @ (SMTPUTF8)"
                    .to_owned(),
            ));
        }
        parameters.push(MailParameter::SmtpUtfEight);
    }
    let bytes = message.formatted();
    if !bytes.is_ascii() {
        parameters.push(MailParameter::Body(MailBodyParameter::EightBitMime));
    }
    let failed = |error: SmtpError| SendError::Failed(error_text(&error));
    let rejected = |error: SmtpError| {
        if error.is_permanent() { SendError::Rejected(error_text(&error)) } else { failed(error) }
    };
    let from = Mail::new(envelope.from().cloned(), parameters);
    connection.command(from).await.map_err(failed)?;
    for to in envelope.to() {
        let to = Rcpt::new(to.clone(), Vec::new());
        connection.command(to).await.map_err(|error| {
            if is_about_address(&error) { rejected(error) } else { failed(error) }
        })?;
    }
    connection.command(Data).await.map_err(failed)?;
    connection.message(&bytes).await.map_err(rejected)?;
    Ok(())
}

/// Returns true if the server reports permanently that the mailbox doesn't exist. A policy
/// rejection (RFC 3463: X.7) doesn't count, as an administrator may lift it.
fn is_about_address(error: &SmtpError) -> bool {
    let code = error.status().map(u16::from);
    matches!(code, Some(550..=553 | 556)) && !error_text(error).contains(": 5.7.")
}

async fn with_timeout<T>(
    limit: Duration,
    attempt: impl Future<Output = Result<T, SendError>>,
) -> Result<T, SendError> {
    let late = || SendError::Failed(format!("it timed out after {limit:?}"));
    tokio::time::timeout(limit, attempt).await.unwrap_or_else(|_| Err(late()))
}

/// Returns the error with its causes on one line, for terminals and logs.
fn error_text(error: &SmtpError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    printable(&text)
}

/// Returns a server's message with control characters and invisible characters escaped, so that it
/// can't manipulate a terminal.
fn printable(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().take(ERROR_CHARS_MAX) {
        match c {
            '\r' | '\n' | '\t' => out.push(' '),
            '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' => {
                out.extend(c.escape_unicode());
            }
            c if c.is_control() => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    if text.chars().nth(ERROR_CHARS_MAX).is_some() {
        out.push('\u{2026}');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_configures_host_port_and_encryption() {
        let from = || FromAddress::parse("Galley <galley@example.org>").unwrap();
        let shown = |text: &str| format!("{:?}", Smtp::parse(text, from()).unwrap());
        for (url, expected) in [
            ("smtps://u:p@mail.example.org", "mail.example.org:465, TLS"),
            ("smtp://u:p%40@mail.example.org", "mail.example.org:587, STARTTLS"),
            ("smtp://mail.example.org", "mail.example.org:25, STARTTLS if the server supports it"),
            ("smtp://127.0.0.1:1025/?tls=none", "127.0.0.1:1025, not encrypted"),
            ("smtp://[::1]:25?tls=required", "::1:25, STARTTLS"),
        ] {
            assert_eq!(shown(url), expected, "{url}");
        }
        for (url, why) in [
            ("mail.example.org", "not a URL"),
            ("http://mail.example.org", "must start with"),
            ("smtp://user@mail.example.org", "without a password"),
            ("smtp://mail.example.org?tls=maybe", "one of"),
            ("smtps://mail.example.org?tls=none", "does not accept ?tls="),
            ("smtp://mail.example.org/inbox", "must contain only"),
            ("smtp://user:a%zzb@mail.example.org", "the percent-encoding of its user"),
            ("smtp://user:a%@mail.example.org", "the percent-encoding of its user"),
            ("smtp://user:%ff@mail.example.org", "the percent-encoding of its user"),
            ("smtp://mail.example.org?ssl=1", "only valid parameter"),
        ] {
            let error = Smtp::parse(url, from()).unwrap_err().to_string();
            assert!(error.contains(why), "{url}: {error}");
        }
        assert!(FromAddress::parse("galley@example.org").is_ok());
        for wrong in ["", "Galley", "a@example.org\r\nBcc: b@example.org"] {
            assert!(FromAddress::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
