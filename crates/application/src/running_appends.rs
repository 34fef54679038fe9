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

/// The requests by upload. The channels carry true after the interruption.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningAppends(Arc<Mutex<HashMap<AssetId, watch::Sender<bool>>>>);

impl RunningAppends {
    fn channels(&self) -> MutexGuard<'_, HashMap<AssetId, watch::Sender<bool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request, until the result is dropped.
    pub(crate) fn add(&self, id: AssetId) -> RunningAppend {
        let mut channels = self.channels();
        let channel = channels.entry(id).or_insert_with(|| watch::Sender::new(false));
        RunningAppend { all: self.clone(), id, interruption: channel.subscribe() }
    }

    /// Interrupts the requests that append to an upload, and waits for their ends.
    pub(crate) async fn interrupt(&self, id: AssetId) {
        let channel = self.channels().remove(&id);
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
    interruption: watch::Receiver<bool>,
}

impl RunningAppend {
    /// Waits until the request is interrupted.
    pub(crate) fn interrupted(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut interruption = self.interruption.clone();
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
        // An interruption has removed the channel, and a later request may have added another one.
        let is_last = channels.get(&self.id).is_some_and(|channel| {
            channel.receiver_count() == 1 && channel.subscribe().same_channel(&self.interruption)
        });
        if is_last {
            channels.remove(&self.id);
        }
    }
}
