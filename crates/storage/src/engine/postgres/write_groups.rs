//! The queue of writes that share a transaction.
//!
//! A write joins the first waiting group in which no other write has one of its keys. Groups run
//! one after another: while one runs, the next one fills. Each write runs its closure in its own
//! task, over the connection of its group, so the statements of a group are pipelined.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::session::WriteSession;
use super::timeouts::ResponseTimeout;
use crate::engine::error::Error;
use crate::engine::group_state::GroupState;
use crate::engine::transaction_changes::TransactionChanges;
use crate::engine::write_transaction::WriteTx;

/// The limit of writes in a group.
const GROUP_SIZE_LIMIT: usize = 128;

/// The timeout of the writes of a group, longer than that of a statement. A caller that doesn't
/// poll its write would otherwise stop all groups.
const GROUP_TIMEOUT: Duration = Duration::from_secs(40);

/// The key of something that a write changes, such as a piece. Two writes with the same key are
/// never in the same group, as the locks of a transaction don't protect its writes from each other.
///
/// It is a hash. A collision only makes a write wait for the next group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WriteKey(u64);

impl WriteKey {
    /// Returns the key of a resource, named by its kind and its id.
    pub fn of(resource: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        resource.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// The groups that wait, in order.
#[derive(Debug, Default)]
pub(crate) struct WriteGroups(Mutex<GroupQueue>);

#[derive(Debug, Default)]
struct GroupQueue {
    waiting: VecDeque<WaitingGroup>,
    /// True while a task runs the groups.
    is_led: bool,
}

#[derive(Debug)]
struct WaitingGroup {
    keys: HashSet<WriteKey>,
    size: usize,
    stage: Arc<watch::Sender<Stage>>,
    reports: mpsc::UnboundedSender<WriteReport>,
    receiver: mpsc::UnboundedReceiver<WriteReport>,
}

/// The stages of a group.
#[derive(Debug, Clone, Default)]
enum Stage {
    #[default]
    Waiting,
    /// The writes run.
    Started(Arc<GroupTransaction>),
    Ended(GroupEnd),
}

/// The result of a group.
#[derive(Debug, Clone)]
pub(crate) enum GroupEnd {
    Committed,
    /// Nothing was committed. Each write is retried in a transaction of its own.
    RolledBack,
    /// The commit failed, possibly after it took effect.
    Failed(Error),
}

/// A transaction, while the writes of its group run.
#[derive(Debug)]
pub(crate) struct GroupTransaction {
    pub(crate) session: WriteSession,
    pub(crate) state: GroupState,
}

/// The report of a write to its group.
#[derive(Debug)]
pub(crate) enum WriteReport {
    Changes(TransactionChanges),
    /// The write has failed after a change, so the group must be rolled back.
    Failed,
}

/// The place of a write in its group.
#[derive(Debug)]
pub(crate) struct GroupMember {
    stage: watch::Receiver<Stage>,
    /// Dropped at the end: the group ends when no member has one any more.
    reports: mpsc::UnboundedSender<WriteReport>,
}

/// A group that runs now.
#[derive(Debug)]
pub(crate) struct RunningGroup {
    stage: Arc<watch::Sender<Stage>>,
    receiver: mpsc::UnboundedReceiver<WriteReport>,
}

impl WriteGroups {
    /// Adds a write to a group. Also returns true if the caller must start a task that runs the
    /// groups.
    pub(crate) fn join(&self, keys: &[WriteKey]) -> (GroupMember, bool) {
        let mut queue = self.0.lock();
        let fits = |group: &WaitingGroup| {
            group.size < GROUP_SIZE_LIMIT && keys.iter().all(|key| !group.keys.contains(key))
        };
        let index = queue.waiting.iter().position(fits).unwrap_or_else(|| {
            queue.waiting.push_back(WaitingGroup::new());
            queue.waiting.len() - 1
        });
        let member = queue.waiting[index].add(keys);
        let must_lead = !std::mem::replace(&mut queue.is_led, true);
        (member, must_lead)
    }

    /// Takes the next group to run. If there is none, the calling task must end.
    pub(crate) fn next(&self) -> Option<RunningGroup> {
        let mut queue = self.0.lock();
        // Groups whose writes have all given up are discarded.
        let has_writes = |group: &WaitingGroup| group.stage.receiver_count() > 0;
        let group = std::iter::from_fn(|| queue.waiting.pop_front()).find(has_writes);
        queue.is_led = group.is_some();
        group.map(|WaitingGroup { stage, receiver, .. }| RunningGroup { stage, receiver })
    }

    /// Removes all groups, as the task that ran them has ended early. Their writes then run alone.
    pub(crate) fn abandon(&self) {
        *self.0.lock() = GroupQueue::default();
    }
}

impl WaitingGroup {
    fn new() -> Self {
        let (reports, receiver) = mpsc::unbounded_channel();
        let stage = Arc::new(watch::Sender::default());
        Self { keys: HashSet::new(), size: 0, stage, reports, receiver }
    }

    fn add(&mut self, keys: &[WriteKey]) -> GroupMember {
        self.size += 1;
        self.keys.extend(keys);
        GroupMember { stage: self.stage.subscribe(), reports: self.reports.clone() }
    }
}

impl RunningGroup {
    /// Lets the writes run on `transaction`, and returns it with their changes once all have
    /// finished. Returns `None` for the changes if the transaction must be rolled back.
    pub(crate) async fn run(
        &mut self,
        transaction: GroupTransaction,
    ) -> (Option<WriteSession>, Option<Vec<TransactionChanges>>) {
        let transaction = Arc::new(transaction);
        self.stage.send_replace(Stage::Started(Arc::clone(&transaction)));
        let changes = timeout(GROUP_TIMEOUT, self.reported_changes()).await.ok().flatten();
        self.stage.send_replace(Stage::Waiting);
        (Arc::into_inner(transaction).map(|transaction| transaction.session), changes)
    }

    /// Returns the changes of all writes, or `None` if one has failed.
    async fn reported_changes(&mut self) -> Option<Vec<TransactionChanges>> {
        let mut changes = Some(Vec::new());
        while let Some(report) = self.receiver.recv().await {
            match (report, &mut changes) {
                (WriteReport::Changes(made), Some(changes)) => changes.push(made),
                _ => changes = None,
            }
        }
        changes
    }

    /// Sends the result to all writes.
    pub(crate) fn end(self, end: GroupEnd) {
        self.stage.send_replace(Stage::Ended(end));
    }
}

impl GroupMember {
    /// Waits until the group runs. Returns `None` if it doesn't.
    pub(crate) async fn started(mut self) -> Option<RunningWrite> {
        let stage = self.stage.wait_for(|stage| !matches!(stage, Stage::Waiting)).await.ok()?;
        let transaction = match &*stage {
            Stage::Started(transaction) => Arc::clone(transaction),
            Stage::Waiting | Stage::Ended(_) => return None,
        };
        drop(stage);
        Some(RunningWrite { transaction: Some(transaction), place: Some(self) })
    }
}

/// A write of a group that runs. If it is dropped, as when its closure panics, its group is rolled
/// back.
#[derive(Debug)]
pub(crate) struct RunningWrite {
    transaction: Option<Arc<GroupTransaction>>,
    place: Option<GroupMember>,
}

impl RunningWrite {
    /// Returns the write's view of the group's transaction.
    pub(crate) fn tx(&self) -> WriteTx<'_> {
        let transaction = self.transaction.as_ref().expect("it is there until the write ends");
        WriteTx::of_group(transaction.session.tx(), &transaction.state)
    }

    /// Reports the changes, and returns the result of the group.
    pub(crate) async fn finish(mut self, changes: TransactionChanges) -> GroupEnd {
        // The transaction is released before the report, which is the last use of it.
        drop(self.transaction.take());
        let Some(mut place) = self.place.take() else { return GroupEnd::RolledBack };
        // A group that was abandoned receives no report.
        drop(place.reports.send(WriteReport::Changes(changes)));
        drop(place.reports);
        let ended = place.stage.wait_for(|stage| matches!(stage, Stage::Ended(_))).await;
        match ended.as_deref() {
            Ok(Stage::Ended(end)) => end.clone(),
            // The task of the group has ended, possibly after the commit.
            _ => GroupEnd::Failed(ResponseTimeout::error()),
        }
    }

    /// Ends a write that has changed nothing.
    pub(crate) fn leave(mut self) {
        drop(self.transaction.take());
        self.place.take();
    }
}

impl Drop for RunningWrite {
    fn drop(&mut self) {
        drop(self.transaction.take());
        if let Some(place) = self.place.take() {
            drop(place.reports.send(WriteReport::Failed));
        }
    }
}
