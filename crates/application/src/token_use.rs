//! The times of the last use of tokens, recorded to the minute and outside the requests.

use std::collections::HashMap;

use galley_domain::{Timestamp, TokenId};
use galley_storage::tokens::{self, Authentication};
use galley_storage::{Database, Error as StorageError, WriteTx};
use parking_lot::Mutex;

/// The minimum interval between two recorded uses of a token, in milliseconds.
const RECORD_INTERVAL_MS: i64 = 60_000;

/// The number of tokens at which the map of recent uses is cleared.
const RECENT_USES_MAX: usize = 10_000;

/// The times of uses that were recorded recently.
#[derive(Debug, Default)]
pub struct TokenUse(Mutex<HashMap<TokenId, Timestamp>>);

impl TokenUse {
    /// Records that a token is used now, in a task, so that its request is not delayed.
    pub fn record(&self, database: &Database, token: &Authentication, now: Timestamp) {
        let recent = |at: Timestamp| now.ms() - at.ms() < RECORD_INTERVAL_MS;
        if token.preview_of.is_some()
            || token.last_used_at.is_some_and(recent)
            || !self.is_due(token.token, now, recent)
        {
            return;
        }
        let (database, workspace, id) = (database.clone(), token.workspace, token.token);
        tokio::spawn(async move {
            let touch =
                async move |tx: &WriteTx<'_>| tokens::record_use(tx, workspace, id, now).await;
            let noted = database.write::<_, StorageError, _>("tokens.record_use", touch).await;
            if let Err(error) = noted {
                tracing::debug!(%error, "a token's use could not be recorded");
            }
        });
    }

    fn is_due(&self, token: TokenId, now: Timestamp, recent: impl Fn(Timestamp) -> bool) -> bool {
        let mut noted = self.0.lock();
        if noted.get(&token).is_some_and(|&at| recent(at)) {
            return false;
        }
        if noted.len() >= RECENT_USES_MAX {
            noted.clear();
        }
        noted.insert(token, now);
        true
    }
}
