//! Threads for work on documents: as many as there are processors, beside those that serve requests, and standing
//! back for them.

use galley_storage::stand_back;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

/// How much they stand back where there is not enough of the processor for all: they get about a tenth of what a
/// thread that serves requests gets, and a request that comes in meanwhile doesn't wait for them.
const NICENESS: i32 = 10;

/// The threads.
#[derive(Debug)]
pub(super) struct Processors {
    /// Its threads for what blocks; there until it is dropped.
    runtime: Option<Runtime>,
    /// Documents that are worked on at the same time; the others wait.
    permits: Semaphore,
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
        Self { runtime: Some(runtime), permits: Semaphore::new(threads) }
    }

    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let _permit = self.permits.acquire().await.expect("the semaphore is never closed");
        let runtime = self.runtime.as_ref().expect("there until it is dropped");
        match runtime.spawn_blocking(work).await {
            Ok(result) => result,
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
