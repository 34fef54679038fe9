//! The worker that sends committed mails, each at least once. It retries for a day.
//!
//! A mail is leased from the queue for longer than an attempt takes, sent, and its result recorded.
//! If the program ends in between, the mail is sent again after the lease has expired. Duplicates
//! have no other cause, and both have the same `Message-ID`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use futures_util::future::join_all;
use galley_domain::Timestamp;
use galley_domain::people::EmailAddress;
use galley_mail::{Mail, Mailer, SendError};
use galley_storage::mails::{self, LeasedMail, MailOutcome};
use galley_storage::{Error as StorageError, Tx, WriteTx};

use crate::operations::deliveries::{DISABLED_MAIL, DisabledMail};
use crate::operations::members::{INVITE_MAIL, InviteMail, mail_aad};
use crate::operations::sign_in::{SIGN_IN_MAIL, SignInMail};
use crate::service::Service;

/// The interval between two scans of the queue. Commits don't notify the worker, as hardly any of
/// them has a mail.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The limit on mails that are sent concurrently.
const CONCURRENT_MAILS_MAX: usize = 4;

/// The duration of a lease on a mail: longer than an attempt may take.
const LEASE_MS: i64 = 120_000;

/// The duration of a lease on a mail that is only written to a file.
const FILE_LEASE_MS: i64 = 10_000;

/// The time that mails being sent have when the service stops. A mail that takes longer is not
/// lost, as its lease expires.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The time for which a mail is retried.
const RETRY_PERIOD_MS: i64 = 24 * 60 * 60 * 1_000;

/// The back-off after each attempt, in seconds. The last one repeats.
const RETRY_BACKOFF_SECONDS: [i64; 7] = [5, 30, 2 * 60, 10 * 60, 30 * 60, 60 * 60, 2 * 60 * 60];

/// Sends mails that are due until the service stops.
pub async fn run(service: Service, mailer: Arc<Mailer>) {
    let mut stop = service.stopping();
    let mut drain_stop = service.stopping();
    let stopped = async {
        let _ = drain_stop.wait_for(|stopping| *stopping).await;
        tokio::time::sleep(STOP_TIMEOUT).await;
    };
    tokio::pin!(stopped);
    loop {
        loop {
            let sent = tokio::select! {
                sent = send_batch(&service, &mailer) => sent,
                () = &mut stopped => return,
            };
            if *stop.borrow() {
                return;
            }
            if !sent {
                break;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            _ = stop.wait_for(|stopping| *stopping) => return,
        }
    }
}

/// Makes one attempt for each of up to [`CONCURRENT_MAILS_MAX`] mails that are due. Returns true if
/// there were any.
async fn send_batch(service: &Service, mailer: &Mailer) -> bool {
    let now = service.environment().now();
    // A read, which doesn't block writes.
    let read = async move |tx: &Tx<'_>| mails::is_any_due(tx, now).await;
    match service.database().read::<_, StorageError, _>("mails.is_any_due", read).await {
        Ok(true) => {}
        Ok(false) => return false,
        Err(error) => {
            tracing::debug!(%error, "due mails could not be checked");
            return false;
        }
    }
    let lasts = match mailer {
        Mailer::Smtp(_) => LEASE_MS,
        Mailer::Outbox(_) => FILE_LEASE_MS,
    };
    let until = Timestamp::from_ms(now.ms() + lasts);
    let lease =
        async move |tx: &WriteTx<'_>| mails::lease(tx, now, until, CONCURRENT_MAILS_MAX).await;
    let leased = match service.database().write::<_, StorageError, _>("mails.lease", lease).await {
        Ok(leased) => leased,
        Err(error) => {
            tracing::warn!(%error, "due mails could not be claimed");
            return false;
        }
    };
    join_all(leased.iter().map(|leased| send(service, mailer, leased))).await;
    !leased.is_empty()
}

async fn send(service: &Service, mailer: &Mailer, leased: &LeasedMail) {
    let sent = match decrypt_content(service, leased) {
        Ok(says) => says.send(service, mailer, leased).await,
        Err(error) => Err(error),
    };
    let now = service.environment().now();
    let (id, to) = (leased.mail.id, &leased.mail.recipient);
    let outcome = match sent {
        Ok(None) => {
            tracing::info!(mail = %id, to, "sent a mail");
            MailOutcome::Sent
        }
        Ok(Some(file)) => {
            let file = file.display();
            tracing::info!(
                mail = %id,
                to,
                %file,
                "stored a mail as a file: set smtp-url to send mails"
            );
            MailOutcome::Sent
        }
        Err(SendError::Failed(why)) if now.ms() - leased.created_at.ms() < RETRY_PERIOD_MS => {
            tracing::warn!(mail = %id, to, why, "a mail could not be sent and will be retried");
            let index = usize::try_from(leased.attempts - 1).unwrap_or_default();
            let pause = RETRY_BACKOFF_SECONDS[index.min(RETRY_BACKOFF_SECONDS.len() - 1)];
            MailOutcome::Postponed(Timestamp::from_ms(now.ms() + pause * 1_000), why)
        }
        Err(SendError::Rejected(why) | SendError::Failed(why)) => {
            tracing::error!(mail = %id, to, why, "a mail was abandoned");
            MailOutcome::GivenUp(why)
        }
    };
    let label = match outcome {
        MailOutcome::Sent => "sent",
        MailOutcome::Postponed(..) => "postponed",
        MailOutcome::GivenUp(_) => "abandoned",
    };
    metrics::counter!("galley_mail_attempts_total", "outcome" => label).increment(1);
    let leased = leased.clone();
    let record =
        async move |tx: &WriteTx<'_>| mails::record_outcome(tx, &leased, &outcome, now).await;
    if let Err(error) =
        service.database().write::<_, StorageError, _>("mails.record_outcome", record).await
    {
        tracing::error!(
            %error,
            mail = %id,
            "the result of a mail could not be recorded: it may be sent again"
        );
    }
}

#[derive(Template)]
#[template(path = "mail_invite.html")]
struct InviteHtml<'a> {
    subject: &'a str,
    values: &'a InviteMail,
    link: &'a str,
    expires: &'a str,
}

#[derive(Template)]
#[template(path = "mail_invite.txt")]
struct InviteText<'a> {
    values: &'a InviteMail,
    link: &'a str,
    expires: &'a str,
}

#[derive(Template)]
#[template(path = "mail_webhook_disabled.html")]
struct DisabledHtml<'a> {
    subject: &'a str,
    values: &'a DisabledMail,
    why: &'a str,
}

#[derive(Template)]
#[template(path = "mail_webhook_disabled.txt")]
struct DisabledText<'a> {
    values: &'a DisabledMail,
    why: &'a str,
}

#[derive(Template)]
#[template(path = "mail_sign_in.html")]
struct SignInHtml<'a> {
    subject: &'a str,
    values: &'a SignInMail,
    link: &'a str,
    expires: &'a str,
}

#[derive(Template)]
#[template(path = "mail_sign_in.txt")]
struct SignInText<'a> {
    values: &'a SignInMail,
    link: &'a str,
    expires: &'a str,
}

/// The content of a mail.
enum MailContent {
    Invite(InviteMail),
    SignIn(SignInMail),
    Disabled(DisabledMail),
}

fn decrypt_content(service: &Service, leased: &LeasedMail) -> Result<MailContent, SendError> {
    let mail = &leased.mail;
    let opened = service.key().decrypt(&mail_aad(mail.id), &mail.sealed);
    let opened =
        opened.map_err(|_| SendError::Rejected("its content can't be decrypted".to_owned()))?;
    let values = match mail.kind.as_str() {
        INVITE_MAIL => serde_json::from_slice(&opened).ok().map(MailContent::Invite),
        SIGN_IN_MAIL => serde_json::from_slice(&opened).ok().map(MailContent::SignIn),
        DISABLED_MAIL => serde_json::from_slice(&opened).ok().map(MailContent::Disabled),
        _ => None,
    };
    values.ok_or_else(|| SendError::Rejected("its content is of an unknown kind".to_owned()))
}

impl MailContent {
    async fn send(
        &self,
        service: &Service,
        mailer: &Mailer,
        leased: &LeasedMail,
    ) -> Result<Option<PathBuf>, SendError> {
        let now = service.environment().now();
        if let Self::SignIn(says) = self
            && says.expires_at_ms <= now.ms()
        {
            return Err(SendError::Rejected("its code has expired".to_owned()));
        }
        let sent = mailer.send(&self.render(service, leased)).await;
        // A server may quote the text of the mail that it rejects.
        let mask =
            |why: String| self.secrets().iter().fold(why, |why, secret| mask_secret(&why, secret));
        sent.map_err(|error| match error {
            SendError::Rejected(why) => SendError::Rejected(mask(why)),
            SendError::Failed(why) => SendError::Failed(mask(why)),
        })
    }

    /// Returns the secrets in the mail.
    fn secrets(&self) -> Vec<&str> {
        match self {
            Self::Invite(says) => vec![&says.code],
            Self::SignIn(says) => vec![&says.link_code, &says.code],
            Self::Disabled(_) => Vec::new(),
        }
    }

    /// Renders the mail.
    fn render(&self, service: &Service, leased: &LeasedMail) -> Mail {
        let (subject, text, html) = match self {
            Self::Invite(says) => {
                let url = service.settings().public_url.trim_end_matches('/');
                let link = format!("{url}/invite?code={}", says.code);
                let expires = Timestamp::from_ms(says.expires_at_ms).to_minute_text();
                let subject = format!("{} invites you to {}", says.inviter, says.workspace);
                let (link, expires) = (link.as_str(), expires.as_str());
                let text = InviteText { values: says, link, expires }.render();
                let html = InviteHtml { subject: &subject, values: says, link, expires }.render();
                (subject, text, html)
            }
            Self::SignIn(says) => {
                let url = service.settings().public_url.trim_end_matches('/');
                let link = format!("{url}/sign-in/link?code={}", says.link_code);
                let expires = Timestamp::from_ms(says.expires_at_ms).to_minute_text();
                let subject = "Sign in to Galley".to_owned();
                let (link, expires) = (link.as_str(), expires.as_str());
                let text = SignInText { values: says, link, expires }.render();
                let html = SignInHtml { subject: &subject, values: says, link, expires }.render();
                (subject, text, html)
            }
            Self::Disabled(says) => {
                let since =
                    says.failing_since_ms.map(Timestamp::from_ms).map(Timestamp::to_minute_text);
                let why = match (says.reason.as_str(), since) {
                    ("gone", _) => "its receiver responded with 410 (Gone)".to_owned(),
                    (_, Some(since)) => format!("every request has failed since {since}"),
                    (_, None) => "every request has failed for days".to_owned(),
                };
                let subject = format!("The webhook {} was disabled", says.webhook);
                let text = DisabledText { values: says, why: &why }.render();
                let html = DisabledHtml { subject: &subject, values: says, why: &why }.render();
                (subject, text, html)
            }
        };
        let of_memory = "a mail is written to memory";
        let to = EmailAddress::from_stored(leased.mail.recipient.as_str());
        Mail {
            id: leased.mail.id.to_string(),
            to: to.with_ascii_domain(),
            subject,
            text: text.expect(of_memory),
            html: html.expect(of_memory),
            written_at_ms: leased.created_at.ms(),
        }
    }
}

/// Masks each part of a secret in a text that is long enough to help an attacker.
fn mask_secret(text: &str, secret: &str) -> String {
    const SECRET_PART_MIN: usize = 6;
    // Servers may change the case.
    let (in_lower, secret) = (text.to_ascii_lowercase(), secret.to_ascii_lowercase());
    let mut hidden = vec![false; text.len()];
    for part in
        secret.as_bytes().windows(SECRET_PART_MIN).filter_map(|part| str::from_utf8(part).ok())
    {
        for (place, _) in in_lower.match_indices(part) {
            hidden[place..place + SECRET_PART_MIN].fill(true);
        }
    }
    let mut out = String::new();
    for (place, c) in text.char_indices() {
        match hidden[place] {
            false => out.push(c),
            true if !out.ends_with('\u{2026}') => out.push('\u{2026}'),
            true => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::mask_secret;

    #[test]
    fn no_part_of_a_code_is_stored() {
        let code = "kG1p0i3nYcYQ3X1bHc2mZq7n5T0uE8w4rJv9sLdAfBg";
        let told = "550 \u{e9} https://x/invite?code=3DkG1p0i3nYcYQ3X1bHc= 2mZq7n5T0uE8w4rJv9sLdAfBg. KG1P0I3NYC";
        assert_eq!(
            mask_secret(told, code),
            "550 \u{e9} https://x/invite?code=3D\u{2026}= \u{2026}. \u{2026}"
        );
        assert_eq!(mask_secret("550 no", code), "550 no");
    }
}
