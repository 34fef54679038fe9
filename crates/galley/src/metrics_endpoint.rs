//! The metrics of the process, and the address that serves all metrics.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use galley_commands::disk_space::free_bytes;
use galley_commands::version::VERSION;
use galley_server::serve_metrics;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use metrics_process::Collector;
use tokio::net::TcpListener;

/// The interval at which recorded measurements are aggregated, so that they don't accumulate
/// between two scrapes, and at which the process is measured.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The buckets of histograms in seconds: from an idle receiver's lag to a deadline, and up to a day
/// in the queue.
const SECONDS_BUCKETS: [f64; 14] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0, 3_600.0, 86_400.0];

/// Collects metrics, and serves them at `address`.
pub(crate) async fn start(address: SocketAddr, data_dir: PathBuf) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!("can't serve metrics on {address}: choose another with --metrics-addr")
    })?;
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS_BUCKETS)
        .and_then(PrometheusBuilder::install_recorder)
        .context("metrics can't be collected")?;
    metrics::gauge!("galley_build_info", "version" => VERSION).set(1.0);
    let upkeep = handle.clone();
    tokio::spawn(async move {
        let process = Collector::default();
        loop {
            process.collect();
            measure_disk(&data_dir);
            upkeep.run_upkeep();
            tokio::time::sleep(UPKEEP_INTERVAL).await;
        }
    });
    tokio::spawn(async move {
        if let Err(error) = serve_metrics(listener, handle).await {
            tracing::error!(%error, %address, "metrics can't be served");
        }
    });
    Ok(())
}

/// Measures the free space of the disk with the data directory, once that exists.
fn measure_disk(data_dir: &Path) {
    if let Ok(free) = free_bytes(data_dir) {
        #[expect(clippy::cast_precision_loss, reason = "gauges are floats")]
        metrics::gauge!("galley_data_directory_free_bytes").set(free as f64);
    }
}
