//! The resolution of host names.

use std::fmt::Debug;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;

/// A pending resolution.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// A resolver of host names.
pub trait Resolve: Debug + Send + Sync {
    /// Returns all addresses of `name`.
    fn resolve(&self, name: String) -> Resolving;
}

/// The limit on concurrent resolutions, as each occupies a thread until its name server responds.
const RESOLVING_MAX: usize = 64;

/// The system's resolver.
#[derive(Debug, Clone)]
pub struct SystemResolver(Arc<Semaphore>);

impl Default for SystemResolver {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(RESOLVING_MAX)))
    }
}

impl Resolve for SystemResolver {
    fn resolve(&self, name: String) -> Resolving {
        let permits = Arc::clone(&self.0);
        Box::pin(async move {
            let permit = permits.acquire_owned().await.map_err(io::Error::other)?;
            // A separate task holds the permit until the thread is free, even if the caller has
            // been cancelled.
            let found = tokio::spawn(async move {
                let found = tokio::net::lookup_host((name, 0)).await;
                drop(permit);
                Ok::<Vec<IpAddr>, io::Error>(found?.map(|address| address.ip()).collect())
            });
            found.await.map_err(io::Error::other)?
        })
    }
}
