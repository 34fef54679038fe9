//! A connection that single-row lookups share.
//!
//! Their statements are pipelined, so the server processes several of them per wake-up, and no
//! lookup occupies a connection of the pool.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Pool};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::connect;
use crate::engine::error::{Error, Result};

/// The timeout of getting the connection, including opening one.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct SharedConnection(Mutex<Option<SharedClient>>);

#[derive(Debug)]
struct SharedClient {
    client: Arc<ClientWrapper>,
    times: u64,
}

impl SharedConnection {
    /// Returns the connection. Opens one in addition to those of `pool` if there is none yet, or if
    /// it broke.
    pub(super) async fn get(&self, pool: &Pool) -> Result<Arc<ClientWrapper>> {
        timeout(CONNECTION_TIMEOUT, self.get_in_time(pool)).await.map_err(|_| Error::Overloaded)?
    }

    async fn get_in_time(&self, pool: &Pool) -> Result<Arc<ClientWrapper>> {
        let mut shared = self.0.lock().await;
        if let Some(in_use) = &mut *shared
            && !in_use.client.is_closed()
        {
            in_use.times += 1;
            let client = Arc::clone(&in_use.client);
            // Replans for later lookups, in the background.
            if in_use.times.is_power_of_two() {
                let client = Arc::clone(&client);
                tokio::spawn(async move { connect::discard_plans(&client).await });
            }
            return Ok(client);
        }
        if pool.is_closed() {
            return Err(Error::Overloaded);
        }
        let client = Arc::new(connect::open_extra(pool).await?);
        *shared = Some(SharedClient { client: Arc::clone(&client), times: 0 });
        Ok(client)
    }

    /// Discards the shared connection if it is still `client`; the next lookup opens another one.
    pub(super) async fn discard(&self, client: &Arc<ClientWrapper>) {
        let mut shared = self.0.lock().await;
        shared.take_if(|in_use| Arc::ptr_eq(&in_use.client, client));
    }

    /// Closes the connection after the pending lookups.
    pub(super) async fn close(&self) {
        self.0.lock().await.take();
    }
}
