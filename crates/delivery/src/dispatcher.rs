//! The schedule of delivery attempts: a state machine without a clock, a network or a store.
//!
//! The caller reports events ([`Dispatcher::commit_signalled`], [`Dispatcher::store_responded`],
//! [`Dispatcher::attempt_ended`]) and performs the actions that [`Dispatcher::next_actions`]
//! returns. One request to the store records results and claims deliveries, and only one request is
//! under way at a time. A result that arrives while the store is busy is recorded by the next
//! request. An attempt counts as under way until its result is stored. So the number of attempts
//! that a killed program repeats is at most the limit on attempts under way.
//!
//! Each webhook has a queue of its own, and the queues are served round-robin. Attempts to failing
//! receivers have a limit of their own, so that attempts to healthy receivers always find capacity.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use galley_domain::{Timestamp, WebhookId};

/// The limits on concurrent work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DispatcherLimits {
    /// The limit on attempts under way.
    pub attempts_max: usize,
    /// The limit on attempts under way to failing receivers.
    pub failing_attempts_max: usize,
    /// The limit on claimed deliveries to healthy receivers, under way or queued.
    pub claimed_max: usize,
    /// The limit on claimed deliveries to failing receivers.
    pub failing_claimed_max: usize,
    /// The limit on attempts that one call begins, so that requests are served in between.
    pub begun_per_call_max: usize,
    /// The longest interval between requests to the store without a commit signal.
    pub poll_interval: Duration,
    /// The interval without a new result after which results are recorded. Until then they are
    /// batched while most attempts are under way, so that one commit stores many.
    pub batch_idle_interval: Duration,
    /// The limit on the time for which results are batched.
    pub batch_interval_max: Duration,
    /// The shortest remaining lease with which a delivery may be begun.
    pub lease_margin: Duration,
}

impl Default for DispatcherLimits {
    fn default() -> Self {
        Self {
            attempts_max: 512,
            failing_attempts_max: 256,
            claimed_max: 1_024,
            failing_claimed_max: 256,
            begun_per_call_max: 16,
            poll_interval: Duration::from_secs(1),
            batch_idle_interval: Duration::from_millis(2),
            batch_interval_max: Duration::from_millis(25),
            lease_margin: Duration::from_secs(20),
        }
    }
}

/// A claimed delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryJob<T> {
    /// The webhook in whose queue it is.
    pub webhook: WebhookId,
    /// The limit on concurrent attempts of the webhook.
    pub slots: usize,
    /// True if its receiver was failing when it was claimed.
    pub is_failing: bool,
    /// The end of its lease.
    pub lease_until: Timestamp,
    /// The delivery's data for the attempt.
    pub payload: T,
}

/// A request to the store.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreRequest<R> {
    /// The results of attempts to record.
    pub attempt_results: Vec<R>,
    /// The limit on deliveries to claim for healthy receivers.
    pub claim_max: usize,
    /// The limit on deliveries to claim for failing receivers.
    pub failing_claim_max: usize,
}

/// An action for the caller to perform.
#[derive(Debug, Clone, PartialEq)]
pub enum Action<T, R> {
    /// An attempt to make. The caller calls [`Dispatcher::attempt_ended`] at its end.
    Attempt(DeliveryJob<T>),
    /// A request to the store. The caller then calls [`Dispatcher::store_responded`] or
    /// [`Dispatcher::store_failed`].
    StoreRequest(StoreRequest<R>),
    /// Claimed deliveries to release, as they won't be attempted.
    Release(Vec<T>),
}

/// The state of all webhook queues.
#[derive(Debug)]
pub struct Dispatcher<T, R> {
    limits: DispatcherLimits,
    queues: HashMap<WebhookId, ReceiverQueue<T>>,
    /// The webhooks with a delivery to begin, in round-robin order.
    round_robin: VecDeque<WebhookId>,
    under_way: Count,
    claimed: Count,
    /// The results to record, with the webhooks of their attempts.
    ended: Vec<(AttemptOwner, R)>,
    /// The time to record results if no other arrives before.
    record_at: Timestamp,
    /// The latest time to record results.
    record_at_latest: Timestamp,
    /// The webhooks whose results are being recorded.
    recording: Vec<AttemptOwner>,
    is_store_busy: bool,
    has_commit_signal: bool,
    poll_at: Timestamp,
    /// The end of the back-off after a failure of the store.
    backoff_until: Timestamp,
    is_stopping: bool,
}

/// An attempt's webhook, and true if its receiver was failing.
type AttemptOwner = (WebhookId, bool);

#[derive(Debug)]
struct ReceiverQueue<T> {
    queued: VecDeque<DeliveryJob<T>>,
    under_way: usize,
    is_scheduled: bool,
}

/// A count of deliveries, and the part of it for failing receivers.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    all: usize,
    failing: usize,
}

impl Count {
    fn add(&mut self, is_failing: bool) {
        self.all += 1;
        self.failing += usize::from(is_failing);
    }

    fn remove(&mut self, is_failing: bool) {
        self.all -= 1;
        self.failing -= usize::from(is_failing);
    }
}

impl<T, R> Dispatcher<T, R> {
    /// Creates a dispatcher without deliveries, whose first action is a request to the store.
    pub fn new(limits: DispatcherLimits, now: Timestamp) -> Self {
        Self {
            limits,
            queues: HashMap::new(),
            round_robin: VecDeque::new(),
            under_way: Count::default(),
            claimed: Count::default(),
            ended: Vec::new(),
            record_at: now,
            record_at_latest: now,
            recording: Vec::new(),
            is_store_busy: false,
            has_commit_signal: true,
            poll_at: now,
            backoff_until: now,
            is_stopping: false,
        }
    }

    /// Notes a commit that may have created deliveries.
    pub fn commit_signalled(&mut self) {
        self.has_commit_signal = true;
    }

    /// Processes a response of the store.
    ///
    /// `jobs` are the claimed deliveries, and `left` the results not recorded yet, with their
    /// webhooks. `more` is true if the store has deliveries that it didn't scan.
    pub fn store_responded(
        &mut self,
        jobs: Vec<DeliveryJob<T>>,
        left: Vec<(WebhookId, R)>,
        more: bool,
        now: Timestamp,
    ) {
        self.is_store_busy = false;
        let mut recording = std::mem::take(&mut self.recording);
        let newer = std::mem::take(&mut self.ended);
        for (webhook, result) in left {
            // The results of one webhook are interchangeable here.
            let Some(place) = recording.iter().position(|(owner, _)| *owner == webhook) else {
                continue;
            };
            self.ended.push((recording.swap_remove(place), result));
        }
        self.ended.extend(newer);
        for (webhook, is_failing) in recording {
            self.remove_attempt(webhook, is_failing);
        }
        self.has_commit_signal |= more;
        self.poll_at = after(now, self.limits.poll_interval);
        for job in jobs {
            self.claimed.add(job.is_failing);
            let webhook = job.webhook;
            let queue = self.queues.entry(webhook).or_insert_with(|| ReceiverQueue {
                queued: VecDeque::new(),
                under_way: 0,
                is_scheduled: false,
            });
            queue.queued.push_back(job);
            self.schedule(webhook);
        }
    }

    /// Notes that a request to the store failed. Its results stay queued for the next request.
    pub fn store_failed(&mut self, ask: StoreRequest<R>, now: Timestamp) {
        self.is_store_busy = false;
        let earlier = std::mem::take(&mut self.recording).into_iter().zip(ask.attempt_results);
        let newer = std::mem::replace(&mut self.ended, earlier.collect());
        self.ended.extend(newer);
        self.has_commit_signal = true;
        self.backoff_until = after(now, self.limits.poll_interval);
    }

    /// Notes the end of an attempt, whose `result` is to be recorded.
    pub fn attempt_ended(
        &mut self,
        webhook: WebhookId,
        is_failing: bool,
        result: R,
        now: Timestamp,
    ) {
        if self.ended.is_empty() {
            self.record_at_latest = after(now, self.limits.batch_interval_max);
        }
        self.record_at = after(now, self.limits.batch_idle_interval).min(self.record_at_latest);
        self.ended.push(((webhook, is_failing), result));
    }

    /// Notes that an attempt was abandoned, without a result to record.
    pub fn attempt_abandoned(&mut self, webhook: WebhookId, is_failing: bool) {
        self.remove_attempt(webhook, is_failing);
    }

    /// Removes an attempt from the counts, once its result is stored or it was abandoned.
    fn remove_attempt(&mut self, webhook: WebhookId, is_failing: bool) {
        self.under_way.remove(is_failing);
        self.claimed.remove(is_failing);
        if let Some(queue) = self.queues.get_mut(&webhook) {
            queue.under_way -= 1;
            if queue.under_way == 0 && queue.queued.is_empty() {
                self.queues.remove(&webhook);
            }
        }
        self.schedule(webhook);
    }

    /// Stops the dispatcher: it begins no further attempts.
    pub fn stop(&mut self) {
        self.is_stopping = true;
    }

    /// Returns true if all attempts begun before [`Dispatcher::stop`] have ended and their results
    /// are stored.
    pub fn has_stopped(&self) -> bool {
        self.is_stopping && self.under_way.all == 0 && !self.is_store_busy
    }

    /// Returns the number of attempts under way, including the ones whose results are not stored
    /// yet.
    pub fn under_way(&self) -> usize {
        self.under_way.all
    }

    /// Returns true if the last [`Dispatcher::next_actions`] left an attempt that may begin at
    /// once.
    pub fn can_begin_more(&self) -> bool {
        let has_room = self.under_way.all < self.limits.attempts_max;
        let may_begin = |webhook: &WebhookId| {
            self.queues.get(webhook).is_some_and(|queue| {
                queue.queued.front().is_some_and(|job| {
                    queue.under_way < job.slots
                        && !(job.is_failing
                            && self.under_way.failing >= self.limits.failing_attempts_max)
                })
            })
        };
        !self.is_stopping && has_room && self.round_robin.iter().any(may_begin)
    }

    /// Returns the latest time for the next call of [`Dispatcher::next_actions`] without another
    /// event.
    ///
    /// While a request to the store is under way, there is none.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let settle_at = if self.ended.is_empty() { self.poll_at } else { self.record_at };
        (!self.is_store_busy).then_some(self.poll_at.min(settle_at).max(self.backoff_until))
    }

    /// Returns the actions to perform now.
    pub fn next_actions(&mut self, now: Timestamp) -> Vec<Action<T, R>> {
        let mut actions = Vec::new();
        let mut released = Vec::new();
        let mut turns = self.round_robin.len();
        while turns > 0 && !self.is_stopping && self.under_way.all < self.limits.attempts_max {
            if actions.len() == self.limits.begun_per_call_max {
                break;
            }
            turns -= 1;
            let Some(webhook) = self.round_robin.pop_front() else { break };
            let Some(queue) = self.queues.get_mut(&webhook) else { continue };
            queue.is_scheduled = false;
            let Some(job) = queue.queued.front() else { continue };
            if job.is_failing && self.under_way.failing >= self.limits.failing_attempts_max {
                queue.is_scheduled = true;
                self.round_robin.push_back(webhook);
                continue;
            }
            if queue.under_way >= job.slots {
                // The webhook is queued again when one of its attempts ends.
                continue;
            }
            let Some(job) = queue.queued.pop_front() else { continue };
            if after(now, self.limits.lease_margin) > job.lease_until {
                // Its lease might end before the attempt does, and another node could begin a
                // second attempt.
                self.claimed.remove(job.is_failing);
                released.push(job.payload);
            } else {
                queue.under_way += 1;
                self.under_way.add(job.is_failing);
                actions.push(Action::Attempt(job));
            }
            turns += usize::from(self.schedule(webhook));
        }
        if self.is_stopping {
            released.extend(self.drain_queues());
        }
        if !released.is_empty() {
            actions.push(Action::Release(released));
        }
        actions.extend(self.store_request(now).map(Action::StoreRequest));
        actions
    }

    /// Appends a webhook to the round-robin order. Returns true if it was not in it and has
    /// deliveries to begin.
    fn schedule(&mut self, webhook: WebhookId) -> bool {
        let Some(queue) = self.queues.get_mut(&webhook) else { return false };
        let needs_one = !queue.is_scheduled && !queue.queued.is_empty();
        if needs_one {
            queue.is_scheduled = true;
            self.round_robin.push_back(webhook);
        }
        needs_one
    }

    /// Removes all queued deliveries from the webhook queues.
    fn drain_queues(&mut self) -> Vec<T> {
        let mut left = Vec::new();
        for queue in self.queues.values_mut() {
            for job in queue.queued.drain(..) {
                self.claimed.remove(job.is_failing);
                left.push(job.payload);
            }
        }
        self.round_robin.clear();
        left
    }

    fn store_request(&mut self, now: Timestamp) -> Option<StoreRequest<R>> {
        let polls = !self.is_stopping && (self.has_commit_signal || now >= self.poll_at);
        let has_most = 2 * self.ended.len() >= self.under_way.all && !self.can_begin_more();
        let has_results = !self.ended.is_empty() && (has_most || now >= self.record_at);
        if self.is_store_busy || now < self.backoff_until || !(polls || has_results) {
            return None;
        }
        self.is_store_busy = true;
        self.has_commit_signal = false;
        let room = |max: usize, claimed: usize| {
            if self.is_stopping { 0 } else { max.saturating_sub(claimed) }
        };
        let healthy = self.claimed.all - self.claimed.failing;
        Some(StoreRequest {
            claim_max: room(self.limits.claimed_max, healthy),
            failing_claim_max: room(self.limits.failing_claimed_max, self.claimed.failing),
            attempt_results: {
                let (webhooks, results) = std::mem::take(&mut self.ended).into_iter().unzip();
                self.recording = webhooks;
                results
            },
        })
    }
}

fn after(now: Timestamp, time: Duration) -> Timestamp {
    Timestamp::from_ms(now.ms().saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests;
