//! A slice of background work, which ends early when requests wait.

use futures_util::future::try_join_all;

use crate::engine::{Result, WriteTx};

/// The queues that are worked on concurrently while requests wait. It saves round trips.
const CONCURRENT_QUEUES: usize = 8;

/// Runs the first task, and the others until the transaction is contended. On PostgreSQL several
/// run concurrently, which saves round trips.
pub(super) async fn until_contended<T>(
    tx: &WriteTx<'_>,
    tasks: Vec<impl Future<Output = Result<T>>>,
) -> Result<Vec<T>> {
    let concurrency = match (tx.has_other_writers(), tx.is_contended()) {
        (false, _) => 1,
        (true, false) => usize::MAX,
        (true, true) => CONCURRENT_QUEUES,
    };
    let (mut done, mut tasks) = (Vec::new(), tasks.into_iter());
    loop {
        let next: Vec<_> = tasks.by_ref().take(concurrency).collect();
        if next.is_empty() {
            return Ok(done);
        }
        done.extend(try_join_all(next).await?);
        if tx.should_yield() {
            return Ok(done);
        }
    }
}
