//! The schedule of delivery attempts: a state machine without a clock, a network or a store.
//!
//! The caller reports events ([`Dispatcher::news`], [`Dispatcher::answered`],
//! [`Dispatcher::attempted`]) and performs the actions that [`Dispatcher::next`] returns. One
//! request to the store records results and claims deliveries, and only one request is under way at
//! a time. A result that arrives while the store is busy is recorded by the next request. An
//! attempt counts as under way until its result is stored. So the number of attempts that a killed
//! program repeats is at most the limit on attempts under way.
//!
//! Each webhook has a queue of its own, and the queues are served round-robin. Attempts to failing
//! receivers have a limit of their own, so that attempts to healthy receivers always find capacity.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use galley_domain::{Timestamp, WebhookId};

/// The limits on concurrent work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The limit on attempts under way.
    pub attempts_max: usize,
    /// The limit on attempts under way to failing receivers.
    pub failing_attempts_max: usize,
    /// The limit on claimed deliveries to healthy receivers, under way or queued.
    pub held_max: usize,
    /// The limit on claimed deliveries to failing receivers.
    pub failing_held_max: usize,
    /// The limit on attempts that one call begins, so that requests are served in between.
    pub begun_max: usize,
    /// The longest interval between requests to the store without a commit signal.
    pub poll: Duration,
    /// The interval without a new result after which results are recorded. Until then they are
    /// batched while most attempts are under way, so that one commit stores many.
    pub gather_pause: Duration,
    /// The limit on the time for which results are batched.
    pub gather_max: Duration,
    /// The shortest remaining lease with which a delivery may be begun.
    pub lease_margin: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            attempts_max: 512,
            failing_attempts_max: 256,
            held_max: 1_024,
            failing_held_max: 256,
            begun_max: 16,
            poll: Duration::from_secs(1),
            gather_pause: Duration::from_millis(2),
            gather_max: Duration::from_millis(25),
            lease_margin: Duration::from_secs(20),
        }
    }
}

/// A claimed delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct Job<T> {
    /// The webhook in whose queue it is.
    pub webhook: WebhookId,
    /// The limit on concurrent attempts of the webhook.
    pub slots: usize,
    /// True if its receiver was failing when it was claimed.
    pub is_failing: bool,
    /// The end of its lease.
    pub until: Timestamp,
    /// The delivery's data for the attempt.
    pub payload: T,
}

/// A request to the store.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask<R> {
    /// The results of attempts to record.
    pub settle: Vec<R>,
    /// The limit on deliveries to claim for healthy receivers.
    pub max: usize,
    /// The limit on deliveries to claim for failing receivers.
    pub failing_max: usize,
}

/// An action for the caller to perform.
#[derive(Debug, Clone, PartialEq)]
pub enum Action<T, R> {
    /// An attempt to make. The caller calls [`Dispatcher::attempted`] at its end.
    Attempt(Job<T>),
    /// A request to the store. The caller then calls [`Dispatcher::answered`] or
    /// [`Dispatcher::not_answered`].
    Ask(Ask<R>),
    /// Claimed deliveries to release, as they won't be attempted.
    GiveBack(Vec<T>),
}

/// The state of all webhook queues.
#[derive(Debug)]
pub struct Dispatcher<T, R> {
    limits: Limits,
    lines: HashMap<WebhookId, Line<T>>,
    /// The webhooks with a delivery to begin, in round-robin order.
    turns: VecDeque<WebhookId>,
    under_way: Count,
    held: Count,
    /// The results to record, with the webhooks of their attempts.
    settled: Vec<(Whose, R)>,
    /// The time to record results if no other arrives before.
    settle_at: Timestamp,
    /// The latest time to record results.
    settle_at_last: Timestamp,
    /// The webhooks whose results are being recorded.
    settling: Vec<Whose>,
    is_asking: bool,
    has_news: bool,
    ask_at: Timestamp,
    /// The end of the back-off after a failure of the store.
    not_before: Timestamp,
    is_stopping: bool,
}

/// An attempt's webhook, and true if its receiver was failing.
type Whose = (WebhookId, bool);

#[derive(Debug)]
struct Line<T> {
    waiting: VecDeque<Job<T>>,
    under_way: usize,
    has_turn: bool,
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
    pub fn new(limits: Limits, now: Timestamp) -> Self {
        Self {
            limits,
            lines: HashMap::new(),
            turns: VecDeque::new(),
            under_way: Count::default(),
            held: Count::default(),
            settled: Vec::new(),
            settle_at: now,
            settle_at_last: now,
            settling: Vec::new(),
            is_asking: false,
            has_news: true,
            ask_at: now,
            not_before: now,
            is_stopping: false,
        }
    }

    /// Notes a commit that may have created deliveries.
    pub fn news(&mut self) {
        self.has_news = true;
    }

    /// Processes a response of the store.
    ///
    /// `jobs` are the claimed deliveries, and `left` the results not recorded yet, with their
    /// webhooks. `more` is true if the store has deliveries that it didn't scan.
    pub fn answered(
        &mut self,
        jobs: Vec<Job<T>>,
        left: Vec<(WebhookId, R)>,
        more: bool,
        now: Timestamp,
    ) {
        self.is_asking = false;
        let mut settling = std::mem::take(&mut self.settling);
        let newer = std::mem::take(&mut self.settled);
        for (webhook, result) in left {
            // The results of one webhook are interchangeable here.
            let Some(place) = settling.iter().position(|(whose, _)| *whose == webhook) else {
                continue;
            };
            self.settled.push((settling.swap_remove(place), result));
        }
        self.settled.extend(newer);
        for (webhook, is_failing) in settling {
            self.is_over(webhook, is_failing);
        }
        self.has_news |= more;
        self.ask_at = after(now, self.limits.poll);
        for job in jobs {
            self.held.add(job.is_failing);
            let webhook = job.webhook;
            let line = self.lines.entry(webhook).or_insert_with(|| Line {
                waiting: VecDeque::new(),
                under_way: 0,
                has_turn: false,
            });
            line.waiting.push_back(job);
            self.give_turn(webhook);
        }
    }

    /// Notes that a request to the store failed. Its results stay queued for the next request.
    pub fn not_answered(&mut self, ask: Ask<R>, now: Timestamp) {
        self.is_asking = false;
        let kept_before = std::mem::take(&mut self.settling).into_iter().zip(ask.settle);
        let newer = std::mem::replace(&mut self.settled, kept_before.collect());
        self.settled.extend(newer);
        self.has_news = true;
        self.not_before = after(now, self.limits.poll);
    }

    /// Notes the end of an attempt, whose `result` is to be recorded.
    pub fn attempted(&mut self, webhook: WebhookId, is_failing: bool, result: R, now: Timestamp) {
        if self.settled.is_empty() {
            self.settle_at_last = after(now, self.limits.gather_max);
        }
        self.settle_at = after(now, self.limits.gather_pause).min(self.settle_at_last);
        self.settled.push(((webhook, is_failing), result));
    }

    /// Notes that an attempt was abandoned, without a result to record.
    pub fn abandoned(&mut self, webhook: WebhookId, is_failing: bool) {
        self.is_over(webhook, is_failing);
    }

    /// Removes an attempt from the counts, once its result is stored or it was abandoned.
    fn is_over(&mut self, webhook: WebhookId, is_failing: bool) {
        self.under_way.remove(is_failing);
        self.held.remove(is_failing);
        if let Some(line) = self.lines.get_mut(&webhook) {
            line.under_way -= 1;
            if line.under_way == 0 && line.waiting.is_empty() {
                self.lines.remove(&webhook);
            }
        }
        self.give_turn(webhook);
    }

    /// Stops the dispatcher: it begins no further attempts.
    pub fn stop(&mut self) {
        self.is_stopping = true;
    }

    /// Returns true if all attempts begun before [`Dispatcher::stop`] have ended and their results
    /// are stored.
    pub fn has_stopped(&self) -> bool {
        self.is_stopping && self.under_way.all == 0 && !self.is_asking
    }

    /// Returns the number of attempts under way, including the ones whose results are not stored
    /// yet.
    pub fn under_way(&self) -> usize {
        self.under_way.all
    }

    /// Returns true if the last [`Dispatcher::next`] left an attempt that may begin at once.
    pub fn has_more_to_begin(&self) -> bool {
        let has_room = self.under_way.all < self.limits.attempts_max;
        let may_begin = |webhook: &WebhookId| {
            self.lines.get(webhook).is_some_and(|line| {
                line.waiting.front().is_some_and(|job| {
                    line.under_way < job.slots
                        && !(job.is_failing
                            && self.under_way.failing >= self.limits.failing_attempts_max)
                })
            })
        };
        !self.is_stopping && has_room && self.turns.iter().any(may_begin)
    }

    /// Returns the latest time for the next call of [`Dispatcher::next`] without another event.
    ///
    /// While a request to the store is under way, there is none.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let settle_at = if self.settled.is_empty() { self.ask_at } else { self.settle_at };
        (!self.is_asking).then_some(self.ask_at.min(settle_at).max(self.not_before))
    }

    /// Returns the actions to perform now.
    pub fn next(&mut self, now: Timestamp) -> Vec<Action<T, R>> {
        let mut actions = Vec::new();
        let mut given_back = Vec::new();
        let mut turns = self.turns.len();
        while turns > 0 && !self.is_stopping && self.under_way.all < self.limits.attempts_max {
            if actions.len() == self.limits.begun_max {
                break;
            }
            turns -= 1;
            let Some(webhook) = self.turns.pop_front() else { break };
            let Some(line) = self.lines.get_mut(&webhook) else { continue };
            line.has_turn = false;
            let Some(job) = line.waiting.front() else { continue };
            if job.is_failing && self.under_way.failing >= self.limits.failing_attempts_max {
                line.has_turn = true;
                self.turns.push_back(webhook);
                continue;
            }
            if line.under_way >= job.slots {
                // The webhook is queued again when one of its attempts ends.
                continue;
            }
            let Some(job) = line.waiting.pop_front() else { continue };
            if after(now, self.limits.lease_margin) > job.until {
                // Its lease might end before the attempt does, and another node could begin a
                // second attempt.
                self.held.remove(job.is_failing);
                given_back.push(job.payload);
            } else {
                line.under_way += 1;
                self.under_way.add(job.is_failing);
                actions.push(Action::Attempt(job));
            }
            turns += usize::from(self.give_turn(webhook));
        }
        if self.is_stopping {
            given_back.extend(self.give_up());
        }
        if !given_back.is_empty() {
            actions.push(Action::GiveBack(given_back));
        }
        actions.extend(self.ask(now).map(Action::Ask));
        actions
    }

    /// Appends a webhook to the round-robin order. Returns true if it was not in it and has
    /// deliveries to begin.
    fn give_turn(&mut self, webhook: WebhookId) -> bool {
        let Some(line) = self.lines.get_mut(&webhook) else { return false };
        let needs_one = !line.has_turn && !line.waiting.is_empty();
        if needs_one {
            line.has_turn = true;
            self.turns.push_back(webhook);
        }
        needs_one
    }

    /// Removes all queued deliveries from the webhook queues.
    fn give_up(&mut self) -> Vec<T> {
        let mut left = Vec::new();
        for line in self.lines.values_mut() {
            for job in line.waiting.drain(..) {
                self.held.remove(job.is_failing);
                left.push(job.payload);
            }
        }
        self.turns.clear();
        left
    }

    fn ask(&mut self, now: Timestamp) -> Option<Ask<R>> {
        let wants_more = !self.is_stopping && (self.has_news || now >= self.ask_at);
        let has_most = 2 * self.settled.len() >= self.under_way.all && !self.has_more_to_begin();
        let has_results = !self.settled.is_empty() && (has_most || now >= self.settle_at);
        if self.is_asking || now < self.not_before || !(wants_more || has_results) {
            return None;
        }
        self.is_asking = true;
        self.has_news = false;
        let room = |max: usize, held: usize| {
            if self.is_stopping { 0 } else { max.saturating_sub(held) }
        };
        let healthy = self.held.all - self.held.failing;
        Some(Ask {
            max: room(self.limits.held_max, healthy),
            failing_max: room(self.limits.failing_held_max, self.held.failing),
            settle: {
                let (whose, results) = std::mem::take(&mut self.settled).into_iter().unzip();
                self.settling = whose;
                results
            },
        })
    }
}

fn after(now: Timestamp, time: Duration) -> Timestamp {
    Timestamp::from_ms(now.ms().saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_000_000);

    fn job(webhook: u128, payload: u32) -> Job<u32> {
        let until = after(NOW, Duration::from_mins(1));
        Job { webhook: WebhookId::new(webhook), slots: 2, is_failing: false, until, payload }
    }

    fn begun(actions: &[Action<u32, u32>]) -> Vec<u32> {
        let payload = |action: &Action<u32, u32>| match action {
            Action::Attempt(job) => Some(job.payload),
            _ => None,
        };
        actions.iter().filter_map(payload).collect()
    }

    fn asked(actions: &[Action<u32, u32>]) -> Option<Ask<u32>> {
        actions.iter().find_map(|action| match action {
            Action::Ask(ask) => Some(ask.clone()),
            _ => None,
        })
    }

    #[test]
    fn lines_take_turns_within_their_slots() {
        let mut dispatcher = Dispatcher::new(Limits::default(), NOW);
        assert!(asked(&dispatcher.next(NOW)).is_some(), "it asks at once");
        assert_eq!(dispatcher.next(NOW), [], "and not twice");
        let jobs = vec![job(1, 10), job(1, 11), job(1, 12), job(1, 13), job(2, 20), job(3, 30)];
        dispatcher.answered(jobs, Vec::new(), false, NOW);
        assert_eq!(begun(&dispatcher.next(NOW)), [10, 20, 30, 11]);
        dispatcher.attempted(WebhookId::new(1), false, 10, NOW);
        assert_eq!(begun(&dispatcher.next(NOW)), [0; 0], "what came of it is not kept yet");
        dispatcher.answered(Vec::new(), Vec::new(), false, NOW);
        let later = after(NOW, Duration::from_millis(2));
        assert!(asked(&dispatcher.next(later)).is_some());
        dispatcher.answered(Vec::new(), Vec::new(), false, later);
        assert_eq!(begun(&dispatcher.next(later)), [12]);
    }

    #[test]
    fn results_go_together_when_the_store_is_free() {
        let mut dispatcher = Dispatcher::new(Limits::default(), NOW);
        let first = asked(&dispatcher.next(NOW)).unwrap();
        assert_eq!(first.settle, [0; 0]);
        dispatcher.answered(vec![job(1, 1), job(1, 2)], Vec::new(), true, NOW);
        assert!(asked(&dispatcher.next(NOW)).is_some(), "there may be more");
        for payload in [1, 2] {
            dispatcher.attempted(WebhookId::new(1), false, payload, NOW);
            assert_eq!(asked(&dispatcher.next(NOW)), None, "the store is busy");
        }
        dispatcher.answered(Vec::new(), Vec::new(), false, NOW);
        let ask = asked(&dispatcher.next(NOW)).unwrap();
        assert_eq!(ask.settle, [1, 2]);
        dispatcher.not_answered(ask, NOW);
        assert_eq!(asked(&dispatcher.next(NOW)), None, "it is left alone for a while");
        let again = asked(&dispatcher.next(after(NOW, Duration::from_secs(1)))).unwrap();
        assert_eq!(again.settle, [1, 2], "nothing is forgotten");
    }

    #[test]
    fn results_are_gathered_while_most_are_under_way() {
        let mut dispatcher = Dispatcher::new(Limits::default(), NOW);
        dispatcher.next(NOW);
        let jobs: Vec<_> = (0..6).map(|number| job(number.into(), number)).collect();
        dispatcher.answered(jobs, Vec::new(), false, NOW);
        dispatcher.next(NOW);
        dispatcher.answered(Vec::new(), Vec::new(), false, NOW);
        dispatcher.attempted(WebhookId::new(0), false, 0, NOW);
        assert_eq!(asked(&dispatcher.next(NOW)), None, "five are still under way");
        let later = after(NOW, Duration::from_millis(2));
        assert_eq!(dispatcher.wake_at(), Some(later));
        assert_eq!(asked(&dispatcher.next(later)).unwrap().settle, [0]);
        dispatcher.answered(Vec::new(), Vec::new(), false, later);
        for number in 1..4_u32 {
            dispatcher.attempted(WebhookId::new(number.into()), false, number, later);
        }
        assert_eq!(asked(&dispatcher.next(later)).unwrap().settle, [1, 2, 3], "most are over");
    }

    #[test]
    fn results_are_gathered_while_they_come_and_no_longer_than_that() {
        let mut dispatcher = Dispatcher::new(Limits::default(), NOW);
        dispatcher.next(NOW);
        let jobs: Vec<_> = (0..100).map(|number| job(number.into(), number)).collect();
        dispatcher.answered(jobs, Vec::new(), false, NOW);
        while dispatcher.has_more_to_begin() {
            dispatcher.next(NOW);
        }
        for number in 0..25_u32 {
            let now = after(NOW, Duration::from_millis(number.into()));
            dispatcher.attempted(WebhookId::new(number.into()), false, number, now);
            assert_eq!(asked(&dispatcher.next(now)), None, "{number}: another comes soon");
        }
        let end = after(NOW, Duration::from_millis(25));
        assert_eq!(asked(&dispatcher.next(end)).unwrap().settle.len(), 25);
    }

    #[test]
    fn what_is_not_kept_yet_is_still_under_way() {
        let mut dispatcher = Dispatcher::new(Limits::default(), NOW);
        dispatcher.next(NOW);
        dispatcher.answered(vec![job(1, 1), job(1, 2), job(1, 3)], Vec::new(), false, NOW);
        assert_eq!(begun(&dispatcher.next(NOW)), [1, 2]);
        dispatcher.answered(Vec::new(), Vec::new(), false, NOW);
        for payload in [1, 2] {
            dispatcher.attempted(WebhookId::new(1), false, payload, NOW);
        }
        assert_eq!(asked(&dispatcher.next(NOW)).unwrap().settle, [1, 2]);
        dispatcher.answered(Vec::new(), vec![(WebhookId::new(1), 2)], true, NOW);
        let actions = dispatcher.next(NOW);
        assert_eq!((begun(&actions), asked(&actions).unwrap().settle), (vec![3], vec![2]));
    }

    #[test]
    fn those_that_fail_leave_room() {
        let limits = Limits { attempts_max: 4, failing_attempts_max: 2, ..Limits::default() };
        let mut dispatcher: Dispatcher<u32, u32> = Dispatcher::new(limits, NOW);
        dispatcher.next(NOW);
        let failing = |webhook, payload| Job { is_failing: true, ..job(webhook, payload) };
        let jobs = vec![failing(1, 10), failing(2, 20), failing(3, 30), failing(4, 40), job(5, 50)];
        dispatcher.answered(jobs, Vec::new(), false, NOW);
        assert_eq!(begun(&dispatcher.next(NOW)), [10, 20, 50]);
        dispatcher.attempted(WebhookId::new(1), true, 10, NOW);
        let later = after(NOW, Duration::from_millis(2));
        for expected in [&[0; 0][..], &[30]] {
            dispatcher.answered(Vec::new(), Vec::new(), false, later);
            assert_eq!(begun(&dispatcher.next(later)), expected);
        }
    }

    #[test]
    fn nothing_is_begun_that_might_outlast_its_lease() {
        let mut dispatcher: Dispatcher<u32, u32> = Dispatcher::new(Limits::default(), NOW);
        dispatcher.next(NOW);
        dispatcher.answered(vec![job(1, 1), job(1, 2)], Vec::new(), false, NOW);
        let later = after(NOW, Duration::from_secs(41));
        let actions = dispatcher.next(later);
        assert_eq!(begun(&actions), [0; 0]);
        assert!(actions.contains(&Action::GiveBack(vec![1, 2])), "{actions:?}");
    }

    #[test]
    fn stopping_keeps_what_was_begun() {
        let mut dispatcher: Dispatcher<u32, u32> = Dispatcher::new(Limits::default(), NOW);
        dispatcher.next(NOW);
        dispatcher.answered(vec![job(1, 1), job(1, 2), job(1, 3)], Vec::new(), false, NOW);
        assert_eq!(begun(&dispatcher.next(NOW)), [1, 2]);
        dispatcher.answered(Vec::new(), Vec::new(), false, NOW);
        dispatcher.stop();
        assert_eq!(dispatcher.next(NOW), [Action::GiveBack(vec![3])]);
        dispatcher.attempted(WebhookId::new(1), false, 1, NOW);
        dispatcher.attempted(WebhookId::new(1), false, 2, NOW);
        assert!(!dispatcher.has_stopped());
        let ask = asked(&dispatcher.next(NOW)).unwrap();
        assert_eq!((ask.settle, ask.max), (vec![1, 2], 0));
        dispatcher.answered(Vec::new(), Vec::new(), false, NOW);
        assert!(dispatcher.has_stopped());
    }
}
