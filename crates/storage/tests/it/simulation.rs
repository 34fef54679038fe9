//! Deliveries under a simulated clock, with the real dispatcher and store. Receivers fail in many
//! ways, and the program is killed at intervals. No attempt starts before its due time, none is
//! late without a reason, and none is lost.
//!
//! `GALLEY_TEST_SEED` repeats a simulation.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::env;
use std::time::Duration;

use galley_delivery::{Action, DeliveryJob, Dispatcher, DispatcherLimits, StoreRequest};
use galley_domain::delivery::{AttemptOutcome, CircuitBreaker, DeliveryStep, next_step};
use galley_domain::{DeliveryId, Timestamp, WebhookId};
use galley_storage::delivery_queue::{
    self, AttemptResult, ClaimRequest, ClaimedDelivery, LockedQueues, ScanPosition,
};
use galley_storage::{Error, Tx, Value, WriteTx};
use galley_testing::TestStore;
use galley_testing::reliability_suite::{report_figure, size};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::deliveries::{append_events_at, webhook};
use crate::store::{NOW, OpenStore, id};

const WEBHOOKS: usize = 100;

/// The longest delay in milliseconds between a delivery's due time and its attempt.
const DELAY_LIMIT_MS: i64 = 5_000;

const HOUR: i64 = 3_600_000;

/// The behaviour of a receiver.
#[derive(Clone, Copy)]
enum SimulatedReceiver {
    Healthy,
    /// Fails in this percentage of attempts.
    Flaky(u32),
    /// Fails in this range of hours.
    Down(i64, i64),
    /// Often responds with a retry-after time.
    Busy,
}

impl SimulatedReceiver {
    fn of(place: usize, random: &mut StdRng) -> Self {
        match place % 10 {
            0..6 => Self::Healthy,
            6 => Self::Flaky(random.random_range(1..60)),
            7 => Self::Flaky(random.random_range(85..100)),
            8 => {
                let from = random.random_range(0..30);
                Self::Down(from, from + random.random_range(1..100))
            }
            _ => Self::Busy,
        }
    }

    fn outcome(self, now: Timestamp, random: &mut StdRng) -> AttemptOutcome {
        let hour = (now.ms() - NOW.ms()) / HOUR;
        let fails = match self {
            Self::Healthy => random.random_range(0..1_000) == 0,
            Self::Flaky(often) => random.random_range(0..100) < often,
            Self::Down(from, to) => (from..to).contains(&hour),
            Self::Busy if random.random_range(0..10) < 3 => {
                let asked = [0, 3, 60, 4_000, 1_000_000][random.random_range(0..5)];
                return AttemptOutcome::Failed { retry_after: Some(Duration::from_secs(asked)) };
            }
            Self::Busy => false,
        };
        if fails { AttemptOutcome::Failed { retry_after: None } } else { AttemptOutcome::Accepted }
    }
}

/// A model of a webhook's queue, kept outside of the store.
#[derive(Default)]
struct QueueModel {
    under_way: usize,
    /// The time at which the receiver was last at its concurrency limit, or its program was killed.
    busy_until: i64,
    /// The receiver's health in the worst case, with the longest possible back-off.
    health: CircuitBreaker,
    backs_off_until: i64,
}

struct Simulation {
    open: OpenStore,
    random: StdRng,
    now: Timestamp,
    dispatcher: Dispatcher<ClaimedDelivery, AttemptResult>,
    /// The attempts in progress, by their end.
    ends: BinaryHeap<Reverse<(i64, u64)>>,
    attempts: HashMap<u64, (WebhookId, bool, AttemptResult)>,
    receivers: BTreeMap<WebhookId, SimulatedReceiver>,
    queues: BTreeMap<WebhookId, QueueModel>,
    /// The due times of deliveries that were attempted before.
    due: HashMap<DeliveryId, i64>,
    made: u64,
    retries: u64,
    kills: u64,
    /// The number of attempts at which the next kill happens.
    next_kill: u64,
}

#[tokio::test]
async fn no_attempt_is_early_late_or_lost() {
    let number = |name| env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let schedules: u64 = size(2_000, 10_000, 1_000_000);
    let seed = number("GALLEY_TEST_SEED").unwrap_or_else(rand::random);
    println!("GALLEY_TEST_SEED={seed}");
    let mut simulation = Simulation::new(seed).await;
    let events = usize::try_from(schedules).unwrap().div_ceil(WEBHOOKS);
    let mut left = events;
    while left > 0 || !simulation.is_done().await {
        if left > 0 {
            let count = simulation.random.random_range(1..=40).min(left);
            left -= count;
            simulation.append_events(count).await;
        }
        let pause = simulation.random.random_range(1..20 * 60_000);
        simulation.run_until(simulation.now.ms() + pause).await;
    }
    simulation.check_all_ended(events).await;
    let found = format!(
        "{} deliveries, {} attempts, {} of them again, {} kills, {} days, seed {seed}; 0 early, late or forgotten",
        events * WEBHOOKS,
        simulation.made,
        simulation.retries,
        simulation.kills,
        (simulation.now.ms() - NOW.ms()) / (24 * HOUR)
    );
    println!("{found}");
    report_figure("deliveries under a simulated clock", found, "0");
}

impl Simulation {
    async fn new(seed: u64) -> Self {
        let open = OpenStore::new(TestStore::sqlite()).await;
        let mut random = StdRng::seed_from_u64(seed);
        let mut receivers = BTreeMap::new();
        for place in 0..WEBHOOKS {
            let webhook = webhook(&open).await;
            receivers.insert(webhook, SimulatedReceiver::of(place, &mut random));
        }
        let queues = receivers.keys().map(|id| (*id, QueueModel::default())).collect();
        Self {
            open,
            random,
            now: NOW,
            dispatcher: Dispatcher::new(DispatcherLimits::default(), NOW),
            ends: BinaryHeap::new(),
            attempts: HashMap::new(),
            receivers,
            queues,
            due: HashMap::new(),
            made: 0,
            retries: 0,
            kills: 0,
            next_kill: 500,
        }
    }

    async fn append_events(&mut self, count: usize) {
        append_events_at(&self.open, count, self.now).await;
        self.dispatcher.commit_signalled();
    }

    /// Executes the dispatcher's actions until `end`.
    async fn run_until(&mut self, end: i64) {
        loop {
            for action in self.dispatcher.next_actions(self.now) {
                match action {
                    Action::Attempt(job) => self.begin(job),
                    Action::StoreRequest(ask) => self.ask(ask).await,
                    Action::Release(_) => panic!("a lease is longer than anything waits"),
                }
            }
            if self.dispatcher.can_begin_more() {
                continue;
            }
            let wakes_at = self.dispatcher.wake_at().expect("no response is pending");
            let ends_at = self.ends.peek().map_or(i64::MAX, |Reverse((at, _))| *at);
            let mut next = wakes_at.ms().min(ends_at);
            if self.attempts.is_empty() {
                // Nothing happens before a queue is next due. Until then the dispatcher polls in
                // vain once a second.
                let first = self.first_due_at().await.unwrap_or(end).min(end);
                next = next.max(first + (next - first).rem_euclid(1_000));
            }
            if next > end {
                self.now = Timestamp::from_ms(end.max(self.now.ms()));
                return;
            }
            self.now = Timestamp::from_ms(next.max(self.now.ms()));
            while let Some(Reverse((at, number))) = self.ends.peek().copied() {
                if at > self.now.ms() {
                    break;
                }
                self.ends.pop();
                self.end(number);
            }
            if self.made >= self.next_kill {
                self.kill().await;
            }
        }
    }

    fn begin(&mut self, job: DeliveryJob<ClaimedDelivery>) {
        let (now, leased) = (self.now, job.payload);
        let queue = self.queues.get_mut(&job.webhook).unwrap();
        let due = self.due.get(&leased.id).copied().unwrap_or(leased.happened_at.ms());
        assert!(now.ms() >= due, "{} ms early: {leased:?}", due - now.ms());
        let may_begin = due.max(queue.busy_until).max(queue.backs_off_until);
        assert!(
            now.ms() - may_begin <= DELAY_LIMIT_MS,
            "{} ms late: {leased:?}",
            now.ms() - may_begin
        );
        queue.under_way += 1;
        assert!(queue.under_way <= job.slots, "more than its receiver can do with");
        if queue.under_way == job.slots {
            queue.busy_until = now.ms();
        }
        let attempts = leased.attempts + 1;
        assert!(attempts <= 12);
        let lasts = match self.random.random_range(0..100) {
            0 => self.random.random_range(0..15_000),
            _ => self.random.random_range(0..200),
        };
        let ends_at = Timestamp::from_ms(now.ms() + lasts);
        let outcome = self.receivers[&job.webhook].outcome(ends_at, &mut self.random);
        let step = next_step(attempts, outcome, ends_at, self.random.random());
        let settlement = AttemptResult {
            workspace: leased.workspace,
            webhook: leased.webhook,
            delivery: leased.id,
            lease: leased.lease,
            is_test: false,
            outcome,
            step,
            attempts,
            log: "[]".to_owned(),
        };
        self.made += 1;
        self.retries += u64::from(attempts > 1);
        self.ends.push(Reverse((ends_at.ms(), self.made)));
        self.attempts.insert(self.made, (job.webhook, job.is_failing, settlement));
    }

    fn end(&mut self, number: u64) {
        // The attempt's result is lost if its program was killed.
        let Some((webhook, is_failing, settlement)) = self.attempts.remove(&number) else { return };
        self.dispatcher.attempt_ended(webhook, is_failing, settlement, self.now);
    }

    async fn ask(&mut self, ask: StoreRequest<AttemptResult>) {
        for one in &ask.attempt_results {
            let queue = self.queues.get_mut(&one.webhook).unwrap();
            queue.busy_until = self.now.ms();
            queue.under_way -= 1;
            queue.health = queue.health.after(one.outcome, self.now, 1.0);
            queue.backs_off_until =
                queue.health.open_until.map_or(0, Timestamp::ms).max(queue.backs_off_until);
            match one.step {
                DeliveryStep::Retry(due) => self.due.insert(one.delivery, due.ms()),
                DeliveryStep::Delivered | DeliveryStep::Failed => self.due.remove(&one.delivery),
            };
        }
        let (now, random) = (self.now, self.random.random::<f64>());
        let request = ClaimRequest {
            now,
            until: Timestamp::from_ms(now.ms() + 60_000),
            lease: id().to_string(),
            session: "a".to_owned(),
            max: ask.claim_max,
            failing_max: ask.failing_claim_max,
        };
        let front = ScanPosition::default();
        let exchange = async move |tx: &WriteTx<'_>| {
            let mut queues = LockedQueues::default();
            let settled =
                delivery_queue::record_results(tx, &mut queues, &ask.attempt_results, now, || {
                    random
                })
                .await?;
            assert_eq!((settled.recorded, settled.deferred.len()), (ask.attempt_results.len(), 0));
            let new_id = || DeliveryId::new(id());
            let more = delivery_queue::fan_out(tx, &mut queues, &front, new_id, 256, now).await?;
            let (leased, more_due) =
                delivery_queue::claim(tx, &mut queues, &front, &request).await?;
            queues.save(tx).await?;
            Ok((leased, more || more_due))
        };
        let exchange = self.open.database.write::<_, Error, _>("exchange", exchange);
        let (leased, more) = exchange.await.unwrap();
        let jobs = leased.into_iter().map(|leased| DeliveryJob {
            webhook: leased.webhook,
            slots: leased.health.slots as usize,
            is_failing: leased.health.is_failing(),
            lease_until: leased.until,
            payload: leased,
        });
        self.dispatcher.store_responded(jobs.collect(), Vec::new(), more, self.now);
    }

    /// Restarts the program on the existing store.
    async fn kill(&mut self) {
        self.kills += 1;
        self.next_kill = self.made + self.random.random_range(100..10_000);
        self.attempts.clear();
        self.ends.clear();
        for queue in self.queues.values_mut() {
            queue.under_way = 0;
            queue.busy_until = self.now.ms();
        }
        let now = self.now;
        let recover = async move |tx: &WriteTx<'_>| {
            delivery_queue::close_session(tx, "a", now).await?;
            delivery_queue::open_session(tx, "a", "a", now).await
        };
        self.open.database.write::<_, Error, _>("recover", recover).await.unwrap();
        self.dispatcher = Dispatcher::new(DispatcherLimits::default(), now);
    }

    async fn read(&self, sql: &'static str, time: i64) -> Option<i64> {
        let read =
            async move |tx: &Tx<'_>| tx.get(sql, &[Value::from(time)], |row| row.get(0)).await;
        self.open.database.read_long::<_, Error, _>("read", read).await.unwrap()
    }

    async fn first_due_at(&self) -> Option<i64> {
        self.read("SELECT MIN(next_at_ms) FROM webhook_queues WHERE ?1 = 0", 0).await
    }

    /// Returns true if no delivery is pending. Fails if a delivery is overdue without a reason.
    async fn is_done(&self) -> bool {
        let overdue = self
            .read(
                "SELECT count(*) FROM deliveries d
                 JOIN webhook_queues q ON q.workspace_id = d.workspace_id AND q.webhook_id = d.webhook_id
                 WHERE d.status = 'pending' AND d.due_at_ms < ?1 AND COALESCE(q.open_until_ms, 0) < ?1
                    AND NOT EXISTS (SELECT 1 FROM delivery_leases l WHERE l.webhook_id = d.webhook_id)",
                self.now.ms() - DELAY_LIMIT_MS,
            )
            .await;
        assert_eq!(overdue, Some(0), "nothing holds these");
        let sql = "SELECT count(*) FROM deliveries WHERE status = 'pending' AND ?1 = 0";
        self.read(sql, 0).await == Some(0) && self.open.count("event_matches").await == 0
    }

    async fn check_all_ended(&self, events: usize) {
        let all = i64::try_from(events * WEBHOOKS).unwrap();
        let well = "SELECT count(*) FROM deliveries WHERE ?1 = 0
            AND (status = 'delivered' AND attempts BETWEEN 1 AND 12 OR status = 'failed' AND attempts = 12)";
        assert_eq!(self.read(well, 0).await, Some(all));
        assert_eq!(self.open.count("deliveries").await, all);
        assert_eq!(self.open.count("delivery_leases").await, 0);
    }
}
