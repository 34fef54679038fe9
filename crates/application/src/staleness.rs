//! Stale reads: reads from a standby of the database, within a bound on the age of the data.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use galley_storage::{Database, Failure, Tx};

/// The staleness bound of a request, and the age of the data that was read for it. Clones share it,
/// from the read to the headers of the response.
#[derive(Debug, Clone, Default)]
pub struct StalenessBound(Option<Arc<AllowedStaleness>>);

#[derive(Debug, Default)]
struct AllowedStaleness {
    max_age: u64,
    age: OnceLock<Duration>,
    is_forbidden: AtomicBool,
}

impl StalenessBound {
    /// Creates a bound of `max_age` seconds. Without it, all reads are current.
    pub fn new(max_age: Option<u64>) -> Self {
        let allowed = |max_age| AllowedStaleness { max_age, ..AllowedStaleness::default() };
        Self(max_age.map(|max_age| Arc::new(allowed(max_age))))
    }

    /// Returns true if stale reads are allowed.
    pub fn allows_stale(&self) -> bool {
        self.allowed().is_some()
    }

    /// Forbids stale reads: older data may show content that the token must not see.
    pub fn forbid_stale(&self) {
        if let Some(allowed) = &self.0 {
            allowed.is_forbidden.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the bound in seconds and the age of the data, if stale data was read.
    pub fn stale_read(&self) -> Option<(u64, Duration)> {
        let allowed = self.0.as_ref()?;
        Some((allowed.max_age, *allowed.age.get()?))
    }

    fn allowed(&self) -> Option<&Arc<AllowedStaleness>> {
        self.0.as_ref().filter(|allowed| !allowed.is_forbidden.load(Ordering::Relaxed))
    }

    /// Reads, from a standby of the database if stale reads are allowed.
    pub(crate) fn read<T, E, F>(
        &self,
        database: &Database,
        name: &'static str,
        operation: F,
    ) -> impl Future<Output = Result<T, E>>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&Tx<'_>) -> Result<T, E> + Send + Sync + 'static,
    {
        let operation = Box::new(operation);
        async move {
            let allowed = self.allowed();
            let max_age = allowed.map(|allowed| Duration::from_secs(allowed.max_age));
            let (value, age) = database.read_stale(name, max_age, operation).await?;
            if let (Some(allowed), Some(age)) = (allowed, age) {
                let _ = allowed.age.set(age);
            }
            Ok(value)
        }
    }
}
