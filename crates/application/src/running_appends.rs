//! The requests on this node that append to resumable uploads. A client whose connection was lost
//! continues before the server notices the loss. It asks for the position first, which ends the
//! lost request, so that its bytes are stored and not sent again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use galley_domain::AssetId;
use tokio::sync::watch;

/// The time for which an interruption waits until the bytes are stored.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The channel of the requests that append to an upload. It has true after the interruption.
type Channel = Arc<watch::Sender<bool>>;

/// The requests by upload.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningAppends(Arc<Mutex<HashMap<AssetId, Channel>>>);

impl RunningAppends {
    fn channels(&self) -> MutexGuard<'_, HashMap<AssetId, Channel>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request, until the result is dropped.
    pub(crate) fn add(&self, id: AssetId) -> RunningAppend {
        let mut channels = self.channels();
        let known = channels.get(&id).filter(|channel| !*channel.borrow()).cloned();
        let channel = known.unwrap_or_else(|| {
            let channel = Channel::new(watch::Sender::new(false));
            channels.insert(id, Arc::clone(&channel));
            channel
        });
        let interruption = Some(channel.subscribe());
        drop(channels);
        RunningAppend { all: self.clone(), id, channel, interruption }
    }

    /// Interrupts the requests that append to an upload, and waits for their ends.
    pub(crate) async fn interrupt(&self, id: AssetId) {
        let channel = self.channels().get(&id).cloned();
        if let Some(channel) = channel {
            channel.send_replace(true);
            // A store without an answer does not block the client: it sends some bytes again.
            let _ = tokio::time::timeout(TIMEOUT, channel.closed()).await;
        }
    }
}

/// A request that appends to an upload.
#[derive(Debug)]
pub(crate) struct RunningAppend {
    all: RunningAppends,
    id: AssetId,
    channel: Channel,
    /// `None` while it is dropped.
    interruption: Option<watch::Receiver<bool>>,
}

impl RunningAppend {
    /// Waits until the request is interrupted.
    pub(crate) fn interrupted(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut interruption = self.channel.subscribe();
        async move {
            if interruption.wait_for(|is_interrupted| *is_interrupted).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Drop for RunningAppend {
    fn drop(&mut self) {
        let mut channels = self.all.channels();
        self.interruption = None;
        // After an interruption, a later request has a channel of its own.
        let is_own = channels.get(&self.id).is_some_and(|own| Arc::ptr_eq(own, &self.channel));
        if is_own && self.channel.receiver_count() == 0 {
            channels.remove(&self.id);
        }
    }
}
