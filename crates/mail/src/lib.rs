//! Mails: what goes into one, and how it leaves the house, over SMTP or into a directory.
//!
//! One attempt, and what came of it. When to try again is not known here.

mod error;
mod message;
mod outbox;
mod smtp;
mod stream;

use std::path::PathBuf;

pub use error::{InvalidSetting, NotSent};
pub use message::{Mail, Sender};
pub use outbox::Outbox;
pub use smtp::Smtp;

/// How mails leave.
#[derive(Debug)]
pub enum Mailer {
    /// By a mail server.
    Smtp(Smtp),
    /// Into files.
    Outbox(Outbox),
}

impl Mailer {
    /// Makes one attempt to send a mail; says where it is if it is in a file.
    pub async fn send(&self, mail: &Mail) -> Result<Option<PathBuf>, NotSent> {
        match self {
            Self::Smtp(smtp) => smtp.send(mail).await.map(|()| None),
            Self::Outbox(outbox) => outbox.keep(mail).map(Some),
        }
    }
}
