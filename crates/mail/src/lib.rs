//! Mails: their content, and their transport over SMTP or into a directory.
//!
//! This crate makes one attempt and returns its result. The caller schedules retries.

mod error;
mod message;
mod outbox;
mod smtp;
mod stream;

use std::path::PathBuf;

pub use error::{InvalidMailSetting, SendError};
pub use message::{FromAddress, Mail};
pub use outbox::Outbox;
pub use smtp::Smtp;

/// The transport for mails.
#[derive(Debug)]
pub enum Mailer {
    /// An SMTP server.
    Smtp(Smtp),
    /// A directory of mail files.
    Outbox(Outbox),
}

impl Mailer {
    /// Makes one attempt to send a mail. Returns the path of its file if the transport writes
    /// files.
    pub async fn send(&self, mail: &Mail) -> Result<Option<PathBuf>, SendError> {
        match self {
            Self::Smtp(smtp) => smtp.send(mail).await.map(|()| None),
            Self::Outbox(outbox) => outbox.store(mail).map(Some),
        }
    }
}
