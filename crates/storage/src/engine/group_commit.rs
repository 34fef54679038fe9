//! Group commit on PostgreSQL: writes of one node that wait at the same time share a transaction.
//!
//! A write alone pays for a transaction, a commit, and the lock, number and insert of its event. A
//! group pays for these once. Its writes run side by side, so only writes that can't affect one
//! another may share a group ([`WriteKey`]). A group never waits for the row of another
//! transaction: the write that needs it leaves the group, and runs alone.

use std::sync::Arc;

use tokio::sync::watch;

use crate::engine::error::{Error, Failure, Result};
use crate::engine::group_state::GroupState;
use crate::engine::postgres::write_groups::{
    GroupEnd, GroupTransaction, RunningGroup, RunningWrite, WriteKey,
};
use crate::engine::postgres::{Postgres, WriteKind, WriteSession};
use crate::engine::write_pressure::TimeSlice;
use crate::engine::write_transaction::WriteTx;
use crate::tables::event_append::insert_appended;

/// The result of a write in a group.
pub(crate) enum GroupedResult<T, E> {
    Done(Result<T, E>),
    /// The write has had no effect, and must run in a transaction of its own.
    MustRunAlone,
}

/// Runs a write in a group, and waits for the commit.
pub(crate) async fn run_in_group<T, E, F>(
    postgres: &Arc<Postgres>,
    commit_signal: &watch::Sender<u64>,
    keys: &[WriteKey],
    operation: &F,
) -> GroupedResult<T, E>
where
    T: Send + 'static,
    E: Failure,
    F: AsyncFn(&WriteTx<'_>) -> Result<T, E> + Send + Sync + 'static,
{
    let write = match join_group(postgres, commit_signal, keys).await {
        Ok(Some(write)) => write,
        Ok(None) => return GroupedResult::MustRunAlone,
        Err(error) => return GroupedResult::Done(Err(error.into())),
    };
    let (result, has_failed, changes) = {
        let tx = write.tx();
        let result = Box::pin(operation(&tx)).await;
        (result, tx.has_failed(), tx.into_changes())
    };
    match result {
        Ok(value) if !has_failed => match write.finish(changes).await {
            GroupEnd::Committed => GroupedResult::Done(Ok(value)),
            GroupEnd::RolledBack => GroupedResult::MustRunAlone,
            GroupEnd::Failed(error) => GroupedResult::Done(Err(error.into())),
        },
        Err(error) if !has_failed && !changes.has_changed => {
            write.leave();
            match error.storage_error() {
                Some(_) => GroupedResult::MustRunAlone,
                None => GroupedResult::Done(Err(error)),
            }
        }
        // The group is rolled back when `write` is dropped.
        _ => GroupedResult::MustRunAlone,
    }
}

/// Waits until a group runs that has this write. Returns `None` if the write must run alone.
async fn join_group(
    postgres: &Arc<Postgres>,
    commit_signal: &watch::Sender<u64>,
    keys: &[WriteKey],
) -> Result<Option<RunningWrite>> {
    let (member, must_lead) = postgres.groups.join(keys);
    if must_lead {
        let guard = AbandonGuard(Some(Arc::clone(postgres)));
        tokio::spawn(run_groups(guard, Arc::clone(postgres), commit_signal.clone()));
    }
    postgres.group_admission.wait(member.started()).await.ok_or(Error::Overloaded)
}

/// Runs the groups until none waits.
async fn run_groups(
    mut guard: AbandonGuard,
    postgres: Arc<Postgres>,
    commit_signal: watch::Sender<u64>,
) {
    while let Some(mut group) = postgres.groups.next() {
        let end = run_group(&postgres, &commit_signal, &mut group).await;
        group.end(end);
    }
    guard.0.take();
}

/// Abandons the waiting groups if their task panics or is dropped, so that no write waits forever.
struct AbandonGuard(Option<Arc<Postgres>>);

impl Drop for AbandonGuard {
    fn drop(&mut self) {
        if let Some(postgres) = &self.0 {
            postgres.groups.abandon();
        }
    }
}

async fn run_group(
    postgres: &Postgres,
    commit_signal: &watch::Sender<u64>,
    group: &mut RunningGroup,
) -> GroupEnd {
    let session = match postgres.writer(WriteKind::Group).await {
        Ok(session) => session,
        Err(error) => {
            tracing::debug!(%error, "no connection for a group of writes");
            return GroupEnd::RolledBack;
        }
    };
    let (session, changes) =
        group.run(GroupTransaction { session, state: GroupState::default() }).await;
    // Without a session, the connection is closed.
    let Some(session) = session else { return GroupEnd::RolledBack };
    let (completed, must_notify) = {
        let tx = WriteTx::new(session.tx(), None);
        let completed = match changes {
            Some(changes) => {
                for changes in changes {
                    tx.add(changes);
                }
                complete(&tx).await
            }
            None => Err(Error::Conflict),
        };
        (completed, tx.must_notify())
    };
    let is_complete = completed.is_ok();
    match session.finish(completed).await {
        Ok(()) => {
            if must_notify {
                commit_signal.send_modify(|count| *count += 1);
            }
            GroupEnd::Committed
        }
        // The commit may have taken effect, unless the server has reported a conflict.
        Err(error) if is_complete && !error.is_retryable() => GroupEnd::Failed(error),
        Err(_) => GroupEnd::RolledBack,
    }
}

/// Runs a write in a transaction of its own. Also returns true if subscribers must be notified.
pub(crate) async fn run_alone<T, E, F>(
    session: WriteSession,
    slice: Option<&TimeSlice>,
    operation: &F,
) -> Result<(T, bool), E>
where
    T: Send + 'static,
    E: Failure,
    F: AsyncFn(&WriteTx<'_>) -> Result<T, E> + Send + Sync + 'static,
{
    let (result, completed, must_notify) = {
        let tx = WriteTx::new(session.tx(), slice);
        let result = Box::pin(operation(&tx)).await;
        let completed = if result.is_ok() { complete_alone(&tx).await } else { Ok(()) };
        (result, completed, tx.must_notify())
    };
    match result {
        Ok(value) => {
            session.finish(completed).await?;
            Ok((value, must_notify))
        }
        Err(error) => {
            let cause = error.storage_error().cloned();
            session.roll_back(cause.as_ref()).await;
            Err(error)
        }
    }
}

/// Completes the transaction of one write.
async fn complete_alone(tx: &WriteTx<'_>) -> Result<()> {
    if tx.has_failed() {
        return Err(Error::corrupt("a failed statement was ignored"));
    }
    complete(tx).await
}

/// Completes a transaction before its commit.
async fn complete(tx: &WriteTx<'_>) -> Result<()> {
    insert_appended(tx).await?;
    tx.change_generations().await
}
