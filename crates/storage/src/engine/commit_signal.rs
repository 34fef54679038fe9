//! The signal of commits that workers or streams wait for.

use std::sync::Arc;

use tokio::sync::watch;

/// Notifies subscribers of commits. Clones share one channel.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommitSignal(Arc<watch::Sender<u64>>);

impl CommitSignal {
    /// Notifies all subscribers.
    pub(crate) fn notify(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    /// Returns a receiver that changes with each notification.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
