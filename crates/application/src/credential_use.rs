//! The times of the last use of tokens and sessions, recorded to the minute and outside the
//! requests.

use std::collections::HashMap;

use galley_domain::session::SESSION_LIFETIME;
use galley_domain::{Credential, Timestamp};
use galley_storage::authentication::Authentication;
use galley_storage::{Database, Error as StorageError, WriteTx, sessions, tokens};
use parking_lot::Mutex;

/// The minimum interval between two recorded uses of a credential, in milliseconds.
const RECORD_INTERVAL_MS: i64 = 60_000;

/// The number of credentials at which the map of recent uses is cleared.
const RECENT_USES_MAX: usize = 10_000;

/// The times of uses that were recorded recently.
#[derive(Debug, Default)]
pub struct CredentialUse(Mutex<HashMap<Credential, Timestamp>>);

impl CredentialUse {
    /// Records that a credential is used now, in a task, so that its request is not delayed. The
    /// use of a session extends it.
    pub fn record(&self, database: &Database, used: &Authentication, now: Timestamp) {
        let recent = |at: Timestamp| now.ms() - at.ms() < RECORD_INTERVAL_MS;
        if used.preview_of.is_some()
            || used.last_used_at.is_some_and(recent)
            || !self.is_due(used.credential, now, recent)
        {
            return;
        }
        let (database, workspace, credential) = (database.clone(), used.workspace, used.credential);
        tokio::spawn(async move {
            let record = async move |tx: &WriteTx<'_>| match credential {
                Credential::Token(id) => tokens::record_use(tx, workspace, id, now).await,
                Credential::Session(id) => {
                    sessions::record_use(tx, id, now, now.later(SESSION_LIFETIME)).await
                }
            };
            let recorded = database.write::<_, StorageError, _>("credentials.record_use", record);
            if let Err(error) = recorded.await {
                tracing::debug!(%error, "the use of a credential could not be recorded");
            }
        });
    }

    fn is_due(
        &self,
        credential: Credential,
        now: Timestamp,
        recent: impl Fn(Timestamp) -> bool,
    ) -> bool {
        let mut noted = self.0.lock();
        if noted.get(&credential).is_some_and(|&at| recent(at)) {
            return false;
        }
        if noted.len() >= RECENT_USES_MAX {
            noted.clear();
        }
        noted.insert(credential, now);
        true
    }
}
