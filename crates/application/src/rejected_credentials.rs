//! The counter of requests with rejected credentials, by minute and client address.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use galley_domain::Timestamp;
use galley_storage::rejected_credentials::{self, RejectedCredentials};
use galley_storage::{Database, WriteTx};
use parking_lot::Mutex;

use crate::environment::Environment;
use crate::error::Error;

/// The limit on addresses that are counted apart from one store to the next.
const ADDRESS_LIMIT: usize = 1_000;

/// The limit on rows of an hour that have an address. The others have one row each minute.
const ROWS_PER_HOUR: i64 = 940;

const MINUTE_MS: i64 = 60_000;

/// Counts requests until they are stored. Memory and rows are limited, as anyone may send such
/// requests: beyond the limits, addresses are counted together.
#[derive(Debug, Default)]
pub struct RejectedCredentialsCounter(Mutex<HashMap<(i64, Option<IpAddr>), i64>>);

impl RejectedCredentialsCounter {
    /// Counts a request.
    pub fn count(&self, client: Option<IpAddr>, now: Timestamp) {
        let minute = now.ms() - now.ms().rem_euclid(MINUTE_MS);
        self.add((minute, client), 1);
    }

    fn add(&self, (minute, client): (i64, Option<IpAddr>), requests: i64) {
        let mut counts = self.0.lock();
        let is_known = counts.contains_key(&(minute, client));
        let client = client.filter(|_| is_known || counts.len() < ADDRESS_LIMIT);
        *counts.entry((minute, client)).or_default() += requests;
    }

    /// Stores the numbers. They are counted again if that fails.
    pub async fn store(&self, database: &Database, environment: &Environment) -> Result<(), Error> {
        let counted = std::mem::take(&mut *self.0.lock());
        if counted.is_empty() {
            return Ok(());
        }
        let now = environment.now();
        let hour = Timestamp::from_ms(now.ms() - 60 * MINUTE_MS);
        let to_store = counted.clone();
        let add = async move |tx: &WriteTx<'_>| {
            let stored = rejected_credentials::count_since(tx, hour).await?;
            let limit = usize::try_from(ROWS_PER_HOUR - stored).unwrap_or(0);
            Ok(rejected_credentials::add(tx, &rows(&to_store, limit)).await?)
        };
        let added = database.write::<_, Error, _>("rejected_credentials.add", add).await;
        added.inspect_err(|_| counted.iter().for_each(|(&key, &requests)| self.add(key, requests)))
    }
}

/// Returns the rows of the `limit` addresses with the most requests, and one row a minute for the
/// other addresses.
fn rows(counted: &HashMap<(i64, Option<IpAddr>), i64>, limit: usize) -> Vec<RejectedCredentials> {
    let mut counted: Vec<_> = counted.iter().map(|(&key, &requests)| (key, requests)).collect();
    counted.sort_by_key(|&(key, requests)| (key.1.is_none(), std::cmp::Reverse(requests), key));
    // In the same order on each node, to avoid a deadlock.
    let mut merged: BTreeMap<(i64, String), i64> = BTreeMap::new();
    for (index, ((minute, client), requests)) in counted.into_iter().enumerate() {
        let client = client.filter(|_| index < limit).map(|client| client.to_string());
        *merged.entry((minute, client.unwrap_or_default())).or_default() += requests;
    }
    let row = |((minute, remote_address), requests)| RejectedCredentials {
        minute: Timestamp::from_ms(minute),
        remote_address,
        requests,
    };
    merged.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        number.to_be_bytes().into()
    }

    #[test]
    fn addresses_beyond_the_limit_are_counted_together() {
        let counter = RejectedCredentialsCounter::default();
        let now = Timestamp::from_ms(1_764_200_030_000);
        for number in 0..5_000 {
            counter.count(Some(address(number)), now);
        }
        for _ in 0..7 {
            counter.count(Some(address(3)), now);
        }
        let numbers = counter.0.lock().clone();
        assert_eq!(numbers.len(), ADDRESS_LIMIT + 1);
        assert_eq!(numbers.values().sum::<i64>(), 5_007);
        let rows = rows(&numbers, 10);
        assert_eq!(rows.len(), 11);
        assert_eq!(rows.iter().map(|row| row.requests).sum::<i64>(), 5_007);
        assert!(rows.iter().any(|row| row.remote_address == "0.0.0.3" && row.requests == 8));
        assert!(rows.iter().all(|row| row.minute.ms() == 1_764_199_980_000));
    }
}
