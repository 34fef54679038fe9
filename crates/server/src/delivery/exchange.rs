//! One transaction with the store: what came of attempts is kept, events become deliveries, and
//! those that are due are leased.

use std::sync::Arc;
use std::time::{Duration, Instant};

use galley_delivery::Ask;
use galley_domain::{DeliveryId, Timestamp};
use galley_storage::deliveries::{self, LeaseRequest, Leased, Settlement};
use galley_storage::{Tx, WriteTx};

use crate::environment::Environment;
use crate::http::app::App;
use crate::http::error::Error;
use crate::operations;

/// How many deliveries are made of events at a time, and how many in one transaction.
const EXPANDED_AT_A_TIME: usize = 32;
const EXPANDED_MAX: usize = 128;

/// For how long deliveries are leased: an attempt's time, that of those before it, and some more.
const LEASE_TIME: Duration = Duration::from_mins(1);

/// What the store has answered.
pub(super) struct Exchange {
    pub(super) leased: Vec<Leased>,
    /// What is still to be kept, as others waited for the store.
    pub(super) left: Vec<Settlement>,
    /// Whether there is more than it looked at.
    pub(super) more: bool,
}

/// How long it leaves the store to others at the most that have waited for it.
const REST_MAX: Duration = Duration::from_millis(20);

/// Asks the store. On an error nothing was kept, and the question is given back.
pub(super) async fn with_store(
    app: &App,
    ask: Ask<Settlement>,
) -> Result<Exchange, (Error, Ask<Settlement>)> {
    let ask = Arc::new(ask);
    let result = exchange(app, Arc::clone(&ask)).await;
    result.map_err(|error| (error, Arc::unwrap_or_clone(ask)))
}

async fn exchange(app: &App, ask: Arc<Ask<Settlement>>) -> Result<Exchange, Error> {
    let environment = app.environment().clone();
    let now = environment.now();
    if ask.settle.is_empty() {
        let look = async move |tx: &Tx<'_>| Ok::<_, Error>(deliveries::has_work(tx, now).await?);
        if !app.database().read("deliveries.has_work", look).await? {
            return Ok(Exchange { leased: Vec::new(), left: Vec::new(), more: false });
        }
    }
    let (key, node) = (app.key().clone(), app.limits().node.clone());
    let write = async move |tx: &WriteTx<'_>| {
        let now = environment.now();
        let random = || environment.random_part();
        let settled = deliveries::settle(tx, &ask.settle, now, random).await?;
        for verdict in settled.verdicts {
            operations::deliveries::judge(tx, &environment, &key, verdict).await?;
        }
        let left = settled.left;
        if ask.max == 0 && ask.failing_max == 0 {
            return Ok((Exchange { leased: Vec::new(), left, more: false }, false));
        }
        let mut more = true;
        for _ in 0..EXPANDED_MAX / EXPANDED_AT_A_TIME {
            let new_id = || DeliveryId::new(environment.new_id());
            more = deliveries::expand(tx, new_id, EXPANDED_AT_A_TIME, now).await?;
            if !more || tx.is_waited_for() {
                break;
            }
        }
        deliveries::go_on_recovering(tx, now).await?;
        let request = lease_request(&environment, &node, &ask, now);
        let leased = deliveries::lease(tx, &request).await?;
        let is_waited_for = tx.is_waited_for();
        let exchange = Exchange { leased, left, more: more || is_waited_for };
        Ok::<_, Error>((exchange, is_waited_for))
    };
    let started = Instant::now();
    let (exchange, others_waited) = app.database().write("deliveries.exchange", write).await?;
    if others_waited {
        // Those who write get as much time as they gave.
        tokio::time::sleep(started.elapsed().min(REST_MAX)).await;
    }
    Ok(exchange)
}

fn lease_request(
    environment: &Environment,
    node: &str,
    ask: &Ask<Settlement>,
    now: Timestamp,
) -> LeaseRequest {
    let time = i64::try_from(LEASE_TIME.as_millis()).unwrap_or(i64::MAX);
    LeaseRequest {
        now,
        until: Timestamp::from_ms(now.ms().saturating_add(time)),
        lease: format!("{:032x}", environment.new_id()),
        owner: node.to_owned(),
        max: ask.max,
        failing_max: ask.failing_max,
    }
}
