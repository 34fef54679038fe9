//! Time, randomness and what names lead to, handed to whatever needs them.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use galley_delivery::{Resolve, SystemResolver};
use galley_domain::Timestamp;
use galley_domain::access_token::AccessToken;
use galley_domain::id::IdSequence;

/// Tells the time.
pub trait Clock: Debug + Send + Sync {
    /// What time it is.
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

/// Where operations get the time, identifiers and random numbers from. Clones share them.
#[derive(Debug, Clone)]
pub struct Environment {
    clock: Arc<dyn Clock>,
    resolver: Arc<dyn Resolve>,
    ids: Arc<Mutex<IdSequence>>,
}

impl Default for Environment {
    fn default() -> Self {
        Self::with_clock(Arc::new(SystemClock))
    }
}

impl Environment {
    /// An environment in which `clock` tells the time.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self { clock, resolver: Arc::new(SystemResolver::default()), ids: Arc::default() }
    }

    /// The same with another way to find the addresses of names.
    pub fn with_resolver(self, resolver: Arc<dyn Resolve>) -> Self {
        Self { resolver, ..self }
    }

    /// Finds the addresses of names.
    pub fn resolver(&self) -> &Arc<dyn Resolve> {
        &self.resolver
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The value of a new identifier, greater than every earlier one.
    pub fn new_id(&self) -> u128 {
        let now = self.now().ms();
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).next(now, rand::random())
    }

    /// A random number that need not be unpredictable.
    pub fn random(&self) -> u32 {
        rand::random()
    }

    /// A random number from 0 to 1 that need not be unpredictable.
    pub fn random_part(&self) -> f64 {
        f64::from(self.random()) / f64::from(u32::MAX)
    }

    /// A text that nobody guesses, such as the code of a new invite: 256 random bits.
    pub fn new_code(&self) -> String {
        URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
    }

    /// A new access token.
    pub fn new_access_token(&self) -> AccessToken {
        AccessToken::from_random(rand::random())
    }
}
