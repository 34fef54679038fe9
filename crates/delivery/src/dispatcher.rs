//! Which delivery is attempted next: a state machine without a clock, a network or a store.
//!
//! Whoever drives it tells it what happened ([`Dispatcher::news`], [`Dispatcher::answered`],
//! [`Dispatcher::attempted`]) and does what [`Dispatcher::next`] says. It asks the store for
//! deliveries and tells it what came of them, both at once and never twice at a time: what ends
//! while the store is busy goes with the next time. An attempt counts as under way until what came of
//! it is kept: so no more of them can be repeated because a program was killed than may be under way.
//!
//! Each webhook has a line of its own, and lines take turns. Receivers that are failing have their
//! share of the attempts under way and no more, so that those which are well always find some left.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use galley_domain::{Timestamp, WebhookId};

/// How much is done at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Attempts under way.
    pub attempts_max: usize,
    /// Of these, to receivers that are failing.
    pub failing_attempts_max: usize,
    /// Deliveries at hand, under way or waiting for their turn.
    pub held_max: usize,
    /// Of these, to receivers that are failing.
    pub failing_held_max: usize,
    /// Attempts that are begun at a time, so that requests get their turn in between.
    pub begun_max: usize,
    /// When to ask the store at the latest, though nobody said that there was something.
    pub poll: Duration,
    /// While most attempts are still under way, results are gathered until none has come for so long, so
    /// that one commit keeps many.
    pub gather_pause: Duration,
    /// How long they are gathered at the most.
    pub gather_max: Duration,
    /// How long before the end of its lease a delivery may still be begun.
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

/// A delivery at hand.
#[derive(Debug, Clone, PartialEq)]
pub struct Job<T> {
    /// The webhook whose line it is in.
    pub webhook: WebhookId,
    /// How many attempts of the webhook may be under way.
    pub slots: usize,
    /// Whether its receiver was failing when it was taken.
    pub is_failing: bool,
    /// When its lease ends.
    pub until: Timestamp,
    /// What is sent.
    pub payload: T,
}

/// What is asked of the store.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask<R> {
    /// What came of attempts, to be kept.
    pub settle: Vec<R>,
    /// How many deliveries there is room for.
    pub max: usize,
    /// How many of receivers that are failing.
    pub failing_max: usize,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Action<T, R> {
    /// Make an attempt, and say [`Dispatcher::attempted`] when it is over.
    Attempt(Job<T>),
    /// Ask the store, and say [`Dispatcher::answered`] or [`Dispatcher::not_answered`].
    Ask(Ask<R>),
    /// Give back what won't be attempted.
    GiveBack(Vec<T>),
}

/// The state of all lines.
#[derive(Debug)]
pub struct Dispatcher<T, R> {
    limits: Limits,
    lines: HashMap<WebhookId, Line<T>>,
    /// The lines that have something to begin, in their turn.
    turns: VecDeque<WebhookId>,
    under_way: Count,
    held: Count,
    /// What came of attempts, and whose they were; to be kept.
    settled: Vec<(Whose, R)>,
    /// Until when they are gathered if no other comes.
    settle_at: Timestamp,
    /// Until when they are gathered at the most.
    settle_at_last: Timestamp,
    /// Whose results are being kept.
    settling: Vec<Whose>,
    is_asking: bool,
    has_news: bool,
    ask_at: Timestamp,
    /// After the store failed, it is left alone until then.
    not_before: Timestamp,
    is_stopping: bool,
}

/// An attempt's webhook, and whether its receiver was failing.
type Whose = (WebhookId, bool);

#[derive(Debug)]
struct Line<T> {
    waiting: VecDeque<Job<T>>,
    under_way: usize,
    has_turn: bool,
}

/// How many there are, and how many of these are to receivers that are failing.
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
    /// A dispatcher with nothing at hand, which asks at once.
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

    /// Something was committed that may have to be sent.
    pub fn news(&mut self) {
        self.has_news = true;
    }

    /// The store handed out these; `left` is what it has not kept yet of what it was given, with its
    /// webhooks, and `more` says that it has more than it looked at.
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
            // Of one webhook's results it doesn't matter which one is whose.
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

    /// The store could not be asked; what was to be kept still is.
    pub fn not_answered(&mut self, ask: Ask<R>, now: Timestamp) {
        self.is_asking = false;
        let kept_before = std::mem::take(&mut self.settling).into_iter().zip(ask.settle);
        let newer = std::mem::replace(&mut self.settled, kept_before.collect());
        self.settled.extend(newer);
        self.has_news = true;
        self.not_before = after(now, self.limits.poll);
    }

    /// An attempt is over; `result` is to be kept.
    pub fn attempted(&mut self, webhook: WebhookId, is_failing: bool, result: R, now: Timestamp) {
        if self.settled.is_empty() {
            self.settle_at_last = after(now, self.limits.gather_max);
        }
        self.settle_at = after(now, self.limits.gather_pause).min(self.settle_at_last);
        self.settled.push(((webhook, is_failing), result));
    }

    /// An attempt was abandoned: nothing came of it that is to be kept.
    pub fn abandoned(&mut self, webhook: WebhookId, is_failing: bool) {
        self.is_over(webhook, is_failing);
    }

    /// What came of an attempt is kept.
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

    /// From now on nothing new is begun.
    pub fn stop(&mut self) {
        self.is_stopping = true;
    }

    /// Whether all that was begun before [`Dispatcher::stop`] is over and kept.
    pub fn has_stopped(&self) -> bool {
        self.is_stopping && self.under_way.all == 0 && !self.is_asking
    }

    /// How many attempts are under way, or were and are not kept yet.
    pub fn under_way(&self) -> usize {
        self.under_way.all
    }

    /// Whether [`Dispatcher::next`] has left something that it may begin at once.
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

    /// When to call [`Dispatcher::next`] at the latest, though nothing happens.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let settle_at = if self.settled.is_empty() { self.ask_at } else { self.settle_at };
        (!self.is_asking).then_some(self.ask_at.min(settle_at).max(self.not_before))
    }

    /// What is to be done now.
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
                // The end of an attempt gives it another turn.
                continue;
            }
            let Some(job) = line.waiting.pop_front() else { continue };
            if after(now, self.limits.lease_margin) > job.until {
                // Its lease might end before the attempt does, and somebody else begin another.
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

    /// Puts a line at the end of those that wait for their turn; says whether it needed one.
    fn give_turn(&mut self, webhook: WebhookId) -> bool {
        let Some(line) = self.lines.get_mut(&webhook) else { return false };
        let needs_one = !line.has_turn && !line.waiting.is_empty();
        if needs_one {
            line.has_turn = true;
            self.turns.push_back(webhook);
        }
        needs_one
    }

    /// Takes all that waits out of the lines.
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
