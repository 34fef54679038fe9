//! The yardsticks that Galley is compared with.

pub(crate) mod commits;
pub(crate) mod constant;
pub(crate) mod floor;
pub(crate) mod postgres;

use std::net::SocketAddr;

use axum::Router;

/// Serves `router` with axum's defaults.
fn serve(address: SocketAddr, router: Router) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(address).await?;
        axum::serve(listener, router).await?;
        Ok(())
    })
}
