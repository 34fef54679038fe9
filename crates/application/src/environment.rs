//! The sources of time, randomness and name resolution, passed to operations and workers.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use galley_delivery::{Resolve, SystemResolver};
use galley_domain::access_token::AccessToken;
use galley_domain::id::IdSequence;
use galley_domain::session::SignInCode;
use galley_domain::{AssetKey, Timestamp};
use galley_storage::{Database, Error as StorageError};
use parking_lot::Mutex;

use crate::references::ReferenceCache;

/// A source of time.
pub trait Clock: Debug + Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks the system")]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_ms(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }
}

/// The clock of a database that several nodes share, followed by its offset. The clocks of machines
/// may differ, and a lease must expire at the same moment on all nodes.
#[derive(Debug)]
pub struct DatabaseClock {
    own: Arc<dyn Clock>,
    ahead_ms: AtomicI64,
}

impl DatabaseClock {
    /// Follows the clock of `database` relative to this machine's clock `own`, until the returned
    /// clock is dropped. Returns `own` if the database has no clock.
    pub async fn follow(
        database: &Database,
        own: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Clock>, StorageError> {
        let Some(ahead_ms) = Self::measure(database, &*own).await? else { return Ok(own) };
        let offset = Duration::from_millis(ahead_ms.unsigned_abs());
        if offset > CLOCK_OFFSET_WARNING_MIN {
            let ahead = ahead_ms > 0;
            tracing::warn!(
                ?offset,
                ahead,
                "the clocks of the database and of this machine differ: the database's is used"
            );
        }
        let clock = Arc::new(Self { own, ahead_ms: AtomicI64::new(ahead_ms) });
        let (database, followed) = (database.clone(), Arc::downgrade(&clock));
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(CLOCK_OFFSET_INTERVAL).await;
                let Some(clock) = followed.upgrade() else { break };
                match Self::measure(&database, &*clock.own).await {
                    Ok(ahead) => clock.ahead_ms.store(ahead.unwrap_or(0), Ordering::Relaxed),
                    Err(error) => tracing::debug!(%error, "the database's clock could not be read"),
                }
            }
        });
        Ok(clock)
    }

    /// Returns the offset of the database's clock, from the quickest of three reads. The error is
    /// at most half of that read's duration.
    async fn measure(database: &Database, own: &dyn Clock) -> Result<Option<i64>, StorageError> {
        let mut quickest: Option<(i64, i64)> = None;
        for _ in 0..3 {
            let before = own.now().ms();
            let Some(there) = database.clock().await? else { return Ok(None) };
            let after = own.now().ms();
            let (took, ahead) = (after - before, there.ms() - i64::midpoint(before, after));
            if quickest.is_none_or(|(least, _)| took < least) {
                quickest = Some((took, ahead));
            }
        }
        Ok(quickest.map(|(_, ahead)| ahead))
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.own.now().ms() + self.ahead_ms.load(Ordering::Relaxed))
    }
}

/// The interval between two measurements of the offset.
const CLOCK_OFFSET_INTERVAL: Duration = Duration::from_secs(10);

/// The offset above which a warning is logged. Synchronized clocks differ by less.
const CLOCK_OFFSET_WARNING_MIN: Duration = Duration::from_secs(1);

/// The source of time, identifiers and random numbers for operations, and the cache of rows that
/// pieces refer to. Clones share them.
#[derive(Debug, Clone)]
pub struct Environment {
    clock: Arc<dyn Clock>,
    resolver: Arc<dyn Resolve>,
    ids: Arc<Mutex<IdSequence>>,
    /// `None` without a service, as the cache is that of one database.
    references: Option<Arc<ReferenceCache>>,
}

impl Default for Environment {
    fn default() -> Self {
        Self::with_clock(Arc::new(SystemClock))
    }
}

impl Environment {
    /// Creates an environment with this clock.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let (resolver, ids) = (Arc::new(SystemResolver::default()), Arc::default());
        Self { clock, resolver, ids, references: None }
    }

    /// Replaces the resolver of names.
    pub fn with_resolver(self, resolver: Arc<dyn Resolve>) -> Self {
        Self { resolver, ..self }
    }

    /// Returns the resolver of names.
    pub fn resolver(&self) -> &Arc<dyn Resolve> {
        &self.resolver
    }

    /// Sets the cache of the rows to which pieces of one database refer.
    pub(crate) fn with_references(self, references: Arc<ReferenceCache>) -> Self {
        Self { references: Some(references), ..self }
    }

    /// Returns the cache of the rows to which pieces refer.
    pub(crate) fn references(&self) -> Option<&ReferenceCache> {
        self.references.as_deref()
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the value of a new identifier, greater than every earlier one.
    pub fn new_id(&self) -> u128 {
        let now = self.now().ms();
        self.ids.lock().next(now, rand::random())
    }

    /// Returns a random number that need not be unpredictable.
    pub fn random(&self) -> u32 {
        rand::random()
    }

    /// Returns a random number from 0 to 1 that need not be unpredictable.
    pub fn random_fraction(&self) -> f64 {
        f64::from(self.random()) / f64::from(u32::MAX)
    }

    /// Returns an unguessable text of 256 random bits, such as the code of an invite.
    pub fn new_code(&self) -> String {
        URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
    }

    /// Returns a new code that a person types to sign in.
    pub fn new_sign_in_code(&self) -> SignInCode {
        SignInCode::from_random(rand::random())
    }

    /// Returns an unguessable key for the address of an asset.
    pub fn new_asset_key(&self) -> AssetKey {
        AssetKey::new(rand::random())
    }

    /// Returns a new access token.
    pub fn new_access_token(&self) -> AccessToken {
        AccessToken::from_random(rand::random())
    }
}
