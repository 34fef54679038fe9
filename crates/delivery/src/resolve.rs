//! Where a name leads.

use std::fmt::Debug;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;

/// A resolution under way.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Finds the addresses of a name.
pub trait Resolve: Debug + Send + Sync {
    /// All addresses of `name`.
    fn resolve(&self, name: String) -> Resolving;
}

/// How many names are resolved at the same time: each holds a thread, however long its server
/// takes.
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
            // A task of its own: it keeps its permit until the thread is free, also when nobody
            // waits for it any more.
            let found = tokio::spawn(async move {
                let found = tokio::net::lookup_host((name, 0)).await;
                drop(permit);
                Ok::<Vec<IpAddr>, io::Error>(found?.map(|address| address.ip()).collect())
            });
            found.await.map_err(io::Error::other)?
        })
    }
}
