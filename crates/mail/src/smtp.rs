//! A mail server, as its URL describes it.

use std::fmt;
use std::time::Duration;

use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use percent_encoding::percent_decode_str;
use url::{Host, Url};

use crate::message::{Mail, Sender};
use crate::{InvalidSetting, NotSent};

/// How long one step may take: connecting, or an answer.
const STEP_TIME_MAX: Duration = Duration::from_secs(30);

/// How long an attempt may take.
const ATTEMPT_TIME_MAX: Duration = Duration::from_secs(90);

/// When the connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encryption {
    /// From the start.
    Implicit,
    /// By STARTTLS, or there is no attempt.
    Required,
    /// By STARTTLS where the server has it.
    Opportunistic,
    /// Never.
    None,
}

/// A mail server.
pub struct Smtp {
    host: String,
    port: u16,
    encryption: Encryption,
    credentials: Option<Credentials>,
    hello: ClientId,
    from: Sender,
}

/// Doesn't show the password.
impl fmt::Debug for Smtp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}, encrypted: {:?}", self.host, self.port, self.encryption)
    }
}

impl Smtp {
    /// `smtps://user:password@host:465`, or `smtp://…:587`, which is encrypted by STARTTLS: always with a
    /// password, else where the server has it. `?tls=required`, `opportunistic` or `none` says otherwise.
    pub fn parse(text: &str, from: Sender) -> Result<Self, InvalidSetting> {
        // The text may hold a password, and is not told.
        let invalid = |what: &str| InvalidSetting(what.to_owned());
        let url = Url::parse(text)
            .map_err(|_| invalid("it is no URL such as smtps://user:password@mail.example.org"))?;
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return Err(invalid("it names no host")),
        };
        let decoded = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
        let credentials = url
            .password()
            .map(|password| Credentials::new(decoded(url.username()), decoded(password)));
        if credentials.is_none() && !url.username().is_empty() {
            return Err(invalid("it has a user without a password"));
        }
        if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
            return Err(invalid("it has more than a host, a port and ?tls="));
        }
        let (mut tls, mut unknown) = (None, false);
        for (name, value) in url.query_pairs() {
            match &*name {
                "tls" => tls = Some(value.into_owned()),
                _ => unknown = true,
            }
        }
        if unknown {
            return Err(invalid("its only parameter is tls"));
        }
        let encryption = match (url.scheme(), tls.as_deref()) {
            ("smtps", None) => Encryption::Implicit,
            ("smtp", None) if credentials.is_some() => Encryption::Required,
            ("smtp", None | Some("opportunistic")) => Encryption::Opportunistic,
            ("smtp", Some("required")) => Encryption::Required,
            ("smtp", Some("none")) => Encryption::None,
            ("smtp", Some(_)) => {
                return Err(invalid("tls is one of required, opportunistic and none"));
            }
            ("smtps", Some(_)) => return Err(invalid("smtps:// takes no tls")),
            _ => return Err(invalid("it begins with neither smtp:// nor smtps://")),
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

    /// Connects, encrypts and logs in, and sends nothing.
    pub async fn check(&self) -> Result<(), NotSent> {
        in_time(async {
            let mut connection = self.connect().await?;
            let _ = connection.quit().await;
            Ok(())
        })
        .await
    }

    /// Makes one attempt.
    pub(crate) async fn send(&self, mail: &Mail) -> Result<(), NotSent> {
        let message = mail.to_message(&self.from)?;
        in_time(async {
            let mut connection = self.connect().await?;
            let bytes = message.formatted();
            connection.send(message.envelope(), &bytes).await.map_err(|error| {
                // What doesn't fit a server that is there will not fit it later.
                if error.is_permanent() || error.is_client() {
                    NotSent::Refused(told(&error))
                } else {
                    NotSent::Failed(told(&error))
                }
            })?;
            // It is sent, whatever comes now.
            let _ = connection.quit().await;
            Ok(())
        })
        .await
    }

    /// Whatever is wrong here is not the mail's fault.
    async fn connect(&self) -> Result<AsyncSmtpConnection, NotSent> {
        let failed = |error: SmtpError| NotSent::Failed(told(&error));
        let tls = TlsParameters::new(self.host.clone()).map_err(failed)?;
        let from_start = (self.encryption == Encryption::Implicit).then(|| tls.clone());
        let address = (self.host.as_str(), self.port);
        let connect = AsyncSmtpConnection::connect_tokio1(
            address,
            Some(STEP_TIME_MAX),
            &self.hello,
            from_start,
            None,
        );
        let mut connection = connect.await.map_err(failed)?;
        let starts_tls = match self.encryption {
            Encryption::Required => true,
            Encryption::Opportunistic => connection.can_starttls(),
            Encryption::Implicit | Encryption::None => false,
        };
        if starts_tls {
            if !connection.can_starttls() {
                return Err(NotSent::Failed("the server has no STARTTLS".to_owned()));
            }
            connection.starttls(tls, &self.hello).await.map_err(failed)?;
        }
        if let Some(credentials) = &self.credentials {
            connection.auth(DEFAULT_MECHANISMS, credentials).await.map_err(failed)?;
        }
        Ok(connection)
    }
}

async fn in_time<T>(attempt: impl Future<Output = Result<T, NotSent>>) -> Result<T, NotSent> {
    let late = || NotSent::Failed(format!("it took longer than {ATTEMPT_TIME_MAX:?}"));
    tokio::time::timeout(ATTEMPT_TIME_MAX, attempt).await.unwrap_or_else(|_| Err(late()))
}

/// The error with its causes, in one line.
fn told(error: &SmtpError) -> String {
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
    text.replace(['\r', '\n'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_says_how_to_reach_the_server() {
        let from = || Sender::parse("Galley <galley@example.org>").unwrap();
        let shown = |text: &str| format!("{:?}", Smtp::parse(text, from()).unwrap());
        for (url, expected) in [
            ("smtps://u:p@mail.example.org", "mail.example.org:465, encrypted: Implicit"),
            ("smtp://u:p%40@mail.example.org", "mail.example.org:587, encrypted: Required"),
            ("smtp://mail.example.org", "mail.example.org:25, encrypted: Opportunistic"),
            ("smtp://127.0.0.1:1025/?tls=none", "127.0.0.1:1025, encrypted: None"),
            ("smtp://[::1]:25?tls=required", "::1:25, encrypted: Required"),
        ] {
            assert_eq!(shown(url), expected, "{url}");
        }
        for (url, why) in [
            ("mail.example.org", "no URL"),
            ("http://mail.example.org", "neither"),
            ("smtp://user@mail.example.org", "without a password"),
            ("smtp://mail.example.org?tls=maybe", "one of"),
            ("smtps://mail.example.org?tls=none", "takes no tls"),
            ("smtp://mail.example.org/inbox", "more than"),
            ("smtp://mail.example.org?ssl=1", "only parameter"),
        ] {
            let error = Smtp::parse(url, from()).unwrap_err().to_string();
            assert!(error.contains(why), "{url}: {error}");
        }
        assert!(Sender::parse("galley@example.org").is_ok());
        for wrong in ["", "Galley", "a@example.org\r\nBcc: b@example.org"] {
            assert!(Sender::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
