//! A pool of threads for CPU-bound work: as many as there are processors, with a lower priority
//! than the threads that serve requests.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

use crate::admission_queue::{AdmissionLimits, AdmissionQueue};
use crate::overloaded::Overloaded;
use crate::thread_priority::lower_priority;

/// The niceness of the threads. They get about a tenth of the processor time of a thread that
/// serves requests, so that new requests don't wait for them.
const NICENESS: i32 = 10;

/// The limits of tasks that wait for a thread.
const LIMITS: AdmissionLimits =
    AdmissionLimits { timeout: Duration::from_secs(10), burst: 1_024, sustained: 64 };

/// A pool of threads for CPU-bound work.
#[derive(Debug)]
pub struct CpuPool {
    /// The runtime whose blocking threads do the work; `Some` until the pool is dropped.
    runtime: Option<Runtime>,
    permits: Arc<Semaphore>,
    queue: AdmissionQueue,
}

impl Default for CpuPool {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(threads)
            .thread_name("cpu-pool")
            .on_thread_start(|| lower_priority(NICENESS))
            .build();
        let runtime = runtime.expect("a runtime without a driver has no part that fails");
        let (permits, queue) = (Arc::new(Semaphore::new(threads)), AdmissionQueue::new(LIMITS));
        Self { runtime: Some(runtime), permits, queue }
    }
}

impl CpuPool {
    /// Runs `work` on a thread of the pool, and returns its result. A panic is passed on.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Overloaded> {
        let permit = self.queue.wait(Arc::clone(&self.permits).acquire_owned()).await;
        let permit = permit.and_then(Result::ok).ok_or(Overloaded)?;
        let runtime = self.runtime.as_ref().expect("the runtime exists until the pool is dropped");
        // Work that was cancelled runs to its end, and keeps its permit until then.
        let work = move || {
            let _permit = permit;
            work()
        };
        match runtime.spawn_blocking(work).await {
            Ok(result) => Ok(result),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

impl Drop for CpuPool {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
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
    async fn cancelled_work_keeps_its_permit_until_it_ends() {
        let pool = CpuPool::default();
        let all = pool.permits.available_permits();
        let (started, is_started) = oneshot::channel();
        let (finish, is_finished) = mpsc::channel::<()>();
        let work = pool.run(move || {
            started.send(()).unwrap();
            is_finished.recv().unwrap();
        });
        tokio::select! {
            _ = work => panic!("the work has ended"),
            started = is_started => started.unwrap(),
        }
        assert_eq!(pool.permits.available_permits(), all - 1);
        finish.send(()).unwrap();
        let every = u32::try_from(all).unwrap();
        let back = pool.permits.acquire_many(every);
        drop(tokio::time::timeout(Duration::from_secs(20), back).await.unwrap());
    }
}
