//! Sending the mails that were committed: each at least once, for a day.
//!
//! A mail is leased from the queue for longer than an attempt takes, sent, and settled. Should the program end
//! in between, it is sent again when the lease is over: that is the only way for a mail to come twice, and both
//! have the same `Message-ID`.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use futures_util::future::join_all;
use galley_domain::Timestamp;
use galley_mail::{Mail, Mailer, NotSent};
use galley_storage::mails::{self, LeasedMail, MailOutcome};
use galley_storage::{Error as StorageError, Tx, WriteTx};

use crate::http::app::App;
use crate::operations::deliveries::{DISABLED_MAIL, DisabledMail};
use crate::operations::members::{INVITE_MAIL, InviteMail, mail_place};
use crate::pages;

/// How often the queue is looked at. It isn't told of commits, as nearly all of these have no mail.
const POLL_PAUSE: Duration = Duration::from_secs(1);

/// How many mails are sent at the same time.
const AT_ONCE: i64 = 4;

/// How long nobody else sends a mail that somebody sends: longer than an attempt may take.
const LEASE_MS: i64 = 120_000;

/// The same where a mail is only written to a file.
const FILE_LEASE_MS: i64 = 10_000;

/// How long a mail is tried.
const TRIED_MS: i64 = 24 * 60 * 60 * 1_000;

/// How long after an attempt the next one comes, in seconds; the last one again and again.
const PAUSES: [i64; 7] = [5, 30, 2 * 60, 10 * 60, 30 * 60, 60 * 60, 2 * 60 * 60];

/// Sends what is due until the service stops.
pub(crate) async fn run(app: App, mailer: Arc<Mailer>) {
    let mut stop = app.stopping();
    loop {
        while send_some(&app, &mailer).await {
            if *stop.borrow() {
                return;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(POLL_PAUSE) => {}
            _ = stop.wait_for(|stopping| *stopping) => return,
        }
    }
}

/// Makes an attempt for each of some mails that are due; whether there were any.
async fn send_some(app: &App, mailer: &Mailer) -> bool {
    let now = app.environment().now();
    // Without keeping a write from anybody.
    let read = async move |tx: &Tx<'_>| mails::is_any_due(tx, now).await;
    match app.database().read::<_, StorageError, _>("mails.is_any_due", read).await {
        Ok(true) => {}
        Ok(false) => return false,
        Err(error) => {
            tracing::debug!(%error, "the mails could not be looked at");
            return false;
        }
    }
    let lasts = match mailer {
        Mailer::Smtp(_) => LEASE_MS,
        Mailer::Outbox(_) => FILE_LEASE_MS,
    };
    let until = Timestamp::from_ms(now.ms() + lasts);
    let lease = async move |tx: &WriteTx<'_>| mails::lease(tx, now, until, AT_ONCE).await;
    let leased = match app.database().write::<_, StorageError, _>("mails.lease", lease).await {
        Ok(leased) => leased,
        Err(error) => {
            tracing::warn!(%error, "the mails could not be read");
            return false;
        }
    };
    join_all(leased.iter().map(|leased| send(app, mailer, leased))).await;
    !leased.is_empty()
}

async fn send(app: &App, mailer: &Mailer, leased: &LeasedMail) {
    let sent = match written(app, leased) {
        Ok(mail) => mailer.send(&mail).await,
        Err(error) => Err(error),
    };
    let now = app.environment().now();
    let (id, to) = (leased.mail.id, &leased.mail.recipient);
    let outcome = match sent {
        Ok(None) => {
            tracing::info!(mail = %id, to, "sent a mail");
            MailOutcome::Sent
        }
        Ok(Some(file)) => {
            let file = file.display();
            tracing::info!(mail = %id, to, %file, "kept a mail: set smtp-url to send them");
            MailOutcome::Sent
        }
        Err(NotSent::Failed(why)) if now.ms() - leased.created_at.ms() < TRIED_MS => {
            tracing::warn!(mail = %id, to, why, "a mail could not be sent, and is tried again");
            let place = usize::try_from(leased.attempts - 1).unwrap_or_default();
            let pause = PAUSES[place.min(PAUSES.len() - 1)];
            MailOutcome::Postponed(Timestamp::from_ms(now.ms() + pause * 1_000), why)
        }
        Err(NotSent::Refused(why) | NotSent::Failed(why)) => {
            tracing::error!(mail = %id, to, why, "a mail is given up");
            MailOutcome::GivenUp(why)
        }
    };
    let label = match outcome {
        MailOutcome::Sent => "sent",
        MailOutcome::Postponed(..) => "postponed",
        MailOutcome::GivenUp(_) => "given_up",
    };
    metrics::counter!("galley_mail_attempts_total", "outcome" => label).increment(1);
    let leased = leased.clone();
    let settle = async move |tx: &WriteTx<'_>| mails::settle(tx, &leased, &outcome, now).await;
    if let Err(error) = app.database().write::<_, StorageError, _>("mails.settle", settle).await {
        tracing::error!(%error, mail = %id, "what came of a mail was not kept: it may be sent again");
    }
}

#[derive(Template)]
#[template(path = "mail_invite.html")]
struct InviteHtml<'a> {
    subject: &'a str,
    says: &'a InviteMail,
    link: &'a str,
    expires: &'a str,
}

#[derive(Template)]
#[template(path = "mail_invite.txt")]
struct InviteText<'a> {
    says: &'a InviteMail,
    link: &'a str,
    expires: &'a str,
}

#[derive(Template)]
#[template(path = "mail_webhook_disabled.html")]
struct DisabledHtml<'a> {
    subject: &'a str,
    says: &'a DisabledMail,
    why: &'a str,
}

#[derive(Template)]
#[template(path = "mail_webhook_disabled.txt")]
struct DisabledText<'a> {
    says: &'a DisabledMail,
    why: &'a str,
}

/// The mail, written out.
fn written(app: &App, leased: &LeasedMail) -> Result<Mail, NotSent> {
    let mail = &leased.mail;
    let opened = app.key().open(&mail_place(mail.id), &mail.sealed);
    let opened = opened.map_err(|_| NotSent::Refused("its text can't be decrypted".to_owned()))?;
    let unknown = || NotSent::Refused("it is not known what it says".to_owned());
    let (subject, text, html) = match mail.kind.as_str() {
        INVITE_MAIL => {
            let says: InviteMail = serde_json::from_slice(&opened).map_err(|_| unknown())?;
            let url = app.limits().public_url.trim_end_matches('/');
            let link = format!("{url}/invite?code={}", says.code);
            let expires = pages::for_people(Timestamp::from_ms(says.expires_at_ms));
            let subject = format!("{} invites you to {}", says.inviter, says.workspace);
            let (link, expires) = (link.as_str(), expires.as_str());
            let text = InviteText { says: &says, link, expires }.render();
            let html = InviteHtml { subject: &subject, says: &says, link, expires }.render();
            (subject, text, html)
        }
        DISABLED_MAIL => {
            let says: DisabledMail = serde_json::from_slice(&opened).map_err(|_| unknown())?;
            let since = says.failing_since_ms.map(Timestamp::from_ms).map(pages::for_people);
            let why = match (says.reason.as_str(), since) {
                ("gone", _) => "its receiver answered 410, that it is gone for good".to_owned(),
                (_, Some(since)) => format!("it has failed since {since}, without one success"),
                (_, None) => "it failed for days, without one success".to_owned(),
            };
            let subject = format!("The webhook {} was disabled", says.webhook);
            let text = DisabledText { says: &says, why: &why }.render();
            let html = DisabledHtml { subject: &subject, says: &says, why: &why }.render();
            (subject, text, html)
        }
        _ => return Err(unknown()),
    };
    let of_memory = "a mail is written to memory";
    Ok(Mail {
        id: mail.id.to_string(),
        to: mail.recipient.clone(),
        subject,
        text: text.expect(of_memory),
        html: html.expect(of_memory),
        written_at_ms: leased.created_at.ms(),
    })
}
