//! Threads for work on documents: as many as there are processors, beside those that serve requests, and standing
//! back for them.

use std::sync::Arc;
use std::time::Duration;

use galley_storage::{Error as StorageError, WaitLimits, Waiters, stand_back};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

/// How much they stand back where there is not enough of the processor for all: they get about a tenth of what a
/// thread that serves requests gets, and a request that comes in meanwhile doesn't wait for them.
const NICENESS: i32 = 10;

/// How many documents wait.
const WAIT: WaitLimits = WaitLimits { time: Duration::from_secs(10), crowd: 1_024, standing: 64 };

/// The threads.
#[derive(Debug)]
pub(super) struct Processors {
    /// Its threads for what blocks; there until it is dropped.
    runtime: Option<Runtime>,
    /// Documents that are worked on at the same time; the others wait.
    permits: Arc<Semaphore>,
    waiters: Waiters,
}

impl Processors {
    pub(super) fn new() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(threads)
            .thread_name("documents")
            .on_thread_start(|| stand_back(NICENESS))
            .build();
        let runtime = runtime.expect("without a driver there is nothing to fail");
        let waiters = Waiters::new(WAIT);
        Self { runtime: Some(runtime), permits: Arc::new(Semaphore::new(threads)), waiters }
    }

    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StorageError> {
        let turn = self.waiters.wait(Arc::clone(&self.permits).acquire_owned()).await;
        let turn = turn.and_then(Result::ok).ok_or(StorageError::Overloaded)?;
        let runtime = self.runtime.as_ref().expect("there until it is dropped");
        // Where nobody waits for it any more it goes on all the same, and its turn with it.
        let work = move || {
            let _turn = turn;
            work()
        };
        match runtime.spawn_blocking(work).await {
            Ok(result) => Ok(result),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

impl Drop for Processors {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // What is still worked on is for nobody any more.
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn what_nobody_waits_for_keeps_its_turn_until_it_is_done() {
        let processors = Processors::new();
        let all = processors.permits.available_permits();
        let (started, is_started) = oneshot::channel();
        let (go_on, wait) = mpsc::channel::<()>();
        let work = processors.run(move || {
            started.send(()).unwrap();
            wait.recv().unwrap();
        });
        tokio::select! {
            _ = work => panic!("it waits"),
            started = is_started => started.unwrap(),
        }
        assert_eq!(processors.permits.available_permits(), all - 1);
        go_on.send(()).unwrap();
        let every = u32::try_from(all).unwrap();
        let back = processors.permits.acquire_many(every);
        drop(tokio::time::timeout(Duration::from_secs(20), back).await.unwrap());
    }
}
